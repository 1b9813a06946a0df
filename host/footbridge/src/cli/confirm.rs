//! Asking the person at the terminal of this process for one word, whatever its standard streams are.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    thread,
    time::Duration,
};

use footbridge_processes::terminal::window;
use nix::sys::termios::{FlushArg, tcflush};

use crate::approvers::prompt::show::wrap;

/// The longest answer that is read.
const MAX_ANSWER: usize = 64;

/// Rows for what is asked.
const BELOW: usize = 2;

/// The size of a terminal that does not say.
const ROWS: u16 = 24;
const COLUMNS: u16 = 80;

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

    /// How many columns their terminal has.
    pub(super) fn columns(&self) -> u16 {
        self.size().1
    }

    fn size(&self) -> (u16, u16) {
        window::size(&self.0).unwrap_or((ROWS, COLUMNS))
    }

    /// Shows a text, which must be escaped, a screen at a time, and asks. Only this word, typed when they had the time to
    /// see what is asked, is a yes; so is none that is typed before the last of it is on the screen.
    pub(super) fn agrees(&mut self, shown: &str, question: &str, word: &str) -> io::Result<bool> {
        let (rows, columns) = self.size();
        let pages = pages(shown, rows, columns);
        let count = pages.len();
        for (at, page) in pages.iter().enumerate() {
            self.0.write_all(page.as_bytes())?;
            if at + 1 < count {
                let more = format!("-- {} of {count}: Enter shows more, anything else ends this -- ", at + 1);
                if self.typed(&more)?.is_none_or(|typed| !typed.is_empty()) {
                    return Ok(false);
                }
            }
        }
        writeln!(self.0, "{question}")?;
        let typed = self.typed(&format!("Type {word}: "))?;
        Ok(typed.is_some_and(|typed| typed == word.as_bytes()))
    }

    /// What is typed behind this, up to the end of its line and without blanks around it. None where nothing comes any
    /// more.
    fn typed(&mut self, behind: &str) -> io::Result<Option<Vec<u8>>> {
        thread::sleep(UNHEARD);
        tcflush(&self.0, FlushArg::TCIFLUSH)?;
        write!(self.0, "{behind}")?;
        let (mut answer, mut byte) = (Vec::new(), [0]);
        loop {
            match self.0.read(&mut byte)? {
                0 => return Ok(None),
                _ if byte == *b"\n" || answer.len() == MAX_ANSWER => return Ok(Some(answer.trim_ascii().to_vec())),
                _ => answer.extend(byte),
            }
        }
    }
}

/// A text in pieces that each have room on a screen of so many rows and columns, with what is asked below. Lines that are
/// longer are cut to them here: a terminal that did it would take more rows than are counted, and the first scroll away.
fn pages(text: &str, rows: u16, columns: u16) -> Vec<String> {
    let room = usize::from(rows).saturating_sub(BELOW).max(1);
    let lines: Vec<String> = text.lines().flat_map(|line| wrap(line, usize::from(columns))).collect();
    let page = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect();
    lines.chunks(room).map(page).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_as_many_rows_as_there_is_room_for_and_none_is_lost() {
        for letter in ["x", "漢"] {
            let text: String = (0..50).map(|at| format!("{at} {}\n", letter.repeat(at * 4))).collect();
            let pages = pages(&text, 24, 80);
            let width = |line: &str| line.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum::<usize>();
            assert!(pages.concat().lines().all(|line| width(line) <= 80));
            assert!(pages.len() > 1 && pages.iter().all(|page| page.lines().count() <= 24 - BELOW), "{pages:#?}");
            assert_eq!(pages.concat().matches(letter).count(), text.matches(letter).count());
        }
        assert_eq!(super::pages("short\n", 24, 80), ["short\n"]);
        // Colours take no room, and are never in two pieces.
        for length in 70..90 {
            let line = format!("\u{1b}[1m{}\u{1b}[0m\n", "x".repeat(length));
            let pages = super::pages(&line, 24, 80).concat();
            assert!(pages.contains("\u{1b}[0m") && pages.starts_with("\u{1b}[1mx"), "{pages:?}");
            assert_eq!(pages.lines().count(), length.div_ceil(80), "{pages:?}");
        }
        let long = super::pages(&"x".repeat(2000), 24, 80);
        assert!(long.len() > 1, "a line that is longer than the screen is on several: {}", long.len());
    }
}
