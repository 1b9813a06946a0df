//! Counting and sampling of what servers send and nobody asked for.
//!
//! A hostile server writes as much of it as it likes. So each kind is counted, a few lines are logged, escaped and
//! cut, and a server that floods is read more slowly: it waits, its neighbours do not.

use std::{
    fmt,
    sync::{
        Arc, Mutex as StdMutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use footbridge_proto::text::Escaped;
use tokio::{sync::Mutex, time::Instant};

use super::{LogSource, ServerLog};
use footbridge_core::{names::ServerName, redact::Redactor};

/// Bytes of a sample that reach the log.
const SAMPLE_BYTES: usize = 200;
/// Bytes in which secrets are looked for, so that none is cut where the sample ends.
const REDACTED_BYTES: usize = 16 * 1024;
/// What a server may send a second without a call behind it before it is read more slowly: messages, and one more for
/// each [`UNIT_BYTES`] of them, so that neither many nor long ones keep a processor busy.
const PER_SECOND: usize = 2_000;
/// See [`PER_SECOND`]: with both, 16 MiB a second.
const UNIT_BYTES: usize = 8 * 1024;

/// What was ignored of one server.
#[derive(Debug)]
pub(super) struct IgnoredMessages {
    server: ServerName,
    log: Option<Arc<dyn ServerLog>>,
    redactor: Redactor,
    count: AtomicU64,
    refusals: AtomicU64,
    /// The first that was no JSON since the server was started, as it can be shown.
    no_json: StdMutex<Option<String>>,
}

impl IgnoredMessages {
    /// Nothing ignored yet.
    pub(super) fn of(server: ServerName, log: Option<Arc<dyn ServerLog>>, redactor: Redactor) -> Self {
        let (count, refusals) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { server, log, redactor, count, refusals, no_json: StdMutex::default() }
    }

    /// The beginning of it, as it can be shown: without the values of secrets, also of one that goes beyond it.
    fn shown(&self, sample: &[u8]) -> String {
        let text = String::from_utf8_lossy(&sample[..sample.len().min(REDACTED_BYTES)]);
        let shown = self.redactor.scrub(&text);
        Escaped(&shown[..shown.floor_char_boundary(SAMPLE_BYTES)]).to_string()
    }

    /// Counts something ignored and logs a sample: the first three, then each time the count doubles.
    pub(super) fn ignore(&self, what: &str, sample: &[u8]) {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if count <= 3 || count.is_power_of_two() {
            let sample = self.shown(sample);
            tracing::warn!(server = %self.server, count, %sample, "ignored from an MCP server: {what}");
            if let Some(log) = &self.log {
                log.keep(&self.server, LogSource::Harness, &format!("ignored: {what}: {sample}"));
            }
        }
    }

    /// The server is started, and has said nothing.
    pub(super) fn begin(&self) {
        *self.no_json.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Keeps what is no JSON, if it is the first.
    pub(super) fn unread(&self, bytes: &[u8]) {
        let mut first = self.no_json.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| self.shown(bytes));
    }

    /// The first that was no JSON since the server was started.
    pub(super) fn no_json(&self) -> Option<String> {
        self.no_json.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a refusal and logs why: the first, then each time the count doubles. `why` is our own text.
    pub(super) fn refused(&self, why: &dyn fmt::Display) {
        let count = self.refusals.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::warn!(server = %self.server, count, "an MCP server refuses calls: {why}");
        }
    }

    /// How much was ignored so far.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// Slows the reading of one server's stream down when it floods.
#[derive(Debug)]
pub(super) struct Pace {
    since: Instant,
    count: usize,
}

impl Pace {
    /// A fresh second.
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), count: 0 }
    }

    /// Counts bytes that no call waits for; waits out the second when there were too many in it. Safe to cancel.
    pub(super) async fn unwanted(&mut self, bytes: usize) {
        self.count = self.count.saturating_add(1 + bytes / UNIT_BYTES);
        if self.count < PER_SECOND {
            return;
        }
        tokio::time::sleep_until(self.since + Duration::from_secs(1)).await;
        *self = Self::new();
    }
}

/// The pace of all that one server sends at a time. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct SharedPace(Arc<Mutex<Pace>>);

impl SharedPace {
    /// A fresh second.
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Pace::new())))
    }

    /// As [`Pace::unwanted`]; while one waits, so do the others.
    pub(super) async fn unwanted(&self, bytes: usize) {
        self.0.lock().await.unwanted(bytes).await;
    }
}

#[cfg(test)]
mod tests {
    use footbridge_core::secret::Secret;

    use super::*;

    #[derive(Debug, Default)]
    struct Kept(StdMutex<Vec<String>>);

    impl ServerLog for Kept {
        fn keep(&self, _server: &ServerName, _source: LogSource, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    #[test]
    fn a_sample_shows_no_secret_nor_the_beginning_of_one_that_it_cuts() {
        let kept = Arc::new(Kept::default());
        let redactor = Redactor::new(&[Secret::new("s3cret-value")]);
        let ignored = IgnoredMessages::of("x".parse().unwrap(), Some(kept.clone()), redactor);
        ignored.ignore("junk", b"{ s3cret-value");
        ignored.ignore("junk", format!("{}s3cret-value", "y".repeat(SAMPLE_BYTES - 6)).as_bytes());
        ignored.unread(b"} s3cret-value");
        let kept = kept.0.lock().unwrap().join("\n") + &ignored.no_json().unwrap();
        assert!(kept.contains("ignored: junk: { [redacted]") && kept.contains("} [redacted]"), "{kept}");
        assert!(!kept.contains("s3c"), "{kept}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_read_at_its_pace_and_a_trickle_at_once() {
        let began = Instant::now();
        let mut pace = Pace::new();
        for _ in 0..PER_SECOND - 1 {
            pace.unwanted(100).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..10 * PER_SECOND {
            pace.unwanted(100).await;
        }
        assert!(began.elapsed() >= Duration::from_secs(9));
        let began = Instant::now();
        for _ in 0..64 {
            pace.unwanted(1024 * 1024).await;
        }
        assert!(began.elapsed() >= Duration::from_secs(3));
    }
}
