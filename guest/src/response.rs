//! The bridge's answer to a request, read: its result, or why there is none.
//!
//! The answers of both generations are read alike, and a server that is no bridge shows as such in its first answer.

use footbridge_proto::{rpc::Response, text::Escaped};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::error::ClientError;

/// Longest part of a body that an error quotes.
const QUOTED_BYTES: usize = 4096;
/// The same of one that no bridge writes.
const QUOTED_CHARACTERS: usize = 80;

/// Reads an answer to the request of this id.
pub(crate) fn read_answer(status: u16, body: &[u8], id: u64) -> Result<Box<RawValue>, ClientError> {
    match status {
        200 => read_response(body, id),
        _ => Err(refused(status, body)),
    }
}

fn refused(status: u16, body: &[u8]) -> ClientError {
    if status == 401 {
        return ClientError::Unauthorized;
    }
    let response: Option<Response> = serde_json::from_slice(body).ok();
    let error = response.and_then(|response| response.error).map(Box::new);
    let says = error.as_ref().map_or_else(|| quote(body), |error| error.message.clone());
    ClientError::Status { status, says, is_foreign: is_foreign(body), error }
}

/// Whether no bridge writes this: its bodies are JSON, or empty.
fn is_foreign(body: &[u8]) -> bool {
    !body.is_empty() && serde_json::from_slice::<IgnoredAny>(body).is_err()
}

/// What a body says: the `error` of a short JSON error, or its text, of which little is shown where it is no JSON.
fn quote(body: &[u8]) -> String {
    let object: Option<serde_json::Map<String, serde_json::Value>> = serde_json::from_slice(body).ok();
    if let Some(text) = object.as_ref().and_then(|o| o.get("error").or(o.get("message"))).and_then(|v| v.as_str()) {
        return text.to_owned();
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(QUOTED_BYTES)]);
    if is_foreign(body) {
        let text = text.trim();
        let shown: String = text.chars().take(QUOTED_CHARACTERS).collect();
        return format!("{}{}", Escaped(&shown), if shown.len() < text.len() { "..." } else { "" });
    }
    match body.len() {
        0 => "an empty body".to_owned(),
        length if length > QUOTED_BYTES => format!("{} ({length} bytes in all)", text.trim()),
        _ => text.trim().to_owned(),
    }
}

fn read_response(body: &[u8], id: u64) -> Result<Box<RawValue>, ClientError> {
    let response: Response = serde_json::from_slice(body)
        .map_err(|e| ClientError::NotBridge(format!("its answer is no JSON-RPC response, {e}: {}", quote(body))))?;
    if !response.has_version() {
        return Err(ClientError::NotBridge(format!("its answer is of JSON-RPC {:?}", response.jsonrpc)));
    }
    // A bridge that could not read the request cannot know its id.
    let echoed = response.id.as_ref().map_or("null", |raw| raw.get());
    if echoed != id.to_string() && !(echoed == "null" && response.error.is_some()) {
        return Err(ClientError::WrongId { sent: id, got: echoed.to_owned() });
    }
    match (response.result, response.error) {
        (_, Some(error)) => Err(ClientError::Refused(Box::new(error))),
        (Some(result), None) => Ok(result),
        (None, None) => Err(ClientError::NotBridge("its answer holds neither a result nor an error".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_must_carry_the_id_of_its_request() {
        assert_eq!(read_response(br#"{"jsonrpc":"2.0","result":7,"id":3}"#, 3).unwrap().get(), "7");
        for other in ["4", "\"3\"", "null", "3.0"] {
            let body = format!(r#"{{"jsonrpc":"2.0","result":7,"id":{other}}}"#);
            assert!(matches!(read_response(body.as_bytes(), 3), Err(ClientError::WrongId { .. })), "{other}");
        }
    }

    #[test]
    fn an_error_without_an_id_is_still_the_error() {
        let body = br#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}"#;
        assert!(matches!(read_response(body, 1), Err(ClientError::Refused(e)) if e.code == -32700));
    }

    #[test]
    fn what_is_no_response_is_named_with_what_it_says() {
        for body in ["<html>hello", "{}", r#"{"jsonrpc":"1.0","result":1,"id":1}"#, r#"{"jsonrpc":"2.0","id":1}"#] {
            let error = read_response(body.as_bytes(), 1).unwrap_err();
            assert!(matches!(error, ClientError::NotBridge(_)), "{error}");
        }
        let error = read_response(b"<html>hello", 1).unwrap_err().to_string();
        assert!(error.contains("<html>hello"), "{error}");
    }

    #[test]
    fn a_status_is_told_with_its_body_and_the_next_step() {
        assert!(matches!(refused(401, b"{\"error\":\"Unauthorized\"}"), ClientError::Unauthorized));
        let text = refused(403, b"{\"error\":\"Host not allowed\"}").to_string();
        assert!(text.starts_with("the bridge answered HTTP 403: Host not allowed. It refuses"), "{text}");
        let rpc = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Request too large"},"id":null}"#;
        assert!(refused(413, rpc.as_bytes()).to_string().contains("Request too large"), "{rpc}");
    }

    #[test]
    fn another_server_s_page_is_said_to_be_no_bridge_s_and_not_shown_whole() {
        let page = format!("<!DOCTYPE HTML>\n{}", "x".repeat(10_000));
        let text = refused(501, page.as_bytes()).to_string();
        assert!(text.starts_with(
            "what listens there is no Footbridge bridge: it answered HTTP 501 with \"<!DOCTYPE HTML>\\nxx"
        ));
        assert!(text.contains("xxx...\". Check TOOL_CLI_PORT") && text.len() < 250, "{text}");
        let text = read_response(page.as_bytes(), 1).unwrap_err().to_string();
        assert!(text.len() < 300, "{text}");
    }
}
