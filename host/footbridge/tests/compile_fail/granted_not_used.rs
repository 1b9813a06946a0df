//! A grant that is not used up.

use footbridge_calls::approval::Waiting;
use footbridge_calls::record::Audit;

async fn unused(audit: &Audit, granted: Waiting) {
    let _ = audit.admit(granted).await;
}

fn main() {}
