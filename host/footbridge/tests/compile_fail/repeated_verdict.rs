//! One clearance for two calls.

use footbridge_calls::approval::Cleared;
use footbridge_calls::record::Audit;

async fn twice(audit: &Audit, cleared: Cleared) {
    let _ = audit.admit(cleared).await;
    let _ = audit.admit(cleared).await;
}

fn main() {}
