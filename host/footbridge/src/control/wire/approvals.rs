//! What is asked and told about approvals.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// To a server's question: names of fields and their values, as typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
    /// To a server's question: all fields at once, a JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

/// No.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenyApproval {
    /// Its id.
    pub id: String,
    /// Which command answers.
    pub by: By,
    /// Neither yes nor no to a server's question.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
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
