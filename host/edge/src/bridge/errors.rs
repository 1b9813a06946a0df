//! What the bridge's guests are told when something has no result. The one place that makes an error of JSON-RPC from
//! what the stages, or what all dialects share, answer.

use footbridge_proto::rpc::{ErrorCode, ErrorObject, Reason};

use crate::{dialect::Failure, http::refusal::Refusal};

/// The error for an action that has no result.
pub(super) fn of_failure(failure: Failure) -> ErrorObject {
    match failure {
        Failure::Stages(error) => error,
        Failure::OverLimit(over) => over.into_error(),
        Failure::Busy => busy(),
        Failure::Internal(_) => ErrorObject::new(Reason::Internal, failure.to_string()),
        Failure::CallFailed | Failure::NoRoom => ErrorObject::new(Reason::OutcomeUnknown, failure.to_string()),
    }
}

/// The error for what is refused before it is read. Some refusals are none of JSON-RPC.
pub(super) fn of_refusal(refusal: Refusal) -> Option<ErrorObject> {
    match refusal {
        Refusal::NotPost | Refusal::TooLarge | Refusal::TooSlow | Refusal::Broken => {
            Some(ErrorObject::with_code(ErrorCode::InvalidRequest, Reason::BadRequest, refusal.message()))
        }
        Refusal::Busy => Some(busy()),
        Refusal::Unreadable => Some(ErrorObject::new(Reason::Internal, refusal.message())),
        Refusal::HeaderName
        | Refusal::Host
        | Refusal::WebPage
        | Refusal::CrossSite
        | Refusal::NotFound
        | Refusal::Token
        | Refusal::Chunked
        | Refusal::NotJson
        | Refusal::Encoded => None,
    }
}

fn busy() -> ErrorObject {
    ErrorObject::new(Reason::Busy, Failure::Busy.to_string()).with("retryAfterMs", 1000)
}
