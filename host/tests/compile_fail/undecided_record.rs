//! An intent for a call that nobody decided about.

use footbridge::{audit::Audit, resolve::ResolvedCall};

async fn undecided(audit: &Audit, call: ResolvedCall) {
    let _ = audit.admit(call).await;
}

fn main() {}
