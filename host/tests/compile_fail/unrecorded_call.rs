//! A call that was decided about and not recorded.

use footbridge::{gate::Verdict, servers::Servers};
use tokio_util::sync::CancellationToken;

async fn unrecorded(servers: &Servers, verdict: Verdict, cancel: &CancellationToken) {
    servers.execute(verdict, cancel).await;
}

fn main() {}
