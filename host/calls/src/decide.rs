//! From a resolved call to a verdict: what the session's rules decide about it. Nothing is looked up here.

use crate::cause::{BudgetOf, Cause, DecidedBy};
use crate::request::OutgoingRequest;
use crate::resolve::ResolvedCall;
use footbridge_core::gate::{Decided, Decision, Policy};

/// A call and what was decided about it. Only this stage makes one.
#[derive(Debug)]
pub(crate) struct Verdict {
    call: ResolvedCall,
    decided: Decided,
}

impl Verdict {
    /// The call.
    #[must_use]
    pub(crate) fn call(&self) -> &ResolvedCall {
        &self.call
    }

    /// What was decided.
    #[must_use]
    pub(crate) fn decision(&self) -> Decision {
        self.decided.decision
    }

    /// The policy that decided.
    #[must_use]
    pub(crate) fn policy(&self) -> &Policy {
        self.call.rules().policy()
    }

    /// The rule that decided; none where no rule matched.
    #[must_use]
    pub(crate) fn rule(&self) -> Option<&str> {
        self.decided.rule.as_deref()
    }

    /// What decided, where guests may know.
    #[must_use]
    pub(crate) fn revealed(&self) -> Option<DecidedBy> {
        let policy = self.policy();
        let by = || DecidedBy { policy: policy.name().to_owned(), rule: self.rule().map(str::to_owned) };
        policy.settings().reveal_rules.then(by)
    }

    /// The same, without what its guest says besides the call.
    pub(crate) fn without_meta(mut self) -> Self {
        self.call.drop_meta();
        self
    }

    pub(crate) fn into_call(self) -> ResolvedCall {
        self.call
    }
}

/// Decides about a call, by the rules that its names were looked up with.
#[must_use]
pub(crate) fn decide(call: ResolvedCall) -> Verdict {
    let decided = call.rules().decide(&call.subject(), call.tested());
    Verdict { call, decided }
}

/// Whether the budget of its session covers a call, as it stands now: nothing is counted yet.
///
/// # Errors
/// Which does not.
pub(crate) fn is_covered(verdict: &Verdict) -> Result<(), BudgetOf> {
    let (session, settings) = (verdict.call().principal().session(), verdict.policy().settings());
    if session.results().is_all_of(settings.result_bytes) {
        return Err(BudgetOf::Results);
    }
    let call = verdict.call();
    if let OutgoingRequest::Service(request) = call.request() {
        session.spending(call.server()).covers_request(request.length())?;
    }
    let bytes = call.leaving_bytes();
    if session.arguments().leaves(bytes, settings.argument_bytes) { Ok(()) } else { Err(BudgetOf::Arguments) }
}

/// Why a call is not made that the policy denies, or that asks where nobody can be asked.
pub(crate) fn denied(verdict: &Verdict) -> Cause {
    let (kind, name) = verdict.call().request().named();
    Cause::Policy {
        server: verdict.call().server().clone(),
        kind,
        name: name.to_owned(),
        decision: verdict.decision(),
        by: verdict.revealed(),
    }
}
