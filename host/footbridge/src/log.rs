//! Logs on standard error: values of configured secrets and token shapes never get there.
//!
//! While a command has the terminal, lines go to a file instead ([`to_file`]), and standard error gets one line at the
//! end. Failure paths: where the file cannot be written, its lines are kept, and written to standard error at the end; where
//! that takes nothing, lines are lost and counted, and nobody waits.

mod run_log;
mod settings;
mod standard_error;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError, RwLock},
};

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use crate::waiting;
use footbridge_core::redact::{Redactor, shapes};
use run_log::RunLog;
pub(crate) use settings::BadLogSetting;
use settings::{Format, LogSettings};
use standard_error::StandardError;

/// What is looked for in every line.
static SECRETS: RwLock<Option<Redactor>> = RwLock::new(None);

/// Starts to log on standard error. `FOOTBRIDGE_LOG` says what, and otherwise this; `FOOTBRIDGE_LOG_FORMAT` says how.
///
/// # Errors
/// [`BadLogSetting`] for a variable that means nothing.
pub(crate) fn start(default: &str) -> Result<(), BadLogSetting> {
    let LogSettings { filter, format } = LogSettings::of(default, |name| std::env::var_os(name))?;
    let writer = RedactingWriter(format);
    let layer = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(false);
    // It would be said on standard error, and be the end of whoever logs where that takes nothing.
    let layer = layer.log_internal_errors(false);
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

/// Where lines go otherwise.
static STANDARD_ERROR: Mutex<StandardError> = Mutex::new(StandardError::new());

/// The file of this run, made with the first thing that is written there.
static OF_RUN: Mutex<Option<PathBuf>> = Mutex::new(None);

/// From now on, what is too long to be told goes to a file of this state folder, and so does what is logged where
/// [`to_file`] says so.
pub(crate) fn of_run(state: &Path) {
    *OF_RUN.lock().unwrap_or_else(PoisonError::into_inner) = Some(run_log::of_this_process(state));
}

/// Keeps a list that is too long to be told, a line each, and gives its file, and whether all of it is there; none where
/// there is no file.
pub(crate) fn keep_list(lines: impl Iterator<Item = String>) -> Option<(PathBuf, bool)> {
    let path = OF_RUN.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
    let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
    RunLog::list(&path, lines.map(|line| clean(&line, &secrets))).ok().map(|is_whole| (path, is_whole))
}

/// As long as this lives, lines go to a file.
#[derive(Debug)]
pub(crate) struct LogToFile(());

/// Has the lines that are logged from now on written to the file of this run, made with the first of them; to a new one of
/// this state folder where there is none.
pub(crate) fn to_file(state: &Path) -> LogToFile {
    let path = OF_RUN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    *file() = Some(RunLog::new(path.unwrap_or_else(|| run_log::of_this_process(state))));
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
struct RedactingWriter(Format);

/// A line of this level.
struct LineWriter {
    format: Format,
    level: Level,
}

impl<'a> MakeWriter<'a> for RedactingWriter {
    type Writer = LineWriter;

    fn make_writer(&'a self) -> LineWriter {
        LineWriter { format: self.0, level: Level::INFO }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> LineWriter {
        LineWriter { format: self.0, level: *meta.level() }
    }
}

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
        let text = clean(&String::from_utf8_lossy(line), &secrets);
        let mut file = file();
        if let Some(file) = &mut *file {
            file.take(&text, self.level);
            return Ok(line.len());
        }
        drop(file);
        waiting::aside(|| {
            let mut standard_error = STANDARD_ERROR.lock().unwrap_or_else(PoisonError::into_inner);
            standard_error.take(&text, self.format, &mut io::stderr());
        });
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
    fn a_list_is_kept_beside_what_is_logged() {
        let state = tempfile::tempdir().unwrap();
        let path = run_log::of_this_process(state.path());
        for list in [["/a", "/b"], ["/c", "/d"]] {
            assert!(RunLog::list(&path, list.into_iter().map(String::from)).unwrap());
        }
        assert!(
            !RunLog::list(
                &run_log::of_this_process(&state.path().join("full")),
                std::iter::repeat_n("x".repeat(1 << 20), 5)
            )
            .unwrap()
        );
        assert_eq!(std::fs::read_to_string(path).unwrap(), "/a\n/b\n/c\n/d\n");
    }

    #[test]
    fn a_line_is_written_without_the_tokens_in_it() {
        let state = tempfile::tempdir().unwrap();
        let to_file = to_file(state.path());
        let mut writer = LineWriter { format: Format::Text, level: Level::WARN };
        writer.write_all(format!("a fbt_{} b\n", "x".repeat(43)).as_bytes()).unwrap();
        let written = file().as_ref().unwrap().text();
        drop(to_file);
        assert_eq!(written, "a [redacted] b\n");
    }
}
