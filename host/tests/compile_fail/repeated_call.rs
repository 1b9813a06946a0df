//! One admission for two calls.

use footbridge::{audit::Admitted, servers::Servers};
use tokio_util::sync::CancellationToken;

async fn twice(servers: &Servers, admitted: Admitted, cancel: &CancellationToken) {
    servers.execute(admitted, cancel).await;
    servers.execute(admitted, cancel).await;
}

fn main() {}
