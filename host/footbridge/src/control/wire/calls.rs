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
}
