//! What the configuration says of one MCP server: how to start it or where it is.
//!
//! Only the operator's configuration makes one; nothing that a guest or a server sent ever does.

use std::path::PathBuf;

use super::ServerName;
use crate::secret::Secret;

/// One server of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    /// Its name.
    pub name: ServerName,
    /// How to reach it.
    pub transport: TransportSpec,
    /// Which revision of MCP to speak.
    pub protocol: ProtocolChoice,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportSpec {
    /// A program of ours that speaks on its standard input and output.
    Stdio(StdioSpec),
    /// Streamable HTTP.
    Http(HttpSpec),
}

/// A program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioSpec {
    /// The program, looked up in PATH unless it has a slash.
    pub command: String,
    /// Its arguments.
    pub args: Vec<Secret>,
    /// Its whole environment: the allowed variables of the harness, and what the configuration adds.
    pub env: Vec<(String, Secret)>,
    /// Its working folder; the harness's own if absent.
    pub cwd: Option<PathBuf>,
    /// Whether it is kept away from other processes, as [`crate::keeper::Confinement`] says. That takes a keeper.
    pub confine: bool,
}

/// A URL to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSpec {
    /// `https:`, or `http:` to a loopback address.
    pub url: reqwest::Url,
    /// Headers of every request.
    pub headers: Vec<(http::HeaderName, Secret)>,
    /// Whether a name may resolve to a private address. An address written in the URL is allowed as written.
    pub allow_private: bool,
}

/// Which revision of MCP to speak with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtocolChoice {
    /// The handshake of 2025-11-25 and before, which nearly every server speaks.
    #[default]
    Initialize,
    /// The stateless revision of 2026-07-28 only.
    Discover,
    /// Ask for the stateless one first, fall back to the handshake, and remember the answer.
    Auto,
}
