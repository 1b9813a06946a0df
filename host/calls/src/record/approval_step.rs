//! The steps in the life of an approval, as other stages hand them over.

use super::{
    lines::{self, Arguments, Called},
    redaction::Redaction,
};
use footbridge_proto::approval::ApprovalStatus;

use footbridge_core::digest::Digest;

/// A step in the life of an approval.
#[derive(Debug, Clone)]
pub(crate) struct ApprovalStep {
    pub(crate) id: String,
    pub(crate) state: ApprovalStatus,
    pub(crate) session: String,
    pub(crate) kind: &'static str,
    pub(crate) server: String,
    pub(crate) name: String,
    pub(crate) arguments: Digest,
    pub(crate) bytes: usize,
    pub(crate) definition: Option<Digest>,
    pub(crate) policy: String,
    pub(crate) approver: Option<String>,
    /// The canonical text of what a server's question was answered with.
    pub(crate) content: Option<String>,
}

impl ApprovalStep {
    /// Its line.
    pub(super) fn line(&self, redaction: &Redaction) -> lines::Approval<'_> {
        lines::Approval {
            id: &self.id,
            state: &self.state,
            called: Called {
                session: &self.session,
                peer: None,
                kind: self.kind,
                server: &self.server,
                name: redaction.text(&self.name),
            },
            arguments: Arguments { digest: self.arguments, bytes: self.bytes, redacted: None },
            definition: self.definition,
            policy: &self.policy,
            approver: self.approver.as_deref(),
            content: self.content.as_ref().map(|content| Arguments {
                digest: Digest::of(content),
                bytes: content.len(),
                redacted: redaction.content(content),
            }),
        }
    }
}
