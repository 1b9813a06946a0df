//! Programs that leave nothing behind: each lives under a small process that ends all of its descendants.
//!
//! That process, the keeper, is this same binary re-executed. It takes in every orphan below it and holds one end of a
//! socket whose other end is the harness's. When the program ends, when the harness says so, or when the harness is
//! gone, `kill -9` included, it kills until it has no child left, and ends with the program's status.
//!
//! States of a [`Kept`]: running; ended (reported, the keeper is still cleaning); gone (nothing is left). Dropping it
//! in any state ends everything. Failure paths: a program that cannot be started is a [`SpawnError::Refused`] with the
//! step and the kernel's reason; a keeper that is itself killed is [`LostKeeper`], and the program dies with it, and so
//! does all that came of a confined one where it has a pid namespace of its own.
//!
//! It refuses to know what the program is for.

mod channel;
mod cleanup;
mod command;
mod exec;
mod finish;
mod order;
mod own_processes;
mod program;
mod tie;
mod watch;

use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::socket::{Shutdown, shutdown};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::Child;

pub use crate::refusal::{StartRefusal, Step};
pub use command::{KeptCommand, ProgramStream};
pub use finish::children_of;
pub use footbridge_domains::Confinement;
use order::{Report, Request};

/// The first argument that makes this process a keeper.
const KEEPER: &str = "__keeper";

/// Becomes a keeper, and never returns, where the arguments of this process say so. For any other command it notes the
/// umask, limits and signals that this process was started with, so that children can have them back.
///
/// It needs a process with one thread and no runtime, so it is called before anything else.
pub fn become_one_if_told() {
    crate::sys::wait_for_children();
    if std::env::args_os().nth(1).is_some_and(|word| word == KEEPER) {
        std::process::exit(watch::keep());
    }
    let _recorded = crate::sys::Inherited::of_this_process();
}

/// A running program under its keeper. Dropping it kills the program and everything that came of it.
#[derive(Debug)]
pub struct Kept {
    /// The program's stdin, if it is a pipe.
    pub stdin: Option<Sender>,
    /// The program's stdout, if it is a pipe.
    pub stdout: Option<Receiver>,
    /// The program's stderr, if it is a pipe.
    pub stderr: Option<Receiver>,
    /// The controlling end of the program's terminal, if it has one.
    pub terminal: Option<OwnedFd>,
    pid: Pid,
    apart: bool,
    keeper: Child,
    channel: AsyncFd<OwnedFd>,
    ended: Option<ProgramEnd>,
    /// Whether something that it had others run may be left.
    may_be_left: bool,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
}

impl ProgramEnd {
    /// The status that shells give: 128 and the signal's number for a signal.
    pub fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => 128 + signal,
        }
    }
}

impl fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit status: {code}"),
            Self::Signaled(signal) => write!(f, "signal: {signal}"),
        }
    }
}

/// What may be the matter where no keeper starts.
fn keeper_hint(error: &std::io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(nix::libc::EAGAIN | nix::libc::ENOMEM) => {
            "is the limit of processes reached (ulimit -u, TasksMax of a service), or memory used up?"
        }
        _ => "is it still there and executable?",
    }
}

/// Why there is no running program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The keeper could not be started.
    #[error("cannot start a keeper from this program's own file; {}", keeper_hint(.0))]
    Keeper(#[source] std::io::Error),
    /// No socket, pipe or copy of a stream for it.
    #[error("cannot make the pipes for a program; are too many files open (ulimit -n)?")]
    Pipes(#[source] std::io::Error),
    /// The keeper could not start the program.
    #[error(transparent)]
    Refused(StartRefusal),
    /// The keeper ended before it said anything.
    #[error("the keeper of a program ended before it could start it; was it killed, or out of memory?")]
    Lost,
}

/// The keeper was killed, and the program with it; how it would have ended is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the keeper of the program was killed, so its status is not known; processes that it had started may be left")]
pub struct LostKeeper;

impl Kept {
    /// Starts to describe a program, by path or by a name on the PATH of the environment that it gets.
    pub fn command(program: impl AsRef<std::ffi::OsStr>) -> KeptCommand {
        KeptCommand::new(program.as_ref())
    }

    /// Whether the program was confined, and got namespaces of its own for it: see [`KeptCommand::confined`].
    pub(crate) fn is_apart(&self) -> bool {
        self.apart
    }

    /// The program's pid as seen from here; in a sandbox it sees itself as 1.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Passes a signal to the program's group, in a sandbox to its first process. A program that has ended is passed
    /// over.
    pub fn signal(&self, signal: Signal) {
        let _it_may_have_ended = channel::send(&self.channel, &Request::Signal(signal as i32), &[]);
    }

    /// Waits until the program has ended and nothing of it is left. Safe to cancel and call again.
    pub async fn wait(&mut self) -> Result<ProgramEnd, LostKeeper> {
        while self.ended.is_none() {
            match receive::<Report>(&self.channel).await {
                Ok(Some((Report::Exited(code), _))) => self.ended = Some(ProgramEnd::Exited(code)),
                Ok(Some((Report::Signaled(signal), _))) => self.ended = Some(ProgramEnd::Signaled(signal)),
                Ok(Some((Report::MayBeLeft, _))) => self.may_be_left = true,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        // Says that the report was heard.
        self.close_lifeline();
        let _status_was_reported = self.keeper.wait().await;
        self.ended.ok_or(LostKeeper)
    }

    /// Whether it has ended and nothing is known to be left of it. Not before [`Self::wait`] or [`Self::kill`] found that.
    pub fn is_gone(&mut self) -> bool {
        self.ended.is_some() && !self.may_be_left && matches!(self.keeper.try_wait(), Ok(Some(_)))
    }

    fn close_lifeline(&self) {
        let _already_gone = shutdown(self.channel.as_raw_fd(), Shutdown::Write);
    }

    /// Kills the program and everything that came of it, and waits at most this long until nothing is left: nothing
    /// where something is still ending, since the kernel may hold a process (state D in ps).
    pub async fn kill(&mut self, deadline: Duration) -> Option<Result<ProgramEnd, LostKeeper>> {
        self.close_lifeline();
        tokio::time::timeout(deadline, self.wait()).await.ok()
    }
}

async fn receive<T: DeserializeOwned>(channel: &AsyncFd<OwnedFd>) -> nix::Result<Option<channel::Received<T>>> {
    loop {
        let mut ready = channel.readable().await.map_err(|_| Errno::EIO)?;
        match ready.try_io(|channel| channel::receive::<T>(channel).map_err(std::io::Error::from)) {
            Ok(received) => return received.map_err(|_| Errno::EIO),
            Err(_would_block) => {}
        }
    }
}
