//! Signals on their way into a container: by the engine's `kill`, one after the other.
//!
//! Its client would pass them on itself, but only some time after the container runs, and until then they end it (Podman
//! 4.3 loses one in five that are sent at the first output). Where the engine does not take one in time, the client gets
//! it after all, so that a start that hangs can be ended.

use std::{ffi::OsString, time::Duration};

use nix::sys::signal::Signal;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};
use tokio_util::task::AbortOnDropHandle;

use crate::sandbox::engine::Engine;

/// How long the container has to be there.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause between tries.
const PAUSE: Duration = Duration::from_millis(100);

/// What brings signals to one container; dropping it ends its task.
pub(super) struct Delivery {
    queue: mpsc::UnboundedSender<Signal>,
    failed: mpsc::UnboundedReceiver<Signal>,
    _task: AbortOnDropHandle<()>,
}

impl Delivery {
    /// To the container of this name; `env` is that of the engine's client.
    pub(super) fn to(engine: Engine, name: String, env: Vec<(OsString, OsString)>) -> Self {
        let (queue, mut signals) = mpsc::unbounded_channel();
        let (failures, failed) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            while let Some(signal) = signals.recv().await {
                if !bring(&engine, &name, &env, signal).await && failures.send(signal).is_err() {
                    return;
                }
            }
        });
        Self { queue, failed, _task: AbortOnDropHandle::new(task) }
    }

    pub(super) fn send(&self, signal: Signal) {
        // Its task lives as long as this.
        let _ = self.queue.send(signal);
    }

    /// The next signal that the engine did not take.
    pub(super) async fn failed(&mut self) -> Signal {
        match self.failed.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

async fn bring(engine: &Engine, name: &str, env: &[(OsString, OsString)], signal: Signal) -> bool {
    let since = Instant::now();
    loop {
        match engine.signal(name, signal, env).await {
            Ok(()) => return true,
            Err(error) if since.elapsed() > PATIENCE => {
                tracing::warn!(%signal, %error, "the container does not take a signal; its engine's client gets it");
                return false;
            }
            Err(_not_yet) => sleep(PAUSE).await,
        }
    }
}
