//! The task of each approval while it is pending or granted: approvers are asked, and it ends in time
//! though nobody looks.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use footbridge_proto::text::Escaped;
use futures::future::join_all;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    time::sleep_until,
};

use super::{Answer, ApprovalId, Approvals, NotAnswered, view};
use crate::approval::Approver;

/// Questions to one approver at a time.
const AT_A_TIME: usize = 8;

/// Those of one session: its neighbours do not wait behind all that it asks.
const OF_A_SESSION: usize = 2;

/// One of those who are asked, and who waits for it.
pub(super) struct Attendant {
    approver: Box<dyn Approver>,
    turns: Turns,
}

impl Attendant {
    pub(super) fn new(approver: Box<dyn Approver>) -> Self {
        Self { approver, turns: Turns::new() }
    }
}

/// Whose questions one approver hears now.
struct Turns {
    all: Semaphore,
    /// By the session's number, for as long as one of it is asked about or waits.
    sessions: Mutex<HashMap<u64, Weak<Semaphore>>>,
}

impl Turns {
    fn new() -> Self {
        Self { all: Semaphore::new(AT_A_TIME), sessions: Mutex::default() }
    }

    /// Waits for a turn of this session, and only then among all.
    async fn take(&self, session: u64) -> Option<(OwnedSemaphorePermit, SemaphorePermit<'_>)> {
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

impl Approvals {
    /// Has the approvers asked about a pending approval, and ends it in time.
    pub(super) async fn attend(self, id: ApprovalId) {
        let all = async { tokio::join!(self.ask_approvers(id), self.end_in_time(id)) };
        tokio::select! {
            () = self.0.over.cancelled() => {}
            ((), ()) = all => {}
        }
    }

    async fn end_in_time(&self, id: ApprovalId) {
        let mut changed = self.watch();
        loop {
            changed.borrow_and_update();
            let until = self.with(|book, now| {
                book.sweep(now);
                book.get(id).map(|entry| entry.until)
            });
            let Some(until) = until else { return };
            tokio::select! {
                () = sleep_until(until) => {}
                // The sender is as old as this.
                _ = changed.changed() => {}
            }
        }
    }

    /// Asks all of them at once. What still runs when it is decided is cut off; where all of them failed, and no person
    /// answers, waiting on would be for nothing.
    async fn ask_approvers(&self, id: ApprovalId) {
        let all = join_all(self.0.approvers.iter().map(|one| self.ask_one(id, one)));
        tokio::select! {
            _ = all => {
                if !self.asks_people() {
                    self.with(|book, now| book.give_up(now, id));
                }
            }
            () = self.decided(id) => {}
        }
    }

    async fn ask_one(&self, id: ApprovalId, one: &Attendant) {
        let Some(session) = self.session_of(id) else { return };
        let Some(_turn) = one.turns.take(session).await else { return };
        let Some(question) = self.question(id) else { return };
        let by = one.approver.name();
        match one.approver.ask(&question).await {
            Ok(answer) => self.answered(id, answer, &by),
            Err(error) => {
                // Names in a certificate, say, are the other side's words.
                let error = error.to_string();
                tracing::warn!(approval = %id, by, error = %Escaped(&error), "an approver gave no answer");
            }
        }
    }

    fn session_of(&self, id: ApprovalId) -> Option<u64> {
        self.with(|book, _| book.get(id).map(|entry| entry.key.session))
    }

    /// What is asked, while it is pending.
    fn question(&self, id: ApprovalId) -> Option<String> {
        self.with(|book, _| {
            book.get(id).filter(|entry| entry.granted.is_none()).and_then(|entry| view::for_approvers(id, entry))
        })
    }

    fn answered(&self, id: ApprovalId, answer: Answer, by: &str) {
        match self.answer_as(id, answer, by) {
            Ok(()) => {}
            Err(NotAnswered::Unfit(_, why)) => {
                let why = why.to_string();
                tracing::warn!(approval = %id, by, why = %Escaped(&why), "an answer does not fit what was asked");
            }
            Err(late) => tracing::debug!(%late, by, "an answer was late"),
        }
    }

    /// Waits until it is not pending any more.
    async fn decided(&self, id: ApprovalId) {
        let mut changed = self.watch();
        loop {
            changed.borrow_and_update();
            if self.with(|book, _| book.get(id).is_none_or(|entry| entry.granted.is_some())) {
                return;
            }
            // The sender is as old as this.
            let _ = changed.changed().await;
        }
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
