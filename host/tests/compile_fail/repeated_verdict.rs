//! One clearance for two calls.

use footbridge::{approval::Cleared, audit::Audit};

async fn twice(audit: &Audit, cleared: Cleared) {
    let _ = audit.admit(cleared).await;
    let _ = audit.admit(cleared).await;
}

fn main() {}
