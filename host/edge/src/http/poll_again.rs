//! A future that is polled again at once when it was woken while it was polled.
//!
//! A connection wakes itself: whoever reads a body takes it from the same connection, and a call that ends lets go of
//! what its own handler listens to. The runtime would queue it anew for that and wake another worker to have it, which
//! costs more than to poll it once more.

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

const IDLE: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

/// A future, and how it is woken.
#[derive(Debug)]
pub(crate) struct PollAgain<F> {
    future: F,
    own: Arc<OwnWaker>,
    waker: Waker,
}

/// States: idle; polled; woken meanwhile. A wake in the first goes to the task, in the second it is a note to the poll
/// that runs.
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
        let noted = self.state.compare_exchange(POLLED, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if noted == Err(IDLE) {
            self.task.wake();
        }
    }
}

impl<F> PollAgain<F> {
    /// Polls this.
    pub(crate) fn new(future: F) -> Self {
        let own = Arc::<OwnWaker>::default();
        Self { future, waker: Arc::clone(&own).into(), own }
    }

    /// What is polled.
    pub(crate) fn inner(&mut self) -> &mut F {
        &mut self.future
    }
}

impl<F: Future + Unpin> Future for PollAgain<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { future, own, waker } = &mut *self;
        own.task.register(cx.waker());
        for _ in 0..IN_A_ROW {
            own.state.store(POLLED, Ordering::Release);
            let polled = Pin::new(&mut *future).poll(&mut Context::from_waker(waker));
            let woken = own.state.swap(IDLE, Ordering::AcqRel) == WOKEN;
            if polled.is_ready() || !woken {
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
        let mut future = PollAgain::new(Box::pin(poll_fn(|cx| {
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
        let mut future = PollAgain::new(Box::pin(poll_fn(|cx| {
            polls.fetch_add(1, Ordering::SeqCst);
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        })));
        let waker = Arc::clone(&wakes).into();
        assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!((polls.load(Ordering::SeqCst), wakes.0.load(Ordering::SeqCst)), (IN_A_ROW, 1));
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
        let turns = PollAgain::new(Box::pin(poll_fn(|cx| {
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
