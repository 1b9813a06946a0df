//! What a stage gives with a part of another one in it.

use footbridge_calls::approval::Approved;
use footbridge_calls::approval::Cleared;
use footbridge_calls::provider::Elicit;
use footbridge_calls::auth::Principal;
use footbridge_calls::decide::Verdict;
use footbridge_calls::upstream::Executed;
use footbridge_calls::provider::Outcome;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::request::OutgoingRequest;
use footbridge_calls::admit::Admitted;
use footbridge_calls::admit::Receipt;
use footbridge_calls::resolve::Found;
use footbridge_calls::resolve::ResolvedCall;
use footbridge_calls::session::Shown;
use footbridge_core::digest::Digest;
use footbridge_core::gate::SessionRules;
use std::sync::Arc;

fn the_token_that_was_shown(mut principal: Principal, shown: Shown) {
    principal.shown = shown; //~ E0616
}

fn what_is_asked_of_a_server(mut found: Found, request: OutgoingRequest) {
    found.request = request; //~ E0616
}

fn who_asks(mut call: ResolvedCall, principal: Principal) {
    call.principal = principal; //~ E0616
}

fn the_rules_that_decide(mut call: ResolvedCall, rules: Arc<SessionRules>) {
    call.rules = rules; //~ E0616
}

fn the_digest_that_is_recorded(mut call: ResolvedCall, digest: Digest) {
    call.arguments = digest; //~ E0616
}

fn the_call_that_was_decided_about(mut verdict: Verdict, other: ResolvedCall) {
    verdict.call = other; //~ E0616
}

fn what_was_decided(mut verdict: Verdict, other: Verdict) {
    verdict.decided = other.decided; //~ E0616 E0616
}

fn the_call_that_was_cleared(mut cleared: Cleared, verdict: Verdict) {
    cleared.verdict = verdict; //~ E0616
}

fn the_approval_that_was_used(mut cleared: Cleared, approved: Approved) {
    cleared.approval = Some(approved); //~ E0616
}

fn the_call_that_was_admitted(mut admitted: Admitted, outgoing: Outgoing) {
    admitted.outgoing = outgoing; //~ E0616
}

fn the_intent_of_a_call(mut admitted: Admitted, receipt: Receipt) {
    admitted.receipt = receipt; //~ E0616
}

fn who_can_be_asked(admitted: Admitted, elicitor: std::sync::Arc<dyn Elicit>) {
    let _ = admitted.with_elicitor(elicitor); //~ E0624
}

fn what_is_sent(mut outgoing: Outgoing, request: OutgoingRequest) {
    outgoing.request = request; //~ E0616
}

fn who_can_be_asked_by_a_provider(outgoing: Outgoing, elicitor: std::sync::Arc<dyn Elicit>) {
    let _ = outgoing.with_elicitor(elicitor); //~ E0624
}

fn what_became_of_a_call(mut executed: Executed, outcome: Outcome) {
    executed.outcome = outcome; //~ E0616
}
