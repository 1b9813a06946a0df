//! What a request needs of an open connection. It belongs to whoever opened that, see `connection`.

use std::sync::Arc;

use footbridge_core::{catalogue::Origin, names::ServerName};
use rmcp::{RoleClient, service::Peer};
use tokio_util::sync::CancellationToken;

use super::interceptor::Interceptor;

/// What a handle needs to send a request.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) name: ServerName,
    /// How the server is reached, for its definitions.
    pub(super) origin: Arc<Origin>,
    pub(super) peer: Peer<RoleClient>,
    pub(super) interceptor: Arc<Interceptor>,
    /// Cancelled when no answer can come any more.
    pub(super) gone: CancellationToken,
}
