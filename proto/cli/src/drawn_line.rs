//! One line of a terminal that is drawn again and again, for a person who looks, and is gone before anything else is
//! printed.
//!
//! What a server wrote is escaped, and a line that is too long is cut by the terminal, which is told not to wrap it.

use std::io::{self, IsTerminal as _, Write as _};

use footbridge_proto::text::Escaped;

use crate::blocking::Blocking;

/// No terminal shows more in one line.
const MOST: usize = 500;

/// To the first column, without wrapping from here on.
const BEGIN: &str = "\r\x1b[?7l";
/// Takes away what the line showed before, and wraps again.
const END: &str = "\x1b[K\x1b[?7h";
/// Takes away all of it.
const GONE: &str = "\r\x1b[K";

/// A line on standard error. Dropping it takes it off the screen.
#[derive(Debug, Default)]
pub struct DrawnLine {
    is_drawn: bool,
}

impl DrawnLine {
    /// Whether standard error is a terminal that can redraw a line.
    #[must_use]
    pub fn can_be_drawn() -> bool {
        let redraws = std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
        redraws && io::stderr().is_terminal()
    }

    /// Shows this in place of what it showed before.
    pub fn draw(&mut self, text: &str) {
        write(&format!("{BEGIN}{}{END}", escaped(text, MOST)));
        self.is_drawn = true;
    }

    /// Shows this in place of what it showed before, and leaves it there: the next is below.
    pub fn leave(&mut self, text: &str) {
        write(&format!("{BEGIN}{}{END}\n", escaped(text, MOST)));
        self.is_drawn = false;
    }

    /// Takes it off the screen, until it is drawn again.
    pub fn take_away(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            write(GONE);
        }
    }
}

impl Drop for DrawnLine {
    fn drop(&mut self) {
        self.take_away();
    }
}

/// How far something is, of how much if that is known, and what it does now.
#[must_use]
pub fn how_far(progress: f64, total: Option<f64>, message: Option<&str>) -> String {
    let far = match total {
        Some(total) if total > 0.0 => format!("{:.0}%", (progress / total * 100.0).clamp(0.0, 100.0)),
        _ => progress.to_string(),
    };
    message.map_or_else(|| far.clone(), |message| format!("{far} {message}"))
}

/// So many characters of a text, and nothing in it that steers a terminal.
#[must_use]
pub fn escaped(text: &str, most: usize) -> String {
    Escaped(text).to_string().chars().take(most).collect()
}

/// Writes to standard error. Where that fails there is nobody to tell.
pub fn write(text: &str) {
    let mut stderr = Blocking(io::stderr().lock());
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_is_is_said_as_far_as_it_is_known() {
        assert_eq!(how_far(3.0, Some(4.0), Some("three")), "75% three");
        assert_eq!(how_far(9.0, Some(4.0), None), "100%");
        assert_eq!(how_far(2.5, None, None), "2.5");
        assert_eq!(how_far(2.0, Some(0.0), None), "2");
        assert_eq!(how_far(-1.0, Some(f64::MAX), None), "0%");
    }
}
