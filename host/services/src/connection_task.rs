//! Connections to origins are tasks, which whoever reads an answer carries on itself while it does.
//!
//! A connection of HTTP/1.1 hands an answer on a piece at a time, and each piece that is taken wakes it to read the next.
//! Left to the scheduler that is often another processor's work, and the pieces go to and fro between the two, eleven
//! thousand times in an answer of 1 GiB. So what is woken while the next piece is asked for is kept, and carried on
//! when the piece after that is. A connection that several answers share (HTTP/2) is left alone: nobody may keep that from
//! the others.
//!
//! States of a task: idle, woken (its own task is scheduled), kept (whoever reads carries it on, or wakes it when it stops
//! reading), over. One that is carried on at both ends at once is carried on again by its own task.

use std::{
    cell::RefCell,
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering, fence},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures::task::AtomicWaker;
use hyper::rt::Executor;
use tokio_util::task::TaskTracker;

/// Makes a task of each connection. Nobody waits for them: each ends with its connection, or with the runtime.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionTasks(TaskTracker);

type Connection = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for ConnectionTasks {
    fn execute(&self, connection: F) {
        self.0.spawn(Running(ConnectionTask::new(connection)));
    }
}

impl ConnectionTasks {
    /// Has something be done that ends with the connections.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(work);
    }
}

/// A connection, carried on by one at a time.
struct ConnectionTask {
    /// None once it is over.
    connection: Mutex<Option<Connection>>,
    /// Its own task.
    task: AtomicWaker,
    /// Whether somebody wanted to carry it on while another did.
    again: AtomicBool,
}

impl ConnectionTask {
    fn new(connection: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            connection: Mutex::new(Some(Box::pin(connection))),
            task: AtomicWaker::new(),
            again: AtomicBool::new(false),
        })
    }

    /// Does what there is to do; ready when it is over.
    fn carry_on(self: &Arc<Self>) -> Poll<()> {
        // First, so that it is unlocked by then.
        let _panics = WakeOnPanic(&self.task);
        let mut connection = match self.connection.try_lock() {
            Ok(connection) => connection,
            Err(TryLockError::WouldBlock) => {
                self.again.store(true, Ordering::SeqCst);
                // Either this sees it unlocked, or whoever unlocked it sees that.
                fence(Ordering::SeqCst);
                match self.connection.try_lock() {
                    Ok(connection) => connection,
                    // Whoever has it looks at that.
                    Err(TryLockError::WouldBlock) => return Poll::Pending,
                    Err(TryLockError::Poisoned(_)) => return Poll::Ready(()),
                }
            }
            // It panicked, and cannot be used any more.
            Err(TryLockError::Poisoned(_)) => return Poll::Ready(()),
        };
        let Some(running) = connection.as_mut() else { return Poll::Ready(()) };
        let polled = running.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(self))));
        if polled.is_ready() {
            *connection = None;
        }
        drop(connection);
        fence(Ordering::SeqCst);
        if polled.is_ready() || self.again.swap(false, Ordering::SeqCst) {
            self.task.wake();
        }
        polled
    }
}

/// Has the task notice that its connection panicked while another carried it on.
struct WakeOnPanic<'a>(&'a AtomicWaker);

impl Drop for WakeOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.wake();
        }
    }
}

impl Wake for ConnectionTask {
    fn wake(self: Arc<Self>) {
        let keep = |kept: &RefCell<Kept>| match &mut *kept.borrow_mut() {
            Kept::Nothing => Some(Arc::clone(&self)),
            Kept::This(one) => one.replace(Arc::clone(&self)),
        };
        // A thread that ends keeps nothing.
        let not_kept = KEPT.try_with(keep).unwrap_or_else(|_| Some(Arc::clone(&self)));
        if let Some(task) = not_kept {
            task.task.wake();
        }
    }
}

/// The task of a connection.
struct Running(Arc<ConnectionTask>);

impl Future for Running {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.task.register(cx.waker());
        self.0.carry_on()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What it waits for knows it, and it that: neither would ever go.
        let connection = self.0.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(connection);
    }
}

/// What becomes of a task that is woken on this thread.
enum Kept {
    /// It is scheduled.
    Nothing,
    /// It is kept here, the last of them.
    This(Option<Arc<ConnectionTask>>),
}

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept::Nothing) };
}

/// Keeps what is woken for as long as it lives.
struct Keeping;

impl Keeping {
    fn begin() -> Self {
        KEPT.set(Kept::This(None));
        Self
    }

    fn end(self) -> Option<Arc<ConnectionTask>> {
        match KEPT.replace(Kept::Nothing) {
            Kept::This(kept) => kept,
            Kept::Nothing => None,
        }
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        // Only where asking panicked there is anything left.
        if let Kept::This(Some(task)) = KEPT.replace(Kept::Nothing) {
            task.task.wake();
        }
    }
}

/// What the connection of an answer has to do next.
#[derive(Default)]
pub(crate) struct ReadAhead {
    next: Option<Arc<ConnectionTask>>,
}

impl fmt::Debug for ReadAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadAhead").field("is_kept", &self.next.is_some()).finish()
    }
}

impl ReadAhead {
    /// Asks for the next piece of an answer, which `ask` does, of a connection that is this answer's alone.
    pub(crate) fn piece<T>(&mut self, ask: impl FnOnce() -> Poll<T>) -> Poll<T> {
        self.carry_on();
        let keeping = Keeping::begin();
        let asked = ask();
        self.next = keeping.end();
        if asked.is_pending() {
            self.give_back();
        }
        asked
    }

    /// Has the connection do what there is to do, here and now.
    pub(crate) fn carry_on(&mut self) {
        if let Some(task) = self.next.take() {
            // Its own task hears of its end.
            let _over = task.carry_on();
        }
    }

    fn give_back(&mut self) {
        if let Some(task) = self.next.take() {
            task.task.wake();
        }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures::{FutureExt as _, future::poll_fn};

    use super::*;

    /// A connection that counts how often it is carried on, up to three times, and where it is woken.
    fn counting() -> (Arc<AtomicUsize>, Arc<AtomicWaker>) {
        let (count, woken) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicWaker::new()));
        let (counted, waker) = (Arc::clone(&count), Arc::clone(&woken));
        ConnectionTasks::default().execute(poll_fn(move |cx| {
            waker.register(cx.waker());
            if counted.fetch_add(1, Ordering::SeqCst) == 2 { Poll::Ready(()) } else { Poll::Pending }
        }));
        (count, woken)
    }

    /// Lets other tasks run.
    async fn others() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_a_piece_wakes_is_carried_on_by_whoever_asks_for_the_next() {
        let (count, woken) = counting();
        others().await;
        assert_eq!(count.load(Ordering::SeqCst), 1);
        let mut ahead = ReadAhead::default();
        let ask = |ahead: &mut ReadAhead| {
            ahead.piece(|| {
                woken.wake();
                Poll::Ready(())
            })
        };
        assert!(ask(&mut ahead).is_ready());
        others().await;
        assert_eq!(count.load(Ordering::SeqCst), 1, "it is kept");
        assert!(ask(&mut ahead).is_ready());
        assert_eq!(count.load(Ordering::SeqCst), 2, "it is carried on at once");
        ahead.carry_on();
        assert_eq!(count.load(Ordering::SeqCst), 3);
        others().await;
        assert_eq!(
            (count.load(Ordering::SeqCst), Arc::strong_count(&count)),
            (3, 1),
            "it is over, and nothing of it stays"
        );
    }

    #[tokio::test]
    async fn what_is_kept_is_given_back_when_nothing_comes_or_nobody_reads_on() {
        let (count, woken) = counting();
        others().await;
        let mut ahead = ReadAhead::default();
        let pending: Poll<()> = ahead.piece(|| {
            woken.wake();
            Poll::Pending
        });
        assert!(pending.is_pending());
        others().await;
        assert_eq!(count.load(Ordering::SeqCst), 2);
        let woken_again = ahead.piece(|| {
            woken.wake();
            Poll::Ready(())
        });
        assert!(woken_again.is_ready());
        drop(ahead);
        others().await;
        assert_eq!((count.load(Ordering::SeqCst), Arc::strong_count(&count)), (3, 1));
    }

    #[tokio::test]
    async fn what_wakes_it_elsewhere_has_its_own_task_carry_it_on() {
        let (count, woken) = counting();
        others().await;
        woken.wake();
        others().await;
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_runtime_that_ends_takes_its_connections_along() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (count, woken) = runtime.block_on(async {
            let counted = counting();
            others().await;
            counted
        });
        drop(runtime);
        drop(woken);
        assert_eq!(Arc::strong_count(&count), 1);
        assert!(poll_fn(|_| Poll::Ready(())).now_or_never().is_some());
    }
}
