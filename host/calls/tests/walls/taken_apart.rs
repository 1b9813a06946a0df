//! What a stage gives taken apart, so that a part goes another way.

use footbridge_calls::approval::Cleared;
use footbridge_calls::approval::NotCleared;
use footbridge_calls::approval::Waiting;
use footbridge_calls::auth::Principal;
use footbridge_calls::decide::Verdict;
use footbridge_calls::upstream::Executed;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::admit::Admitted;
use footbridge_calls::admit::Receipt;
use footbridge_calls::reply::Reply;
use footbridge_calls::resolve::Found;
use footbridge_calls::resolve::ResolvedCall;
use footbridge_calls::resolve::Unresolved;

fn a_principal(principal: Principal) {
    let _ = principal.session; //~ E0616
    let _ = principal.shown; //~ E0616
}

fn what_was_found(found: Found) {
    let _ = found.request; //~ E0616
}

/// What would be sent, before anybody decided.
fn a_call(call: ResolvedCall) {
    let _ = call.into_request(); //~ E0624
}

fn the_request_of_a_call(call: ResolvedCall) {
    let _ = call.request; //~ E0616
}

/// A refusal told to the guest and to no record.
fn a_refusal(unresolved: Unresolved) {
    let _ = unresolved.cause; //~ E0616
}

fn a_verdict(verdict: Verdict) {
    let _ = verdict.into_call(); //~ E0624
}

fn the_call_of_a_verdict(verdict: Verdict) {
    let _ = verdict.call; //~ E0616
}

fn a_call_that_waits(waiting: Waiting) {
    let _ = waiting.verdict; //~ E0616
}

/// A denial told to the guest and to no record.
fn a_denial(not_cleared: NotCleared) {
    let _ = not_cleared.cause; //~ E0616
}

fn the_verdict_of_a_denial(not_cleared: NotCleared) {
    let _ = not_cleared.verdict; //~ E0616
}

fn a_clearance(cleared: Cleared) {
    let _ = cleared.into_call(); //~ E0624
}

fn the_verdict_of_a_clearance(cleared: Cleared) {
    let _ = cleared.verdict; //~ E0616
}

/// An admission, to send what is in it by other means.
fn an_admission(admitted: Admitted) {
    let _ = admitted.depart(); //~ E0624
}

fn what_an_admission_holds(admitted: Admitted) {
    let _ = admitted.outgoing; //~ E0616
    let _ = admitted.receipt; //~ E0616
}

fn a_receipt(receipt: Receipt) {
    let _ = receipt.principal; //~ E0616
}

fn a_call_for_a_provider(outgoing: Outgoing) {
    let _ = outgoing.limits; //~ E0616
    //= let _ = outgoing.limits();
}

/// A result that reaches the guest before it is recorded.
fn an_outcome(executed: Executed) {
    let _ = executed.into_parts(); //~ E0624
}

fn what_became_of_a_call(executed: Executed) {
    let _ = executed.outcome; //~ E0616
    let _ = executed.receipt; //~ E0616
}

fn an_answer(reply: Reply) {
    let _ = reply.answer; //~ E0616
    //= let _ = reply.into_answer();
}
