//! Looking at what servers offer as soon as they do, whether a guest asks or not: so a change is told when it happens,
//! and people can look at it.

use tokio_util::sync::CancellationToken;

use footbridge_calls::pins::Pins;
use footbridge_mcp::Servers;

/// Vets whatever becomes ready, until the end.
pub(crate) async fn watch(pins: Pins, servers: Servers, end: CancellationToken) {
    let mut changes = servers.changes();
    let watching = async {
        loop {
            changes.borrow_and_update();
            for (server, offered) in servers.offered() {
                // What fails is logged there, and tried again when it is used.
                let _vetted = pins.vet(&server, &offered).await;
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    };
    let _ended = end.run_until_cancelled(watching).await;
}
