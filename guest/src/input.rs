//! Input that is read while requests are under way, in one loop without threads.
//!
//! A line that is longer than any request is not held: it is read to its end, and said to be too long.

mod long_line;

use std::{
    io,
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use footbridge_proto::wire::MOST_REQUEST_BYTES;
use nix::poll::{PollFd, PollTimeout, poll};

pub use long_line::LongLine;

/// Waits until one of these is ready, and until then at most; false where a signal came first.
///
/// # Errors
/// What poll(2) says.
pub fn wait(polled: &mut [PollFd<'_>], until: Option<Instant>) -> io::Result<bool> {
    // A millisecond more, since poll counts in whole ones.
    let left = until.map(|at| at.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
    let timeout = left.map_or(PollTimeout::NONE, |left| PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
    match poll(polled, timeout) {
        Ok(_) => Ok(true),
        Err(nix::Error::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A line of the input, without its end.
#[derive(Debug)]
pub enum InputLine {
    /// All of it.
    Whole(Vec<u8>),
    /// It was longer than any request, and this is known of it.
    TooLong(LongLine),
}

/// The lines of an input, as it comes.
#[derive(Debug, Default)]
pub struct InputLines {
    held: Vec<u8>,
    /// How much of that has no end of a line in it.
    looked_at: usize,
    /// The line that is too long, until its end is there.
    long: Option<LongLine>,
}

impl InputLines {
    /// Reads what is there; whether that was the end, which ends the last line too.
    ///
    /// # Errors
    /// What read(2) says.
    pub fn read_some(&mut self, input: BorrowedFd<'_>) -> io::Result<bool> {
        let mut buffer = [0; 16 << 10];
        match nix::unistd::read(input, &mut buffer) {
            Ok(0) => {
                if !self.held.is_empty() || self.long.is_some() {
                    self.held.push(b'\n');
                }
                Ok(true)
            }
            Ok(count) => {
                self.held.extend_from_slice(&buffer[..count]);
                Ok(false)
            }
            Err(nix::Error::EINTR | nix::Error::EAGAIN) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The next line, where it is there to its end.
    pub fn take_line(&mut self) -> Option<InputLine> {
        let end = self.held[self.looked_at..].iter().position(|byte| *byte == b'\n').map(|at| self.looked_at + at);
        self.looked_at = 0;
        let Some(end) = end else {
            if self.long.is_some() || self.held.len() > MOST_REQUEST_BYTES {
                self.long.get_or_insert_default().feed(&self.held);
                self.held.clear();
            }
            self.looked_at = self.held.len();
            return None;
        };
        let line: Vec<u8> = self.held.drain(..=end).take(end).collect();
        Some(match self.long.take() {
            Some(mut long) => {
                long.feed(&line);
                InputLine::TooLong(long)
            }
            None => InputLine::Whole(line),
        })
    }
}
