//! Threads for what guests can make take long: reading what is large, checking it, searching. They get a processor
//! behind all others, and there are few of them: whoever waits for a worker of the runtime does not wait for what
//! another guest sent, on a machine with two processors neither.
//!
//! Each stage has threads of its own. Searches are bounded by session alone, so a hundred sessions may have a hundred of
//! them waiting at once. Behind these in one queue, the result of a call that was made, and the record of one that is
//! to be made, would wait for what others only ask. Threads without work end, but the last of a stage: when there is work again,
//! the machine may have none for it.
//!
//! Fewer of them work at once than there are processors, of all stages together: a virtual machine whose processors are
//! all busy may lose them for milliseconds, and then whoever waits for a worker does. They work in the order in which they
//! began to wait, so that behind a hundred searches a result waits for as many of them as there are threads for those.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError},
    thread::{self, available_parallelism},
    time::Duration,
};

use footbridge_processes::priority::give_way;
use tokio::sync::{Semaphore, oneshot};

fn processors() -> usize {
    available_parallelism().map_or(2, std::num::NonZero::get)
}

/// Places of those that work at once, whatever their stage, in the order in which they ask. One that is lent out is
/// given back when its permit is dropped, and nobody closes this.
static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(places);

fn places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new((processors() - 1).max(1)))
}

/// How long one waits for more work, unless it is the last.
const IDLE: Duration = Duration::from_secs(10);

/// The threads. Clones are the same; they end with the last of them.
#[derive(Debug, Clone)]
pub struct LowThreads(Arc<Handed>);

/// What the threads and whoever has work for them share, until this is dropped.
#[derive(Debug)]
struct Handed(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    /// There is work, or no more will come.
    changed: Condvar,
    most: usize,
    places: Arc<Semaphore>,
}

/// Where something to do is, and how many threads there are for it.
#[derive(Default)]
struct Queue {
    work: VecDeque<Work>,
    threads: usize,
    idle: usize,
    is_over: bool,
}

type Work = Box<dyn FnOnce() + Send>;

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("most", &self.most).finish_non_exhaustive()
    }
}

impl LowThreads {
    /// None of them is started before there is work.
    #[must_use]
    pub fn new() -> Self {
        Self::at_most(processors() + 2, Arc::clone(&PLACES))
    }

    /// Those that have places of their own: what servers send, however much, is not to keep what guests wait for from
    /// having one.
    #[must_use]
    pub fn apart() -> Self {
        Self::at_most(processors() + 2, places())
    }

    fn at_most(most: usize, places: Arc<Semaphore>) -> Self {
        let (queue, changed) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Handed(Arc::new(Shared { queue, changed, most, places }))))
    }

    /// Carries work out there, after what came before it. It goes on when nobody waits for it any more. None if it
    /// panicked. Where there is no thread and none is to be had, it is done here: others wait for it then, and nothing is
    /// lost.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (tell, done) = oneshot::channel();
        let work = Box::new(move || {
            if let Ok(result) = catch_unwind(AssertUnwindSafe(work)) {
                // It goes on when nobody waits for it any more.
                let _left = tell.send(result);
            }
        });
        if let Err(work) = self.0.0.take_on(work) {
            work();
        }
        done.await.ok()
    }
}

impl Default for LowThreads {
    fn default() -> Self {
        Self::new()
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a thread do it, one of those that are there or a new one. It comes back where there is none.
    fn take_on(self: &Arc<Self>, work: Work) -> Result<(), Work> {
        let mut queue = self.queue();
        if queue.idle <= queue.work.len() && queue.threads < self.most {
            let shared = Arc::clone(self);
            let started = thread::Builder::new().name("low".to_owned()).spawn(move || shared.work());
            // Without one more, those that are there come to it.
            queue.threads += usize::from(started.is_ok());
        }
        if queue.threads == 0 {
            return Err(work);
        }
        queue.work.push_back(work);
        drop(queue);
        self.changed.notify_one();
        Ok(())
    }

    /// What a thread does.
    fn work(&self) {
        give_way();
        while let Some(work) = self.next() {
            let _place = futures::executor::block_on(self.places.acquire());
            work();
        }
    }

    /// What it does next; nothing once it is to end.
    fn next(&self) -> Option<Work> {
        let mut queue = self.queue();
        loop {
            if queue.is_over {
                return None;
            }
            if let Some(work) = queue.work.pop_front() {
                return Some(work);
            }
            queue.idle += 1;
            let (waited, timed_out) = self.changed.wait_timeout(queue, IDLE).unwrap_or_else(PoisonError::into_inner);
            queue = waited;
            queue.idle -= 1;
            if timed_out.timed_out() && queue.work.is_empty() && queue.threads > 1 {
                queue.threads -= 1;
                return None;
            }
        }
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.is_over = true;
        // Nobody waits for it, or for what still runs.
        let left = std::mem::take(&mut queue.work);
        drop(queue);
        self.0.changed.notify_all();
        drop(left);
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
    async fn without_a_thread_to_be_had_it_is_done_here() {
        let here = thread::current().id();
        for (most, is_here) in [(0, true), (1, false)] {
            let threads = LowThreads::at_most(most, places());
            assert_eq!(threads.run(move || thread::current().id() == here).await, Some(is_here));
        }
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
