//! JSON-RPC as a server sees it: requests and notifications come in, errors go out.

use serde_json::{Map, Value};

/// A message from the client. Answers are not among them: this server asks nothing.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// Wants an answer under this id.
    Request(Value, Call),
    /// Wants none.
    Notification(Call),
    /// An answer to a question that was never asked. It is ignored.
    Answer,
}

/// What is asked for.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

/// An error of the protocol, in contrast to a tool that failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
}

impl RpcError {
    pub(super) fn parse(why: &str) -> Self {
        Self { code: -32700, message: format!("Parse error: {why}") }
    }

    pub(super) fn invalid_request(why: &str) -> Self {
        Self { code: -32600, message: format!("Invalid Request: {why}") }
    }

    pub(super) fn method_not_found(method: &str) -> Self {
        Self { code: -32601, message: format!("Method not found: {method}") }
    }

    pub(super) fn invalid_params(why: impl Into<String>) -> Self {
        Self { code: -32602, message: why.into() }
    }

    /// MCP's own code.
    pub(super) fn resource_not_found(uri: &str) -> Self {
        Self { code: -32002, message: format!("Resource not found: {uri}") }
    }
}

/// Reads one message.
///
/// # Errors
/// What to answer, and under which id if one could be read.
pub(super) fn parse(line: &[u8]) -> Result<Message, (Option<Value>, RpcError)> {
    let value: Value = serde_json::from_slice(line).map_err(|error| (None, RpcError::parse(&error.to_string())))?;
    let Value::Object(mut object) = value else {
        return Err((None, RpcError::invalid_request("a message is an object")));
    };
    let id = object.remove("id");
    let usable = id.clone().filter(|id| id.is_string() || id.is_number());
    if id.is_some() && usable.is_none() {
        return Err((None, RpcError::invalid_request("an id is a string or a number")));
    }
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err((usable, RpcError::invalid_request("\"jsonrpc\" is \"2.0\"")));
    }
    if object.contains_key("result") || object.contains_key("error") {
        return Ok(Message::Answer);
    }
    let Some(Value::String(method)) = object.remove("method") else {
        return Err((usable, RpcError::invalid_request("\"method\" is missing")));
    };
    let params = match object.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err((usable, RpcError::invalid_params("\"params\" is an object"))),
    };
    let call = Call { method, params };
    Ok(match usable {
        Some(id) => Message::Request(id, call),
        None => Message::Notification(call),
    })
}
