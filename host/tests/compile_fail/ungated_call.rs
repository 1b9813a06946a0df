//! A call that nobody decided about.

use footbridge::{resolve::ResolvedCall, servers::Servers};
use tokio_util::sync::CancellationToken;

async fn ungated(servers: &Servers, call: ResolvedCall, cancel: &CancellationToken) {
    servers.execute(call, cancel).await;
}

fn main() {}
