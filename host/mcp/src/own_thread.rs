//! The thread on which the HTTP of one server is spoken.
//!
//! What a server sends is decrypted and parsed as fast as it comes, up to the limits of [`footbridge_outbound::web`]. So
//! each server has a thread of its own for that, behind all others in the order of the processor: what it sends keeps
//! itself waiting, and nobody else.

use std::{io, sync::Arc};

use footbridge_processes::priority::give_way;
use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;

/// Threads that look names up.
const LOOKUPS: usize = 2;

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
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).max_blocking_threads(LOOKUPS).thread_name("http").enable_all();
        builder.on_thread_start(give_way);
        Ok(Self(Arc::new(Running(Some(builder.build()?)))))
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
