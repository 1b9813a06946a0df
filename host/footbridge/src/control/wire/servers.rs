//! What is asked and told about MCP servers and the pins of their tools.

use serde::{Deserialize, Serialize};

/// All servers of a harness.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListServers {}

/// A fresh start of a server: calls that run on it end.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestartServer {
    /// Its name.
    pub(crate) name: String,
}

/// Changes that a person accepted: they are in the store already.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PinsAccepted {
    /// Each of them.
    pub(crate) accepted: Vec<AcceptedPin>,
}

/// A definition that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AcceptedPin {
    /// The server's name.
    pub(crate) server: String,
    /// The tool's name.
    pub(crate) tool: String,
    /// The digest of its definition, `sha256:` and 64 hexadecimal digits.
    pub(crate) digest: String,
}

/// What a harness did about it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PinsRecorded {
    /// How many acceptances are in its record.
    pub(crate) recorded: usize,
}

/// A server that is being started afresh.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Restarted {
    /// Its name.
    pub(crate) name: String,
}

/// How a server is. What servers wrote is escaped where it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerInfo {
    /// Its name.
    pub(crate) name: String,
    /// `stdio` or `http`.
    pub(crate) kind: String,
    /// `starting`, `ready` or `unavailable`.
    pub(crate) status: String,
    /// Why it is unavailable, as guests are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// How many tools it offers.
    pub(crate) tools: usize,
    /// Those of them that are not what was pinned.
    pub(crate) changed: Vec<String>,
    /// Its process, if it is a program that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    /// How often it was started again.
    pub(crate) restarts: usize,
    /// Calls in flight.
    pub(crate) calls: usize,
    /// Why it last failed or ended, in detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
}
