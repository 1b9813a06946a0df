//! Counting and sampling of what servers send and nobody asked for.
//!
//! A hostile server writes as much of it as it likes. So each kind is counted, a few lines are logged, escaped and
//! cut, and a server that floods is read more slowly: it waits, its neighbours do not.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use footbridge_proto::text::Escaped;
use tokio::time::Instant;

use super::ServerName;

/// Bytes of a sample that reach the log.
const SAMPLE_BYTES: usize = 200;
/// Messages a second without a call behind them that a server may send before it is read more slowly.
const PER_SECOND: u32 = 2_000;

/// What was ignored of one server.
#[derive(Debug)]
pub(super) struct Noise {
    server: ServerName,
    ignored: AtomicU64,
}

impl Noise {
    /// Nothing ignored yet.
    pub(super) fn of(server: ServerName) -> Self {
        Self { server, ignored: AtomicU64::new(0) }
    }

    /// Counts something ignored and logs a sample: the first three, then each time the count doubles.
    pub(super) fn ignore(&self, what: &str, sample: &[u8]) {
        let count = self.ignored.fetch_add(1, Ordering::Relaxed) + 1;
        if count <= 3 || count.is_power_of_two() {
            let cut = &sample[..sample.len().min(SAMPLE_BYTES)];
            let text = String::from_utf8_lossy(cut);
            tracing::warn!(server = %self.server, count, sample = %Escaped(&text), "ignored from an MCP server: {what}");
        }
    }

    /// How much was ignored so far.
    pub(super) fn ignored(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }
}

/// Slows the reading of one server's stream down when it floods.
#[derive(Debug)]
pub(super) struct Pace {
    since: Instant,
    count: u32,
}

impl Pace {
    /// A fresh second.
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), count: 0 }
    }

    /// Counts a message that no call waits for; waits out the second when there were too many in it.
    pub(super) async fn one(&mut self) {
        self.count += 1;
        if self.count < PER_SECOND {
            return;
        }
        let end = self.since + Duration::from_secs(1);
        tokio::time::sleep_until(end).await;
        *self = Self::new();
    }
}
