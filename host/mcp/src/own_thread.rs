//! The thread on which the HTTP of one server is spoken.
//!
//! What a server sends is decrypted and parsed as fast as it comes, up to the limits of [`footbridge_outbound::web`]. So
//! each server has a thread of its own for that, behind all others in the order of the processor: what it sends keeps
//! itself waiting, and nobody else.

use std::{io, sync::Arc, time::Duration};

use footbridge_processes::{priority::give_way, threads::can_start};
use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;

/// Threads that look names up.
const LOOKUPS: usize = 2;

const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The thread. Clones are the same; it ends with the last of them.
#[derive(Debug, Clone)]
pub(super) struct OwnThread(Arc<Running>);

#[derive(Debug)]
struct Running(Option<Runtime>);

impl OwnThread {
    /// Starts one.
    ///
    /// # Errors
    /// When there is no thread, or no descriptor, to be had at the moment.
    pub(super) fn start() -> io::Result<Self> {
        // One that is started where there is none panics, and so does the first for lookups: it is there from now on.
        can_start(2)?;
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).max_blocking_threads(LOOKUPS).thread_name("http").enable_all();
        builder.on_thread_start(give_way).thread_keep_alive(FOREVER);
        let runtime = builder.build()?;
        drop(runtime.spawn_blocking(|| ()));
        Ok(Self(Arc::new(Running(Some(runtime)))))
    }

    /// Carries work out there. Dropping this ends the work. None if it panicked.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let runtime = self.0.0.as_ref()?;
        AbortOnDropHandle::new(runtime.spawn(work)).await.ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Nobody waits for what still runs there.
            runtime.shutdown_background();
        }
    }
}
