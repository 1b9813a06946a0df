//! Bodies of requests: collecting one within its limits, and reading past one that is not wanted.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use super::refusal::Refusal;
use footbridge_core::{
    budget::{Held, Share},
    limits::EdgeLimits,
};

/// What an early refusal reads of a body, so that the client gets its answer and not a reset.
const DRAIN_BYTES: usize = 1024 * 1024 + 64 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// A body that came whole.
pub(crate) struct Collected {
    pub(crate) bytes: Bytes,
    /// Its part of the budget.
    pub(crate) held: Held,
}

/// Collects a body of known length.
pub(crate) async fn collect(body: Incoming, limits: &EdgeLimits, budget: &Share) -> Result<Collected, Refusal> {
    let length = body.size_hint().exact().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    if length > limits.body_bytes {
        drain(body).await;
        return Err(Refusal::TooLarge);
    }
    let Ok(held) = budget.take(length) else {
        drain(body).await;
        return Err(Refusal::Busy);
    };
    match timeout(limits.body_time, Limited::new(body, length).collect()).await {
        Err(_) => Err(Refusal::TooSlow),
        Ok(Err(_)) => Err(Refusal::Broken),
        Ok(Ok(collected)) => Ok(Collected { bytes: collected.to_bytes(), held }),
    }
}

/// Reads what is left of a body that is not wanted, up to a limit, and keeps none of it.
pub(crate) async fn drain(body: Incoming) {
    let mut body = Limited::new(body, DRAIN_BYTES);
    let all = async { while let Some(Ok(_)) = body.frame().await {} };
    // Whether it ended, was too long or too slow: the answer is the same.
    let _ = timeout(DRAIN_TIME, all).await;
}
