//! What a request needs of an open connection. It belongs to whoever opened that, see `connection`.

use std::{collections::BTreeSet, sync::Arc};

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
    pub(super) over_http: bool,
    /// Tools that are left out of its listing.
    pub(super) disabled_tools: Arc<BTreeSet<String>>,
    /// Cancelled when no answer can come any more.
    pub(super) gone: CancellationToken,
}

impl Live {
    /// Whether it speaks a revision without a handshake, in which it asks for input by its answers.
    pub(super) fn is_stateless(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| !info.protocol_version.has_initialize())
    }
}
