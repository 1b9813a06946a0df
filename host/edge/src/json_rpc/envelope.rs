//! From a body to a method and its parameters.

use footbridge_proto::{
    json::{self, JsonError},
    rpc::{ErrorCode, ErrorObject, IncomingRequest, Reason},
};
use serde::Deserialize;
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
    let text = match json::check(body, depth) {
        Ok(text) => text,
        Err(why) => return refused(body, &why),
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

/// What is no JSON. What is, but refused since parsers differ about it, says why and still has its id: a client that
/// checks ids would show nothing else.
fn refused(body: &[u8], why: &JsonError) -> Envelope<'static> {
    #[derive(Deserialize)]
    struct OnlyId<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    if matches!(why, JsonError::NotUtf8 | JsonError::Syntax(_)) {
        return Envelope { id: None, method: Err(envelope_error(ErrorCode::Parse, "Parse error")), params: None };
    }
    let message = format!("Parse error: {why}");
    let object = Some(body).filter(|body| body.trim_ascii_start().starts_with(b"{"));
    let read = object.and_then(|body| serde_json::from_slice::<OnlyId<'_>>(body).ok());
    let id = read.and_then(|read| read.id).filter(|raw| is_id(raw)).map(ToOwned::to_owned);
    Envelope { id, method: Err(envelope_error(ErrorCode::Parse, message)), params: None }
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
