//! What servers offer, as far as it is what was pinned, and what sessions may see of it.
//!
//! Failure paths, each with the text for the guest: the server is not there; its tools cannot be compared with their
//! pins; the provider panics, or does not say what it offers in time.

use std::{
    collections::HashMap,
    fmt,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use footbridge_core::{catalogue::Offered, gate::SessionRules, names::ServerName, redact::Redactor};
use futures::FutureExt as _;
use tokio::time::timeout;

use crate::{
    catalogue::{Vetted, Visible},
    pins::Pins,
    provider::{ToolProvider, Unavailable},
};

/// What a provider gets beyond each time limit, to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// How long a listing waits for a server that is asked again; later its new listing is there for the next one.
const RELIST_WAIT: Duration = Duration::from_secs(2);

/// The catalogues of a provider's servers. Clones share them.
#[derive(Clone)]
pub struct Catalogues {
    provider: Arc<dyn ToolProvider>,
    redactor: Redactor,
    pins: Option<Pins>,
    /// What came of what each server offered last, where there are no pins.
    unpinned: Arc<Mutex<HashMap<ServerName, Arc<Vetted>>>>,
}

impl fmt::Debug for Catalogues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalogues").field("servers", &self.provider.servers()).finish_non_exhaustive()
    }
}

impl Catalogues {
    /// Of this provider, whose texts lose the values of secrets here.
    #[must_use]
    pub fn new(provider: Arc<dyn ToolProvider>, redactor: Redactor) -> Self {
        Self { provider, redactor, pins: None, unpinned: Arc::default() }
    }

    /// The same, which have only what is as it was pinned.
    #[must_use]
    pub fn pinned(self, pins: Option<Pins>) -> Self {
        Self { pins, ..self }
    }

    /// The names of all servers, sorted.
    #[must_use]
    pub fn servers(&self) -> Arc<[ServerName]> {
        self.provider.servers()
    }

    /// What a session with these rules may see of a server now. Waits up to `wait` while it is starting.
    ///
    /// # Errors
    /// [`Unavailable`] with the text for the guest.
    pub async fn visible(
        &self,
        server: &ServerName,
        rules: &SessionRules,
        wait: Duration,
    ) -> Result<Visible, Unavailable> {
        Ok(self.vetted(server, wait).await?.visible(rules))
    }

    /// What a session with these rules may see of a server, if it is ready at this moment. Nothing is started for it.
    pub async fn visible_now(&self, server: &ServerName, rules: &SessionRules) -> Option<Visible> {
        let looked = std::panic::catch_unwind(AssertUnwindSafe(|| self.provider.offered_now(server)));
        let offered = looked.ok().flatten()?;
        Some(self.vet(server, &offered).await.ok()?.visible(rules))
    }

    /// As [`Self::visible`], once the server was asked again where its listing is not of this moment: some say nothing
    /// when it changes. Of a server that takes longer it is what was listed before.
    ///
    /// # Errors
    /// As [`Self::visible`].
    pub async fn listed_now(
        &self,
        server: &ServerName,
        rules: &SessionRules,
        wait: Duration,
    ) -> Result<Visible, Unavailable> {
        let before = self.visible(server, rules, wait).await?;
        self.refresh(server).await;
        Ok(self.visible_now(server, rules).await.unwrap_or(before))
    }

    /// Has a server asked again what it offers, and waits for that a little.
    async fn refresh(&self, server: &ServerName) {
        let asked = AssertUnwindSafe(self.provider.refresh(server, RELIST_WAIT)).catch_unwind();
        match timeout(RELIST_WAIT + GRACE, asked).await {
            Ok(Ok(())) => {}
            Ok(Err(_panic)) => tracing::error!(%server, "the provider panicked when it was to ask a server again"),
            Err(_) => tracing::debug!(%server, "the provider takes long to ask a server again"),
        }
    }

    /// What of an offer is as it was pinned.
    ///
    /// # Errors
    /// [`Unavailable`] with the text for the guest, where it cannot be compared or pinned; the operator's is logged.
    pub async fn vet(&self, server: &ServerName, offered: &Arc<Offered>) -> Result<Arc<Vetted>, Unavailable> {
        if let Some(pins) = &self.pins {
            return pins.vet(server, offered).await;
        }
        let mut unpinned = self.unpinned.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = unpinned.get(server).filter(|last| last.is_of(offered)) {
            return Ok(Arc::clone(last));
        }
        // Of servers that a reload took away nothing is kept.
        unpinned.retain(|known, _| self.provider.servers().contains(known));
        let vetted = Arc::new(Vetted::without_pins(server.clone(), offered));
        unpinned.insert(server.clone(), Arc::clone(&vetted));
        Ok(vetted)
    }

    /// What a server offers now, compared with its pins. Waits up to `wait` while it is starting.
    pub(crate) async fn vetted(&self, server: &ServerName, wait: Duration) -> Result<Arc<Vetted>, Unavailable> {
        let vetted = AssertUnwindSafe(async {
            let offered = self.provider.catalogue(server, wait).await;
            let offered = offered.map_err(|why| why.scrubbed(&self.redactor))?;
            self.vet(server, &offered).await
        });
        match timeout(wait.saturating_add(GRACE), vetted.catch_unwind()).await {
            Ok(Ok(vetted)) => vetted,
            Ok(Err(_panic)) => {
                tracing::error!(%server, "the provider panicked when it was asked what it offers");
                Err(Unavailable::because(format!("Server \"{server}\" is not available: it failed; ask the operator")))
            }
            Err(_) => Err(Unavailable::starting(format!(
                "Server \"{server}\" is not available: it does not say what it offers; try again"
            ))),
        }
    }
}
