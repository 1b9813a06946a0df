//! Before a call leaves, or is refused: what is recorded of it, and what its caller hears.
//!
//! This stage makes what the next one demands: an [`Admitted`] is a call whose intent is on disk. Whatever is refused is
//! recorded too, and only then answered.

use crate::decide::is_covered;
use std::{borrow::Cow, sync::Arc, time::Instant};

use crate::{
    approval::{ApprovalId, Cleared, NotCleared},
    auth::Principal,
    cause::{BudgetOf, Cause, Failure},
    decide::Verdict,
    provider::{Elicit, Outcome, Outgoing},
    record::{Arguments, Audit, Called, DecidedLine, Intent, Line, Refused, session_of},
    request::OutgoingRequest,
    resolve::{ResolvedCall, Unresolved},
    session::{OverLimit, Spending},
};
use footbridge_audit::OutcomeRecord;
use footbridge_core::{digest::Digest, names::ServerName};

/// A call that may leave: its intent is on disk. Only this stage makes one, and using it uses it up.
#[derive(Debug)]
pub struct Admitted {
    pub(crate) outgoing: Outgoing,
    pub(crate) receipt: Receipt,
}

impl Admitted {
    /// Says who can be asked while the call runs.
    #[must_use]
    pub(crate) fn with_elicitor(mut self, elicitor: Arc<dyn Elicit>) -> Self {
        self.outgoing = self.outgoing.with_elicitor(elicitor);
        self
    }

    pub(crate) fn depart(self) -> (Outgoing, Receipt) {
        (self.outgoing, self.receipt)
    }
}

/// What ties an outcome to its intent.
#[derive(Debug)]
pub(crate) struct Receipt {
    pub(crate) id: String,
    pub(crate) server: ServerName,
    pub(crate) resource: Option<String>,
    pub(crate) since: Instant,
    pub(crate) principal: Principal,
    pub(crate) result_limit: Option<u64>,
}

impl Receipt {
    /// Counts what the guest is about to get; false where that is more than its session has left.
    pub(crate) fn spend(&self, outcome: &Outcome) -> bool {
        let bytes = match outcome {
            Outcome::Result(result) => result.text.get().len(),
            Outcome::ServerError { message, .. } => message.len(),
            _ => return true,
        };
        self.principal.session().results().spend(bytes, self.result_limit).is_ok()
    }
}

impl Audit {
    /// Records an intent, and lets the call go once that is durable. Whatever was not allowed is recorded as refused.
    ///
    /// # Errors
    /// Of a call that must not leave.
    pub(crate) async fn admit(&self, cleared: Cleared) -> Result<Admitted, Failure> {
        if let Err(budget) = spend_arguments(cleared.verdict()) {
            let approval = cleared.approval().map(|approved| approved.id);
            return Err(Box::pin(self.deny(cleared.verdict(), Cause::BudgetSpent(budget).into(), approval)).await);
        }
        let id = self.ids.next();
        let verdict = cleared.verdict();
        let call = verdict.call();
        let resource = match call.request() {
            OutgoingRequest::ReadResource { uri } => Some(uri.clone()),
            _ => None,
        };
        let intent = Intent {
            id: &id,
            called: self.called(call),
            arguments: self.arguments(call).await,
            meta: call.meta().map(|meta| {
                let text = meta.text().get();
                Arguments { digest: Digest::of(text), bytes: text.len(), redacted: None }
            }),
            length: match call.request() {
                OutgoingRequest::Service(call) => call.length(),
                _ => None,
            },
            definition: call.definition(),
            decided: DecidedLine {
                approval: cleared.approval().map(|approved| approved.id.to_string()),
                approver: cleared.approval().map(|approved| approved.approver.as_str()),
                ..decided_line(verdict)
            },
        };
        if !self.trail.intent(&id, Line::Intent(intent).record()).await {
            give_back(call);
            return Err(unavailable(&id));
        }
        let result_limit = verdict.policy().settings().result_bytes;
        let call = cleared.into_call();
        // Compared here again: the session may have ended since its token was shown, or the token was replaced.
        if !call.principal().is_current() || !call.is_by_current_rules() {
            give_back(&call);
            let why = "the session, its token or its policy is another by now";
            self.trail.keep_outcome(&OutcomeRecord::not_sent(&id, why));
            return Err(Failure::from(Cause::SessionReplaced).recorded(id));
        }
        let principal = call.principal().clone();
        let outgoing = departing(call);
        let (server, since) = (outgoing.server().clone(), Instant::now());
        let receipt = Receipt { id, server, resource, since, principal, result_limit };
        Ok(Admitted { outgoing, receipt })
    }

    /// Records a call that could not be resolved, and gives its refusal.
    pub(crate) async fn refuse(&self, unresolved: Unresolved) -> Failure {
        let Unresolved { principal, server, target, cause } = unresolved;
        let id = self.ids.next();
        let server = self.redaction.text(&server);
        let detail = cause.detail().map(Cow::into_owned);
        let refused = Refused {
            id: &id,
            called: Called {
                session: session_of(&principal),
                peer: Some(principal.peer()),
                kind: target.kind(),
                server: &server,
                name: self.redaction.text(target.name()),
            },
            reason: cause.reason().as_str(),
            detail: detail.as_deref(),
            arguments: None,
            decided: None,
        };
        self.refused(refused, cause.into()).await
    }

    /// Records a call that nobody allowed, and gives its refusal.
    pub(crate) async fn turn_down(&self, call: NotCleared) -> Failure {
        let NotCleared { verdict, cause, approval } = call;
        let refusal = Failure { approval: approval.map(|id| id.to_string()), ..cause.into() };
        self.deny(&verdict, refusal, approval).await
    }

    /// Records a call that was refused after it was decided, and gives its refusal.
    async fn deny(&self, verdict: &Verdict, refusal: Failure, approval: Option<ApprovalId>) -> Failure {
        let id = self.ids.next();
        let call = verdict.call();
        let detail = refusal.cause.detail().map(Cow::into_owned);
        let refused = Refused {
            id: &id,
            called: self.called(call),
            reason: refusal.cause.reason().as_str(),
            detail: detail.as_deref(),
            arguments: Some(self.arguments(call).await),
            decided: Some(DecidedLine { approval: approval.map(|id| id.to_string()), ..decided_line(verdict) }),
        };
        self.refused(refused, refusal).await
    }

    /// Counts a call over a limit, and gives its refusal. These share one line a second: a flood of them is cheap to
    /// send and must be cheap to refuse.
    #[must_use]
    pub(crate) fn over_limit(&self, principal: &Principal, over: OverLimit) -> Failure {
        self.trail.count(session_of(principal).to_owned(), over.reason().as_str());
        Cause::OverLimit(over).into()
    }

    fn called<'c>(&self, call: &'c ResolvedCall) -> Called<'c> {
        let (kind, name) = call.request().named();
        Called {
            session: session_of(call.principal()),
            peer: Some(call.principal().peer()),
            kind,
            server: call.server().as_str(),
            name: self.redaction.text(name),
        }
    }

    async fn arguments(&self, call: &ResolvedCall) -> Arguments {
        let (digest, bytes) = call.arguments();
        Arguments { digest, bytes, redacted: self.redaction.arguments(call.request()).await }
    }

    async fn refused(&self, refused: Refused<'_>, refusal: Failure) -> Failure {
        let id = refused.id;
        if self.trail.note(Line::Refused(refused).record()).await {
            refusal.recorded(id.to_owned())
        } else {
            unavailable(id)
        }
    }
}

/// A call as it goes out.
fn departing(call: ResolvedCall) -> Outgoing {
    let spending = spending(&call);
    let session = call.principal().session();
    let (limits, serial, looks) = (Arc::clone(session.limits()), session.serial(), session.looks());
    let (server, request, meta) = call.into_request();
    Outgoing::new(server, request, limits).of_session(serial, looks).with_meta(meta).with_spending(spending)
}

/// What a request to a service spends.
fn spending(call: &ResolvedCall) -> Option<Spending> {
    let is_service = matches!(call.request(), OutgoingRequest::Service(_));
    is_service.then(|| call.principal().session().spending(call.server()))
}

/// Takes back what was counted for a call that is not made.
fn give_back(call: &ResolvedCall) {
    let bytes = call.leaving_bytes();
    call.principal().session().arguments().give_back(bytes);
    if let Some(spending) = spending(call) {
        spending.give_back_request();
    }
}

/// Counts a call that is about to leave, and its arguments.
fn spend_arguments(verdict: &Verdict) -> Result<(), BudgetOf> {
    let (session, settings) = (verdict.call().principal().session(), verdict.policy().settings());
    is_covered(verdict)?;
    let bytes = verdict.call().leaving_bytes();
    session.arguments().spend(bytes, settings.argument_bytes).map_err(|_| BudgetOf::Arguments)?;
    spending(verdict.call()).map_or(Ok(()), |spending| spending.request())
}

fn decided_line(verdict: &Verdict) -> DecidedLine<'_> {
    DecidedLine {
        decision: verdict.decision().as_str(),
        policy: verdict.policy().name(),
        rule: verdict.rule(),
        effects: verdict.call().effects().words(),
        approval: None,
        approver: None,
    }
}

fn unavailable(id: &str) -> Failure {
    Failure { record: Some(id.to_owned()), ..Cause::NotRecorded.into() }
}
