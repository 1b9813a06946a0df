//! What only the stages may say to the record, and what they know of an approval.

use footbridge_calls::approval::Asking; //~ E0603
use footbridge_calls::approval::Key; //~ E0603
use footbridge_calls::record::ApprovalStep; //~ E0603

use footbridge_calls::approval::Approvals;
use footbridge_calls::record::Audit;
use footbridge_calls::session::Ended;
use footbridge_calls::session::Session;
use footbridge_calls::session::SessionSpec;
use footbridge_core::names::SessionName;

fn a_session_that_nobody_opened(audit: &Audit, spec: &SessionSpec) {
    audit.session_opened(spec, &[]); //~ E0624
}

fn an_end_that_never_was(audit: &Audit, name: &SessionName, why: Ended) {
    audit.session_ended(name, why); //~ E0624
}

fn a_token_that_nobody_replaced(audit: &Audit, name: &SessionName) {
    audit.session_rotated(name); //~ E0624
}

fn the_end_of_its_approvals_alone(approvals: &Approvals, session: &Session) {
    approvals.end_session(session); //~ E0624
}
