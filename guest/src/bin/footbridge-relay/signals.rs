//! The signals that the relay takes, as one stream.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll},
};

use footbridge_guest::sys::Ignored;
use nix::sys::signal::Signal;
use tokio::signal::unix::{self, SignalKind};

/// Passed on to the command as they come.
const PASSED_ON: [Signal; 9] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGCONT,
    Signal::SIGTSTP,
];

/// What end a relay without a command.
const ENDING: [Signal; 4] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];

/// Listens from its making on, so that nothing is missed between starting a command and waiting for it.
pub(crate) struct Signals {
    streams: Vec<(Signal, unix::Signal)>,
}

impl Signals {
    /// What an init takes: all that it passes on, and the ends of its children. What is ignored stays so.
    pub(crate) fn of_init(ignored: Ignored) -> io::Result<Self> {
        let passed_on = PASSED_ON.into_iter().filter(|signal| !ignored.has(*signal));
        Self::listen(passed_on.chain([Signal::SIGCHLD]))
    }

    /// What a relay without a command takes. Others keep their meaning, and what is ignored stays so.
    pub(crate) fn ending(ignored: Ignored) -> io::Result<Self> {
        Self::listen(ENDING.into_iter().filter(|signal| !ignored.has(*signal)))
    }

    fn listen(all: impl Iterator<Item = Signal>) -> io::Result<Self> {
        let streams = all.map(|signal| Ok((signal, unix::signal(SignalKind::from_raw(signal as i32))?)));
        Ok(Self { streams: streams.collect::<io::Result<_>>()? })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Signal> {
        for (signal, stream) in &mut self.streams {
            if stream.poll_recv(cx).is_ready() {
                return Poll::Ready(*signal);
            }
        }
        Poll::Pending
    }
}
