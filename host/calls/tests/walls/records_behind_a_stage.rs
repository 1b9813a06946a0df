//! The record's own thread, reached through the stage in front of it.

use footbridge_calls::approval::Approvals;
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
