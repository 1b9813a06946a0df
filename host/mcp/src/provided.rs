//! MCP servers as a provider of tools. Texts of theirs have lost the values of secrets before they get here.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;

use super::{Outcome, Outgoing, ServerState, Servers, Unavailable};
use footbridge_calls::provider::{CallContext, ToolProvider};
use footbridge_core::catalogue::Offered;
use footbridge_core::names::ServerName;

impl ToolProvider for Servers {
    fn servers(&self) -> Arc<[ServerName]> {
        self.names()
    }

    fn catalogue<'a>(
        &'a self,
        server: &'a ServerName,
        wait: Duration,
    ) -> BoxFuture<'a, Result<Arc<Offered>, Unavailable>> {
        Box::pin(async move { self.ready(server.as_str(), wait).await.unwrap_or_else(|| Err(not_configured(server))) })
    }

    fn offered_now(&self, server: &ServerName) -> Option<Arc<Offered>> {
        match self.state(server.as_str())? {
            ServerState::Ready(offered) => Some(offered),
            ServerState::Starting | ServerState::Unavailable(_) => None,
        }
    }

    fn refresh<'a>(&'a self, server: &'a ServerName, wait: Duration) -> BoxFuture<'a, ()> {
        Box::pin(async move { self.listed_now(server.as_str(), wait).await })
    }

    fn call(&self, outgoing: Outgoing, context: CallContext) -> BoxFuture<'_, Outcome> {
        Box::pin(async move { self.send(outgoing, &context.cancel, context.events).await })
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::shutdown(self))
    }
}

/// For a name that the configuration does not have any more.
pub(super) fn not_configured(server: &ServerName) -> Unavailable {
    Unavailable::because(format!("Server \"{server}\" is not available: it is not configured any more"))
}
