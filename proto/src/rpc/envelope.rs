//! The envelopes of JSON-RPC 2.0: as they are written, and as they are read of what somebody else wrote.
//!
//! What is read leniently keeps its members as their text, so that who reads decides what has to be right. Members that
//! are not named here are ignored.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{ErrorObject, raw};

/// The one version there is.
const VERSION: &str = "2.0";

/// What an answer with a result begins with, where the result comes before the id: its text follows, then
/// [`result_end`].
pub const RESULT_START: &str = r#"{"jsonrpc":"2.0","result":"#;

/// What comes behind the text of a result: see [`RESULT_START`].
#[must_use]
pub fn result_end(id: Option<&RawValue>) -> String {
    format!(r#","id":{}}}"#, id_text(id))
}

/// An answer that is an error, as [`Response`] writes it.
#[must_use]
pub fn error_answer(id: Option<&RawValue>, error: &ErrorObject) -> String {
    format!(r#"{{"jsonrpc":"{VERSION}","error":{},"id":{}}}"#, raw(error).get(), id_text(id))
}

fn id_text(id: Option<&RawValue>) -> &str {
    id.map_or("null", RawValue::get)
}

/// A notification, with the text of its parameters, if it has any. Names of methods have nothing to escape.
#[must_use]
pub fn notification(method: &str, params: Option<&str>) -> String {
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"{VERSION}","method":"{method}"{params}}}"#)
}

/// A request as a client writes it.
#[derive(Debug, Serialize)]
pub struct Request<'a, P, I = u64> {
    jsonrpc: &'static str,
    id: I,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
}

impl<'a, P, I> Request<'a, P, I> {
    /// A request with its id; the parameters are an object.
    #[must_use]
    pub fn new(id: I, method: &'a str, params: P) -> Self {
        Self { jsonrpc: VERSION, id, method, params: Some(params) }
    }
}

impl<'a, I> Request<'a, (), I> {
    /// A request without parameters.
    #[must_use]
    pub fn without_params(id: I, method: &'a str) -> Self {
        Self { jsonrpc: VERSION, id, method, params: None }
    }
}

/// An answer as it is written where the id comes first.
#[derive(Debug, Serialize)]
pub struct OutgoingAnswer<I, R> {
    jsonrpc: &'static str,
    id: I,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
}

impl<I, R> OutgoingAnswer<I, R> {
    /// The answer to the request with this id.
    #[must_use]
    pub fn new(id: I, answer: Result<R, ErrorObject>) -> Self {
        let (result, error) = match answer {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        Self { jsonrpc: VERSION, id, result, error }
    }
}

/// An answer, either `result` or `error`; the result is kept as its text. Read strictly: the version and an error have
/// to be of their types.
#[derive(Debug, Serialize, Deserialize)]
pub struct Response {
    /// Always `2.0`.
    pub jsonrpc: String,
    /// What was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// Why it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// The request's id exactly as it was written, or null.
    #[serde(default)]
    pub id: Option<Box<RawValue>>,
}

impl Response {
    /// A result, for the request with this id.
    #[must_use]
    pub fn result(id: Option<Box<RawValue>>, result: Box<RawValue>) -> Self {
        Self { jsonrpc: VERSION.to_owned(), result: Some(result), error: None, id }
    }

    /// An error, for the request with this id.
    #[must_use]
    pub fn error(id: Option<Box<RawValue>>, error: ErrorObject) -> Self {
        Self { jsonrpc: VERSION.to_owned(), result: None, error: Some(error), id }
    }

    /// Whether it says that it is of the one version there is.
    #[must_use]
    pub fn has_version(&self) -> bool {
        self.jsonrpc == VERSION
    }
}

/// A request that somebody else wrote, none of its members looked at. One that is missing is told from one that is
/// `null`, which is none of the types that are allowed.
#[derive(Debug, Deserialize)]
pub struct IncomingRequest<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    /// What the answer has to carry; a notification has none.
    #[serde(borrow, default, deserialize_with = "present")]
    pub id: Option<&'a RawValue>,
    /// What the method takes.
    #[serde(borrow, default, deserialize_with = "present")]
    pub params: Option<&'a RawValue>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl IncomingRequest<'_> {
    /// Whether it says that it is of the one version there is.
    #[must_use]
    pub fn has_version(&self) -> bool {
        string(self.jsonrpc).as_deref() == Some(VERSION)
    }

    /// The method, where it is a string.
    #[must_use]
    pub fn method(&self) -> Option<String> {
        string(self.method)
    }
}

fn string(raw: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(raw?.get()).ok()
}

/// Any message that somebody else wrote: a request or a notification has a method, an answer has none. A member that
/// is `null` counts as missing.
#[derive(Debug, Deserialize)]
pub struct IncomingMessage<'a> {
    /// Of the request, or of what it answers.
    #[serde(default, borrow)]
    pub id: Option<&'a RawValue>,
    /// What is asked or told.
    #[serde(default, borrow)]
    pub method: Option<Cow<'a, str>>,
    /// What the method takes.
    #[serde(default, borrow)]
    pub params: Option<&'a RawValue>,
    /// What was asked for.
    #[serde(default, borrow)]
    pub result: Option<&'a RawValue>,
    /// Why it was not done: an [`IncomingError`], if it is right.
    #[serde(default, borrow)]
    pub error: Option<&'a RawValue>,
}

/// `error` of an answer that somebody else wrote, without its data. A message need not be there.
#[derive(Debug, Deserialize)]
pub struct IncomingError {
    /// See [`super::ErrorCode`] for those that have a name.
    pub code: i64,
    /// For people.
    #[serde(default)]
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::{super::Reason, *};

    fn text(value: &impl Serialize) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn the_text_of_each_envelope_is_pinned() {
        let request = Request::new(7, "m", [1]);
        assert_eq!(text(&request), r#"{"jsonrpc":"2.0","id":7,"method":"m","params":[1]}"#);
        assert_eq!(text(&Request::without_params("x", "ping")), r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#);
        assert_eq!(text(&OutgoingAnswer::new(7, Ok("r"))), r#"{"jsonrpc":"2.0","id":7,"result":"r"}"#);
        assert_eq!(notification("told", None), r#"{"jsonrpc":"2.0","method":"told"}"#);
        assert_eq!(notification("told", Some("[1]")), r#"{"jsonrpc":"2.0","method":"told","params":[1]}"#);
        let error = ErrorObject::new(Reason::Busy, "no");
        let failed = r#"{"code":-32002,"message":"no","data":{"reason":"busy"}}"#;
        let answer = OutgoingAnswer::<_, ()>::new(7, Err(error.clone()));
        assert_eq!(text(&answer), format!(r#"{{"jsonrpc":"2.0","id":7,"error":{failed}}}"#));
        assert_eq!(error_answer(None, &error), text(&Response::error(None, error)));
    }

    #[test]
    fn an_answer_in_parts_is_an_answer() {
        let (id, result) = (raw(&7), raw(&[1]));
        let parts = [RESULT_START, result.get(), &result_end(Some(&id))].concat();
        assert_eq!(parts, r#"{"jsonrpc":"2.0","result":[1],"id":7}"#);
        assert_eq!(parts, text(&Response::result(Some(id), result)));
    }

    #[test]
    fn null_is_told_from_nothing_in_requests_and_is_nothing_in_other_messages() {
        let body = r#"{"jsonrpc":"2.0","method":"m","id":null,"other":1}"#;
        let request: IncomingRequest<'_> = serde_json::from_str(body).unwrap();
        assert!(request.has_version() && request.method().as_deref() == Some("m") && request.params.is_none());
        assert_eq!(request.id.map(RawValue::get), Some("null"));
        assert!(serde_json::from_str::<IncomingMessage<'_>>(body).unwrap().id.is_none());
        let odd: IncomingRequest<'_> = serde_json::from_str(r#"{"jsonrpc":2.0,"method":null}"#).unwrap();
        assert!(!odd.has_version() && odd.method().is_none());
    }
}
