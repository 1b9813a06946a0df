//! One admission for two calls.

use footbridge_calls::record::Admitted;
use footbridge_calls::provider::Upstream;
use tokio_util::sync::CancellationToken;

async fn twice(upstream: &Upstream, admitted: Admitted, cancel: &CancellationToken) {
    upstream.execute(admitted, cancel).await;
    upstream.execute(admitted, cancel).await;
}

fn main() {}
