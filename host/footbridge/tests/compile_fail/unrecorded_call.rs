//! A call that was decided about and not recorded.

use footbridge_calls::decide::Verdict;
use footbridge_calls::upstream::Upstream;
use tokio_util::sync::CancellationToken;

async fn unrecorded(upstream: &Upstream, verdict: Verdict, cancel: &CancellationToken) {
    upstream.execute(verdict, cancel).await;
}

fn main() {}
