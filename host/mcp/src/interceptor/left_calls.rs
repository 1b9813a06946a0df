//! Calls that nobody waits for any more, and that their server may still carry out: it was told, and need not heed that. What
//! it says without naming a call, and what it asks, may be about one of them.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// How long such a call may go on.
const MAY_RUN: Duration = Duration::from_secs(300);

/// How long one keeps what is asked from the calls of its own session: who is asked would take it for theirs, but nothing of
/// another guest's is at stake, and clients with a time limit of their own call again at once.
const MAY_ASK: Duration = Duration::from_secs(30);

/// By session: of each the calls that were left and are not answered, and when the last one was left. One session cannot
/// have another's forgotten.
#[derive(Debug, Default)]
pub(super) struct LeftCalls(HashMap<u64, Left>);

#[derive(Debug)]
struct Left {
    unanswered: usize,
    last: Instant,
}

impl LeftCalls {
    /// One of this session was left.
    pub(super) fn left(&mut self, session: u64) {
        self.0.retain(|_, left| left.last.elapsed() < MAY_RUN);
        let left = self.0.entry(session).or_insert(Left { unanswered: 0, last: Instant::now() });
        left.unanswered += 1;
        left.last = Instant::now();
    }

    /// One of this session was answered after all: it runs no more.
    pub(super) fn answered(&mut self, session: u64) {
        if let Some(left) = self.0.get_mut(&session) {
            left.unanswered = left.unanswered.saturating_sub(1);
            if left.unanswered == 0 {
                self.0.remove(&session);
            }
        }
    }

    /// Whether one of another session than this may still run.
    pub(super) fn may_be_others(&self, session: Option<u64>) -> bool {
        self.0.iter().any(|(of, left)| Some(*of) != session && left.last.elapsed() < MAY_RUN)
    }

    /// Whether what is asked while a call of this session runs may be of one that was left.
    pub(super) fn may_ask(&self, session: Option<u64>) -> bool {
        let own = session.and_then(|session| self.0.get(&session));
        self.may_be_others(session) || own.is_some_and(|left| left.last.elapsed() < MAY_ASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_were_left_are_known_by_session_until_all_of_them_are_answered() {
        let mut left = LeftCalls::default();
        assert!(!left.may_ask(Some(1)));
        (0..1000).for_each(|_| left.left(2));
        left.left(1);
        assert!(left.may_be_others(Some(1)) && left.may_be_others(Some(2)) && left.may_be_others(None));
        (0..1000).for_each(|_| left.answered(2));
        assert!(!left.may_be_others(Some(1)) && left.may_ask(Some(1)), "its own");
        left.answered(1);
        assert!(!left.may_ask(Some(1)) && !left.may_be_others(Some(2)));
        // One more answer than there were calls is no call less.
        left.answered(1);
        left.left(1);
        assert!(left.may_be_others(Some(2)));
    }
}
