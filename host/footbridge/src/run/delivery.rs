//! Signals on their way into a container: by the engine's `kill`, one after the other.
//!
//! Its client would pass them on itself, but only some time after the container runs, and until then they end it
//! (Podman 4.3 loses one in five that are sent at the first output). Where the engine does not take one in 5 s, the
//! client gets it after all, so that a start that hangs can be ended.

use std::{ffi::OsString, time::Duration};

use footbridge_processes::sandbox::engine::Engine;
use nix::sys::signal::Signal;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{sleep, timeout},
};

/// How long the container has to be there.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause between tries.
const PAUSE: Duration = Duration::from_millis(100);

/// Signals that may wait.
const WAITING: usize = 16;

/// What brings signals to one container; dropping it ends its task.
pub(super) struct SignalDelivery {
    queue: mpsc::Sender<Signal>,
    failed: mpsc::Receiver<Signal>,
    _task: JoinSet<()>,
}

impl SignalDelivery {
    /// To the container of this name; `env` is that of the engine's client.
    pub(super) fn to(engine: Engine, name: String, env: Vec<(OsString, OsString)>) -> Self {
        let (queue, mut signals) = mpsc::channel(WAITING);
        let (failures, failed) = mpsc::channel(WAITING);
        let mut task = JoinSet::new();
        task.spawn(async move {
            while let Some(signal) = signals.recv().await {
                if timeout(PATIENCE, bring(&engine, &name, &env, signal)).await.is_err() {
                    tracing::warn!(%signal, "the container does not take a signal; its engine's client gets it");
                    // Nobody hears of it where the run is over.
                    let _ = failures.send(signal).await;
                }
            }
        });
        Self { queue, failed, _task: task }
    }

    pub(super) fn send(&self, signal: Signal) {
        // As with the kernel, those that come too fast are one.
        let _ = self.queue.try_send(signal);
    }

    /// The next signal that the engine did not take.
    pub(super) async fn failed(&mut self) -> Signal {
        match self.failed.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

/// Tries until the container takes it.
async fn bring(engine: &Engine, name: &str, env: &[(OsString, OsString)], signal: Signal) {
    while let Err(error) = engine.signal(name, signal, env).await {
        tracing::debug!(%signal, %error, "the container does not take a signal yet");
        sleep(PAUSE).await;
    }
}
