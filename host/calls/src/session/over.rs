//! More than a session may: how fast, how much at once.

use std::num::NonZeroU32;

use footbridge_proto::rpc::Reason;
use governor::{DefaultDirectRateLimiter, Quota};

/// Why a call gets no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverLimit {
    /// More calls a second than allowed.
    Rate {
        /// When the next one may come, milliseconds.
        retry_after_ms: u64,
    },
    /// More calls at once than allowed.
    Busy,
}

impl OverLimit {
    /// The reason on the wire.
    #[must_use]
    pub fn reason(self) -> Reason {
        match self {
            Self::Rate { .. } => Reason::RateLimited,
            Self::Busy => Reason::Busy,
        }
    }
}

pub(super) fn quota(per_second: u32, burst: u32) -> Quota {
    let or_one = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
    Quota::per_second(or_one(per_second)).allow_burst(or_one(burst))
}

pub(super) fn within(rate: &DefaultDirectRateLimiter) -> Result<(), OverLimit> {
    rate.check().map_err(|too_soon| {
        let wait = too_soon.wait_time_from(governor::clock::Clock::now(&governor::clock::DefaultClock::default()));
        OverLimit::Rate { retry_after_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1) }
    })
}
