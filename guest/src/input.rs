//! Input that is read while requests are under way, in one loop without threads.

use std::{
    io,
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use nix::poll::{PollFd, PollTimeout, poll};

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

/// Reads what is there; whether that was the end.
///
/// # Errors
/// What read(2) says.
pub fn read_some(input: BorrowedFd<'_>, held: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 16 << 10];
    match nix::unistd::read(input, &mut buffer) {
        Ok(count) => {
            held.extend_from_slice(&buffer[..count]);
            Ok(count == 0)
        }
        Err(nix::Error::EINTR | nix::Error::EAGAIN) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
