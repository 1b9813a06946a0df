//! The task of each approval while it is pending or granted: approvers are asked, and it ends in time
//! though nobody looks.

use std::ops::ControlFlow::{Break, Continue};

use footbridge_proto::text::Escaped;
use futures::{FutureExt as _, future::join_all};

use super::{Answer, ApprovalId, Approvals, Approver, ApproverAnswer, NotAnswered, turns::Attendant, view};
use crate::record::Audit;

impl Approvals {
    /// None yet. Without approvers nobody can be asked until [`Self::people_answer`].
    #[must_use]
    pub fn new(approvers: Vec<Box<dyn Approver>>, audit: Audit) -> Self {
        let approvers = approvers.into_iter().map(Attendant::new).collect();
        Self::with_attendance(approvers, audit, |approvals, id| approvals.attend(id).boxed())
    }

    /// Has the approvers asked about a pending approval, and ends it in time.
    async fn attend(self, id: ApprovalId) {
        let all = async { tokio::join!(self.ask_approvers(id), self.end_in_time(id)) };
        tokio::select! {
            () = self.0.over.cancelled() => {}
            ((), ()) = all => {}
        }
    }

    async fn end_in_time(&self, id: ApprovalId) {
        let until = || {
            self.with(|book, now| {
                book.sweep(now);
                book.get(id).map(|entry| entry.until)
            })
        };
        self.look_until(|| until().map_or(Break(()), |until| Continue(Some(until)))).await;
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
            Ok(ApproverAnswer { answer, who }) => {
                let by = who.map_or_else(|| by.clone(), |who| format!("{by}: {who}"));
                self.answered(id, answer, &by);
            }
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
        let pending = || self.with(|book, _| book.get(id).is_some_and(|entry| entry.granted.is_none()));
        self.look_until(|| if pending() { Continue(None) } else { Break(()) }).await;
    }
}
