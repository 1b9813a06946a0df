//! Logs on standard error: values of configured secrets and token shapes never get there.
//!
//! While a command has the terminal, lines go to a file instead ([`to_file`]), and standard error gets one line at the
//! end. Failure path: where the file cannot be written, its lines are kept, and written to standard error at the end.

mod run_log;
mod settings;

use std::{
    io::{self, Write},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError, RwLock},
};

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use footbridge_core::redact::{Redactor, shapes};
use run_log::RunLog;
pub(crate) use settings::BadLogSetting;
use settings::{Format, LogSettings};

/// What is looked for in every line.
static SECRETS: RwLock<Option<Redactor>> = RwLock::new(None);

/// Starts to log on standard error. `FOOTBRIDGE_LOG` says what, and otherwise this; `FOOTBRIDGE_LOG_FORMAT` says how.
///
/// # Errors
/// [`BadLogSetting`] for a variable that means nothing.
pub(crate) fn start(default: &str) -> Result<(), BadLogSetting> {
    let LogSettings { filter, format } = LogSettings::of(default, |name| std::env::var_os(name))?;
    let layer = tracing_subscriber::fmt().with_env_filter(filter).with_writer(RedactingWriter).with_ansi(false);
    match format {
        Format::Text => layer.init(),
        Format::Json => layer.json().flatten_event(true).init(),
    }
    Ok(())
}

/// From now on, takes these values out of what is logged.
pub(crate) fn hide(secrets: &Redactor) {
    *SECRETS.write().unwrap_or_else(PoisonError::into_inner) = Some(secrets.clone());
}

/// Where lines go instead of standard error.
static FILE: Mutex<Option<RunLog>> = Mutex::new(None);

/// As long as this lives, lines go to a file.
#[derive(Debug)]
pub(crate) struct LogToFile(());

/// Has the lines that are logged from now on written to a new file of this state folder, made with the first of them.
pub(crate) fn to_file(state: &Path) -> LogToFile {
    *file() = Some(RunLog::new(state));
    LogToFile(())
}

impl Drop for LogToFile {
    fn drop(&mut self) {
        let said = file().take().and_then(RunLog::end);
        // Without a standard error there is nobody to tell.
        let _ = io::stderr().write_all(said.unwrap_or_default().as_bytes());
    }
}

fn file() -> MutexGuard<'static, Option<RunLog>> {
    FILE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes secrets out of each line before it is written. The formatter writes a line at once.
struct RedactingWriter;

/// A line of this level.
struct LineWriter(Level);

impl<'a> MakeWriter<'a> for RedactingWriter {
    type Writer = LineWriter;

    fn make_writer(&'a self) -> LineWriter {
        LineWriter(Level::INFO)
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> LineWriter {
        LineWriter(*meta.level())
    }
}

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
        let text = clean(&String::from_utf8_lossy(line), &secrets);
        match &mut *file() {
            Some(file) => file.take(&text, self.0),
            None => io::stderr().write_all(text.as_bytes())?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn clean(line: &str, secrets: &Redactor) -> String {
    shapes::hide(&secrets.hide(line)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use footbridge_core::secret::Secret;

    #[test]
    fn no_secret_is_logged() {
        let secrets = Redactor::new(&[Secret::new("configured-1")]);
        let line = format!("WARN a configured-1 b fbt_{} c\n", "x".repeat(43));
        assert_eq!(clean(&line, &secrets), "WARN a [redacted] b [redacted] c\n");
    }

    #[test]
    fn a_line_is_written_without_the_tokens_in_it() {
        let state = tempfile::tempdir().unwrap();
        let to_file = to_file(state.path());
        LineWriter(Level::WARN).write_all(format!("a fbt_{} b\n", "x".repeat(43)).as_bytes()).unwrap();
        let written = file().as_ref().unwrap().text();
        drop(to_file);
        assert_eq!(written, "a [redacted] b\n");
    }
}
