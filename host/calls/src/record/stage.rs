//! The stage itself: what is recorded at which step of a call, and what its caller hears.

use std::{io, sync::Arc, time::Instant};

use footbridge_proto::rpc::{ErrorObject, Reason};

use super::{
    Admitted, Receipt, Reply,
    lines::{Arguments, Called, DecidedLine, Intent, Line, Refused},
    redaction::Redaction,
    reply,
};
use crate::{
    approval::{ApprovalId, Cleared, NotCleared},
    auth::Principal,
    decide::Verdict,
    provider::{Executed, Outgoing, OutgoingRequest},
    resolve::{ResolvedCall, Unresolved},
};
use footbridge_audit::{OutcomeRecord, Recorder, Trail};
use footbridge_core::{digest::digest_text, limits::AuditLimits, random::random_text, redact::Redactor};

/// The audit stage. Clones share one writer.
#[derive(Clone)]
pub struct Audit {
    pub(super) trail: Trail,
    pub(super) redaction: Arc<Redaction>,
}

impl Audit {
    /// Starts a record, in which the values of `secrets` show nowhere.
    ///
    /// # Errors
    /// When not even the first line can be written.
    pub fn start(recorder: impl Into<Recorder>, secrets: Redactor, limits: AuditLimits) -> io::Result<Self> {
        let recorder = recorder.into();
        let redaction = Arc::new(Redaction::new(secrets, recorder.settings()));
        Ok(Self { trail: Trail::start(recorder, limits)?, redaction })
    }

    /// Writes what is queued and ends the record. Blocks while it does.
    pub fn close(&self) {
        self.trail.close();
    }

    /// Records an intent, and lets the call go once that is durable. Whatever was not allowed is recorded as refused.
    ///
    /// # Errors
    /// The reply of a call that must not leave.
    pub async fn admit(&self, cleared: Cleared) -> Result<Admitted, Reply> {
        if let Err(error) = spend_arguments(cleared.verdict()) {
            let approval = cleared.approval().map(|approved| approved.id);
            return Err(self.deny(cleared.verdict(), error, approval).await);
        }
        let Ok(id) = random_text::<12>() else { return Err(unavailable(None)) };
        let verdict = cleared.verdict();
        let call = verdict.call();
        let resource = match call.request() {
            OutgoingRequest::ReadResource { uri } => Some(uri.clone()),
            _ => None,
        };
        let (_, bytes) = call.arguments();
        let intent = Intent {
            id: id.clone(),
            called: self.called(call),
            arguments: self.arguments(call).await,
            definition: call.definition().map(digest_text),
            decided: DecidedLine {
                approval: cleared.approval().map(|approved| approved.id.to_string()),
                approver: cleared.approval().map(|approved| approved.approver.clone()),
                ..decided_line(verdict)
            },
        };
        if !self.trail.intent(&id, Line::Intent(intent).record()).await {
            call.principal().session().arguments().give_back(bytes);
            return Err(unavailable(Some(&id)));
        }
        let result_limit = verdict.policy().settings().result_bytes;
        let call = cleared.into_call();
        // Compared here again: the session may have ended since its token was shown, or the token was replaced.
        if !call.principal().is_current() || !call.is_by_current_rules() {
            call.principal().session().arguments().give_back(bytes);
            let why = "the session, its token or its policy is another by now";
            self.trail.keep_outcome(&OutcomeRecord::not_sent(&id, why));
            return Err(Reply::refusal(session_over().with("auditId", id)));
        }
        let principal = call.principal().clone();
        let limits = Arc::clone(principal.session().limits());
        let (server, request) = call.into_request();
        let receipt = Receipt { id, server: server.clone(), resource, since: Instant::now(), principal, result_limit };
        Ok(Admitted { outgoing: Outgoing::new(server, request, limits), receipt })
    }

    /// Records a call that could not be resolved, and gives its reply.
    pub async fn refuse(&self, unresolved: Unresolved) -> Reply {
        let Unresolved { principal, server, target, error } = unresolved;
        let Ok(id) = random_text::<12>() else { return unavailable(None) };
        let refused = Refused {
            id,
            called: Called {
                session: session_of(&principal),
                peer: Some(principal.peer().to_string()),
                kind: target.kind(),
                server: self.redaction.text(&server),
                name: self.redaction.text(target.name()),
            },
            reason: error.reason().unwrap_or(Reason::Internal).as_str(),
            arguments: None,
            decided: None,
        };
        self.refused(refused, error).await
    }

    /// Records a call that nobody allowed, and gives its reply.
    pub async fn turn_down(&self, call: NotCleared) -> Reply {
        let NotCleared { verdict, error, approval } = call;
        self.deny(&verdict, error, approval).await
    }

    /// Records a call that was refused after it was decided, and gives its reply.
    async fn deny(&self, verdict: &Verdict, error: ErrorObject, approval: Option<ApprovalId>) -> Reply {
        let Ok(id) = random_text::<12>() else { return unavailable(None) };
        let call = verdict.call();
        let refused = Refused {
            id,
            called: self.called(call),
            reason: error.reason().unwrap_or(Reason::Internal).as_str(),
            arguments: Some(self.arguments(call).await),
            decided: Some(DecidedLine { approval: approval.map(|id| id.to_string()), ..decided_line(verdict) }),
        };
        self.refused(refused, error).await
    }

    fn called(&self, call: &ResolvedCall) -> Called {
        let (kind, name) = call.request().named();
        Called {
            session: session_of(call.principal()),
            peer: Some(call.principal().peer().to_string()),
            kind,
            server: call.server().to_string(),
            name: self.redaction.text(name),
        }
    }

    async fn arguments(&self, call: &ResolvedCall) -> Arguments {
        let (digest, bytes) = call.arguments();
        Arguments { digest: digest_text(digest), bytes, redacted: self.redaction.arguments(call.request()).await }
    }

    async fn refused(&self, refused: Refused, error: ErrorObject) -> Reply {
        let id = refused.id.clone();
        if self.trail.note(Line::Refused(refused).record()).await {
            Reply::refusal(error.with("auditId", id))
        } else {
            unavailable(Some(&id))
        }
    }

    /// Records what became of a call, and gives its reply.
    pub async fn close_call(&self, executed: Executed) -> Reply {
        let (receipt, outcome) = executed.into_parts();
        let mut line = reply::outcome_line(&receipt, &outcome);
        let within = receipt.spend(&outcome);
        if !within {
            line.detail = Some("kept back: over the session's budget".to_owned());
        }
        match self.trail.outcome(&line).await {
            true if within => Reply::of(&receipt, outcome),
            true => Reply::kept_back(&receipt),
            false => Reply::unrecorded(&receipt, &outcome),
        }
    }
}

/// Counts the arguments of a call that is about to leave.
fn spend_arguments(verdict: &Verdict) -> Result<(), ErrorObject> {
    let (session, settings) = (verdict.call().principal().session(), verdict.policy().settings());
    is_covered(verdict)?;
    let (_, bytes) = verdict.call().arguments();
    session.arguments().spend(bytes, settings.argument_bytes).map_err(|_| reply::spent("arguments"))
}

/// Whether the budget of its session covers a call, as it stands now: nothing is counted yet.
///
/// # Errors
/// What to say where it does not.
pub(crate) fn is_covered(verdict: &Verdict) -> Result<(), ErrorObject> {
    let (session, settings) = (verdict.call().principal().session(), verdict.policy().settings());
    if session.results().is_all_of(settings.result_bytes) {
        return Err(reply::spent("results"));
    }
    let (_, bytes) = verdict.call().arguments();
    if session.arguments().leaves(bytes, settings.argument_bytes) { Ok(()) } else { Err(reply::spent("arguments")) }
}

fn decided_line(verdict: &Verdict) -> DecidedLine {
    DecidedLine {
        decision: verdict.decision().as_str(),
        policy: verdict.policy().name().to_owned(),
        rule: verdict.rule().map(str::to_owned),
        effects: verdict.call().effects().words(),
        approval: None,
        approver: None,
    }
}

pub(super) fn session_of(principal: &Principal) -> String {
    principal.session().name().to_string()
}

fn session_over() -> ErrorObject {
    let message = "The call was not made: its session has ended, or its token or policy was replaced; try again";
    ErrorObject::new(Reason::Cancelled, message)
}

fn unavailable(id: Option<&str>) -> Reply {
    let message = "The call was not made: it cannot be recorded. Ask the operator; it can be repeated";
    let error = ErrorObject::new(Reason::AuditUnavailable, message);
    Reply::refusal(match id {
        Some(id) => error.with("auditId", id),
        None => error,
    })
}
