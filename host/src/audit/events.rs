//! What is recorded besides calls: sessions, approvals, pins, and refusals by the dozen.

use footbridge_proto::endpoint::Endpoint;

use super::{
    ApprovalStep, Audit, Reply,
    record::{Record, digest_text},
    stage::session_of,
};
use crate::{
    auth::Principal,
    digest::Digest,
    session::{Ended, OverLimit, SessionName, SessionSpec},
};

/// The reason of questions beyond those that one call may lead to.
const TOO_MANY_QUESTIONS: &str = "too_many_questions";

impl Audit {
    /// Records that a session begins. Not waited for: nothing is admitted before it is written.
    pub(crate) fn session_opened(&self, session: &SessionSpec, listeners: &[Endpoint]) {
        let record = Record::Session {
            session: session.name.to_string(),
            policy: session.policy.name().to_owned(),
            listeners: listeners.iter().map(ToString::to_string).collect(),
            labels: session.labels.iter().map(|(key, value)| (key.clone(), self.redaction.text(value))).collect(),
            limits: session.limits.written(),
        };
        drop(self.queue.push_kept(record));
    }

    /// Records that a session has one more listener.
    pub(crate) fn session_listens(&self, session: &SessionName, listener: &Endpoint) {
        let record = Record::SessionListens { session: session.to_string(), listener: listener.to_string() };
        drop(self.queue.push_kept(record));
    }

    /// Records that a session's token was replaced.
    pub(crate) fn session_rotated(&self, session: &SessionName) {
        drop(self.queue.push_kept(Record::SessionRotated { session: session.to_string() }));
    }

    /// Records that somebody accepted a definition.
    pub(crate) fn pin_accepted(&self, server: &str, tool: &str, definition: Digest, approver: &str) {
        drop(self.queue.push_kept(Record::PinAccepted {
            server: self.redaction.text(server),
            name: self.redaction.text(tool),
            definition: digest_text(definition),
            approver: approver.to_owned(),
        }));
    }

    /// Records that a session ended.
    pub(crate) fn session_ended(&self, session: &SessionName, why: Ended) {
        drop(self.queue.push_kept(Record::SessionEnded { session: session.to_string(), why: why.as_str() }));
    }

    /// Whether records can be queued right now. Nobody is asked otherwise: what they answer could not be recorded.
    pub(crate) fn takes_records(&self) -> bool {
        self.queue.takes_more()
    }

    /// Records a step of an approval's life. Not waited for: nothing is admitted before it is written.
    pub(crate) fn approval_step(&self, step: ApprovalStep) {
        drop(self.queue.push_kept(Record::Approval(Box::new(step.line(&self.redaction)))));
    }

    /// Records that a grant is used. False if that is not durable in time: then it must not be.
    pub(crate) async fn approval_used(&self, step: ApprovalStep) -> bool {
        self.durable(self.queue.push(Record::Approval(Box::new(step.line(&self.redaction))))).await
    }

    /// Counts a server's question that nobody is asked, since its call asked too many. These share one line a second
    /// too.
    pub(crate) fn over_questions(&self, principal: &Principal) {
        self.queue.count_limited(session_of(principal), TOO_MANY_QUESTIONS);
    }

    /// Counts a call over a limit, and gives its reply. These share one line a second: a flood of them is cheap to
    /// send and must be cheap to refuse.
    #[must_use]
    pub fn over_limit(&self, principal: &Principal, over: OverLimit) -> Reply {
        self.queue.count_limited(session_of(principal), over.reason().as_str());
        Reply::refusal(over.into_error())
    }
}
