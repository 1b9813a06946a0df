//! A grant that is not used up.

use footbridge::{approval::Waiting, audit::Audit};

async fn unused(audit: &Audit, granted: Waiting) {
    let _ = audit.admit(granted).await;
}

fn main() {}
