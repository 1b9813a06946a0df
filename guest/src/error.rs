//! Why a request brought no result: each cause with what happened and what to do next.
//!
//! A cause knows whether the request may have arrived, since that decides whether it may be repeated.

use std::{io, time::Duration};

use footbridge_proto::{rpc::ErrorObject, wire::MAX_REQUEST_BYTES};

/// Why a request brought no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The parameters cannot be written as JSON.
    #[error("cannot write the request as JSON: {0}")]
    Params(serde_json::Error),
    /// The request is beyond what any bridge takes.
    #[error("the request has {0} bytes and a bridge takes at most {MAX_REQUEST_BYTES}: make the arguments smaller")]
    RequestTooLarge(usize),
    /// No connection.
    #[error("{}", connect_message(target, source))]
    Connect {
        /// Where to.
        target: String,
        /// Why.
        source: io::Error,
    },
    /// The connection ended before the answer did.
    #[error(
        "the connection to {target} ended before the answer was complete ({why}); what was asked may have happened"
    )]
    Cut {
        /// Where to.
        target: String,
        /// How it ended.
        why: String,
    },
    /// The time was up.
    #[error("{}", timeout_message(*after, *sent))]
    TimedOut {
        /// The limit.
        after: Duration,
        /// Whether the request may have arrived.
        sent: bool,
    },
    /// More than the client holds.
    #[error("the answer has more than {0} bytes, which is more than is read; ask for less")]
    AnswerTooLarge(usize),
    /// The token is missing or wrong.
    #[error("Authentication failed: invalid or missing TOOL_CLI_TOKEN")]
    Unauthorized,
    /// Another HTTP status than 200.
    #[error("the bridge answered HTTP {status}: {says}. {}", next_step(*status))]
    Status {
        /// The status.
        status: u16,
        /// What the body says.
        says: String,
        /// The JSON-RPC error in it, where there is one.
        error: Option<Box<ErrorObject>>,
    },
    /// What answers is no bridge.
    #[error("what answered is not a bridge: {0}. Check TOOL_CLI_PORT or TOOL_CLI_SOCKET")]
    NotBridge(String),
    /// The answer belongs to another request.
    #[error("the answer has the id {got} and the request had {sent}; nothing of it was used")]
    WrongId {
        /// The request's.
        sent: u64,
        /// The answer's.
        got: String,
    },
    /// A result of another shape than the method's.
    #[error("the bridge's answer to {method} has an unexpected shape: {source}")]
    Shape {
        /// The method.
        method: &'static str,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The bridge's own error.
    #[error("{}", .0.message)]
    Refused(Box<ErrorObject>),
}

fn connect_message(target: &str, source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => format!(
            "tool-cli server not running: {target} refused the connection. \
             Start the harness, or set TOOL_CLI_PORT or TOOL_CLI_SOCKET to where it listens"
        ),
        io::ErrorKind::NotFound => {
            format!("cannot reach the bridge: {target} does not exist. Start the harness, or correct TOOL_CLI_SOCKET")
        }
        io::ErrorKind::PermissionDenied => format!(
            "cannot reach the bridge: {target}: permission denied. The socket belongs to another user or session"
        ),
        _ => format!("cannot reach the bridge at {target}: {source}. Check TOOL_CLI_HOST and TOOL_CLI_PORT"),
    }
}

fn timeout_message(after: Duration, sent: bool) -> String {
    let limit =
        if after.subsec_millis() == 0 { format!("{} s", after.as_secs()) } else { format!("{} ms", after.as_millis()) };
    if sent {
        format!(
            "no answer within {limit}; the request was cancelled, but may have taken effect. Raise the limit with --timeout"
        )
    } else {
        format!("no connection within {limit}; nothing was sent")
    }
}

fn next_step(status: u16) -> &'static str {
    match status {
        403 => "It refuses this host or origin: use 127.0.0.1 or localhost, or let the harness allow the host",
        404 | 405 => "Something else than a bridge listens there: check TOOL_CLI_PORT or TOOL_CLI_SOCKET",
        413 => "Make the arguments smaller",
        415 => "It does not take JSON as the bridge does: check TOOL_CLI_PORT or TOOL_CLI_SOCKET",
        429 | 503 => "Try again later",
        502 => "The relay cannot reach the harness: check that it still runs",
        _ => "Look into the harness's log",
    }
}
