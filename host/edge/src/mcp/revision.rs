//! The revisions of MCP that are spoken, and what the one without a handshake demands of each request.
//!
//! 2025-06-18 and 2025-11-25 begin with `initialize` and show an `Mcp-Session-Id` from then on. 2026-07-28 has neither:
//! each request says its revision twice, in a header and in `_meta`, and repeats its method and name in headers. Where
//! the two differ it is refused: who is on the way may have decided by the one and we by the other.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use footbridge_proto::rpc::{ErrorCode, ErrorObject};
use http::{HeaderMap, StatusCode, request::Parts};
use serde_json::{Value, json};

use super::request::Params;

/// A revision of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Revision {
    June2025,
    November2025,
    July2026,
}

/// A request that does not say what its revision wants it to say.
#[derive(Debug)]
pub(super) struct BadHead(pub(super) ErrorObject);

const VERSION: &str = "mcp-protocol-version";

const METHOD_NOT_FOUND: i64 = ErrorCode::MethodNotFound.number();
const INVALID_PARAMS: i64 = ErrorCode::InvalidParams.number();
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;

impl Revision {
    /// All of them, the newest first.
    pub(super) const ALL: [Self; 3] = [Self::July2026, Self::November2025, Self::June2025];

    /// As it is written.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::June2025 => "2025-06-18",
            Self::November2025 => "2025-11-25",
            Self::July2026 => "2026-07-28",
        }
    }

    fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// What is answered to a client that would like this one: the newest with a handshake, where it is another.
    pub(super) fn negotiated(wanted: Option<&str>) -> Self {
        let wanted = wanted.and_then(Self::named);
        wanted.filter(|revision| revision.has_handshake()).unwrap_or(Self::November2025)
    }

    /// Whether clients initialize.
    pub(super) fn has_handshake(self) -> bool {
        self != Self::July2026
    }

    /// Whether a tool's structured result may be any JSON, and not only an object.
    pub(super) fn has_any_results(self) -> bool {
        self == Self::July2026
    }

    /// Whether calls can be tasks. What the revision without a handshake has of them is an extension.
    pub(super) fn has_tasks(self) -> bool {
        self == Self::November2025
    }

    /// The status of HTTP that goes with an error.
    pub(super) fn status_of(self, error: &ErrorObject) -> StatusCode {
        if self.has_handshake() || error.code != METHOD_NOT_FOUND { StatusCode::OK } else { StatusCode::NOT_FOUND }
    }
}

/// Whether a request says that it is of the revision without a handshake, which has no `initialize`.
pub(super) fn is_without_handshake(head: &Parts) -> bool {
    sole(&head.headers, VERSION).is_ok_and(|version| version == Some(Revision::July2026.as_str()))
}

/// The revision that a request says; none where it is one of a client that has initialized.
pub(super) fn of(head: &Parts, method: &str, params: &Params<'_>) -> Result<Option<Revision>, BadHead> {
    let headers = &head.headers;
    let (by_header, by_body) = (sole(headers, VERSION)?, params.protocol_version_of_meta());
    let revision = match by_header.or(by_body.as_deref()) {
        None => return Ok(None),
        Some(text) => Revision::named(text).ok_or_else(|| unsupported(text))?,
    };
    if revision.has_handshake() && by_body.is_none() {
        return Ok(None);
    }
    if by_body.is_none() {
        let why = "_meta lacks io.modelcontextprotocol/protocolVersion";
        return Err(BadHead(error(INVALID_PARAMS, why, None)));
    }
    if by_header != by_body.as_deref() {
        return Err(mismatch("MCP-Protocol-Version and the protocolVersion of _meta are not the same"));
    }
    if revision.has_handshake() {
        return Err(unsupported_without_handshake(revision));
    }
    if !params.has_client_capabilities() {
        return Err(BadHead(error(INVALID_PARAMS, "_meta lacks io.modelcontextprotocol/clientCapabilities", None)));
    }
    check_repeated(headers, method, params)?;
    Ok(Some(revision))
}

/// Checks what is repeated in headers.
fn check_repeated(headers: &HeaderMap, method: &str, params: &Params<'_>) -> Result<(), BadHead> {
    if sole(headers, "mcp-method")? != Some(method) {
        return Err(mismatch("Mcp-Method is not the method"));
    }
    let named = match method {
        "tools/call" | "prompts/get" => params.text(params.name),
        "resources/read" => params.text(params.uri),
        _ => return Ok(()),
    };
    let shown = sole(headers, "mcp-name")?.and_then(decoded);
    if named.is_some() && shown != named {
        return Err(mismatch("Mcp-Name is not the name or URI"));
    }
    Ok(())
}

/// A header's value that may be wrapped in base64, where it has what no header can have.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|value| value.strip_suffix("?=")) {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

/// The one header of this name: two could be read differently on the way.
fn sole<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, BadHead> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| mismatch("a header is no text")),
        (Some(_), Some(_)) => Err(mismatch("a header is there twice")),
    }
}

fn error(code: i64, message: &str, data: Option<Value>) -> ErrorObject {
    ErrorObject { code, message: message.to_owned(), data }
}

fn mismatch(why: &str) -> BadHead {
    BadHead(error(HEADER_MISMATCH, why, None))
}

fn unsupported(requested: &str) -> BadHead {
    let requested: String = requested.chars().take(64).collect();
    BadHead(error(
        UNSUPPORTED_VERSION,
        "This revision of MCP is not spoken here",
        // The others begin with initialize, and are agreed on there.
        Some(json!({"requested": requested, "supported": [Revision::July2026.as_str()]})),
    ))
}

fn unsupported_without_handshake(revision: Revision) -> BadHead {
    BadHead(error(
        UNSUPPORTED_VERSION,
        "This revision of MCP begins with initialize",
        Some(json!({"requested": revision.as_str(), "supported": [Revision::July2026.as_str()]})),
    ))
}
