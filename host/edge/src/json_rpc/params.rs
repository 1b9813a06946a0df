//! Parameters: named ones only, names and URIs within their length, and what a completion is about.

use footbridge_proto::rpc::{ErrorObject, Reason};
use serde::Deserialize;
use serde_json::value::RawValue;

use footbridge_calls::{
    meta::CallMeta,
    request::{Completed, PROMPT, TEMPLATE},
};

/// The text of named parameters; none where there are none.
pub(crate) fn object(raw: Option<&RawValue>) -> Result<Option<&str>, ErrorObject> {
    match raw.map(RawValue::get) {
        None | Some("null") => Ok(None),
        Some(text) if text.starts_with('{') => Ok(Some(text)),
        Some(_) => Err(not_named()),
    }
}

/// The error for parameters that are not named.
pub(crate) fn not_named() -> ErrorObject {
    ErrorObject::new(Reason::BadRequest, "Invalid params: named object required")
}

fn string(raw: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(raw?.get()).ok()
}

/// Longest name or URI, bytes: it is kept, shown and recorded, where arguments are digested.
pub(crate) const MAX_NAME: usize = 8 * 1024;

/// A parameter that is a text of at least one byte.
pub(crate) fn required(name: &str, raw: Option<&RawValue>) -> Result<String, ErrorObject> {
    let message = match string(raw) {
        Some(text) if text.len() > MAX_NAME => format!("Parameter \"{name}\" has over {MAX_NAME} bytes"),
        Some(text) if !text.is_empty() => return Ok(text),
        _ => format!("Missing or invalid parameter: \"{name}\" (string required)"),
    };
    Err(ErrorObject::new(Reason::BadRequest, message))
}

/// What of `_meta` goes to the server with a call.
pub(crate) fn call_meta(raw: Option<&RawValue>) -> Result<Option<CallMeta>, ErrorObject> {
    CallMeta::of(raw).map_err(|why| ErrorObject::new(Reason::BadRequest, why.to_string()))
}

/// What a completion is about.
pub(crate) fn completed(raw: Option<&RawValue>) -> Result<Completed, ErrorObject> {
    #[derive(Deserialize)]
    struct Ref {
        r#type: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        uri: String,
    }
    let read = raw.and_then(|raw| serde_json::from_str::<Ref>(raw.get()).ok());
    let about = read.and_then(|about| match about.r#type.as_str() {
        PROMPT => Some(Completed::Prompt { name: about.name }),
        TEMPLATE => Some(Completed::Template { uri: about.uri }),
        _ => None,
    });
    about.filter(|about| (1..=MAX_NAME).contains(&about.name().len())).ok_or_else(|| {
        let message = format!(
            "Missing or invalid parameter: \"ref\" (\"type\": \"{PROMPT}\" with a \"name\", or \"{TEMPLATE}\" with a \
             \"uri\", required)"
        );
        ErrorObject::new(Reason::BadRequest, message)
    })
}
