//! What a session uses of services: how fast, and how much at once.

use std::sync::Arc;

use footbridge_core::{
    gate::{Effects, Subject},
    limits::ServiceLimits,
    names::ServerName,
};
use governor::{DefaultDirectRateLimiter, RateLimiter};
use tokio::{sync::Semaphore, time::timeout};

use super::{
    Place, Session,
    over::{OverLimit, quota, within},
};

/// The rate of requests to services, and the places of those in flight.
pub(super) struct ServiceUse {
    rate: DefaultDirectRateLimiter,
    in_flight: Arc<Semaphore>,
}

impl ServiceUse {
    pub(super) fn new(limits: &ServiceLimits) -> Self {
        let rate = RateLimiter::direct(quota(limits.per_second, limits.burst));
        Self { rate, in_flight: Arc::new(Semaphore::new(limits.in_flight)) }
    }
}

impl Session {
    /// Takes a place for a request to a service.
    ///
    /// # Errors
    /// [`OverLimit`], at once for the rate, within [`footbridge_core::limits::CallLimits::busy_after`] for those in
    /// flight.
    pub async fn enter_service(&self) -> Result<Place, OverLimit> {
        within(&self.services.rate)?;
        self.enter_service_again().await
    }

    /// Takes a place for a request that gave its place away while it waited for a person. It was counted before.
    ///
    /// # Errors
    /// [`OverLimit::Busy`].
    pub async fn enter_service_again(&self) -> Result<Place, OverLimit> {
        let place = timeout(self.limits.calls.busy_after, Arc::clone(&self.services.in_flight).acquire_owned()).await;
        match place {
            Ok(Ok(session)) => Ok(Place { _session: session, _server: None }),
            _ => Err(OverLimit::Busy),
        }
    }

    /// The services that it may know of: none of which all is hidden.
    #[must_use]
    pub fn visible_services(&self) -> Vec<ServerName> {
        let rules = self.rules();
        let root = |name: &&ServerName| rules.shows(&Subject::http(name.as_str(), "GET", "/", Effects::of_reading()));
        self.spec.services.iter().filter(root).cloned().collect()
    }
}
