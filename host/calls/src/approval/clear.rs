//! From a verdict to a [`Cleared`]: at once where the policy allows, and through a person where it says ask.

use std::{sync::Arc, time::Duration};

use footbridge_proto::rpc::{ErrorObject, Reason};

use super::{ApprovalId, Approvals, Asking, Key, Waiting, book::Asked};
use crate::{
    decide::Verdict,
    record::{denied, is_covered},
    resolve::ResolvedCall,
    watcher::Watcher,
};
use footbridge_core::gate::Decision;

/// A call that may be recorded and made: the policy allows it, or a person did and the grant is used up. Only this
/// stage makes one.
#[derive(Debug)]
pub struct Cleared {
    verdict: Verdict,
    approval: Option<Approved>,
}

/// Which approval a call used, and whose it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    /// Its id.
    pub id: ApprovalId,
    /// Who allowed it.
    pub approver: String,
}

impl Cleared {
    /// A call whose grant is used up, durably.
    pub(super) fn by(verdict: Verdict, approved: Approved) -> Self {
        Self { verdict, approval: Some(approved) }
    }

    /// What was decided.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The approval that it used, if one was needed.
    #[must_use]
    pub fn approval(&self) -> Option<&Approved> {
        self.approval.as_ref()
    }

    pub(crate) fn into_call(self) -> ResolvedCall {
        self.verdict.into_call()
    }
}

/// What a verdict comes to without asking anybody.
#[derive(Debug)]
pub enum Clear {
    /// It may be made.
    Cleared(Box<Cleared>),
    /// It may not.
    Denied(Box<NotCleared>),
    /// A person has to be asked.
    Ask(Box<Question>),
}

/// A call that a person has to allow.
#[derive(Debug)]
pub struct Question(Verdict);

/// A call that is not made, and why.
#[derive(Debug)]
pub struct NotCleared {
    pub(crate) verdict: Verdict,
    pub(crate) error: ErrorObject,
    pub(crate) approval: Option<ApprovalId>,
}

/// How long a client waits for a person.
#[derive(Debug, Clone)]
pub struct Patience {
    /// It is told `approval_required` after this time; without it, it waits until there is an answer.
    pub answer_after: Option<Duration>,
    /// Who is told meanwhile what it waits for.
    pub watcher: Watcher,
}

impl Clear {
    /// Of a verdict.
    #[must_use]
    pub fn of(verdict: Verdict) -> Self {
        match verdict.decision() {
            Decision::Allow => Self::Cleared(Box::new(Cleared { verdict, approval: None })),
            Decision::Ask => Self::Ask(Box::new(Question(verdict))),
            Decision::Deny => {
                let error = denied(&verdict);
                Self::Denied(Box::new(NotCleared { verdict, error, approval: None }))
            }
        }
    }
}

impl Approvals {
    /// Asks, or joins those who wait for the same.
    ///
    /// # Errors
    /// [`NotCleared`] where nobody can be asked, or nobody is because of a limit.
    pub fn ask(&self, question: Question) -> Result<Waiting, Box<NotCleared>> {
        let Question(verdict) = question;
        let refuse = |verdict, error| Err(Box::new(NotCleared { verdict, error, approval: None }));
        if !self.can_be_answered() {
            self.nobody();
            let error = denied(&verdict);
            return refuse(verdict, error);
        }
        if !self.0.audit.takes_records() {
            let message = "The call was not made: it cannot be recorded. Ask the operator; it can be repeated";
            return refuse(verdict, ErrorObject::new(Reason::AuditUnavailable, message));
        }
        // A person's answer would be for nothing.
        if let Err(error) = is_covered(&verdict) {
            return refuse(verdict, error);
        }
        let key = Key::of(&verdict);
        let bytes = verdict.call().arguments().1;
        let (Ok(held), Ok(spare)) = (verdict.call().principal().session().bytes().take(bytes), ApprovalId::new())
        else {
            return refuse(verdict, busy("Too many bytes are held at once: try again in a moment"));
        };
        let about = Arc::new(Asking::new(&verdict, held));
        let limits = verdict.call().principal().session().limits().approval;
        match self.with(|book, now| book.ask(now, key.clone(), about, (spare, limits))) {
            Asked::Waiting(waiter) => Ok(Waiting::new(self.clone(), verdict, key, waiter)),
            Asked::Hushed(left) => {
                let message = format!(
                    "This call was denied a moment ago, and is refused without asking for another {} s",
                    left.as_secs() + 1
                );
                refuse(verdict, ErrorObject::new(Reason::ApprovalDenied, message))
            }
            Asked::TooMany => {
                let message = format!(
                    "{} calls of this session wait for a person already: wait for their answers first",
                    limits.pending_per_session
                );
                refuse(verdict, busy(&message))
            }
        }
    }
}

fn busy(message: &str) -> ErrorObject {
    ErrorObject::new(Reason::Busy, message).with("retryAfterMs", 1000)
}
