//! A future that is polled when it was woken, and again at once when it was woken while it was polled.
//!
//! A connection wakes itself: whoever reads a body takes it from the same connection, and a call that ends lets go of
//! what its own handler listens to. The runtime would queue it anew for that and wake another worker to have it, which
//! costs more than to poll it once more. And a connection is polled for much that its handler has no part in.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures::task::AtomicWaker;

/// How often it is polled in a row. Then others have their turn.
const IN_A_ROW: usize = 4;

const WOKEN: u8 = 0;
const POLLED: u8 = 1;
const IDLE: u8 = 2;

/// A future, and how it is woken.
#[derive(Debug)]
pub(crate) struct WhenWoken<F> {
    future: F,
    own: Arc<OwnWaker>,
    waker: Waker,
}

/// States: woken, as it is at first; polled; idle. A wake from idle goes on to the task. One while it is polled is a note
/// to the poll that runs, and one that comes on top of another is nothing.
#[derive(Debug, Default)]
struct OwnWaker {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wake for OwnWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::AcqRel) == IDLE {
            self.task.wake();
        }
    }
}

impl OwnWaker {
    fn becomes(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl<F> WhenWoken<F> {
    /// Polls this.
    pub(crate) fn new(future: F) -> Self {
        let own = Arc::<OwnWaker>::default();
        Self { future, waker: Arc::clone(&own).into(), own }
    }

    /// What is polled, for a change to it: it is polled next time, whatever wakes it.
    pub(crate) fn inner(&mut self) -> &mut F {
        self.own.state.swap(WOKEN, Ordering::AcqRel);
        &mut self.future
    }
}

impl<F: Future + Unpin> Future for WhenWoken<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { future, own, waker } = &mut *self;
        own.task.register(cx.waker());
        for _ in 0..IN_A_ROW {
            if !own.becomes(WOKEN, POLLED) {
                return Poll::Pending;
            }
            let polled = Pin::new(&mut *future).poll(&mut Context::from_waker(waker));
            if polled.is_ready() || own.becomes(POLLED, IDLE) {
                return polled;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        sync::atomic::AtomicUsize,
        thread,
        time::{Duration, Instant},
    };

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn what_wakes_itself_is_polled_at_once_and_the_task_is_left_alone() {
        let (wakes, polls) = (Arc::<Counted>::default(), AtomicUsize::new(0));
        let mut future = WhenWoken::new(Box::pin(poll_fn(|cx| {
            if polls.fetch_add(1, Ordering::SeqCst) == 2 {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })));
        let waker = Arc::clone(&wakes).into();
        assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_ready());
        assert_eq!((polls.load(Ordering::SeqCst), wakes.0.load(Ordering::SeqCst)), (3, 0));
    }

    #[test]
    fn what_wakes_itself_without_end_gives_others_their_turn() {
        let (wakes, polls) = (Arc::<Counted>::default(), AtomicUsize::new(0));
        let mut future = WhenWoken::new(Box::pin(poll_fn(|cx| {
            polls.fetch_add(1, Ordering::SeqCst);
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        })));
        let waker = Arc::clone(&wakes).into();
        assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!((polls.load(Ordering::SeqCst), wakes.0.load(Ordering::SeqCst)), (IN_A_ROW, 1));
    }

    #[test]
    fn what_nothing_woke_is_not_polled_until_it_is_woken_or_changed() {
        let (wakes, polls, place) = (Arc::<Counted>::default(), AtomicUsize::new(0), AtomicWaker::new());
        let mut future = WhenWoken::new(Box::pin(poll_fn(|cx| {
            polls.fetch_add(1, Ordering::SeqCst);
            place.register(cx.waker());
            Poll::<()>::Pending
        })));
        let waker = Arc::clone(&wakes).into();
        let poll = |future: &mut WhenWoken<_>| {
            assert!(Pin::new(future).poll(&mut Context::from_waker(&waker)).is_pending());
            (polls.load(Ordering::SeqCst), wakes.0.load(Ordering::SeqCst))
        };
        assert_eq!((poll(&mut future), poll(&mut future)), ((1, 0), (1, 0)));
        place.wake();
        assert_eq!((poll(&mut future), poll(&mut future)), ((2, 1), (2, 1)));
        let _changed = future.inner();
        assert_eq!(poll(&mut future), (3, 1));
    }

    /// Another thread wakes it at any moment, again and again: no wake may be lost.
    #[tokio::test]
    async fn a_wake_of_another_thread_is_never_lost() {
        const TURNS: usize = 20_000;
        let (asked, answered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let place = Arc::new(AtomicWaker::new());
        let other = {
            let (asked, answered, place) = (Arc::clone(&asked), Arc::clone(&answered), Arc::clone(&place));
            thread::spawn(move || {
                let end = Instant::now() + Duration::from_secs(60);
                while answered.load(Ordering::SeqCst) < TURNS && Instant::now() < end {
                    let turn = asked.load(Ordering::SeqCst);
                    if answered.swap(turn, Ordering::SeqCst) != turn {
                        place.wake();
                    }
                }
            })
        };
        let turns = WhenWoken::new(Box::pin(poll_fn(|cx| {
            loop {
                place.register(cx.waker());
                let turn = asked.load(Ordering::SeqCst);
                if answered.load(Ordering::SeqCst) < turn {
                    return Poll::Pending;
                }
                if turn == TURNS {
                    return Poll::Ready(());
                }
                asked.store(turn + 1, Ordering::SeqCst);
            }
        })));
        tokio::time::timeout(Duration::from_secs(60), turns).await.unwrap();
        other.join().unwrap();
    }
}
