//! Why there is no result, as MCP has it said: a call of a tool that is refused has a result that says so, since that is
//! what a model gets to read; everything else has an error.

use footbridge_proto::rpc::{ErrorObject, raw};
use serde_json::{Value, json, value::RawValue};

use super::revision::Revision;
use crate::{http::refusal::Refusal, wording::error_of};
use footbridge_calls::{
    cause::{Cause, Failure},
    events::ApprovalEvent,
};

/// A resource that is not there, in the revisions before 2026-07-28.
const RESOURCE_NOT_FOUND: i64 = -32002;
const INVALID_PARAMS: i64 = -32602;

/// The member of `_meta` in which the reason is.
const MEMBER: &str = "footbridge/refusal";

/// Why a call of a tool has no result of its own: as a result, or as an error where it names nothing that there is.
pub(super) fn of_tool(failure: &Failure) -> Result<Box<RawValue>, ErrorObject> {
    let error = error_for_models(failure);
    match &*failure.cause {
        Cause::UnknownServer { .. } | Cause::UnknownTool { .. } => Err(error),
        Cause::ServerError { code, .. } => Err(ErrorObject { code: *code, ..error }),
        _ => Ok(raw(&json!({
            "content": [{"type": "text", "text": error.message}],
            "isError": true,
            "_meta": {MEMBER: error.data},
        }))),
    }
}

/// Why anything else has none.
pub(super) fn of_other(failure: &Failure, revision: Revision) -> ErrorObject {
    let error = error_for_models(failure);
    match &*failure.cause {
        Cause::UnknownResource { uri, .. } => {
            let code = if revision.has_handshake() { RESOURCE_NOT_FOUND } else { INVALID_PARAMS };
            ErrorObject { code, ..error }.with("uri", footbridge_calls::request::repeated(uri).as_ref())
        }
        Cause::ServerError { code, .. } => ErrorObject { code: *code, ..error },
        _ => error,
    }
}

/// The same words as everywhere, but for what is done next where there is no `tool-cli`.
pub(super) fn error_for_models(failure: &Failure) -> ErrorObject {
    let mut error = error_of(failure);
    if let (Cause::ApprovalRequired { until, grant_time }, Some(approval)) = (&*failure.cause, &failure.approval) {
        error.message = format!(
            "This call waits for a person's approval, {approval}, until {until}. It was not made; once it is allowed, \
             make exactly the same call again within {grant_time:?}"
        );
    }
    error
}

/// What became of asking a person, in words.
pub(super) fn approval_in_words(event: &ApprovalEvent) -> String {
    format!("Approval {}: {}. {}", event.id, event.state, event.summary)
}

/// The error for what is refused before it is read. Some refusals are none of JSON-RPC.
pub(super) fn of_refusal(refusal: Refusal) -> Option<ErrorObject> {
    let code = match refusal {
        Refusal::NotPost | Refusal::TooLarge | Refusal::TooSlow | Refusal::Broken | Refusal::NotJson => -32600,
        Refusal::Unreadable => -32603,
        Refusal::Busy => return Some(error_of(&Cause::BytesHeld.into())),
        Refusal::HeaderName
        | Refusal::BadHost
        | Refusal::Host
        | Refusal::WebPage
        | Refusal::CrossSite
        | Refusal::NotFound
        | Refusal::Token
        | Refusal::Chunked
        | Refusal::Encoded => return None,
    };
    Some(ErrorObject { code, message: refusal.message().to_owned(), data: None::<Value> })
}
