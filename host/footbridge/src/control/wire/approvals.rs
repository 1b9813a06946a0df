//! What is asked and told about approvals.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All approvals that are pending or granted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListApprovals {}

/// The calls that are allowed again without asking.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListRemembered {}

/// One approval.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowApproval {
    /// Its id.
    pub(crate) id: String,
}

/// Yes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllowApproval {
    /// Its id.
    pub(crate) id: String,
    /// The same call again too, as long as its session lives and nothing of it changes.
    pub(crate) remember: bool,
    /// Which command answers.
    pub(crate) by: By,
    /// To a server's question: names of fields and their values, as typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) fields: Vec<(String, String)>,
    /// To a server's question: all fields at once, a JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Value>,
}

/// No.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DenyApproval {
    /// Its id.
    pub(crate) id: String,
    /// Which command answers.
    pub(crate) by: By,
    /// Neither yes nor no to a server's question.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cancel: bool,
}

/// A yes is taken back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RevokeApproval {
    /// Its id.
    pub(crate) id: String,
}

/// A command that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By {
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
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Watch => "watch",
        }
    }
}

/// An answer that counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Answered {
    /// The approval.
    pub(crate) id: String,
}
