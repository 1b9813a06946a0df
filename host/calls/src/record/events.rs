//! What is recorded besides calls: sessions, approvals, pins, and refusals by the dozen.

use std::collections::BTreeSet;

use footbridge_proto::endpoint::Endpoint;

use super::{
    ApprovalStep, Audit,
    lines::{Line, PinAccepted, SessionBegins, SessionEnded, SessionLimited, SessionListens, SessionRotated},
    session_of,
};
use crate::{
    auth::Principal,
    operator::Operator,
    session::{Ended, SessionSpec},
};
use footbridge_core::{
    digest::Digest,
    limits::overrides::Overrides,
    names::{ServerName, SessionName},
};

/// The reason of questions beyond those that one call may lead to.
const TOO_MANY_QUESTIONS: &str = "too_many_questions";

impl Audit {
    /// Records that a session begins. Not waited for: nothing is admitted before it is written.
    pub(crate) fn session_opened(&self, session: &SessionSpec, listeners: &[Endpoint]) {
        let services: BTreeSet<&ServerName> = session.services.iter().chain(session.policy.services()).collect();
        let line = SessionBegins {
            session: session.name.to_string(),
            policy: session.policy.name().to_owned(),
            listeners: listeners.iter().map(ToString::to_string).collect(),
            labels: session.labels.iter().map(|(key, value)| (key.clone(), self.redaction.text(value))).collect(),
            limits: session.limits.written(),
            services: services.into_iter().map(ToString::to_string).collect(),
        };
        self.trail.keep(Line::Session(line).record());
    }

    /// Records that a session has one more listener.
    pub(crate) fn session_listens(&self, session: &SessionName, listener: &Endpoint) {
        let line = SessionListens { session: session.to_string(), listener: listener.to_string() };
        self.trail.keep(Line::SessionListens(line).record());
    }

    /// Records that a session's token was replaced.
    pub(crate) fn session_rotated(&self, session: &SessionName) {
        self.trail.keep(Line::SessionRotated(SessionRotated { session: session.to_string() }).record());
    }

    /// Records that an operator gave a session other limits.
    pub(crate) fn session_limited(&self, session: &SessionName, limits: &Overrides, by: &Operator) {
        let (session, approver) = (session.to_string(), by.by("session limit"));
        let line = SessionLimited { session, limits: limits.written(), approver };
        self.trail.keep(Line::SessionLimited(line).record());
    }

    /// Records that an operator accepted a definition.
    pub fn pin_accepted(&self, server: &str, tool: &str, definition: Digest, by: &Operator) {
        let line = PinAccepted {
            server: self.redaction.text(server),
            name: self.redaction.text(tool),
            definition,
            approver: by.by("servers pins accept"),
        };
        self.trail.keep(Line::PinAccepted(line).record());
    }

    /// Records that a session ended.
    pub(crate) fn session_ended(&self, session: &SessionName, why: Ended) {
        let line = SessionEnded { session: session.to_string(), why: why.as_str() };
        self.trail.keep(Line::SessionEnded(line).record());
    }

    /// Whether records can be queued right now. Nobody is asked otherwise: what they answer could not be recorded.
    pub(crate) fn takes_records(&self) -> bool {
        self.trail.takes_records()
    }

    /// Why the last record could not be written, if it could not: nothing that has to be recorded happens then.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.trail.failure()
    }

    /// Records a step of an approval's life. Not waited for: nothing is admitted before it is written.
    pub(crate) fn approval_step(&self, step: ApprovalStep) {
        self.trail.keep(Line::Approval(step.line(&self.redaction)).record());
    }

    /// Records that a grant is used, behind what was recorded before this was called. False if that is not durable in
    /// time: then it must not be.
    pub(crate) fn approval_used(&self, step: ApprovalStep) -> impl Future<Output = bool> + use<> {
        self.trail.note(Line::Approval(step.line(&self.redaction)).record())
    }

    /// Counts a server's question that nobody is asked, since its call asked too many. These share one line a second
    /// too.
    pub(crate) fn over_questions(&self, principal: &Principal) {
        self.trail.count(session_of(principal).to_owned(), TOO_MANY_QUESTIONS);
    }
}
