//! What would be sent, taken out of a call or a verdict before anybody decided or recorded.

use footbridge_calls::decide::Verdict;
use footbridge_calls::{resolve::ResolvedCall, request::OutgoingRequest};
use footbridge_core::names::ServerName;

fn of_a_call(call: ResolvedCall) -> (ServerName, OutgoingRequest) {
    call.into_request()
}

fn of_a_verdict(verdict: Verdict) -> ResolvedCall {
    verdict.into_call()
}

fn main() {}
