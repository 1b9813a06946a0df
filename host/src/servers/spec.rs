//! What the configuration says of one MCP server: how to start it or where it is.
//!
//! Only the operator's configuration makes one; nothing that a guest or a server sent ever does.

use std::{fmt, path::PathBuf, str::FromStr};

use footbridge_proto::text::needs_escape;

use crate::secret::Secret;

/// The name of a server: what a guest types.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerName(String);

/// Why a text is no server name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a server's name has 1 to 64 bytes, no control or invisible characters, and does not start with \"-\"")]
pub struct BadServerName;

impl FromStr for ServerName {
    type Err = BadServerName;

    fn from_str(text: &str) -> Result<Self, BadServerName> {
        let fits = (1..=64).contains(&text.len()) && !text.starts_with('-') && !text.chars().any(needs_escape);
        if fits { Ok(Self(text.to_owned())) } else { Err(BadServerName) }
    }
}

impl ServerName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One server of the configuration.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Its name.
    pub name: ServerName,
    /// How to reach it.
    pub transport: TransportSpec,
    /// Which revision of MCP to speak.
    pub protocol: ProtocolChoice,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum TransportSpec {
    /// A program of ours that speaks on its standard input and output.
    Stdio(StdioSpec),
    /// Streamable HTTP.
    Http(HttpSpec),
}

/// A program to start.
#[derive(Debug, Clone)]
pub struct StdioSpec {
    /// The program, looked up in PATH unless it has a slash.
    pub command: String,
    /// Its arguments.
    pub args: Vec<Secret>,
    /// Its whole environment: the allowed variables of the harness, and what the configuration adds.
    pub env: Vec<(String, Secret)>,
    /// Its working folder; the harness's own if absent.
    pub cwd: Option<PathBuf>,
}

/// A URL to call.
#[derive(Debug, Clone)]
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
