//! What a stage gives, written as a literal. That none of the fields is named says that one private field is enough.

use footbridge_calls::auth::Principal;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::reply::Reply;
use footbridge_calls::upstream::Executed;

fn a_principal_that_showed_no_token(like: Principal) -> Principal {
    Principal { ..like } //~ E0451
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
