//! A session: one sandbox, its token, its policy, and how much of the harness it takes.
//!
//! A session outlives connections; nothing of it hangs on one. States: open, then ended, for good: revoked, expired, or
//! because what it was for is gone or done. Its token may be replaced any number of times while it is open. What changes
//! a session is apart from it, in `control`: the table of sessions alone has that.

mod control;
mod deadline;
mod ended;
mod life;
mod over;
mod pace;
mod services;
mod spec;
mod spending;

use std::{
    fmt,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use governor::{DefaultDirectRateLimiter, RateLimiter};
use over::{BodyPace, quota, within};
use pace::CallPace;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

pub(crate) use control::SessionControl;
pub use deadline::Deadline;
pub use ended::Ended;
use footbridge_core::{
    budget,
    digest::Digest,
    gate::SessionRules,
    limits::Limits,
    names::{ServerName, SessionName},
};
pub use life::Life;
pub(crate) use life::LifeControl;
pub use over::OverLimit;
pub(crate) use pace::OpenSessions;
use services::ServiceUse;
pub use services::Spending;
pub use spec::SessionSpec;
pub use spending::{BudgetOf, BudgetUse, BudgetsSpent, BytesUsed, Exceeded};

/// Numbers of sessions.
static SERIAL: AtomicU64 = AtomicU64::new(1);

/// One sandbox's right to call, and what it is using.
pub struct Session {
    spec: SessionSpec,
    serial: u64,
    key: RwLock<Key>,
    life: Life,
    limits: Arc<Limits>,
    bytes: budget::Share,
    rules: RwLock<Arc<SessionRules>>,
    arguments: BytesUsed,
    results: BytesUsed,
    pace: CallPace,
    listings: DefaultDirectRateLimiter,
    body_pace: BodyPace,
    in_flight: Arc<Semaphore>,
    services: ServiceUse,
    large: Arc<Semaphore>,
    /// At looking through what passes.
    looks: Arc<Semaphore>,
}

/// What opens a session now.
#[derive(Debug)]
struct Key {
    digest: Digest,
    /// Which token it is: 1 is the first.
    turn: u64,
}

/// That a session's token was shown, and which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown(u64);

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

/// A call's place among those in flight. Dropping it frees the place.
#[derive(Debug)]
pub struct Place {
    _session: OwnedSemaphorePermit,
    _server: Option<OwnedSemaphorePermit>,
}

impl Session {
    fn new(spec: SessionSpec, limits: Limits, bytes: budget::Share, life: Life, open: OpenSessions) -> Self {
        let (calls, alone) = (&limits.calls, spec.alone.over(&limits).calls);
        Self {
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            key: RwLock::new(Key { digest: spec.token, turn: 1 }),
            life,
            rules: RwLock::new(Arc::new(SessionRules::new(Arc::clone(&spec.policy), &spec.labels))),
            arguments: BytesUsed::since(spec.spent.of(BudgetOf::Arguments)),
            results: BytesUsed::since(spec.spent.of(BudgetOf::Results)),
            bytes,
            pace: CallPace::new(calls, &alone, open),
            listings: RateLimiter::direct(quota(calls.listings_per_second, calls.listing_burst)),
            body_pace: BodyPace::new(limits.edge.body_rate),
            in_flight: Arc::new(Semaphore::new(calls.in_flight_per_session)),
            services: ServiceUse::new(&spec, &limits),
            large: Arc::new(Semaphore::new(1)),
            looks: Arc::new(Semaphore::new(1)),
            limits: Arc::new(limits),
            spec,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &SessionName {
        &self.spec.name
    }

    /// Its number, which no other session of this process ever has.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// What it was opened with; the token may be another one by now.
    #[must_use]
    pub fn spec(&self) -> &SessionSpec {
        &self.spec
    }

    /// What it may see and call, as it is now.
    #[must_use]
    pub fn rules(&self) -> Arc<SessionRules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Bytes of arguments that its calls had.
    #[must_use]
    pub fn arguments(&self) -> &BytesUsed {
        &self.arguments
    }

    /// Bytes of results that it got.
    #[must_use]
    pub fn results(&self) -> &BytesUsed {
        &self.results
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    /// What it may hold of the bytes that all share.
    #[must_use]
    pub fn bytes(&self) -> &budget::Share {
        &self.bytes
    }

    /// Whether this is its token, and it is open. Digests are compared, so that the time taken says nothing of the
    /// token.
    #[must_use]
    pub(crate) fn opens_with(&self, token: &[u8]) -> Option<Shown> {
        let digest = Digest::of(token);
        let key = self.key();
        (digest == key.digest && self.life.is_going_on()).then_some(Shown(key.turn))
    }

    /// Whether what was shown still opens it.
    #[must_use]
    pub(crate) fn still_opens(&self, shown: Shown) -> bool {
        self.life.is_going_on() && self.key().turn == shown.0
    }

    /// How long it lasts: cancelled when it ends.
    #[must_use]
    pub fn over(&self) -> &Life {
        &self.life
    }

    /// Calls in flight.
    #[must_use]
    pub fn calls_in_flight(&self) -> usize {
        self.limits.calls.in_flight_per_session.saturating_sub(self.in_flight.available_permits())
    }

    /// The one turn that a session has at what takes long: others must not wait behind all that one sends.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // Never closed; and without a turn it would only be slower.
        Arc::clone(&self.large).acquire_owned().await.ok()
    }

    /// The one turn that it has at looking through what passes, for a moment each.
    pub(crate) fn looks(&self) -> Arc<Semaphore> {
        Arc::clone(&self.looks)
    }

    /// Waits until so many more bytes of its bodies may be read.
    pub async fn pace_body(&self, bytes: usize) {
        self.body_pace.wait(bytes).await;
    }

    fn key(&self) -> RwLockReadGuard<'_, Key> {
        self.key.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a listing.
    ///
    /// # Errors
    /// [`OverLimit::Rate`].
    pub fn list(&self) -> Result<(), OverLimit> {
        within(&self.listings)
    }

    /// Takes a place for a call to a server, or to none that is known.
    ///
    /// # Errors
    /// [`OverLimit`], at once for the rate, within [`footbridge_core::limits::CallLimits::busy_after`] for the calls in flight.
    pub async fn enter(&self, server: Option<&ServerName>) -> Result<Place, OverLimit> {
        self.pace.count()?;
        self.enter_again(server).await
    }

    /// Takes a place for a call that gave its place away while it waited for a person. It was counted before.
    ///
    /// # Errors
    /// [`OverLimit::Busy`], within [`footbridge_core::limits::CallLimits::busy_after`].
    pub(crate) async fn enter_again(&self, server: Option<&ServerName>) -> Result<Place, OverLimit> {
        let places = async {
            let server = match server {
                Some(server) => Some(self.pace.place(server).await.map_err(|_| OverLimit::Busy)?),
                None => None,
            };
            let session = Arc::clone(&self.in_flight).acquire_owned().await.map_err(|_| OverLimit::Busy)?;
            Ok(Place { _session: session, _server: server })
        };
        timeout(self.limits.calls.busy_after, places).await.unwrap_or(Err(OverLimit::Busy))
    }
}

#[cfg(test)]
pub mod tests;
