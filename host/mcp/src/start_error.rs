//! Why a server did not start: the detail for the operator, and a text for the guest that tells no secrets.

use std::time::Duration;

use footbridge_outbound::BadAddress;
use footbridge_processes::launch::LaunchError;
use footbridge_proto::rpc::ErrorCode;
use rmcp::{model::ProtocolVersion, service::ClientInitializeError};

use super::{
    ProtocolChoice,
    http_sse::NoStream,
    listing::ListError,
    unanswered::{Failure, Login},
};

/// Revisions that are shown of those that a server names.
const SHOWN: usize = 8;

/// Characters that are shown of a revision that nobody knows.
pub(super) const MAX_REVISION: usize = 40;

/// The codes of errors that say that a method, or a revision, is not known.
const METHOD_NOT_FOUND: i64 = ErrorCode::MethodNotFound.number();
const UNSUPPORTED_REVISION: i64 = -32022;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    /// Its program does not run.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Its program ended.
    #[error("it ended while starting ({0})")]
    Ended(String),
    /// It did not answer.
    #[error("it did not answer the handshake and list its tools within {time:?}{}", instead(.no_json.as_deref()))]
    Timeout {
        /// What it had.
        time: Duration,
        /// The first that it printed that is no JSON.
        no_json: Option<String>,
    },
    /// It answered something else.
    #[error("the handshake failed: {}{}", handshake(.0), next_step(.0, *.1))]
    Handshake(Box<ClientInitializeError>, ProtocolChoice),
    /// It took the first message of the handshake, and not the last, which has no answer to say more.
    #[error("the handshake failed: it answered HTTP {0} to notifications/initialized")]
    NotTaken(u16),
    /// It names the revisions that it speaks, and none was asked for.
    #[error("it speaks revision {} of the protocol, and was asked for {}", written(.0), written(.1))]
    Revisions(Vec<ProtocolVersion>, Vec<ProtocolVersion>),
    /// It answered in a revision that nobody knows.
    #[error("it speaks revision {0:?} of the protocol, which is not known here; known are 2024-11-05 to 2026-07-28")]
    Revision(String),
    /// It wants to know who asks.
    #[error("it answered HTTP {0}: {1}")]
    Login(u16, Login),
    /// It speaks the older transport, which was not configured.
    #[error("it speaks the older transport over HTTP alone: add \"type\": \"sse\" to its entry")]
    OlderTransport,
    /// It does not speak the older transport, which was configured.
    #[error(transparent)]
    NoStream(NoStream),
    /// It does not list its tools.
    #[error(transparent)]
    Listing(#[from] ListError),
    /// Its address may not be used.
    #[error(transparent)]
    Address(#[from] BadAddress),
    /// It is no MCP server: its tools are programs, which run once a call, or its configuration is not whole.
    #[error("it has no connection")]
    NoConnection,
    /// The machine has no thread for it at the moment.
    #[error("there is no thread for it: {0}")]
    Thread(std::io::Error),
}

/// What became of the handshake, without the words that the library puts around it.
fn handshake(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => match error.error.downcast_ref::<Failure>() {
            Some(Failure::Client(error)) => error.to_string(),
            _ => error.error.to_string(),
        },
        ClientInitializeError::JsonRpcError(told) => {
            format!("it answered with an error: {} (code {})", told.message, told.code.0)
        }
        ClientInitializeError::ConnectionClosed(_) => "its connection was closed".to_owned(),
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => "it did not answer what was asked".to_owned(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => handshake(fallback),
        other => other.to_string(),
    }
}

/// Whether all that is known is that the library closed its end.
fn is_closed(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::TransportError { error, .. } => {
            error.error.downcast_ref::<Failure>().is_some_and(|failure| !matches!(failure, Failure::Client(_)))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => is_closed(fallback),
        _ => false,
    }
}

/// What to set where it says that it does not know what it was asked first.
fn next_step(error: &ClientInitializeError, choice: ProtocolChoice) -> &'static str {
    let ClientInitializeError::JsonRpcError(told) = error else { return "" };
    let code = i64::from(told.code.0);
    // One over HTTP that refuses what it does not know (HTTP 4xx) is of the older kind, too.
    let is_refused = choice == ProtocolChoice::Discover && code == ErrorCode::InvalidRequest.number();
    let is_unknown = [METHOD_NOT_FOUND, UNSUPPORTED_REVISION].contains(&code)
        || is_refused
        || told.message.to_ascii_lowercase().contains("unsupported protocol version");
    match choice {
        ProtocolChoice::Initialize if is_unknown => {
            "; it may speak revision 2026-07-28 alone: add \"protocol\": \"discover\" to its entry"
        }
        ProtocolChoice::Discover if is_unknown => {
            "; it may speak older revisions alone: take \"protocol\": \"discover\" out of its entry, or set it to \"auto\""
        }
        _ => "",
    }
}

/// What it printed in place of messages.
fn instead(no_json: Option<&str>) -> String {
    no_json.map(|first| format!("; it prints what is no JSON, first: {first}")).unwrap_or_default()
}

fn written(revisions: &[ProtocolVersion]) -> String {
    let shown: Vec<String> =
        revisions.iter().take(SHOWN).map(|one| one.as_str().chars().take(MAX_REVISION).collect()).collect();
    shown.join(", ")
}

impl StartError {
    /// The same of a server whose entry has this choice. Where that is left to us there is nothing to set, whatever was
    /// asked this time.
    pub(super) fn of_choice(self, choice: ProtocolChoice) -> Self {
        match self {
            Self::Handshake(error, _) if choice == ProtocolChoice::Auto => Self::Handshake(error, choice),
            other => other,
        }
    }

    /// Of a handshake that failed.
    pub(super) fn of_handshake(error: ClientInitializeError, choice: ProtocolChoice) -> Self {
        match error {
            ClientInitializeError::NoCompatibleProtocolVersion { client_supported, server_supported } => {
                Self::Revisions(server_supported, client_supported)
            }
            other => Self::Handshake(Box::new(other), choice),
        }
    }

    /// The same of a server over HTTP whose last refusal had this status. Where it refused what is no request, the library
    /// closes its end and says no more than that.
    pub(super) fn of_http_handshake(error: ClientInitializeError, choice: ProtocolChoice, status: Option<u16>) -> Self {
        match status {
            Some(status) if is_closed(&error) => Self::NotTaken(status),
            _ => Self::of_handshake(error, choice),
        }
    }

    /// The cause and the next step, for the guest.
    pub(super) fn for_guest(&self) -> &'static str {
        match self {
            Self::Launch(LaunchError { error, .. }) => match error.kind() {
                std::io::ErrorKind::NotFound => "its program or its working folder was not found; ask the operator",
                std::io::ErrorKind::PermissionDenied => "its program may not be run; ask the operator",
                _ => "its program could not be started; ask the operator",
            },
            Self::Ended(_) => "it ended while starting; try again, or ask the operator",
            Self::Timeout { .. } => "it did not answer while starting; try again, or ask the operator",
            Self::Handshake(..) | Self::NotTaken(_) => {
                "it could not be reached or does not speak the protocol; try again, or ask the operator"
            }
            Self::Login(..) => "it needs a login; ask the operator",
            Self::OlderTransport => "it speaks another transport than it is configured with; ask the operator",
            Self::NoStream(_) => {
                "it could not be reached or does not speak the protocol; try again, or ask the operator"
            }
            Self::Revision(_) | Self::Revisions(..) => {
                "it speaks a revision of the protocol that is not known here; ask the operator"
            }
            Self::Listing(_) => "it could not list its tools; try again, or ask the operator",
            Self::Thread(_) => "the machine has no thread for it at the moment; try again",
            Self::Address(_) => "its address is refused; ask the operator",
            Self::NoConnection => "it has no connection; ask the operator",
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ErrorCode as TheirCode, ErrorData};

    use super::*;

    #[test]
    fn a_server_of_another_kind_of_revision_is_told_of_with_what_to_set() {
        let said = |code, message: &'static str, choice| {
            let error = ErrorData::new(TheirCode(code), message, None);
            StartError::of_handshake(ClientInitializeError::JsonRpcError(error), choice).to_string()
        };
        for (code, message) in
            [(-32022, "x"), (-32601, "Method not found"), (-32000, "Bad Request: Unsupported protocol version: 2025")]
        {
            let initialize = said(code, message, ProtocolChoice::Initialize);
            assert!(initialize.contains("add \"protocol\": \"discover\" to its entry"), "{initialize}");
            let discover = said(code, message, ProtocolChoice::Discover);
            assert!(discover.contains("take \"protocol\": \"discover\" out of its entry"), "{discover}");
            assert!(!said(code, message, ProtocolChoice::Auto).contains("entry"));
            // Found out, of a server that is asked as it comes; and of one for which nothing is ever to be set.
            for (asked, entry) in [
                (ProtocolChoice::Initialize, ProtocolChoice::Auto),
                (ProtocolChoice::Discover, ProtocolChoice::Auto),
                (ProtocolChoice::Auto, ProtocolChoice::Initialize),
            ] {
                let error = ErrorData::new(TheirCode(code), message, None);
                let error = StartError::of_handshake(ClientInitializeError::JsonRpcError(error), asked);
                assert!(!error.of_choice(entry).to_string().contains("entry"), "{asked:?}, {entry:?}");
            }
        }
        let refused = said(-32600, "x", ProtocolChoice::Discover);
        assert!(refused.contains("take \"protocol\": \"discover\" out of its entry"), "{refused}");
        assert!(!said(-32600, "x", ProtocolChoice::Initialize).contains("entry"));
        let other = said(-32603, "Internal error", ProtocolChoice::Initialize);
        assert_eq!(other, "the handshake failed: it answered with an error: Internal error (code -32603)");
    }
}
