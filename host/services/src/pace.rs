//! How fast text with escapes in it is looked through for the credential: what may be read as something else takes tens of
//! times longer than what stands there, so a session takes turns at it, and gives way to others behind each piece.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::PollSemaphore;

/// What is looked through at once, bytes: some tens of microseconds.
pub(crate) const PIECE: usize = 4 * 1024;
/// Less is looked through without a turn.
const LITTLE: usize = 512;

/// The pace of one body.
#[derive(Debug)]
pub(crate) struct Pace {
    turns: PollSemaphore,
    /// What was looked through since others had their turn, bytes.
    worked: usize,
}

impl Pace {
    /// By these turns of its session.
    pub(crate) fn new(turns: Arc<Semaphore>) -> Self {
        Self { turns: PollSemaphore::new(turns), worked: 0 }
    }

    /// That of another body of the same session.
    pub(crate) fn another(&self) -> Self {
        Self { turns: self.turns.clone(), worked: 0 }
    }

    /// Waits until so many bytes may be looked through, which is to be done while this is held.
    pub(crate) fn poll(&mut self, cost: usize, cx: &mut Context<'_>) -> Poll<Option<OwnedSemaphorePermit>> {
        if self.worked >= PIECE {
            self.worked = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        // Without a turn, since nobody has them any more, it would only be slower.
        let turn = if cost > LITTLE { ready!(self.turns.poll_acquire(cx)) } else { None };
        self.worked += cost;
        Poll::Ready(turn)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn what_costs_much_waits_for_its_turn_and_gives_way_behind_it() {
        let turns = Arc::new(Semaphore::new(1));
        let mut one = Pace::new(turns);
        let mut other = one.another();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(one.poll(0, &mut cx), Poll::Ready(None)), "nothing to look through");
        let Poll::Ready(Some(turn)) = one.poll(PIECE, &mut cx) else { panic!("no turn") };
        assert!(other.poll(PIECE, &mut cx).is_pending(), "the other has it");
        assert!(matches!(other.poll(LITTLE, &mut cx), Poll::Ready(None)), "a little needs none");
        drop(turn);
        assert!(one.poll(PIECE, &mut cx).is_pending(), "others first");
        assert!(matches!(other.poll(PIECE, &mut cx), Poll::Ready(Some(_))));
    }
}
