//! What JSON-RPC has to say of a request that is refused before it is read.

use footbridge_proto::rpc::ErrorCode;

use crate::http::refusal::Refusal;

/// The code of its error; none of what is refused in the words of HTTP alone.
pub(crate) fn code_of(refusal: Refusal) -> Option<ErrorCode> {
    match refusal {
        Refusal::NotPost | Refusal::TooLarge | Refusal::TooSlow | Refusal::Broken => Some(ErrorCode::InvalidRequest),
        Refusal::Busy => Some(ErrorCode::Limit),
        Refusal::Unreadable => Some(ErrorCode::Internal),
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
