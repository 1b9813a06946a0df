//! Counting slowly, each count in a thread of its own, and stopping it.
//!
//! A count listens on a channel while it waits. Dropping the sender stops it, so that cancelling is removing it from
//! the table, and the end of the server stops all.

use std::{
    io::Write,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::{Builder, Scope, ScopedJoinHandle},
    time::Duration,
};

use serde_json::{Value, json};

use super::{outbox::Outbox, tools};

/// Most counts at a time.
const MAX_COUNTS: usize = 32;

/// One count to do.
#[derive(Debug)]
pub(super) struct Count {
    /// How far.
    pub(super) to: u64,
    /// How long each step takes.
    pub(super) step: Duration,
    /// The id of the request that it answers.
    pub(super) id: Value,
    /// What progress is reported under, if the caller wants it.
    pub(super) progress: Option<Value>,
}

/// The counts that go on.
pub(super) struct Counts<'scope, 'env, W> {
    outbox: &'env Outbox<W>,
    scope: &'scope Scope<'scope, 'env>,
    running: Vec<Running<'scope>>,
}

struct Running<'scope> {
    id: Value,
    /// Never sent on: its drop is the signal.
    _stop: Sender<()>,
    thread: ScopedJoinHandle<'scope, ()>,
}

/// A count does not begin.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotCounting {
    /// Too many go on.
    #[error("{MAX_COUNTS} counts go on already. Try again later.")]
    TooMany,
    /// The system has no thread for it.
    #[error("No thread is left to count with. Try again later.")]
    NoThread(#[source] std::io::Error),
}

impl<'scope, 'env, W: Write + Send> Counts<'scope, 'env, W> {
    pub(super) fn new(outbox: &'env Outbox<W>, scope: &'scope Scope<'scope, 'env>) -> Self {
        Self { outbox, scope, running: Vec::new() }
    }

    /// Starts a count, which answers its request when it is done.
    ///
    /// # Errors
    /// [`NotCounting`].
    pub(super) fn start(&mut self, count: Count) -> Result<(), NotCounting> {
        self.running.retain(|running| !running.thread.is_finished());
        if self.running.len() >= MAX_COUNTS {
            return Err(NotCounting::TooMany);
        }
        let (stop, stopped) = channel();
        let (id, outbox) = (count.id.clone(), self.outbox);
        let thread = Builder::new()
            .spawn_scoped(self.scope, move || go(&count, outbox, &stopped))
            .map_err(NotCounting::NoThread)?;
        self.running.push(Running { id, _stop: stop, thread });
        Ok(())
    }

    /// Stops the count of a request. One that is over, or never was, needs nothing.
    pub(super) fn cancel(&mut self, id: &Value) {
        self.running.retain(|running| running.id != *id);
    }
}

/// A cancelled count ends without an answer, as MCP wants it. So does one whose reader left: the thread that reads
/// the input notices by itself.
fn go<W: Write>(count: &Count, outbox: &Outbox<W>, stopped: &Receiver<()>) {
    for n in 1..=count.to {
        if stopped.recv_timeout(count.step) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        if let Some(token) = &count.progress {
            let message = format!("{n} of {}", count.to);
            let params = json!({"progressToken": token, "progress": n, "total": count.to, "message": message});
            if outbox.notify("notifications/progress", &params).is_err() {
                return;
            }
        }
    }
    let _ = outbox.answer(&count.id, &tools::text(&format!("Counted to {}.", count.to)));
}
