//! What the bridge's guests are told of a request that is refused before it is read.

use footbridge_proto::rpc::{ErrorCode, ErrorObject, Reason};

use footbridge_calls::cause::Cause;

use crate::{http::refusal::Refusal, json_rpc::code_of, wording::error_of};

/// The error for what is refused before it is read. Some refusals are none of JSON-RPC.
pub(super) fn of_refusal(refusal: Refusal) -> Option<ErrorObject> {
    match (refusal, code_of(refusal)?) {
        (Refusal::Busy, _) => Some(error_of(&Cause::BytesHeld.into())),
        (_, ErrorCode::Internal) => Some(ErrorObject::new(Reason::Internal, refusal.message())),
        (_, code) => Some(ErrorObject::with_code(code, Reason::BadRequest, refusal.message())),
    }
}
