//! A refusal told to the guest and to no record.

use footbridge_calls::resolve::Unresolved;
use footbridge_proto::rpc::ErrorObject;

fn unrecorded(unresolved: Unresolved) -> ErrorObject {
    unresolved.error
}

fn main() {}
