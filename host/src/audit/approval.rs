//! The steps in the life of an approval, as other stages hand them over.

use super::record::{self, Arguments, digest_text};
use crate::digest::Digest;

/// A step in the life of an approval.
#[derive(Debug, Clone)]
pub(crate) struct ApprovalStep {
    pub(crate) id: String,
    pub(crate) state: &'static str,
    pub(crate) session: String,
    pub(crate) kind: &'static str,
    pub(crate) server: String,
    pub(crate) name: String,
    pub(crate) arguments: Digest,
    pub(crate) bytes: usize,
    pub(crate) definition: Option<Digest>,
    pub(crate) policy: String,
    pub(crate) approver: Option<String>,
}

impl From<ApprovalStep> for record::Approval {
    fn from(step: ApprovalStep) -> Self {
        Self {
            id: step.id,
            state: step.state,
            session: step.session,
            kind: step.kind,
            server: step.server,
            name: step.name,
            arguments: Arguments { digest: digest_text(step.arguments), bytes: step.bytes, redacted: None },
            definition: step.definition.map(digest_text),
            policy: step.policy,
            approver: step.approver,
        }
    }
}
