//! From a resolved call to a verdict: what the session's rules decide about it. Nothing is looked up here.

use crate::resolve::ResolvedCall;
use footbridge_core::gate::{Decided, Decision, Policy};

/// A call and what was decided about it. Only this stage makes one.
#[derive(Debug)]
pub struct Verdict {
    call: ResolvedCall,
    decided: Decided,
}

impl Verdict {
    /// The call.
    #[must_use]
    pub fn call(&self) -> &ResolvedCall {
        &self.call
    }

    /// What was decided.
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.decided.decision
    }

    /// The policy that decided.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        self.call.rules().policy()
    }

    /// The rule that decided; none where no rule matched.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        self.decided.rule.as_deref()
    }

    pub(crate) fn into_call(self) -> ResolvedCall {
        self.call
    }
}

/// Decides about a call, by the rules that its names were looked up with.
#[must_use]
pub fn decide(call: ResolvedCall) -> Verdict {
    let decided = call.rules().decide(&call.subject(), call.tested());
    Verdict { call, decided }
}
