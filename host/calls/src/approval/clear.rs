//! From a verdict to a [`Cleared`]: at once where the policy allows, and through a person where it says ask.

use std::time::Duration;

use super::ApprovalId;
use crate::{
    cause::Cause,
    decide::{Verdict, denied},
    resolve::ResolvedCall,
    watcher::Watcher,
};
use footbridge_core::gate::Decision;

/// A call that may be recorded and made: the policy allows it, or a person did and the grant is used up. Only this
/// stage makes one.
#[derive(Debug)]
pub(crate) struct Cleared {
    verdict: Verdict,
    approval: Option<Approved>,
}

/// Which approval a call used, and whose it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Approved {
    /// Its id.
    pub(crate) id: ApprovalId,
    /// Who allowed it.
    pub(crate) approver: String,
}

impl Cleared {
    /// A call whose grant is used up, durably. Nothing goes with it that the person was not shown.
    pub(super) fn by(verdict: Verdict, approved: Approved) -> Self {
        Self { verdict: verdict.without_meta(), approval: Some(approved) }
    }

    /// What was decided.
    #[must_use]
    pub(crate) fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The approval that it used, if one was needed.
    #[must_use]
    pub(crate) fn approval(&self) -> Option<&Approved> {
        self.approval.as_ref()
    }

    pub(crate) fn into_call(self) -> ResolvedCall {
        self.verdict.into_call()
    }
}

/// What a verdict comes to without asking anybody.
#[derive(Debug)]
pub(crate) enum Clear {
    /// It may be made.
    Cleared(Box<Cleared>),
    /// It may not.
    Denied(Box<NotCleared>),
    /// A person has to be asked.
    Ask(Box<Question>),
}

/// A call that a person has to allow.
#[derive(Debug)]
pub(crate) struct Question(pub(super) Verdict);

/// A call that is not made, and why.
#[derive(Debug)]
pub(crate) struct NotCleared {
    pub(crate) verdict: Verdict,
    pub(crate) cause: Cause,
    pub(crate) approval: Option<ApprovalId>,
}

/// How long a client waits for a person.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    /// It is told `approval_required` after this time; without it, it waits until there is an answer.
    pub(crate) answer_after: Option<Duration>,
    /// Who is told meanwhile what it waits for.
    pub(crate) watcher: Watcher,
}

impl Clear {
    /// Of a verdict.
    #[must_use]
    pub(crate) fn of(verdict: Verdict) -> Self {
        match verdict.decision() {
            Decision::Allow => Self::Cleared(Box::new(Cleared { verdict, approval: None })),
            Decision::Ask => Self::Ask(Box::new(Question(verdict))),
            Decision::Deny => {
                let cause = denied(&verdict);
                Self::Denied(Box::new(NotCleared { verdict, cause, approval: None }))
            }
        }
    }
}
