//! One admission for two calls.

use footbridge_calls::admit::Admitted;
use footbridge_calls::upstream::Upstream;
use tokio_util::sync::CancellationToken;

async fn twice(upstream: &Upstream, admitted: Admitted, cancel: &CancellationToken) {
    upstream.execute(admitted, cancel).await;
    upstream.execute(admitted, cancel).await;
}

fn main() {}
