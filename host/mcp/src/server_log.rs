//! Where what servers write to their standard error is kept for the operator, with what the harness notes of them.
//!
//! How and where is the business of whoever brings a [`ServerLog`]. Values of configured secrets are gone before a line
//! gets there; nothing is escaped.

use std::fmt::Debug;

use footbridge_core::names::ServerName;

/// Who wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSource {
    /// The server, on its standard error.
    Server,
    /// The harness, about the server.
    Harness,
}

/// Keeps lines of servers.
pub trait ServerLog: Debug + Send + Sync {
    /// Keeps lines. It may take as long as a write to a file; a failure is its own to tell.
    fn keep(&self, server: &ServerName, source: LogSource, lines: &str);
}
