//! The tools of a session, as it sees them, for operators who call them by way of a harness that runs.

use serde::{Deserialize, Serialize};

/// The names of the tools of all servers, or all that one server says of its own.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListTools {
    /// The session.
    pub(crate) session: String,
    /// The server whose tools come with their definitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    /// Whether servers are asked once more what they offer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) refresh: bool,
}

/// A server that a session sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedServer {
    /// Its name.
    pub(crate) name: String,
    /// Why it offers nothing, as guests are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// What only the operator may know of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) because: Option<String>,
    /// Its tools, sorted by name.
    #[serde(default)]
    pub(crate) tools: Vec<ListedTool>,
}

/// A tool that a session sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedTool {
    /// Its name.
    pub(crate) name: String,
    /// Its description.
    pub(crate) description: String,
    /// Whether it says what its structured results look like.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_structured_output: bool,
    /// Whether it is not what was pinned: it cannot be called, and of its definition nothing is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) changed: bool,
    /// All that its server says of it, as JSON in a text: no number of it is read on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) definition: Option<String>,
}

/// The names of all sessions that are open.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListSessionNames {}
