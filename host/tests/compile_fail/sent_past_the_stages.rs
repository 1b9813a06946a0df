//! Something sent to a server with no admission.

use footbridge::servers::{Outgoing, Servers};
use tokio_util::sync::CancellationToken;

async fn sent(servers: &Servers, outgoing: Outgoing, cancel: &CancellationToken) {
    servers.send(outgoing, cancel, None).await;
}

fn main() {}
