//! Asking the person at the terminal of this process for one word, whatever its standard streams are.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    thread,
    time::Duration,
};

use nix::sys::termios::{FlushArg, tcflush};

/// The longest answer that is read.
const MAX_ANSWER: usize = 64;

/// How long nothing that is typed counts, once all of it is there.
const UNHEARD: Duration = Duration::from_millis(500);

/// Somebody to ask.
#[derive(Debug)]
pub(super) struct Asked(File);

impl Asked {
    /// The person, if there is a terminal.
    pub(super) fn find() -> Option<Self> {
        OpenOptions::new().read(true).write(true).open("/dev/tty").ok().map(Self)
    }

    /// Shows a text, which must be escaped, and asks. Only this word, typed when they had the time to see what is asked,
    /// is a yes.
    pub(super) fn agrees(&mut self, shown: &str, question: &str, word: &str) -> io::Result<bool> {
        self.0.write_all(shown.as_bytes())?;
        writeln!(self.0, "{question}")?;
        thread::sleep(UNHEARD);
        tcflush(&self.0, FlushArg::TCIFLUSH)?;
        write!(self.0, "Type {word}: ")?;
        let (mut answer, mut byte) = (Vec::new(), [0]);
        while self.0.read(&mut byte)? == 1 && byte != *b"\n" && answer.len() < MAX_ANSWER {
            answer.extend(byte);
        }
        Ok(answer.trim_ascii() == word.as_bytes())
    }
}
