//! Lines on standard error, which nobody waits for: a log whose reader stopped, left, or has a full disk stops nothing that
//! is logged about. What cannot be written is lost, and the next line that can says how many were.
//!
//! States: written; waited for, since a reader may be busy; lost, until something is taken again.

use std::{
    io::{self, Write},
    os::fd::AsFd,
    time::Duration,
};

use chrono::{SecondsFormat, Utc};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::settings::Format;
use crate::report::counted;

/// How long a reader is waited for that took what was before.
const PATIENCE: Duration = Duration::from_millis(100);

/// As much as a pipe takes without waiting where it takes anything, bytes: `PIPE_BUF`, pipe(7).
const PIECE: usize = 4096;

/// What became of the lines before.
#[derive(Debug)]
pub(super) struct StandardError {
    lost: u64,
    is_stalled: bool,
}

impl StandardError {
    pub(super) const fn new() -> Self {
        Self { lost: 0, is_stalled: false }
    }

    /// Writes a line to `to`, if that takes it.
    pub(super) fn take(&mut self, line: &str, format: Format, to: &mut (impl Write + AsFd)) {
        if self.lost > 0 && self.write(&said(self.lost, format), to).is_ok() {
            self.lost = 0;
        }
        if self.lost > 0 || self.write(line, to).is_err() {
            self.lost += 1;
        }
    }

    fn write(&mut self, line: &str, to: &mut (impl Write + AsFd)) -> io::Result<()> {
        for piece in line.as_bytes().chunks(PIECE) {
            let patience = if self.is_stalled { Duration::ZERO } else { PATIENCE };
            self.is_stalled = !takes_more(to, patience)?;
            if self.is_stalled {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            to.write_all(piece)?;
        }
        Ok(())
    }
}

/// Whether a write of [`PIECE`] bytes waits for nobody; an error that it ends with is told by the write.
fn takes_more(to: &impl AsFd, patience: Duration) -> io::Result<bool> {
    let mut asked = [PollFd::new(to.as_fd(), PollFlags::POLLOUT)];
    let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::ZERO);
    Ok(poll(&mut asked, patience)? > 0)
}

/// A line about lines that were lost, as others are.
fn said(lost: u64, format: Format) -> String {
    let were = if lost == 1 { "was" } else { "were" };
    let time = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
    let what = format!("{} of the log {were} lost: standard error did not take more", counted(lost, "line"));
    match format {
        Format::Text => format!("{time}  WARN {}: {what}\n", module_path!()),
        Format::Json => {
            let line = serde_json::json!({
                "timestamp": time, "level": "WARN", "message": what, "target": module_path!(),
            });
            format!("{line}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Read as _, os::fd::OwnedFd, time::Instant};

    use super::*;

    fn pipe() -> (File, File) {
        let (read, write): (OwnedFd, OwnedFd) = nix::unistd::pipe().unwrap();
        (read.into(), write.into())
    }

    /// Lines that are more than a pipe takes; how many.
    fn too_many(standard_error: &mut StandardError, to: &mut File) -> usize {
        let line = "x".repeat(999) + "\n";
        let many = 2_000;
        for _ in 0..many {
            standard_error.take(&line, Format::Text, to);
        }
        many
    }

    #[test]
    fn a_reader_that_takes_nothing_is_waited_for_once_and_hears_later_how_much_it_missed() {
        let (mut read, mut write) = pipe();
        let mut standard_error = StandardError::new();
        let start = Instant::now();
        let many = too_many(&mut standard_error, &mut write);
        assert!(start.elapsed() >= PATIENCE && standard_error.lost > 0);
        let lost = standard_error.lost;
        let mut taken = vec![0; (many - usize::try_from(lost).unwrap()) * 1000];
        read.read_exact(&mut taken).unwrap();
        standard_error.take("on again\n", Format::Text, &mut write);
        drop(write);
        let mut rest = String::new();
        read.read_to_string(&mut rest).unwrap();
        let told = format!("{lost} lines of the log were lost: standard error did not take more\n");
        assert!(rest.contains(&told) && rest.ends_with("\non again\n"), "{rest}");
    }

    #[test]
    fn a_reader_that_left_and_a_full_disk_lose_lines_and_nothing_else() {
        let (read, mut write) = pipe();
        drop(read);
        let mut standard_error = StandardError::new();
        assert_eq!(too_many(&mut standard_error, &mut write), 2_000);
        assert_eq!(standard_error.lost, 2_000);
        let mut full = File::options().write(true).open("/dev/full").unwrap();
        standard_error.take("a\n", Format::Text, &mut full);
        assert_eq!(standard_error.lost, 2_001);
        let mut after = tempfile::tempfile().unwrap();
        standard_error.take("b\n", Format::Json, &mut after);
        assert_eq!(standard_error.lost, 0);
    }

    #[test]
    fn what_is_lost_is_said_in_the_form_of_the_log() {
        let text = said(1, Format::Text);
        assert!(
            text.ends_with("standard_error: 1 line of the log was lost: standard error did not take more\n"),
            "{text}"
        );
        let json: serde_json::Value = serde_json::from_str(&said(2, Format::Json)).unwrap();
        assert_eq!(json["message"], "2 lines of the log were lost: standard error did not take more");
    }
}
