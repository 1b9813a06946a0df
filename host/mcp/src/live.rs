//! What a request needs of an open connection. It belongs to whoever opened that, see `connection`.

use std::{collections::BTreeSet, sync::Arc};

use footbridge_core::{catalogue::Origin, names::ServerName};
use rmcp::{RoleClient, model::ClientConfig, service::Peer};
use tokio_util::sync::CancellationToken;

use super::{client, interceptor::Interceptor, line_writer::LineWriter};

/// What a handle needs to send a request.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) name: ServerName,
    /// How the server is reached, for its definitions.
    pub(super) origin: Arc<Origin>,
    pub(super) peer: Peer<RoleClient>,
    pub(super) interceptor: Arc<Interceptor>,
    /// Where requests are written, to a program; over HTTP the library sends them.
    pub(super) lines: Option<LineWriter>,
    /// Tools that are left out of its listing.
    pub(super) disabled_tools: Arc<BTreeSet<String>>,
    /// Cancelled when no answer can come any more.
    pub(super) gone: CancellationToken,
}

impl Live {
    /// Who we are, where each request has to say so.
    pub(super) fn us(&self) -> Option<ClientConfig> {
        let info = self.peer.peer_info().filter(|info| !info.protocol_version.has_initialize())?;
        Some(client::us(self.interceptor.takes_questions()).with_protocol_version(info.protocol_version.clone()))
    }

    /// Whether it speaks a revision without a handshake, in which it asks for input by its answers.
    pub(super) fn is_stateless(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| !info.protocol_version.has_initialize())
    }
}
