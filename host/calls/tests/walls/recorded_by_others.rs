//! What only the stages may say to the record, and what they know of an approval.

use footbridge_calls::approval::Asking; //~ E0603
use footbridge_calls::auth::operator; //~ E0603
use footbridge_calls::approval::Key; //~ E0603
use footbridge_calls::record::ApprovalStep; //~ E0603

use footbridge_calls::approval::Approvals;
use footbridge_calls::auth::Principal;
use footbridge_calls::operator::Operator;
use footbridge_calls::record::Audit;
use footbridge_calls::session::Ended;
use footbridge_calls::session::Session;
use footbridge_calls::session::SessionSpec;
use footbridge_core::digest::Digest;
use footbridge_core::gate::Policy;
use footbridge_core::limits::overrides::Overrides;
use footbridge_core::names::SessionName;
use std::sync::Arc;

fn a_session_that_nobody_opened(audit: &Audit, spec: &SessionSpec) {
    audit.session_opened(spec, &[]); //~ E0624
}

fn an_end_that_never_was(audit: &Audit, name: &SessionName, why: Ended) {
    audit.session_ended(name, why); //~ E0624
}

fn a_token_that_nobody_replaced(audit: &Audit, name: &SessionName) {
    audit.session_rotated(name); //~ E0624
}

fn budgets_that_nobody_gave(audit: &Audit, name: &SessionName, limits: &Overrides, by: &Operator) {
    audit.session_limited(name, limits, by); //~ E0624
}

fn the_end_of_its_approvals_alone(approvals: &Approvals, session: &Session) {
    approvals.end_session(session); //~ E0624
}

/// What an operator does to a session, which no guest's principal leads to.
fn a_session_that_its_guest_changes(principal: &Principal, policy: Arc<Policy>, token: Digest, why: Ended) {
    principal.session().set_policy(policy); //~ E0599
    principal.session().rotate(token); //~ E0599
    principal.session().over().end(why); //~ E0599
}
