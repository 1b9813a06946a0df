//! A call of an operator by way of a harness that runs.

use footbridge_proto::rpc::ErrorObject;
use serde::{Deserialize, Serialize};

/// A tool, called as a session would: by its policy, its labels and its limits. The call ends with whoever asks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallTool {
    /// The session.
    pub session: String,
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments, as JSON in a text: no number of theirs is read on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// How long its answer is waited for, milliseconds; then it is cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether a line before the answer may say that a person has to allow it: a [`CallHeld`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hears_of_waiting: bool,
}

/// It waits for a person, said before the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallHeld {
    /// The approval.
    pub id: String,
    /// Its state's word.
    pub state: String,
    /// When that ends by itself, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// What is asked, in a line.
    pub summary: String,
}

/// What became of it: one of the two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalledTool {
    /// The server's result, as JSON in a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why there is none, as a guest would be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// Whether that is because its time was up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
}
