//! The same of those whose fields have no names.

use footbridge_calls::approval::Question;
use footbridge_calls::decide::Verdict;
use footbridge_calls::session::Shown;

fn a_token_that_was_not_shown() {
    let _ = Shown(1); //~ E0423
}

fn a_question_that_the_policy_does_not_ask(verdict: Verdict) {
    let _ = Question(verdict); //~ E0423
}

fn a_question_taken_apart(question: Question) {
    let Question(_verdict) = question; //~ E0532
}
