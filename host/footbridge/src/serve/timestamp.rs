//! Times as commands show them.

use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};

/// RFC 3339 in UTC, to the second.
pub(super) fn timestamp(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).ok().and_then(|seconds| DateTime::<Utc>::from_timestamp(seconds, 0));
    seconds.map_or_else(|| "never".to_owned(), |at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
}
