//! One verdict for two intents.

use footbridge::{audit::Audit, gate::Verdict};

async fn twice(audit: &Audit, verdict: Verdict) {
    let _ = audit.admit(verdict).await;
    let _ = audit.admit(verdict).await;
}

fn main() {}
