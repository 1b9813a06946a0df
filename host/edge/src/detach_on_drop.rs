//! Work that goes on to its end whatever becomes of whoever waits for it.
//!
//! It is done where it is waited for: no task is made for it, and no thread woken. From the moment that nobody waits for
//! it any more it goes on in a task of its own; and so it does once it is detached, for whoever may not ask for long, as
//! a stream does whose client does not read.

use std::{
    any::Any,
    future::Future,
    mem,
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::{runtime::Handle, task::JoinHandle};
use tokio_util::task::TaskTracker;

/// What work came to, or what it panicked with.
type Ended<T> = Result<T, Box<dyn Any + Send>>;

/// Work, to be waited for.
pub(crate) struct DetachOnDrop<T: Send + 'static> {
    state: State<T>,
    tasks: TaskTracker,
    failed: fn() -> T,
}

enum State<T> {
    Here(BoxFuture<'static, Ended<T>>),
    Detached(JoinHandle<Ended<T>>),
    Over,
}

impl<T: Send + 'static> DetachOnDrop<T> {
    /// Work that counts among these tasks until its end. `failed` is what comes of it where it panics.
    pub(crate) fn new(tasks: &TaskTracker, work: impl Future<Output = T> + Send + 'static, failed: fn() -> T) -> Self {
        let work = tasks.track_future(AssertUnwindSafe(work).catch_unwind()).boxed();
        Self { state: State::Here(work), tasks: tasks.clone(), failed }
    }

    /// The same, in a task of its own from now on.
    pub(crate) fn detached(mut self) -> Self {
        let state = mem::replace(&mut self.state, State::Over);
        self.state = match state {
            State::Here(work) => State::Detached(self.tasks.spawn(work)),
            other => other,
        };
        self
    }
}

impl<T: Send + 'static> Future for DetachOnDrop<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let ended = match &mut self.state {
            State::Here(work) => ready!(work.as_mut().poll(cx)).map_err(said),
            State::Detached(task) => match ready!(Pin::new(task).poll(cx)) {
                Ok(ended) => ended.map_err(said),
                Err(error) => Err(error.to_string()),
            },
            State::Over => Err("it was asked for after its end".to_owned()),
        };
        self.state = State::Over;
        Poll::Ready(ended.unwrap_or_else(|why| {
            tracing::error!(%why, "a call failed inside, and ended alone");
            (self.failed)()
        }))
    }
}

/// What a panic says of itself.
fn said(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast::<String>().map(|text| *text);
    let text = text.or_else(|panic| panic.downcast::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|_| "it panicked".to_owned())
}

impl<T: Send + 'static> Drop for DetachOnDrop<T> {
    fn drop(&mut self) {
        if let State::Here(work) = mem::replace(&mut self.state, State::Over)
            // Without a runtime nothing goes on any more.
            && let Ok(runtime) = Handle::try_current()
        {
            self.tasks.spawn_on(work, &runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    /// Work that ends when it is told, says so, and counts among the tasks until then.
    struct Told {
        tasks: TaskTracker,
        go: oneshot::Sender<()>,
        ended: oneshot::Receiver<()>,
        work: DetachOnDrop<u8>,
    }

    fn told() -> Told {
        let (tasks, (go, begun), (ends, ended)) = (TaskTracker::new(), oneshot::channel(), oneshot::channel());
        let work = async move {
            begun.await.unwrap();
            ends.send(()).unwrap();
            1
        };
        Told { work: DetachOnDrop::new(&tasks, work, || 0), tasks, go, ended }
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_goes_on_and_is_counted() {
        for is_polled in [false, true] {
            let Told { tasks, go, ended, mut work } = told();
            if is_polled {
                assert!(futures::poll!(&mut work).is_pending());
            }
            drop(work);
            assert!(!tasks.is_empty());
            go.send(()).unwrap();
            ended.await.unwrap();
            tasks.close();
            tasks.wait().await;
        }
    }

    #[tokio::test]
    async fn detached_work_goes_on_while_nobody_asks() {
        let Told { go, ended, work, .. } = told();
        let work = work.detached();
        go.send(()).unwrap();
        ended.await.unwrap();
        assert_eq!(work.await, 1);
    }

    #[tokio::test]
    async fn a_panic_ends_the_work_alone() {
        let tasks = TaskTracker::new();
        let panics = || DetachOnDrop::new(&tasks, async { panic!("on purpose") }, || 7);
        assert_eq!((panics().await, panics().detached().await), (7, 7));
        assert!(tasks.is_empty());
        assert_eq!(said(Box::new("a".to_owned())) + &said(Box::new("b")) + &said(Box::new(1)), "abit panicked");
    }
}
