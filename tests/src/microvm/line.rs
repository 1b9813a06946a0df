//! The serial line over which a machine takes scripts, one at a time, and gives back what they wrote: see `init.sh`.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::{
        fd::AsFd,
        unix::net::{UnixListener, UnixStream},
    },
    time::{Duration, Instant},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::VM_PATIENCE;
use crate::running::Ran;

/// The kernel's buffer of a serial line holds 4 KiB, and there is no flow control.
const LONGEST_SCRIPT: usize = 3500;

/// The host's end of the line.
#[derive(Debug)]
pub(super) struct Line(BufReader<UnixStream>);

impl Line {
    /// Waits until QEMU has connected.
    #[track_caller]
    pub(super) fn accept(listener: &UnixListener) -> Self {
        let mut watched = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        let patience = PollTimeout::try_from(VM_PATIENCE).unwrap();
        assert!(poll(&mut watched, patience).is_ok_and(|ready| ready > 0), "QEMU does not start");
        Self(BufReader::new(listener.accept().unwrap().0))
    }

    /// Waits until the machine takes scripts.
    pub(super) fn ready(&mut self, deadline: Instant) -> io::Result<()> {
        match self.text(deadline)?.as_str() {
            "ready" => Ok(()),
            other => Err(io::Error::other(format!("it said {other:?}"))),
        }
    }

    /// Runs a script to its end.
    pub(super) fn run(&mut self, script: &str, deadline: Instant) -> io::Result<Ran> {
        self.send(script)?;
        self.answer(deadline)
    }

    /// Sends a script, which must not be long.
    fn send(&mut self, script: &str) -> io::Result<()> {
        assert!(script.len() <= LONGEST_SCRIPT, "a script of {} bytes", script.len());
        write!(self.0.get_mut(), "{}\n{script}", script.len())
    }

    /// Waits for its end.
    fn answer(&mut self, deadline: Instant) -> io::Result<Ran> {
        let text = self.text(deadline)?;
        let odd = || io::Error::other(format!("it said {text:?}"));
        let numbers: Vec<usize> = text.split(' ').map(str::parse).collect::<Result<_, _>>().map_err(|_| odd())?;
        let [status, stdout, stderr] = numbers[..] else { return Err(odd()) };
        let mut bytes = |length| -> io::Result<String> {
            let mut bytes = vec![0; length];
            self.limit(deadline)?;
            self.0.read_exact(&mut bytes).map_err(too_late)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let status = i32::try_from(status).map_err(|_| odd())?;
        Ok(Ran { status, stdout: bytes(stdout)?, stderr: bytes(stderr)? })
    }

    fn text(&mut self, deadline: Instant) -> io::Result<String> {
        self.limit(deadline)?;
        let mut line = String::new();
        match self.0.read_line(&mut line).map_err(too_late)? {
            0 => Err(io::Error::other("the machine ended")),
            _ => Ok(line.trim_end_matches('\n').to_owned()),
        }
    }

    /// Ends reads when patience does.
    fn limit(&self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.0.get_ref().set_read_timeout(Some(left))
    }
}

fn too_late(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::Error::other("nothing came in time") } else { error }
}
