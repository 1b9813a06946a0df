//! What stages keep, reached through what is public of them.

use footbridge_calls::approval::Approvals;
use footbridge_calls::auth::Principal;
use footbridge_calls::record::Audit;

fn the_trail(audit: &Audit) {
    let _ = &audit.trail; //~ E0616
}

fn the_redaction(audit: &Audit) {
    let _ = &audit.redaction; //~ E0616
}

fn the_book(approvals: &Approvals) {
    let _ = &approvals.0; //~ E0616
}

fn a_budget_given_back(principal: &Principal) {
    principal.session().arguments().give_back(1); //~ E0624
    principal.session().results().give_back(1); //~ E0624
}

fn a_budget_spent(principal: &Principal) {
    let _ = principal.session().results().spend(1, None); //~ E0624
}
