//! How much may be under way over a connection to an origin.

use footbridge_core::limits::ServiceLimits;

/// What one answer may have under way that its guest has not read yet, bytes. A connection may have as much for each answer
/// that its session can wait for, so that none holds another; HTTP/2 knows no more than `MOST`.
pub(crate) const WINDOW: u32 = 256 * 1024;
const MOST: u32 = (1 << 31) - 1;

/// What may come over a connection that is of no answer, bytes: what nobody has read yet, and as much again as nobody needs.
pub(crate) fn unanswered(limits: &ServiceLimits) -> u64 {
    u64::from(window(limits)) + SURPLUS
}

const SURPLUS: u64 = 1024 * 1024;

pub(crate) fn window(limits: &ServiceLimits) -> u32 {
    WINDOW.saturating_mul(u32::try_from(limits.in_flight).unwrap_or(u32::MAX)).min(MOST)
}
