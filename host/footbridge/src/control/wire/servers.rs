//! What is asked and told about MCP servers and the pins of their tools.

use serde::{Deserialize, Serialize};

/// All servers of a harness.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListServers {}

/// A fresh start of a server: calls that run on it end.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestartServer {
    /// Its name.
    pub name: String,
}

/// Changes that a person accepted: they are in the store already.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinsAccepted {
    /// Each of them.
    pub accepted: Vec<AcceptedPin>,
}

/// A definition that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedPin {
    /// The server's name.
    pub server: String,
    /// The tool's name.
    pub tool: String,
    /// The digest of its definition, `sha256:` and 64 hexadecimal digits.
    pub digest: String,
}

/// What a harness did about it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PinsRecorded {
    /// How many acceptances are in its record.
    pub recorded: usize,
}

/// A server that is being started afresh.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Restarted {
    /// Its name.
    pub name: String,
}

/// How a server is. What servers wrote is escaped where it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// `stdio` or `http`.
    pub kind: String,
    /// `starting`, `ready` or `unavailable`.
    pub status: String,
    /// Why it is unavailable, as guests are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How many tools it offers.
    pub tools: usize,
    /// Those of them that are not what was pinned.
    pub changed: Vec<String>,
    /// Its process, if it is a program that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How often it was started again.
    pub restarts: usize,
    /// Calls in flight.
    pub calls: usize,
    /// Why it last failed or ended, in detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}
