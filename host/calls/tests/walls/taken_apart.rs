//! What a stage gives taken apart, so that a part goes another way.

use footbridge_calls::auth::Principal;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::reply::Reply;
use footbridge_calls::upstream::Executed;

fn a_principal(principal: Principal) {
    let _ = principal.session; //~ E0616
    let _ = principal.shown; //~ E0616
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
