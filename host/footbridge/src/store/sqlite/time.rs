//! Times as the store keeps them: milliseconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The ends of the range stand for what is beyond them.
pub(super) fn millis(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// None for what makes no sense.
pub(super) fn time(millis: i64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(millis).ok()?))
}
