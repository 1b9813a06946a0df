//! A call that nobody decided about.

use footbridge_calls::{resolve::ResolvedCall, upstream::Upstream};
use tokio_util::sync::CancellationToken;

async fn ungated(upstream: &Upstream, call: ResolvedCall, cancel: &CancellationToken) {
    upstream.execute(call, cancel).await;
}

fn main() {}
