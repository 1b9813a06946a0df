//! What a stage gives, made by the functions that only that stage may use.

use std::sync::Arc;

use footbridge_calls::cause::Cause;
use footbridge_calls::cause::Failure;
use footbridge_calls::provider::NoAnswer;
use footbridge_calls::provider::Outcome;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::provider::RawResult;
use footbridge_calls::reply::Reply;
use footbridge_calls::request::OutgoingRequest;
use footbridge_calls::upstream::Executed;
use footbridge_core::limits::Limits;
use footbridge_core::names::ServerName;

fn a_call_for_a_provider(server: ServerName, request: OutgoingRequest, limits: Arc<Limits>) {
    let _ = Outgoing::new(server, request, limits); //~ E0624
}

/// What a provider may take apart does not come together again.
fn a_call_put_together_again(outgoing: Outgoing) {
    let limits = outgoing.limits();
    let (server, request) = outgoing.into_parts();
    let _ = Outgoing::new(server, request, limits); //~ E0624
}

async fn an_admission_used_up_with_nothing_sent() {
    let _ = Executed::by(todo!(), |_| async { Outcome::Unknown(NoAnswer::Timeout) }).await; //~ E0624
}

fn a_refusal_without_a_record(failure: Failure) {
    let _ = Reply::refused(failure); //~ E0624
}

fn an_answer_without_a_record(answer: Result<RawResult, Cause>) {
    let _ = Reply::admitted(answer, "record"); //~ E0624
}
