//! More than a session may: how fast, how much at once.

use std::num::NonZeroU32;

use footbridge_proto::rpc::Reason;
use governor::{
    DefaultDirectRateLimiter, Quota, RateLimiter,
    clock::{Clock as _, DefaultClock},
};

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

/// How fast the bodies of a session are read: what is beyond waits in its socket, and keeps no thread from others.
pub(super) struct BodyPace(DefaultDirectRateLimiter);

/// What a pace counts, bytes.
const PACE_UNIT: usize = 1024;

/// Units that are waited for at a time: fewer than the least that come at once.
const PACE_STEP: u32 = 16;

impl BodyPace {
    /// So many bytes a second, and half of that at once.
    pub(super) fn new(rate: usize) -> Self {
        let rate = u32::try_from(rate / PACE_UNIT).unwrap_or(u32::MAX);
        Self(RateLimiter::direct(quota(rate, rate / 2)))
    }

    /// Waits until so many more may be read.
    pub(super) async fn wait(&self, bytes: usize) {
        let mut left = u32::try_from(bytes.div_ceil(PACE_UNIT)).unwrap_or(u32::MAX);
        while let Some(step) = NonZeroU32::new(left.min(PACE_STEP)) {
            while let Ok(Err(too_soon)) = self.0.check_n(step) {
                tokio::time::sleep(too_soon.wait_time_from(DefaultClock::default().now())).await;
            }
            left -= step.get();
        }
    }
}

pub(super) fn within(rate: &DefaultDirectRateLimiter) -> Result<(), OverLimit> {
    rate.check().map_err(|too_soon| {
        let wait = too_soon.wait_time_from(DefaultClock::default().now());
        OverLimit::Rate { retry_after_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1) }
    })
}
