//! What is asked and told about approvals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All approvals that are pending or granted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListApprovals {}

/// One approval.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowApproval {
    /// Its id.
    pub id: String,
}

/// Yes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowApproval {
    /// Its id.
    pub id: String,
    /// The same call again too, as long as its session lives and nothing of it changes.
    pub remember: bool,
    /// Which command answers.
    pub by: By,
}

/// No.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenyApproval {
    /// Its id.
    pub id: String,
    /// Which command answers.
    pub by: By,
}

/// A command that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// `approvals allow`.
    Allow,
    /// `approvals deny`.
    Deny,
    /// `approvals watch`.
    Watch,
}

impl By {
    /// The command's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Watch => "watch",
        }
    }
}

/// An answer that counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answered {
    /// The approval.
    pub id: String,
}

/// A call that waits for an answer, or was allowed and not made yet. What guests and servers wrote is in it as it is:
/// it is escaped where it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalInfo {
    /// Its id.
    pub id: String,
    /// `pending` or `granted`.
    pub state: String,
    /// The session that asks.
    pub session: String,
    /// What the operator finds the session by.
    pub labels: BTreeMap<String, String>,
    /// Who is at the other end, as the kernel says.
    pub peer: String,
    /// `tool` or `resource`.
    pub kind: String,
    /// The server.
    pub server: String,
    /// The tool's name or the resource's URI.
    pub name: String,
    /// What it can do.
    pub effects: Vec<String>,
    /// The policy that asks.
    pub policy: String,
    /// Digest of the tool's definition.
    pub definition: Option<String>,
    /// Digest of the canonical text of the arguments.
    pub digest: String,
    /// Bytes of that text.
    pub bytes: usize,
    /// Its beginning; the whole if there is no tail.
    pub head: String,
    /// The end of a long one.
    pub tail: String,
    /// When it was asked, RFC 3339.
    pub asked: String,
    /// When it ends by itself, RFC 3339.
    pub expires: String,
}

/// An approval with its whole arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalShown {
    /// What is always shown.
    #[serde(flatten)]
    pub info: ApprovalInfo,
    /// The canonical text of the arguments, which is what is sent.
    pub arguments: String,
}
