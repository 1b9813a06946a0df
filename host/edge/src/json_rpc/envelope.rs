//! From a body to a method and its parameters.

use footbridge_proto::{
    json,
    rpc::{ErrorCode, ErrorObject, IncomingRequest, Reason},
};
use serde_json::value::RawValue;

/// A message, or why it is none, and the id to answer with.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) method: Result<String, ErrorObject>,
    pub(crate) params: Option<&'a RawValue>,
}

/// Reads a body that is nested no deeper than this.
pub(crate) fn read(body: &[u8], depth: usize) -> Envelope<'_> {
    let Ok(text) = json::check(body, depth) else {
        return Envelope { id: None, method: Err(envelope_error(ErrorCode::Parse, "Parse error")), params: None };
    };
    let invalid = || envelope_error(ErrorCode::InvalidRequest, "Invalid Request");
    let envelope = match serde_json::from_str::<IncomingRequest<'_>>(text) {
        Ok(envelope) if text.trim_start().starts_with('{') => envelope,
        _ => return Envelope { id: None, method: Err(invalid()), params: None },
    };
    let id = envelope.id.filter(|raw| is_id(raw)).map(ToOwned::to_owned);
    let bad_id = envelope.id.is_some() && id.is_none();
    let method = envelope.method().filter(|_| envelope.has_version() && !bad_id).ok_or_else(invalid);
    Envelope { id, method, params: envelope.params }
}

/// Longest id, bytes: it is kept while the call runs, and sent back.
const MAX_ID: usize = 1024;

fn is_id(raw: &RawValue) -> bool {
    let text = raw.get();
    text.len() <= MAX_ID && text.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit())
}

/// An error of the envelope itself.
pub(crate) fn envelope_error(code: ErrorCode, message: impl Into<String>) -> ErrorObject {
    ErrorObject::with_code(code, Reason::BadRequest, message)
}
