//! Whose questions an approver hears now: a few at a time, and of one session fewer, so that none waits behind all that
//! another asks.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::Approver;

/// Questions to one approver at a time.
const AT_A_TIME: usize = 8;

/// Those of one session: its neighbours do not wait behind all that it asks.
const OF_A_SESSION: usize = 2;

/// One of those who are asked, and who waits for it.
pub(super) struct Attendant {
    pub(super) approver: Box<dyn Approver>,
    pub(super) turns: Turns,
}

impl Attendant {
    pub(super) fn new(approver: Box<dyn Approver>) -> Self {
        Self { approver, turns: Turns::new() }
    }
}

/// Whose questions one approver hears now.
pub(super) struct Turns {
    all: Semaphore,
    /// By the session's number, for as long as one of it is asked about or waits.
    sessions: Mutex<HashMap<u64, Weak<Semaphore>>>,
}

impl Turns {
    fn new() -> Self {
        Self { all: Semaphore::new(AT_A_TIME), sessions: Mutex::default() }
    }

    /// Waits for a turn of this session, and only then among all.
    pub(super) async fn take(&self, session: u64) -> Option<(OwnedSemaphorePermit, SemaphorePermit<'_>)> {
        let own = self.of(session);
        // Neither is ever closed.
        Some((own.acquire_owned().await.ok()?, self.all.acquire().await.ok()?))
    }

    fn of(&self, session: u64) -> Arc<Semaphore> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = sessions.get(&session).and_then(Weak::upgrade) {
            return own;
        }
        sessions.retain(|_, own| own.strong_count() > 0);
        let own = Arc::new(Semaphore::new(OF_A_SESSION));
        sessions.insert(session, Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_session_that_asks_all_the_time_leaves_turns_to_the_others() {
        let turns = Turns::new();
        let mut of_one: Vec<_> = (0..20).map(|_| Box::pin(turns.take(1))).collect();
        let mut taken: Vec<_> = of_one.iter_mut().filter_map(|turn| turn.now_or_never()).collect();
        assert_eq!(taken.len(), OF_A_SESSION, "the others wait behind their own");
        let others: Vec<_> = (2..5).filter_map(|session| turns.take(session).now_or_never()).collect();
        assert_eq!(others.len(), 3);
        drop(taken.pop());
        taken.extend(of_one.iter_mut().skip(OF_A_SESSION).filter_map(|turn| turn.now_or_never()));
        assert_eq!(taken.len(), OF_A_SESSION);
        drop((of_one, taken, others));
        drop(turns.take(9).await);
        let _again = turns.take(10).await;
        assert_eq!(turns.sessions.lock().unwrap().len(), 1, "nothing is kept of sessions that ask nothing");
    }
}
