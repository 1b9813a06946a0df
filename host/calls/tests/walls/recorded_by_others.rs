//! What only the stages may say to the record, and what they know of an approval.

use footbridge_calls::approval::Asking; //~ E0603
use footbridge_calls::approval::Key; //~ E0603
use footbridge_calls::record::ApprovalStep; //~ E0603

use footbridge_calls::record::Audit;

fn recorded(audit: &Audit) {
    let _ = audit.takes_records();
}
