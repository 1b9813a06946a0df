//! Logs on standard error: values of configured secrets and token shapes never get there.

use std::{
    io::{self, Write},
    sync::{Mutex, MutexGuard, PoisonError, RwLock},
};

use tracing_subscriber::EnvFilter;

use footbridge_core::redact::{Redactor, shapes};

/// What is looked for in every line.
static SECRETS: RwLock<Option<Redactor>> = RwLock::new(None);

/// Starts to log on standard error; `FOOTBRIDGE_LOG` says what, and otherwise this.
pub fn start(default: &str) {
    let filter = EnvFilter::try_from_env("FOOTBRIDGE_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| RedactingWriter(io::stderr()))
        .with_ansi(false)
        .init();
}

/// From now on, takes these values out of what is logged.
pub fn hide(secrets: &Redactor) {
    *SECRETS.write().unwrap_or_else(PoisonError::into_inner) = Some(secrets.clone());
}

/// Lines that wait while somebody else has the terminal.
static HELD: Mutex<Option<Lines>> = Mutex::new(None);

/// Those that wait, and how many there was no room for.
#[derive(Debug, Default)]
struct Lines {
    text: Vec<u8>,
    lost: usize,
}

/// Most bytes that wait; what is logged beyond that is lost, and counted.
const MOST_HELD: usize = 64 * 1024;

/// As long as this lives, lines wait; then they are written.
#[derive(Debug)]
pub(crate) struct HeldLines(());

/// Holds the lines that are logged from now on.
pub(crate) fn hold() -> HeldLines {
    held().get_or_insert_default();
    HeldLines(())
}

impl Drop for HeldLines {
    fn drop(&mut self) {
        // Without a standard error there is nobody to tell.
        let _ = io::stderr().write_all(&held().take().unwrap_or_default().whole());
    }
}

impl Lines {
    fn take(&mut self, line: &str) {
        if self.lost > 0 || self.text.len() + line.len() > MOST_HELD {
            self.lost += 1;
        } else {
            self.text.extend_from_slice(line.as_bytes());
        }
    }

    fn whole(mut self) -> Vec<u8> {
        if self.lost > 0 {
            self.text.extend_from_slice(format!("({} lines of the log were lost meanwhile)\n", self.lost).as_bytes());
        }
        self.text
    }
}

fn held() -> MutexGuard<'static, Option<Lines>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes secrets out of each line before it is written. The formatter writes a line at once.
struct RedactingWriter<W>(W);

impl<W: Write> Write for RedactingWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
        let text = clean(&String::from_utf8_lossy(line), &secrets);
        match &mut *held() {
            Some(lines) => lines.take(&text),
            None => self.0.write_all(text.as_bytes())?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn clean(line: &str, secrets: &Redactor) -> String {
    shapes::hide(&secrets.hide(line)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use footbridge_core::secret::Secret;

    /// What holds lines holds them for all.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    fn one_at_a_time() -> MutexGuard<'static, ()> {
        ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn lines_wait_while_somebody_else_has_the_terminal() {
        let _alone = one_at_a_time();
        let mut out = Vec::new();
        let waiting = hold();
        RedactingWriter(&mut out).write_all(b"held\n").unwrap();
        RedactingWriter(&mut out).write_all(&vec![b'x'; MOST_HELD]).unwrap();
        RedactingWriter(&mut out).write_all(b"after\n").unwrap();
        let whole = held().replace(Lines::default()).unwrap().whole();
        assert_eq!(whole, b"held\n(2 lines of the log were lost meanwhile)\n", "and no more than a few");
        drop(waiting);
        RedactingWriter(&mut out).write_all(b"free\n").unwrap();
        assert_eq!(out, b"free\n");
    }

    #[test]
    fn no_secret_is_logged() {
        let secrets = Redactor::new(&[Secret::new("configured-1")]);
        let line = format!("WARN a configured-1 b fbt_{} c\n", "x".repeat(43));
        assert_eq!(clean(&line, &secrets), "WARN a [redacted] b [redacted] c\n");
    }

    #[test]
    fn a_line_is_written_without_the_tokens_in_it() {
        let _alone = one_at_a_time();
        let mut out = Vec::new();
        RedactingWriter(&mut out).write_all(format!("a fbt_{} b\n", "x".repeat(43)).as_bytes()).unwrap();
        assert!(!String::from_utf8(out).unwrap().contains("xxx"));
    }
}
