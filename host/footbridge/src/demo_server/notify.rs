//! Notifications to the client: what is said without an answer.
//!
//! A client that is gone is no failure here.

use rmcp::{
    RoleServer,
    model::{CustomNotification, ServerNotification},
    service::Peer,
};
use serde_json::Value;

/// Says something that nobody answers. That nobody reads it any more shows elsewhere. rmcp's own notifications would
/// make `1.0` of 1, and leave out params that are empty.
pub(super) async fn tell(peer: &Peer<RoleServer>, method: &str, params: Value) {
    let notification = CustomNotification::new(method, Some(params));
    let _ = peer.send_notification(ServerNotification::CustomNotification(notification)).await;
}
