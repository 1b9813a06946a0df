//! How fast a session calls, and how many of its calls a server has at once: more while no other session is open, since
//! then nobody else waits for the disk or for a server.
//!
//! What it may otherwise is used up meanwhile too, so that nothing is saved up for the moment when another one opens: from
//! then on it has its own rate, without a burst, and its calls over the places that it keeps get no new one.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use footbridge_core::{limits::CallLimits, names::ServerName};
use governor::{DefaultDirectRateLimiter, RateLimiter};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::over::{OverLimit, quota, within};

/// How many sessions are open. Clones are the same number.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenSessions(Arc<AtomicUsize>);

impl OpenSessions {
    /// There are so many now.
    pub(crate) fn are(&self, count: usize) {
        self.0.store(count, Ordering::SeqCst);
    }

    fn is_one(&self) -> bool {
        self.0.load(Ordering::SeqCst) <= 1
    }
}

/// What a session may.
pub(super) struct CallPace {
    rate: DefaultDirectRateLimiter,
    rate_alone: DefaultDirectRateLimiter,
    /// At each server.
    places: usize,
    /// Those that it has besides while it is alone.
    places_alone: usize,
    servers: Mutex<HashMap<ServerName, ServerPlaces>>,
    open: OpenSessions,
}

/// Places at one server.
#[derive(Debug, Clone)]
struct ServerPlaces {
    kept: Arc<Semaphore>,
    alone: Arc<Semaphore>,
}

impl CallPace {
    /// By these limits, and by those that hold while it is alone.
    pub(super) fn new(limits: &CallLimits, alone: &CallLimits, open: OpenSessions) -> Self {
        let places = limits.in_flight_per_session_and_server;
        Self {
            rate: RateLimiter::direct(quota(limits.per_second, limits.burst)),
            rate_alone: RateLimiter::direct(quota(alone.per_second, alone.burst)),
            places,
            places_alone: alone.in_flight_per_session_and_server.saturating_sub(places),
            servers: Mutex::default(),
            open,
        }
    }

    /// Counts a call.
    pub(super) fn count(&self) -> Result<(), OverLimit> {
        if !self.open.is_one() {
            return within(&self.rate);
        }
        within(&self.rate_alone)?;
        // It is over its own rate for as long as it is alone.
        let _ = within(&self.rate);
        Ok(())
    }

    /// Waits for a place at a server.
    pub(super) async fn place(&self, server: &ServerName) -> Result<OwnedSemaphorePermit, AcquireError> {
        let ServerPlaces { kept, alone } = self.places_of(server);
        if self.open.is_one() {
            tokio::select! {
                biased;
                place = Arc::clone(&kept).acquire_owned() => return place,
                place = alone.acquire_owned() => if self.open.is_one() { return place },
            }
        }
        kept.acquire_owned().await
    }

    /// Names are the configuration's, so the map stays as small as that is.
    fn places_of(&self, server: &ServerName) -> ServerPlaces {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let places = || ServerPlaces {
            kept: Arc::new(Semaphore::new(self.places)),
            alone: Arc::new(Semaphore::new(self.places_alone)),
        };
        servers.entry(server.clone()).or_insert_with(places).clone()
    }
}
