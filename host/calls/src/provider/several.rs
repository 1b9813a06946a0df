//! Several providers as one, such as MCP servers and tools of this process.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};

use super::{CallContext, NotSent, Outcome, Outgoing, ToolProvider, Unavailable};
use footbridge_core::catalogue::Offered;
use footbridge_core::names::ServerName;

/// Several providers as one. Of servers with one name the first counts.
#[derive(Default)]
pub struct Several {
    parts: Vec<Arc<dyn ToolProvider>>,
}

impl Several {
    /// None so far.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// And this one.
    #[must_use]
    pub fn and(mut self, provider: impl ToolProvider) -> Self {
        self.parts.push(Arc::new(provider));
        self
    }

    fn part(&self, server: &ServerName) -> Result<&Arc<dyn ToolProvider>, Unavailable> {
        let part = self.parts.iter().find(|part| part.servers().contains(server));
        part.ok_or_else(|| Unavailable::because(format!("Server \"{server}\" is not available: there is none")))
    }
}

impl ToolProvider for Several {
    fn servers(&self) -> Arc<[ServerName]> {
        let names = self.parts.iter().flat_map(|part| part.servers().to_vec());
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn catalogue<'a>(
        &'a self,
        server: &'a ServerName,
        wait: Duration,
    ) -> BoxFuture<'a, Result<Arc<Offered>, Unavailable>> {
        match self.part(server) {
            Ok(part) => part.catalogue(server, wait),
            Err(none) => std::future::ready(Err(none)).boxed(),
        }
    }

    fn offered_now(&self, server: &ServerName) -> Option<Arc<Offered>> {
        self.part(server).ok()?.offered_now(server)
    }

    fn refresh<'a>(&'a self, server: &'a ServerName, wait: Duration) -> BoxFuture<'a, ()> {
        match self.part(server) {
            Ok(part) => part.refresh(server, wait),
            Err(_) => std::future::ready(()).boxed(),
        }
    }

    fn call(&self, outgoing: Outgoing, context: CallContext) -> BoxFuture<'_, Outcome> {
        match self.part(outgoing.server()) {
            Ok(part) => part.call(outgoing, context),
            Err(none) => std::future::ready(Outcome::NotSent(NotSent::Unavailable(none.to_string()))).boxed(),
        }
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        let ends = self.parts.iter().map(|part| part.shutdown());
        futures::future::join_all(ends).map(drop).boxed()
    }
}
