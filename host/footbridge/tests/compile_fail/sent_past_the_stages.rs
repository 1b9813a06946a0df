//! Something sent to a server with no admission.

use footbridge_calls::{provider::Outgoing, upstream::Upstream};
use tokio_util::sync::CancellationToken;

async fn sent(upstream: &Upstream, outgoing: Outgoing, cancel: &CancellationToken) {
    upstream.send(outgoing, cancel, None).await;
}

fn main() {}
