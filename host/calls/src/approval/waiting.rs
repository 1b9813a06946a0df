//! A call whose client waits for a person: until there is a grant, and taking it.

use std::{
    ops::ControlFlow::{Break, Continue},
    sync::Arc,
};

use footbridge_proto::approval::ApprovalStatus;
use futures::{FutureExt as _, future::BoxFuture};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    ApprovalId, Approvals, Asking, Cleared, Key, NotCleared, Patience, State,
    book::{Asked, Change, New, Turn, Waiter, Yes},
    clear::{Approved, Question},
    desk::step,
    view,
};
use crate::cause::{Broken, Cause};
use crate::decide::{denied, is_covered};
use crate::{decide::Verdict, events::ApprovalEvent, resolve::ResolvedCall, watcher::Watcher};
use footbridge_core::human::timestamp;

/// A call whose client waits for an answer. Dropping it leaves, which withdraws nothing: the same call made again finds
/// what became of it.
#[derive(Debug)]
pub(crate) struct Waiting {
    verdict: Verdict,
    key: Key,
    place: WaitersPlace,
}

/// A place among those who wait for an approval. Dropping it leaves.
pub(super) struct WaitersPlace {
    approvals: Approvals,
    waiter: Option<Waiter>,
}

impl WaitersPlace {
    pub(super) fn new(approvals: Approvals, waiter: Waiter) -> Self {
        Self { approvals, waiter: Some(waiter) }
    }

    /// Where it is, and with which approval.
    pub(super) fn look(&self) -> (ApprovalId, Turn) {
        let looked = self.waiter.and_then(|waiter| self.approvals.with(|book, now| book.look(now, waiter)));
        looked.unwrap_or((ApprovalId(0), Turn::Over(State::Expired)))
    }

    /// Takes the grant, which uses it up. None where there is none any more, or it is not for this.
    pub(super) fn take(&mut self, key: &Key, spare: ApprovalId) -> Option<Taken> {
        let (id, waiter) = (self.look().0, self.waiter?);
        let audit = &self.approvals.0.audit;
        let taken = self.approvals.with(|book, now| {
            let about = Arc::clone(&book.get(id)?.about);
            let (id, yes) = book.take(now, waiter, key, spare)?;
            let (approver, content) = (Some(Arc::clone(&yes.by)), yes.content.clone());
            let used = Change { id, state: State::Used, key: key.clone(), about, approver, content };
            // In line before whatever becomes of its approval next: still under the lock.
            let is_recorded = audit.approval_used(step(&used)).boxed();
            Some(Taken { id, yes, is_recorded })
        })?;
        self.waiter = None;
        Some(taken)
    }
}

/// A grant that is used up.
pub(super) struct Taken {
    pub(super) id: ApprovalId,
    pub(super) yes: Yes,
    /// Whether its use is durable in time.
    pub(super) is_recorded: BoxFuture<'static, bool>,
}

impl std::fmt::Debug for WaitersPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WaitersPlace").field(&self.waiter).finish()
    }
}

impl Drop for WaitersPlace {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.approvals.with(|book, now| book.leave(now, waiter));
        }
    }
}

impl Waiting {
    pub(super) fn new(approvals: Approvals, verdict: Verdict, key: Key, waiter: Waiter) -> Self {
        Self { verdict, key, place: WaitersPlace::new(approvals, waiter) }
    }

    /// The call.
    #[must_use]
    pub(crate) fn call(&self) -> &ResolvedCall {
        self.verdict.call()
    }

    /// Waits until there is a grant that it may take.
    ///
    /// # Errors
    /// [`NotCleared`]: denied, expired, out of patience, or its client left.
    pub(crate) async fn granted(
        self,
        cancel: &CancellationToken,
        patience: &Patience,
    ) -> Result<Self, Box<NotCleared>> {
        let patient_until = patience.answer_after.map(|time| Instant::now() + time);
        let mut told = None;
        let waited = self.place.approvals.look_until(|| {
            let (id, turn) = self.place.look();
            let Turn::Wait(until) = turn else { return Break((id, turn)) };
            if told.replace(id) != Some(id) {
                self.tell(&patience.watcher, id, until);
            }
            match patient_until {
                Some(end) if end <= Instant::now() => Break((id, turn)),
                end => Continue(Some(end.map_or(until, |end| end.min(until)))),
            }
        });
        // Whoever left wins over an answer that came at the same moment: that grant stays for who asks again.
        match cancel.run_until_cancelled(waited).await.filter(|_| !cancel.is_cancelled()) {
            None => Err(Box::new(self.given_up(Cause::Cancelled))),
            Some((id, Turn::Ready)) => {
                // Whoever heard that it waits is to know that it does not any more, before it is made.
                if told.is_some() {
                    self.tell_granted(&patience.watcher, id);
                }
                Ok(self)
            }
            Some((id, Turn::Over(state))) => Err(Box::new(self.ended(id, state))),
            Some((id, Turn::Wait(until))) => Err(Box::new(self.promised(id, until))),
        }
    }

    /// Tells whoever listens what it waits for.
    fn tell(&self, watcher: &Watcher, id: ApprovalId, until: Instant) {
        let call = self.call();
        let summary = format!("{}/{} waits for a person", call.server(), call.request().subject());
        let expires_at = Some(timestamp(view::wall(until)));
        let expires_in = Some(until.saturating_duration_since(Instant::now()));
        let state = ApprovalStatus::Pending;
        watcher.approval(ApprovalEvent { id: id.to_string(), state, expires_at, expires_in, summary });
    }

    /// Tells that it waits no longer.
    fn tell_granted(&self, watcher: &Watcher, id: ApprovalId) {
        let call = self.call();
        let summary = format!("{}/{} is allowed", call.server(), call.request().subject());
        let (expires_at, expires_in) = (None, None);
        watcher.approval(ApprovalEvent {
            id: id.to_string(),
            state: ApprovalStatus::Granted,
            expires_at,
            expires_in,
            summary,
        });
    }

    /// Takes the grant, if it is for exactly this. It is used up when this returns, and its use is on disk.
    ///
    /// # Errors
    /// [`NotCleared`] where it expired or was taken back meanwhile, or its use cannot be recorded.
    pub(crate) async fn take(mut self) -> Result<Cleared, Box<NotCleared>> {
        let Ok(spare) = ApprovalId::new() else {
            return Err(Box::new(self.given_up(Cause::Internal(Broken::Randomness))));
        };
        let Some(Taken { id, yes, is_recorded }) = self.place.take(&self.key, spare) else {
            return Err(Box::new(match self.place.look() {
                (id, Turn::Over(state)) => self.ended(id, state),
                (id, _) => self.refuse(id, Cause::ApprovalExpired),
            }));
        };
        if !is_recorded.await {
            // The grant is lost, and the call is not made: never the other way round.
            return Err(Box::new(self.refuse(id, Cause::GrantNotRecorded)));
        }
        Ok(Cleared::by(self.verdict, Approved { id, approver: yes.by.to_string() }))
    }

    /// Ends the waiting for another reason; the grant, if there is one, stays for a moment.
    #[must_use]
    pub(crate) fn given_up(self, cause: Cause) -> NotCleared {
        let id = self.place.look().0;
        self.refuse(id, cause)
    }

    fn refuse(self, id: ApprovalId, cause: Cause) -> NotCleared {
        NotCleared { verdict: self.verdict, cause, approval: Some(id) }
    }

    fn ended(self, id: ApprovalId, state: State) -> NotCleared {
        let cause = match state {
            State::Denied => Cause::DeniedByPerson,
            State::Unanswered => Cause::NoUsableAnswer,
            State::Outdated => Cause::ChangedWhileAsked,
            // With its session, or with the harness.
            State::Withdrawn => Cause::Cancelled,
            _ => Cause::ApprovalExpired,
        };
        self.refuse(id, cause)
    }

    fn promised(self, id: ApprovalId, until: Instant) -> NotCleared {
        let grant_time = self.verdict.call().principal().session().limits().approval.grant_time;
        self.refuse(id, Cause::ApprovalRequired { until: timestamp(view::wall(until)), grant_time })
    }
}

impl Approvals {
    /// Asks, or joins those who wait for the same.
    ///
    /// # Errors
    /// [`NotCleared`] where nobody can be asked, or nobody is because of a limit.
    pub(crate) fn ask(&self, question: Question) -> Result<Waiting, Box<NotCleared>> {
        let Question(verdict) = question;
        let refuse = |verdict, cause| Err(Box::new(NotCleared { verdict, cause, approval: None }));
        if !self.can_be_answered() {
            self.nobody();
            let cause = denied(&verdict);
            return refuse(verdict, cause);
        }
        if !self.0.audit.takes_records() {
            return refuse(verdict, Cause::NotRecorded);
        }
        // A person's answer would be for nothing.
        if let Err(budget) = is_covered(&verdict) {
            return refuse(verdict, Cause::BudgetSpent(budget));
        }
        let key = Key::of(&verdict);
        let bytes = view::held_bytes(verdict.call().request());
        let (Ok(held), Ok(spare)) = (verdict.call().principal().session().bytes().take(bytes), ApprovalId::new())
        else {
            return refuse(verdict, Cause::BytesHeld);
        };
        let about = Arc::new(Asking::new(&verdict, held));
        let session = verdict.call().principal().session();
        let limits = session.limits().approval;
        let asked = self.with(|book, now| {
            // Looked at here, so that nothing is asked under a policy, or of a session, that has just ended what was.
            if !session.over().is_going_on() {
                return Err(Cause::SessionReplaced);
            }
            if session.rules().policy().revision() != key.policy {
                return Err(Cause::ChangedWhileAsked);
            }
            Ok(book.ask(now, New { id: spare, key: key.clone(), about, limits }))
        });
        let asked = match asked {
            Ok(asked) => asked,
            Err(cause) => return refuse(verdict, cause),
        };
        match asked {
            Asked::Waiting(waiter) => Ok(Waiting::new(self.clone(), verdict, key, waiter)),
            Asked::Hushed(left) => refuse(verdict, Cause::DeniedBefore { seconds: left.as_secs() + 1 }),
            Asked::TooMany => refuse(verdict, Cause::ApprovalsPending(limits.pending_per_session)),
        }
    }
}
