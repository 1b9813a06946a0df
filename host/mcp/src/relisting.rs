//! Listing again what a server says has changed: at a pace that a server which says so without end cannot set.

use std::time::Duration;

use tokio::time::Instant;

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

/// When a listing came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// The gap before it.
    gap: Duration,
    /// From the end of the gap to the server's notice.
    waited: Duration,
}

/// Lists again once the server says that something changed, but not before the gap is over.
pub(super) async fn relist(live: Live, limits: &ServerLimits, gap: Duration) -> (Result<Listed, ListError>, Pace) {
    tokio::time::sleep(gap).await;
    let since = Instant::now();
    live.interceptor.changed().await;
    let pace = Pace { gap, waited: since.elapsed() };
    tokio::time::sleep(DEBOUNCE).await;
    (listing::list(&live, limits).await, pace)
}

impl Pace {
    /// The gap after the listing, which brought a change or not.
    pub(super) fn next(self, is_changed: bool) -> Duration {
        if is_changed || self.waited >= QUIET { FIRST_GAP } else { (self.gap * 2).clamp(FIRST_GAP, LONGEST_GAP) }
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
            gap = Pace { gap, waited: Duration::ZERO }.next(false);
            gaps.push(gap.as_secs());
        }
        assert_eq!(gaps, [2, 4, 8, 16, 30, 30]);
        assert_eq!(Pace { gap, waited: Duration::ZERO }.next(true), FIRST_GAP);
        assert_eq!(Pace { gap, waited: QUIET }.next(false), FIRST_GAP);
    }
}
