//! A call that was decided about and not cleared: a person may have to be asked.

use footbridge::{audit::Audit, gate::Verdict};

async fn unasked(audit: &Audit, verdict: Verdict) {
    let _ = audit.admit(verdict).await;
}

fn main() {}
