//! Why a request brought no result: each cause with what happened and what to do next.
//!
//! A cause knows whether the request may have arrived, since that decides whether it may be repeated.

use std::{io, time::Duration};

use footbridge_proto::{
    rpc::{ErrorObject, Reason},
    text::Escaped,
    vars,
    wire::MOST_REQUEST_BYTES,
};
use nix::libc;

/// When to come back to a bridge that has no place for a connection, and says no time.
const NO_PLACE_PAUSE: Duration = Duration::from_secs(1);

/// Why a request brought no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The parameters cannot be written as JSON.
    #[error("cannot write the request as JSON: {0}")]
    Params(serde_json::Error),
    /// The request is beyond what any bridge takes.
    #[error("the request has {0} bytes and no bridge takes more than {MOST_REQUEST_BYTES}: make the arguments smaller")]
    RequestTooLarge(usize),
    /// No connection.
    #[error("{}", connect_message(target, source))]
    Connect {
        /// Where to.
        target: String,
        /// Why.
        source: io::Error,
    },
    /// Somebody listens there who is neither root, this user nor the relay.
    #[error(
        "what listens on {target} belongs to user {uid}, who is neither root, you nor the relay of a sandbox: nothing was \
         sent. End it; if it is your bridge after all, set {}={uid}",
        vars::LISTENER_UID
    )]
    Stranger {
        /// Where.
        target: String,
        /// The user.
        uid: u32,
    },
    /// The connection ended before the answer did; or before it began, too.
    #[error(
        "the connection to {target} ended before the answer was complete ({why}); what was asked may have happened"
    )]
    Cut {
        /// Where to.
        target: String,
        /// How it ended.
        why: String,
        /// Whether anything of the answer came.
        has_begun: bool,
    },
    /// The time was up.
    #[error("{}", timeout_message(*after, *sent))]
    TimedOut {
        /// The limit.
        after: Duration,
        /// Whether the request may have arrived.
        sent: bool,
    },
    /// A call that was watched, and then nothing was heard of it, not even that it still runs.
    #[error("{}", silence_message(*after))]
    Silent {
        /// The limit.
        after: Duration,
    },
    /// The wait is over, and a person has not answered.
    #[error(
        "nobody has answered yet, so nothing was called: approval {id} waits on. \"tool-cli wait {id}\" waits for it, and \
         --timeout says how long to wait",
        id = Escaped(approval)
    )]
    Unanswered {
        /// What is waited for, as `awaitApproval` takes it.
        approval: String,
    },
    /// More than the client holds.
    #[error(
        "the answer has more than {0} bytes, which is all that this client reads, whatever its session may have; ask for less"
    )]
    AnswerTooLarge(usize),
    /// The token is missing or wrong.
    #[error("Authentication failed: invalid or missing TOOL_CLI_TOKEN")]
    Unauthorized,
    /// Another HTTP status than 200.
    #[error("{}", status_message(*status, says, *is_foreign, error.is_some()))]
    Status {
        /// The status.
        status: u16,
        /// What the body says.
        says: String,
        /// Whether the body is one that no bridge writes.
        is_foreign: bool,
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

impl ClientError {
    /// The bridge's own error, where it sent one.
    #[must_use]
    pub fn object(&self) -> Option<&ErrorObject> {
        match self {
            Self::Refused(error) => Some(error),
            Self::Status { error, .. } => error.as_deref(),
            _ => None,
        }
    }

    /// The JSON-RPC code of the bridge's error.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        self.object().map(|error| error.code)
    }

    /// Why the bridge refused, where it says so in a word that is known. Bridges of generation 0 never do.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        self.object()?.reason()
    }

    /// What to find the call by in the harness's record.
    #[must_use]
    pub fn audit_id(&self) -> Option<&str> {
        self.object()?.data.as_ref()?.get("auditId")?.as_str()
    }

    /// When to ask again, where waiting helps: the bridge did not send the call on.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.object()?.data.as_ref()?.get("retryAfterMs")?.as_u64().map(Duration::from_millis)
    }

    /// When to ask again, where the bridge says that nothing of the request was done and that waiting helps: it is over
    /// its rate, busy, or has no place for the connection.
    #[must_use]
    pub fn come_back(&self) -> Option<Duration> {
        match (self.reason(), self) {
            (Some(Reason::RateLimited | Reason::Busy), _) => self.retry_after(),
            (None, Self::Status { status: 503, error: None, .. }) => Some(NO_PLACE_PAUSE),
            _ => None,
        }
    }

    /// Whether it is people's answers that have to come first: as many calls of the session wait for them as may.
    #[must_use]
    pub(crate) fn waits_for_people(&self) -> bool {
        self.object().and_then(|error| error.data.as_ref()).is_some_and(|data| data.get("pendingApprovals").is_some())
    }

    /// Whether what was asked may have happened all the same. If not, it can be asked again.
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::Params(_) | Self::RequestTooLarge(_) | Self::Connect { .. } => false,
            Self::Stranger { .. } | Self::Unauthorized | Self::Unanswered { .. } => false,
            Self::TimedOut { sent, .. } => *sent,
            Self::Cut { .. } | Self::AnswerTooLarge(_) | Self::WrongId { .. } | Self::Shape { .. } => true,
            Self::NotBridge(_) | Self::Silent { .. } => true,
            Self::Status { error: Some(error), .. } => object_may_have_happened(error),
            Self::Status { status, error: None, .. } => *status >= 500 && *status != 503,
            Self::Refused(error) => object_may_have_happened(error),
        }
    }
}

/// Without a reason nobody knows: bridges of generation 0 send none.
fn object_may_have_happened(error: &ErrorObject) -> bool {
    match error.reason() {
        Some(reason) => {
            matches!(reason, Reason::OutcomeUnknown | Reason::ProviderError | Reason::TooLarge | Reason::Internal)
        }
        None => !matches!(error.code, -32700..=-32600 if error.code != -32603),
    }
}

fn connect_message(target: &str, source: &io::Error) -> String {
    if let Some(libc::EMFILE | libc::ENFILE) = source.raw_os_error() {
        return format!(
            "cannot connect to the bridge at {target}: no descriptors are left ({source}). Let fewer files be open, or raise \
             the limit with ulimit -n"
        );
    }
    let is_socket = target.starts_with("unix:");
    let settings = if is_socket { "TOOL_CLI_SOCKET" } else { "TOOL_CLI_HOST and TOOL_CLI_PORT" };
    match source.kind() {
        io::ErrorKind::ConnectionRefused => format!(
            "tool-cli server not running: {target} refused the connection. \
             Start the harness, or set TOOL_CLI_PORT or TOOL_CLI_SOCKET to where it listens"
        ),
        io::ErrorKind::NotFound => {
            format!("cannot reach the bridge: {target} does not exist. Start the harness, or correct TOOL_CLI_SOCKET")
        }
        io::ErrorKind::PermissionDenied if is_socket => format!(
            "cannot reach the bridge: {target}: permission denied. The socket belongs to another user or session"
        ),
        io::ErrorKind::PermissionDenied => format!(
            "cannot reach the bridge: {target}: permission denied. What confines this process, a sandbox or a firewall, does not \
             let it connect there"
        ),
        _ => format!("cannot reach the bridge at {target}: {source}. Check {settings}"),
    }
}

fn time(of: Duration) -> String {
    if of.subsec_millis() == 0 { format!("{} s", of.as_secs()) } else { format!("{} ms", of.as_millis()) }
}

fn silence_message(after: Duration) -> String {
    format!(
        "nothing was heard of the call for {}; it was cancelled, but may have taken effect. Raise the limit with --timeout",
        time(after)
    )
}

fn timeout_message(after: Duration, sent: bool) -> String {
    let limit = time(after);
    if sent {
        format!(
            "no answer within {limit}; the request was cancelled, but may have taken effect. Raise the limit with --timeout"
        )
    } else {
        format!("no connection within {limit}; nothing was sent")
    }
}

fn status_message(status: u16, says: &str, is_foreign: bool, has_error: bool) -> String {
    if is_foreign {
        return format!(
            "what listens there is no Footbridge bridge: it answered HTTP {status} with \"{says}\". Check \
             TOOL_CLI_PORT or TOOL_CLI_SOCKET"
        );
    }
    if status == 403 && has_error {
        return format!("the bridge refused the connection: {says}");
    }
    format!("the bridge answered HTTP {status}: {}. {}", says.trim_end_matches('.'), next_step(status))
}

fn next_step(status: u16) -> &'static str {
    match status {
        403 => "It refuses this host or origin: use 127.0.0.1 or localhost, or let the harness allow the host",
        404 | 405 => "Something else than a bridge listens there: check TOOL_CLI_PORT or TOOL_CLI_SOCKET",
        413 => {
            "It is beyond this session's limit (edge.body_bytes, 1 MiB by default): make the arguments smaller, or have it raised"
        }
        415 => "It does not take JSON as the bridge does: check TOOL_CLI_PORT or TOOL_CLI_SOCKET",
        429 | 503 => "Try again later",
        502 => "The relay cannot reach the harness: check that it still runs",
        _ => "Look into the harness's log",
    }
}

#[cfg(test)]
mod tests {
    use footbridge_proto::token::Token;

    use super::*;

    fn refused(text: &str) -> ClientError {
        ClientError::Refused(Box::new(serde_json::from_str(text).unwrap()))
    }

    #[test]
    fn what_a_bridge_says_for_programs_is_read() {
        let error = refused(
            r#"{"code":-32002,"message":"no","data":{"reason":"rate_limited","retryAfterMs":40,"auditId":"x"}}"#,
        );
        assert_eq!((error.code(), error.reason()), (Some(-32002), Some(Reason::RateLimited)));
        assert_eq!((error.audit_id(), error.retry_after()), (Some("x"), Some(Duration::from_millis(40))));
        assert!(!error.waits_for_people());
        let full =
            r#"{"code":-32002,"message":"no","data":{"reason":"busy","retryAfterMs":1000,"pendingApprovals":10}}"#;
        let full = refused(full);
        let token = Token::parse("fbt_x").unwrap();
        let client = crate::Client::tcp("127.0.0.1", 7, token).unwrap();
        assert_eq!(client.come_back(&full), Some(Duration::from_secs(1)));
        assert_eq!(client.without_waiting().come_back(&full), None);
        let older = refused(r#"{"code":-32602,"message":"no"}"#);
        assert_eq!(
            (older.code(), older.reason(), older.audit_id(), older.retry_after()),
            (Some(-32602), None, None, None)
        );
    }

    #[test]
    fn where_nothing_could_connect_the_advice_is_about_what_is_set() {
        for (target, errno, says, not) in [
            ("unix:/s", libc::EMFILE, "ulimit -n", "TOOL_CLI"),
            ("127.0.0.1:7179", libc::ENFILE, "no descriptors are left", "TOOL_CLI"),
            ("unix:/s", libc::ENOTSOCK, "Check TOOL_CLI_SOCKET", "TOOL_CLI_PORT"),
            ("unix:/s", libc::EACCES, "The socket belongs to another user", "confines"),
            ("127.0.0.1:7179", libc::EACCES, "What confines this process", "socket"),
            ("127.0.0.1:7179", libc::ENETUNREACH, "Check TOOL_CLI_HOST and TOOL_CLI_PORT", "TOOL_CLI_SOCKET"),
        ] {
            let source = io::Error::from_raw_os_error(errno);
            let said = ClientError::Connect { target: target.to_owned(), source }.to_string();
            assert!(said.contains(says) && said.contains(target) && !said.contains(not), "{said}");
        }
    }

    #[test]
    fn what_cannot_have_happened_may_be_asked_again() {
        let of = |code: i64, reason: &str| {
            refused(&format!(r#"{{"code":{code},"message":"no","data":{{"reason":"{reason}"}}}}"#)).may_have_happened()
        };
        assert!(of(-32004, "outcome_unknown") && of(-32603, "provider_error") && of(-31999, "a later word"));
        assert!(!of(-32602, "unknown_tool") && !of(-32002, "rate_limited") && !of(-32005, "audit_unavailable"));
        assert!(refused(r#"{"code":-32603,"message":"it failed"}"#).may_have_happened());
        assert!(!refused(r#"{"code":-32602,"message":"no such tool"}"#).may_have_happened());
        assert!(!ClientError::TimedOut { after: Duration::ZERO, sent: false }.may_have_happened());
    }
}
