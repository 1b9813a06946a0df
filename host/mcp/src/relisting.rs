//! Listing again what a server says has changed: at a pace that a server which says so without end cannot set. And what
//! a guest asks for, since some servers say nothing: at a pace that guests cannot set either.
//!
//! Where a server cannot say anything, see `hearing`, its listing is renewed by whoever uses it once it is old. One that
//! nobody uses is asked nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};

use super::{
    hearing::Hearing,
    listing::{self, ListError, Listed},
    live::Live,
};
use footbridge_core::{
    catalogue::{Entries, Offered},
    limits::ServerLimits,
};

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

/// How long a use waits for a listing that is renewed; later it is there for the next one.
const RENEWAL_WAIT: Duration = Duration::from_secs(5);
/// What a server may make of the age of listings by what it says of them: this many times less, or more.
const SOONER: u32 = 6;
const LATER: u32 = 10;

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
    /// The last listing that is there.
    listed: watch::Sender<Option<LastListing>>,
    /// Whether another one is under way.
    lists: AtomicBool,
}

/// A listing that is there, or failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastListing {
    began: Instant,
    /// How old it gets where nothing can be heard of changes, or where it failed.
    lasts: Duration,
    has_failed: bool,
    /// Whether whoever used the server asked for it.
    was_asked: bool,
}

impl LastListing {
    /// One that began then, and is there. `age` is what it gets where its server says nothing of that.
    pub(super) fn of(began: Instant, ttl: Option<Duration>, age: Duration) -> Self {
        let lasts = ttl.map_or(age, |ttl| ttl.clamp(age / SOONER, age.saturating_mul(LATER)));
        Self { began, lasts, has_failed: false, was_asked: false }
    }

    /// One that began then, and failed.
    pub(super) fn failed(began: Instant, age: Duration) -> Self {
        Self { began, lasts: age / SOONER, has_failed: true, was_asked: false }
    }

    /// The same, which came at this pace.
    pub(super) fn at(self, pace: Pace) -> Self {
        Self { was_asked: pace.waited.is_none(), ..self }
    }

    /// Whether it is to be made again before it is used. Where notices come and go all the time that sets a pace of its own.
    fn is_outdated(self, hearing: &Hearing) -> bool {
        let age = self.began.elapsed();
        let is_old = (self.has_failed || !hearing.is_open()) && age >= self.lasts;
        is_old || (!self.was_asked || age >= FRESH) && hearing.may_have_missed(self.began)
    }
}

impl Default for ListingAsks {
    fn default() -> Self {
        Self { asked: Notify::new(), listed: watch::Sender::new(None), lists: AtomicBool::new(false) }
    }
}

impl ListingAsks {
    /// Has the server list again, unless it did a moment ago, and waits up to `wait` for that.
    pub(super) async fn listed_now(&self, wait: Duration) {
        let now = Instant::now();
        let mut listed = self.listed.subscribe();
        if listed.borrow().is_some_and(|last| now < last.began + FRESH) {
            return;
        }
        self.asked.notify_one();
        let _too_slow = timeout(wait, listed.wait_for(|last| last.is_some_and(|last| now <= last.began))).await;
    }

    /// Has the server list again where its last listing is outdated, and waits up to `wait` for that, but not for long.
    pub(super) async fn renewed(&self, hearing: &Hearing, wait: Duration) {
        let mut listed = self.listed.subscribe();
        let last = *listed.borrow();
        let Some(last) = last.filter(|last| last.is_outdated(hearing)) else { return };
        if !self.lists.load(Ordering::Acquire) {
            self.asked.notify_one();
        }
        let newer = listed.wait_for(|now| now.is_some_and(|now| now.began > last.began));
        let _too_slow = timeout(wait.min(RENEWAL_WAIT), newer).await;
    }

    /// A listing is there, or failed.
    pub(super) fn listed(&self, last: LastListing) {
        self.lists.store(false, Ordering::Release);
        self.listed.send_replace(Some(last));
    }
}

/// What became of a listing, and when it came.
pub(super) struct Relisted {
    pub(super) listed: Result<Listed, ListError>,
    pub(super) pace: Pace,
    pub(super) began: Instant,
}

/// Lists again once the server says that something changed, but not before the gap is over; or once somebody asks.
/// `before` is the last listing.
pub(super) async fn relist(
    live: Live,
    limits: &ServerLimits,
    gap: Duration,
    asks: &ListingAsks,
    before: Option<Arc<Offered>>,
) -> Relisted {
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
    asks.lists.store(true, Ordering::Release);
    let listed = listing::list(&live, limits, before.as_deref()).await;
    Relisted { listed, pace: Pace { gap, waited }, began }
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

    const AGE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_listing_that_failed_is_made_again_whatever_can_be_heard() {
        let hearing = Arc::new(Hearing::default());
        let _heard = hearing.begins();
        let (failed, listed) = (LastListing::failed(Instant::now(), AGE), LastListing::of(Instant::now(), None, AGE));
        tokio::time::advance(AGE / SOONER - Duration::from_millis(1)).await;
        assert!(!failed.is_outdated(&hearing), "its server has a moment");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(failed.is_outdated(&hearing));
        tokio::time::advance(AGE * LATER).await;
        assert!(!listed.is_outdated(&hearing), "a notice would have come");
    }

    #[tokio::test(start_paused = true)]
    async fn where_notices_come_and_go_a_listing_that_was_asked_for_holds_for_a_moment() {
        let hearing = Arc::new(Hearing::default());
        let gap = FIRST_GAP;
        let last = LastListing::of(Instant::now(), None, AGE);
        let (asked, noticed) =
            (last.at(Pace { gap, waited: None }), last.at(Pace { gap, waited: Some(Duration::ZERO) }));
        assert!(![last, asked, noticed].iter().any(|one| one.is_outdated(&hearing)), "nothing was missed");
        tokio::time::advance(Duration::from_millis(1)).await;
        drop(hearing.begins());
        assert_eq!([last, asked, noticed].map(|one| one.is_outdated(&hearing)), [true, false, true]);
        tokio::time::advance(FRESH - Duration::from_millis(2)).await;
        assert!(!asked.is_outdated(&hearing));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(asked.is_outdated(&hearing));
    }

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
