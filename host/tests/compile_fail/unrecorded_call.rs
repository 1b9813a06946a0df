//! A call that was decided about and not recorded.

use footbridge::{gate::Verdict, provider::Upstream};
use tokio_util::sync::CancellationToken;

async fn unrecorded(upstream: &Upstream, verdict: Verdict, cancel: &CancellationToken) {
    upstream.execute(verdict, cancel).await;
}

fn main() {}
