//! Bodies of requests: collecting one within its limits, and reading past one that is not wanted.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use super::refusal::Refusal;
use footbridge_calls::session::Session;
use footbridge_core::budget::{Held, SMALL_BYTES, Share};
use footbridge_proto::wire::MOST_REQUEST_BYTES;

/// What an early refusal reads of a body, so that the client gets its answer and not a reset.
const DRAIN_BYTES: usize = 1024 * 1024 + 64 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(1);
/// The same of an upload that goes on.
const DRAIN_UPLOAD_TIME: Duration = Duration::from_secs(5);

/// What is taken from the budget for a body at first, and at most at a time.
const FIRST_BYTES: usize = 4 * 1024;
const STEP_BYTES: usize = 64 * 1024;

/// Pieces beyond this are of large bodies, of which there may be many at once.
const YIELD_BYTES: usize = 4 * 1024;

/// A body that came whole.
pub(crate) struct Collected {
    pub(crate) bytes: Bytes,
    /// Its part of the budget.
    pub(crate) held: Held,
}

/// Collects a body of known length. Its bytes are taken from the budget as they come, not as they are announced.
pub(crate) async fn collect(mut body: Incoming, session: &Session) -> Result<Collected, Refusal> {
    let (limits, budget) = (&session.limits().edge, session.bytes());
    let length = body.size_hint().exact().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    if length > limits.body_bytes {
        // Clients that leave the limit to this session send as much as any session takes.
        drain_to(MOST_REQUEST_BYTES, body).await;
        return Err(Refusal::TooLarge);
    }
    let mut arriving = Arriving { length, bytes: Vec::new(), taken: 0, held: None };
    let collected = timeout(limits.body_time, async {
        while let Some(frame) = body.frame().await {
            // Trailers are nothing here.
            if let Ok(data) = frame.map_err(|_| Refusal::Broken)?.into_data() {
                take_turn(data.len(), session).await;
                arriving.push(&data, budget)?;
            }
        }
        arriving.whole(budget)
    });
    let collected = collected.await.unwrap_or(Err(Refusal::TooSlow));
    if matches!(collected, Err(Refusal::Busy)) {
        drain(body, session).await;
    }
    collected
}

/// A body of which some has come.
struct Arriving {
    length: usize,
    bytes: Vec<u8>,
    /// Bytes that were taken from the budget for it.
    taken: usize,
    held: Option<Held>,
}

impl Arriving {
    fn push(&mut self, data: &[u8], budget: &Share) -> Result<(), Refusal> {
        let needed = self.bytes.len() + data.len();
        if needed > self.length {
            return Err(Refusal::Broken);
        }
        if needed > self.taken || self.held.is_none() {
            self.take(needed, budget)?;
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    /// Takes room for so many bytes in all, and as much again, so that there are few steps.
    fn take(&mut self, needed: usize, budget: &Share) -> Result<(), Refusal> {
        let target = needed.saturating_mul(2).clamp(FIRST_BYTES.min(self.length), self.length.min(needed + STEP_BYTES));
        let more = target - self.taken;
        let taken = if self.length <= SMALL_BYTES { budget.take(more) } else { budget.take_of_large(more) };
        let taken = taken.map_err(|_| Refusal::Busy)?;
        match &mut self.held {
            Some(held) => held.add(taken),
            None => self.held = Some(taken),
        }
        self.taken = target;
        self.bytes.reserve_exact(target - self.bytes.len());
        Ok(())
    }

    fn whole(&mut self, budget: &Share) -> Result<Collected, Refusal> {
        if self.held.is_none() {
            self.take(0, budget)?;
        }
        let held = self.held.take().ok_or(Refusal::Busy)?;
        Ok(Collected { bytes: std::mem::take(&mut self.bytes).into(), held })
    }
}

/// Lets others have their turn before more is read, and whoever sends much wait.
async fn take_turn(read: usize, session: &Session) {
    session.pace_body(read).await;
    if read > YIELD_BYTES {
        tokio::task::yield_now().await;
    }
}

/// Reads what is left of a body that is not wanted, up to a limit, and keeps none of it.
pub(crate) async fn drain(body: Incoming, session: &Session) {
    let mut body = Limited::new(body, DRAIN_BYTES);
    let all = async {
        while let Some(Ok(frame)) = body.frame().await {
            take_turn(frame.data_ref().map_or(0, Bytes::len), session).await;
        }
    };
    // Whether it ended, was too long or too slow: the answer is the same.
    let _ = timeout(DRAIN_TIME, all).await;
}

/// The same of an upload, as long as a service takes: most clients send all of it before they read why it is refused. It
/// costs less than one that is passed on, so it is as free.
pub(crate) async fn drain_upload(body: Incoming, session: &Session) {
    drain_to(session.limits().services.request_bytes.max(DRAIN_BYTES), body).await;
}

async fn drain_to(most: usize, body: Incoming) {
    let mut body = Limited::new(body, most);
    let all = async {
        while let Ok(Some(Ok(_))) = timeout(DRAIN_TIME, body.frame()).await {
            tokio::task::yield_now().await;
        }
    };
    let _ = timeout(DRAIN_UPLOAD_TIME, all).await;
}
