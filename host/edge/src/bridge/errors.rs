//! What the bridge's guests are told of a request that is refused before it is read.

use footbridge_proto::rpc::{ErrorCode, ErrorObject, Reason};

use footbridge_calls::cause::Cause;

use crate::{http::refusal::Refusal, wording::error_of};

/// The error for what is refused before it is read. Some refusals are none of JSON-RPC.
pub(super) fn of_refusal(refusal: Refusal) -> Option<ErrorObject> {
    match refusal {
        Refusal::NotPost | Refusal::TooLarge | Refusal::TooSlow | Refusal::Broken => {
            Some(ErrorObject::with_code(ErrorCode::InvalidRequest, Reason::BadRequest, refusal.message()))
        }
        Refusal::Busy => Some(error_of(&Cause::BytesHeld.into())),
        Refusal::Unreadable => Some(ErrorObject::new(Reason::Internal, refusal.message())),
        Refusal::HeaderName
        | Refusal::BadHost
        | Refusal::NoTunnels
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
