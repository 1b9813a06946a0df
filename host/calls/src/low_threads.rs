//! Threads for what guests can make take long: reading what is large, checking it, searching. They get a processor
//! behind all others, and there are few of them: whoever waits for a worker of the runtime does not wait for what
//! another guest sent, on a machine with two processors neither.
//!
//! Each stage has threads of its own. Searches are bounded by session alone, so a hundred sessions may have a hundred of
//! them waiting at once. Behind these in one queue, the result of a call that was made, and the record of one that is
//! to be made, would wait for what others only ask. Threads without work end.
//!
//! Fewer of them work at once than there are processors, of all stages together: a virtual machine whose processors are
//! all busy may lose them for milliseconds, and then whoever waits for a worker does. They work in the order in which they
//! began to wait, so that behind a hundred searches a result waits for as many of them as there are threads for those.

use std::{
    sync::{Arc, LazyLock},
    thread::available_parallelism,
};

use footbridge_processes::priority::give_way;
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::Semaphore,
};

fn processors() -> usize {
    available_parallelism().map_or(2, std::num::NonZero::get)
}

/// Places of those that work at once, whatever their stage, in the order in which they ask. One that is lent out is
/// given back when its permit is dropped, and nobody closes this.
static PLACES: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new((processors() - 1).max(1)));

/// The threads. Clones are the same; they end with the last of them.
#[derive(Debug, Clone)]
pub struct LowThreads(Arc<Running>);

/// None where there is no runtime to be had: then it is done beside the workers, by threads like others.
#[derive(Debug)]
struct Running(Option<Runtime>);

impl LowThreads {
    /// None of them is started before there is work.
    #[must_use]
    pub fn new() -> Self {
        let count = processors() + 2;
        let mut builder = Builder::new_current_thread();
        builder.max_blocking_threads(count).thread_name("low").on_thread_start(give_way);
        Self(Arc::new(Running(builder.build().ok())))
    }

    /// Carries work out there, after what came before it. It goes on when nobody waits for it any more. None if it
    /// panicked.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let work = move || {
            let _place = Handle::current().block_on(PLACES.acquire());
            work()
        };
        let running = match &self.0.0 {
            Some(runtime) => runtime.spawn_blocking(work),
            None => tokio::task::spawn_blocking(work),
        };
        running.await.ok()
    }
}

impl Default for LowThreads {
    fn default() -> Self {
        Self::new()
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

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use super::*;

    /// How nice this thread is: the 19th field of its line, behind a name that ends with a bracket.
    fn nice() -> i32 {
        let line = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        line.rsplit_once(") ").unwrap().1.split(' ').nth(16).unwrap().parse().unwrap()
    }

    #[tokio::test]
    async fn work_is_done_behind_all_others_and_a_panic_ends_only_itself() {
        let (threads, own) = (LowThreads::new(), nice());
        assert_eq!((threads.run(nice).await, nice()), (Some((own + 10).min(19)), own));
        assert_eq!(threads.run(|| -> usize { panic!("on purpose") }).await, None);
        assert_eq!(threads.run(|| 7).await, Some(7));
    }

    #[tokio::test]
    async fn fewer_work_at_once_than_there_are_processors_whatever_their_stage() {
        static WORKING: AtomicUsize = AtomicUsize::new(0);
        let work = || {
            let others = WORKING.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(20));
            WORKING.fetch_sub(1, Ordering::SeqCst);
            others + 1
        };
        let stages = [LowThreads::new(), LowThreads::new()];
        let all = (0..2 * processors()).flat_map(|_| &stages).map(|stage| stage.run(work));
        let most = futures::future::join_all(all).await.into_iter().max().flatten();
        assert!(most.is_some() && most <= Some((processors() - 1).max(1)), "{most:?}");
    }
}
