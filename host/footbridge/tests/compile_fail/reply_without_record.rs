//! A refusal and an answer made as the audit stage makes them, without its records.

use footbridge_audit::Receipt;
use footbridge_calls::reply::Reply;
use footbridge_mcp::Outcome;
use footbridge_proto::rpc::ErrorObject;

fn refused(error: ErrorObject) -> Reply {
    Reply::refusal(error)
}

fn answered(receipt: &Receipt, outcome: Outcome) -> Reply {
    Reply::of(receipt, outcome)
}

fn main() {}
