//! An intent for a call that nobody decided about.

use footbridge_calls::record::Audit;
use footbridge_calls::resolve::ResolvedCall;

async fn undecided(audit: &Audit, call: ResolvedCall) {
    let _ = audit.admit(call).await;
}

fn main() {}
