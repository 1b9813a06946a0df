//! Logs on standard error: values of configured secrets and token shapes never get there.

use std::{
    io::{self, Write},
    sync::{PoisonError, RwLock},
};

use tracing_subscriber::EnvFilter;

use crate::redact::{Redactor, shapes};

/// What is looked for in every line.
static SECRETS: RwLock<Option<Redactor>> = RwLock::new(None);

/// Starts to log on standard error; `FOOTBRIDGE_LOG` says what, and otherwise this.
pub fn start(default: &str) {
    let filter = EnvFilter::try_from_env("FOOTBRIDGE_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Clean(io::stderr())).with_ansi(false).init();
}

/// From now on, takes these values out of what is logged.
pub fn hide(secrets: &Redactor) {
    *SECRETS.write().unwrap_or_else(PoisonError::into_inner) = Some(secrets.clone());
}

/// Takes secrets out of each line before it is written. The formatter writes a line at once.
struct Clean<W>(W);

impl<W: Write> Write for Clean<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
        self.0.write_all(clean(&String::from_utf8_lossy(line), &secrets).as_bytes())?;
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
    use crate::secret::Secret;

    #[test]
    fn no_secret_is_logged() {
        let secrets = Redactor::new(&[Secret::new("configured-1")]);
        let line = format!("WARN a configured-1 b fbt_{} c\n", "x".repeat(43));
        assert_eq!(clean(&line, &secrets), "WARN a [redacted] b [redacted] c\n");
    }

    #[test]
    fn a_line_is_written_without_the_tokens_in_it() {
        let mut out = Vec::new();
        writeln!(Clean(&mut out), "a fbt_{} b", "x".repeat(43)).unwrap();
        assert!(!String::from_utf8(out).unwrap().contains("xxx"));
    }
}
