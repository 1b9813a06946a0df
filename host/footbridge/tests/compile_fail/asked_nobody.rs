//! A call that was decided about and not cleared: a person may have to be asked.

use footbridge_calls::record::Audit;
use footbridge_calls::decide::Verdict;

async fn unasked(audit: &Audit, verdict: Verdict) {
    let _ = audit.admit(verdict).await;
}

fn main() {}
