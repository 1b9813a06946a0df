//! What a stage gives with a part of another one in it.

use std::sync::Arc;

use footbridge_calls::auth::Principal;
use footbridge_calls::provider::Elicit;
use footbridge_calls::provider::Outcome;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::request::OutgoingRequest;
use footbridge_calls::upstream::Executed;

fn the_token_that_was_shown(mut principal: Principal, other: Principal) {
    principal.shown = other.shown; //~ E0616 E0616
}

fn what_is_sent(mut outgoing: Outgoing, request: OutgoingRequest) {
    outgoing.request = request; //~ E0616
}

fn who_can_be_asked_by_a_provider(outgoing: Outgoing, elicitor: Arc<dyn Elicit>) {
    let _ = outgoing.with_elicitor(elicitor); //~ E0624
}

fn what_became_of_a_call(mut executed: Executed, outcome: Outcome) {
    executed.outcome = outcome; //~ E0616
}
