//! Signals that this process takes, as one stream.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll},
};

use nix::sys::signal::Signal;
use tokio::signal::unix::{self, SignalKind};

use crate::sys::Inherited;

/// Listens from its making on. Others than those named keep their meaning.
pub struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Begins to take these signals; from then on they no longer end this process.
    ///
    /// # Errors
    /// When there is no room for a handler.
    pub fn listen(all: &[Signal]) -> io::Result<Self> {
        let stream = |signal: &Signal| Ok((*signal, unix::signal(SignalKind::from_raw(*signal as i32))?));
        all.iter().map(stream).collect::<io::Result<_>>().map(Self)
    }

    /// As [`Self::listen`], but what was ignored when this process started stays so: nohup asks for it, and a shell
    /// without job control does for what it starts in the background.
    ///
    /// # Errors
    /// As [`Self::listen`].
    pub fn listen_if_not_ignored(all: &[Signal]) -> io::Result<Self> {
        let ignored = Inherited::of_this_process().ignored;
        let taken: Vec<Signal> =
            all.iter().copied().filter(|signal| ignored >> (*signal as i32 - 1) & 1 == 0).collect();
        Self::listen(&taken)
    }

    /// The next one. Dropping the future loses none.
    pub async fn next(&mut self) -> Signal {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Signal> {
        for (signal, stream) in &mut self.0 {
            if stream.poll_recv(cx).is_ready() {
                return Poll::Ready(*signal);
            }
        }
        Poll::Pending
    }
}
