//! Listing again what a server says has changed: at a pace that a server which says so without end cannot set. And what
//! a guest asks for, since some servers say nothing: at a pace that guests cannot set either.

use std::time::Duration;

use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};

use super::{
    listing::{self, ListError, Listed},
    live::Live,
};
use footbridge_core::{catalogue::Entries, limits::ServerLimits};

/// Notices of changed listings that come together are answered by one listing.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Between two listings that a server asked for.
const FIRST_GAP: Duration = Duration::from_secs(2);
/// The same, while nothing changes.
const LONGEST_GAP: Duration = Duration::from_secs(30);
/// After so long without a notice the first gap holds again.
const QUIET: Duration = Duration::from_secs(60);

/// A listing that is no older counts as of this moment.
const FRESH: Duration = Duration::from_secs(2);

/// When a listing came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// The gap before it.
    gap: Duration,
    /// From the end of the gap to the server's notice; none where a guest asked for the listing.
    waited: Option<Duration>,
}

/// Those who ask for a listing of this moment.
#[derive(Debug)]
pub(super) struct ListingAsks {
    asked: Notify,
    /// When the last listing began that is there.
    listed: watch::Sender<Option<Instant>>,
}

impl Default for ListingAsks {
    fn default() -> Self {
        Self { asked: Notify::new(), listed: watch::Sender::new(None) }
    }
}

impl ListingAsks {
    /// Has the server list again, unless it did a moment ago, and waits up to `wait` for that.
    pub(super) async fn listed_now(&self, wait: Duration) {
        let now = Instant::now();
        let mut listed = self.listed.subscribe();
        if listed.borrow().is_some_and(|at| now < at + FRESH) {
            return;
        }
        self.asked.notify_one();
        let _too_slow = timeout(wait, listed.wait_for(|at| at.is_some_and(|at| now <= at))).await;
    }

    /// A listing that began then is there, or failed.
    pub(super) fn listed(&self, began: Instant) {
        self.listed.send_replace(Some(began));
    }
}

/// What became of a listing, and when it came.
pub(super) struct Relisted {
    pub(super) listed: Result<Listed, ListError>,
    pub(super) pace: Pace,
    pub(super) began: Instant,
}

/// Lists again once the server says that something changed, but not before the gap is over; or once somebody asks.
pub(super) async fn relist(live: Live, limits: &ServerLimits, gap: Duration, asks: &ListingAsks) -> Relisted {
    let noticed = async {
        tokio::time::sleep(gap).await;
        let since = Instant::now();
        live.interceptor.changed().await;
        let waited = since.elapsed();
        tokio::time::sleep(DEBOUNCE).await;
        waited
    };
    let waited = tokio::select! {
        waited = noticed => Some(waited),
        () = asks.asked.notified() => None,
    };
    let began = Instant::now();
    Relisted { listed: listing::list(&live, limits).await, pace: Pace { gap, waited }, began }
}

impl Pace {
    /// The gap after the listing, which brought a change or not.
    pub(super) fn next(self, is_changed: bool) -> Duration {
        let Some(waited) = self.waited else { return self.gap };
        if is_changed || waited >= QUIET { FIRST_GAP } else { (self.gap * 2).clamp(FIRST_GAP, LONGEST_GAP) }
    }
}

/// How many tools are in one of two catalogues only, or have another definition.
pub(super) fn changed_tools(before: &Entries, now: &Entries) -> usize {
    let same = now.tools().filter(|tool| before.tool(tool.name()).is_some_and(|old| old.digest() == tool.digest()));
    let kept = same.count();
    let both = now.tools().filter(|tool| before.tool(tool.name()).is_some()).count();
    before.tools().len() + now.tools().len() - both - kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_grows_while_nothing_changes_and_only_then() {
        let mut gap = Duration::ZERO;
        let mut gaps = Vec::new();
        for _ in 0..6 {
            gap = Pace { gap, waited: Some(Duration::ZERO) }.next(false);
            gaps.push(gap.as_secs());
        }
        assert_eq!(gaps, [2, 4, 8, 16, 30, 30]);
        assert_eq!(Pace { gap, waited: Some(Duration::ZERO) }.next(true), FIRST_GAP);
        assert_eq!(Pace { gap, waited: Some(QUIET) }.next(false), FIRST_GAP);
        assert_eq!(Pace { gap, waited: None }.next(true), gap, "a guest sets no pace");
    }
}
