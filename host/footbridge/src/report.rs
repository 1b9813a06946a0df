//! The one place that prints errors and messages of the command line.

use std::io::{self, Write as _};

use footbridge_proto::text::EscapedLines;

/// Prints an error with its causes, one a line, on standard error.
pub(crate) fn error(error: &anyhow::Error) {
    let mut text = format!("footbridge: {}\n", EscapedLines(&error.to_string()));
    let mut said = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        // Many errors repeat their cause in their own words.
        if !said.contains(&cause) {
            text.push_str(&format!("  because: {}\n", EscapedLines(&cause)));
        }
        said = cause;
    }
    // Without a standard error there is nobody to tell.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints a line for whoever is watching, on standard error.
pub(crate) fn note(text: &str) {
    // Without a standard error there is nobody to tell.
    let _ = io::stderr().write_all(format!("{}\n", EscapedLines(text)).as_bytes());
}

/// A number with what it counts, as in `1 call` and `2 calls`.
#[must_use]
pub(crate) fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Writes a result to standard output. A reader that left ends it quietly.
///
/// # Errors
/// When it cannot be written for another reason, as when the disk is full.
pub(crate) fn out(text: &str) -> io::Result<()> {
    piece(text).map(|_| ())
}

/// As [`out`], and says whether there is still a reader.
///
/// # Errors
/// As for [`out`].
pub(crate) fn piece(text: &str) -> io::Result<bool> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(true),
    }
}
