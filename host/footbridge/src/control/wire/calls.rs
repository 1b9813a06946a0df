//! A call of an operator by way of a harness that runs.

use footbridge_proto::{approval::ApprovalStatus, rpc::ErrorObject};
use serde::{Deserialize, Serialize};

/// A tool, called as a session would: by its policy, its labels and its limits. The call ends with whoever asks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallTool {
    /// The session.
    pub(crate) session: String,
    /// The server.
    pub(crate) server: String,
    /// The tool.
    pub(crate) tool: String,
    /// The arguments, as JSON in a text: no number of theirs is read on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<String>,
    /// How long its answer is waited for, milliseconds; then it is cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_ms: Option<u64>,
    /// Whether a line before the answer may say that a person has to allow it: a [`CallHeld`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) hears_of_waiting: bool,
}

/// It waits for a person, said before the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallHeld {
    /// The approval.
    pub(crate) id: String,
    /// How it is.
    pub(crate) state: ApprovalStatus,
    /// When that ends by itself, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<String>,
    /// What is asked, in a line.
    pub(crate) summary: String,
}

/// What became of it: one of the two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CalledTool {
    /// The server's result, as JSON in a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<String>,
    /// Why there is none, as a guest would be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ErrorObject>,
    /// Whether that is because its time was up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) timed_out: bool,
}
