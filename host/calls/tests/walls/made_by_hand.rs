//! What a stage gives, written as a literal. That none of the fields is named says that one private field is enough.

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

fn a_principal_that_showed_no_token(like: Principal) -> Principal {
    Principal { ..like } //~ E0451
    //= like
}

fn names_that_nobody_looked_up(like: Found) -> Found {
    Found { ..like } //~ E0451
    //= like
}

fn a_call_that_nobody_resolved(like: ResolvedCall) -> ResolvedCall {
    ResolvedCall { ..like } //~ E0451
    //= like
}

fn a_refusal_that_nobody_looked_for(like: Unresolved) -> Unresolved {
    Unresolved { ..like } //~ E0451
    //= like
}

fn a_verdict_that_no_policy_gave(like: Verdict) -> Verdict {
    Verdict { ..like } //~ E0451
    //= like
}

fn a_place_among_those_who_wait(like: Waiting) -> Waiting {
    Waiting { ..like } //~ E0451
    //= like
}

fn a_call_that_nobody_cleared(like: Cleared) -> Cleared {
    Cleared { ..like } //~ E0451
    //= like
}

fn a_call_that_nobody_turned_down(like: NotCleared) -> NotCleared {
    NotCleared { ..like } //~ E0451
    //= like
}

fn an_admission_that_no_record_stands_behind(like: Admitted) -> Admitted {
    Admitted { ..like } //~ E0451
    //= like
}

fn a_receipt_for_an_intent_that_was_never_written(like: Receipt) -> Receipt {
    Receipt { ..like } //~ E0451
    //= like
}

fn a_call_for_a_provider_out_of_no_admission(like: Outgoing) -> Outgoing {
    Outgoing { ..like } //~ E0451
    //= like
}

fn an_outcome_of_a_call_that_was_not_carried_out(like: Executed) -> Executed {
    Executed { ..like } //~ E0451
    //= like
}

fn an_answer_that_no_record_stands_behind(like: Reply) -> Reply {
    Reply { ..like } //~ E0451
    //= like
}
