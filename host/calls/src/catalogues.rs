//! What servers offer, as far as it is what was pinned: what everybody but [`crate::pins`] looks at.
//!
//! Failure paths, each with the text for the guest: the server is not there; its tools cannot be compared with their
//! pins; the provider panics, or does not say what it offers in time.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use footbridge_core::{catalogue::Catalogue, names::ServerName, redact::Redactor};
use futures::FutureExt as _;
use tokio::time::timeout;

use crate::{
    pins::Pins,
    provider::{ToolProvider, Unavailable},
};

/// What a provider gets beyond each time limit, to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// The catalogues of a provider's servers. Clones share them.
#[derive(Clone)]
pub struct Catalogues {
    provider: Arc<dyn ToolProvider>,
    redactor: Redactor,
    pins: Option<Pins>,
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
        Self { provider, redactor, pins: None }
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

    /// What a server offers now, as far as it is what was pinned. Waits up to `wait` while it is starting.
    ///
    /// # Errors
    /// [`Unavailable`] with the text for the guest.
    pub async fn of(&self, server: &ServerName, wait: Duration) -> Result<Arc<Catalogue>, Unavailable> {
        let vetted = AssertUnwindSafe(async {
            let offered = self.provider.catalogue(server, wait).await;
            let offered = offered.map_err(|why| why.scrubbed(&self.redactor))?;
            match &self.pins {
                Some(pins) => pins.vet(server, offered).await,
                None => Ok(offered),
            }
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
