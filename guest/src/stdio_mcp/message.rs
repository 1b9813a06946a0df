//! What is read of a message of the client: enough to send it on, and to answer it where that is not possible.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use footbridge_proto::rpc::{
    ErrorCode, ErrorObject, IncomingError, IncomingMessage, IncomingRequest, Reason, error_answer,
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What a client is told where its token was refused.
pub(super) const UNAUTHORIZED: &str = "Authentication failed: the token is missing or not right, or not right any more, as \
                                       its session ended or has another. Nothing was sent on. Set TOOL_CLI_TOKEN to the \
                                       session's token, or TOOL_CLI_TOKEN_FILE to the file that has it, and start again";

/// A message of the client, as it came.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) line: Vec<u8>,
    pub(super) id: Option<Box<RawValue>>,
    pub(super) method: Option<String>,
    /// Nothing is ever answered to one.
    pub(super) is_notification: bool,
    /// The request that `notifications/cancelled` is about.
    pub(super) cancels: Option<Box<RawValue>>,
    /// The revision that a request without a handshake says.
    pub(super) version: Option<String>,
    /// The name or URI that it is about.
    named: Option<String>,
}

#[derive(Deserialize, Default)]
struct Params<'a> {
    #[serde(borrow, default, rename = "requestId")]
    request_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Meta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(raw?.get()).ok()
}

impl Message {
    /// Reads a line; what is no message goes on all the same, and is answered by the harness.
    pub(super) fn read(line: Vec<u8>) -> Self {
        let read = serde_json::from_slice::<IncomingMessage<'_>>(&line).ok();
        let params = read.as_ref().and_then(|read| serde_json::from_str::<Params<'_>>(read.params?.get()).ok());
        let params = params.unwrap_or_default();
        let meta = params.meta.and_then(|meta| serde_json::from_str::<Meta<'_>>(meta.get()).ok()).unwrap_or_default();
        let id = read.as_ref().and_then(|read| read.id).filter(|id| id.get() != "null").map(ToOwned::to_owned);
        let (cancels, version) = (params.request_id.map(ToOwned::to_owned), text(meta.version));
        let named = text(params.name).or_else(|| text(params.uri));
        let method = read.and_then(|read| read.method).map(Cow::into_owned);
        let cancels = cancels.filter(|_| method.as_deref() == Some("notifications/cancelled"));
        let is_notification = method.is_some()
            && serde_json::from_slice::<IncomingRequest<'_>>(&line).is_ok_and(|request| request.id.is_none());
        Self { id, method, is_notification, cancels, version, named, line }
    }

    /// Whether this is its answer, as JSON-RPC has answers.
    pub(super) fn is_answered_by(&self, read: &IncomingMessage<'_>) -> bool {
        let is_error = || read.error.is_some_and(|error| serde_json::from_str::<IncomingError>(error.get()).is_ok());
        let is_answer = read.method.is_none() && (read.result.is_some() || is_error());
        is_answer && read.id.map(RawValue::get) == self.id.as_deref().map(RawValue::get)
    }

    pub(super) fn is(&self, method: &str) -> bool {
        self.method.as_deref() == Some(method)
    }

    /// The headers that repeat what it says, in the revision that wants them.
    pub(super) fn repeated(&self) -> String {
        let (Some(version), Some(method)) = (&self.version, &self.method) else { return String::new() };
        let mut headers = String::new();
        let all =
            [("MCP-Protocol-Version", Some(version)), ("Mcp-Method", Some(method)), ("Mcp-Name", self.named.as_ref())];
        for (name, value) in all {
            if let Some(value) = value {
                headers.push_str(&format!("{name}: {}\r\n", header_value(value)));
            }
        }
        headers
    }

    /// The answer where there is none; nothing for what is not answered.
    pub(super) fn failed(&self, error: &ErrorObject) -> Option<String> {
        let id = self.id.as_deref().filter(|_| self.method.is_some())?;
        Some(error_answer(Some(id), error))
    }

    /// The answer where the token was refused. No reason is of that; the request is, as the harness says it, none of a
    /// session.
    pub(super) fn unauthorized(&self) -> Option<String> {
        self.failed(&ErrorObject::with_code(ErrorCode::InvalidRequest, Reason::BadRequest, UNAUTHORIZED))
    }
}

/// A value as it can be in a header: in base64 where it has what no header can.
fn header_value(text: &str) -> String {
    let is_plain = text.bytes().all(|b| (0x21..0x7f).contains(&b) || b == b' ') && text.trim() == text;
    if is_plain && !text.starts_with("=?base64?") {
        return text.to_owned();
    }
    format!("=?base64?{}?=", STANDARD.encode(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_without_a_handshake_says_is_repeated() {
        let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        assert_eq!(
            Message::read(line.into()).repeated(),
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: =?base64?w6k=?=\r\n"
        );
        let old = Message::read(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_vec());
        assert_eq!(old.repeated(), "");
        assert_eq!(header_value("a b"), "a b");
        assert_ne!(header_value("a\r\nX: y"), "a\r\nX: y", "nothing gets out of its header");
    }

    #[test]
    fn only_requests_are_answered() {
        let failed = |line: &str| Message::read(line.into()).failed(&ErrorObject::new(Reason::Internal, "no"));
        assert!(failed(r#"{"id":7,"method":"x"}"#).unwrap().ends_with(",\"id\":7}"));
        for other in [r#"{"method":"x"}"#, r#"{"id":7,"result":{}}"#, "rubbish", r#"{"id":null,"method":"x"}"#] {
            assert_eq!(failed(other), None, "{other}");
        }
    }
}
