//! The thread that writes, and its end.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    Journal, RecordedOutcome, Trail,
    record::{OutcomeRecord, Record},
};
use footbridge_core::limits::AuditLimits;

/// Longer than anything takes here.
const LONG: Duration = Duration::from_secs(30);

/// A place in which nothing but the first line can be written without an error of the program.
#[derive(Default)]
struct Wrong {
    begun: bool,
}

impl Journal for Wrong {
    fn reserve(&mut self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn commit(&mut self, _bytes: &[u8]) -> io::Result<()> {
        assert!(!self.begun, "an error of the program");
        self.begun = true;
        Ok(())
    }
}

#[tokio::test]
async fn where_the_thread_ended_by_an_error_nothing_is_admitted() {
    let trail = Trail::start(Wrong::default(), AuditLimits::default()).unwrap();
    assert!(trail.takes_records());
    assert!(!trail.note(Record::limited("s", "rate", 1)).await);
    let deadline = Instant::now() + LONG;
    while trail.takes_records() {
        assert!(Instant::now() < deadline, "the thread does not say that it is gone");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(trail.failure().is_some_and(|why| why.contains("start it anew")));
    assert!(!trail.intent("id", Record::limited("s", "rate", 1)).await, "at once, and not when its time is over");
    assert!(matches!(trail.close(), Err(crate::RecordLost::WriterPanicked)));
}

/// A place that keeps what each write had, and may have no room left.
#[derive(Debug, Clone, Default)]
struct Writes {
    all: Arc<Mutex<Vec<String>>>,
    is_full: Arc<AtomicBool>,
    is_quick: bool,
}

impl Writes {
    /// A record that is written there.
    fn begin(is_quick: bool) -> (Self, Trail) {
        let writes = Self { is_quick, ..Self::default() };
        let trail = Trail::start(writes.clone(), AuditLimits::default()).unwrap();
        (writes, trail)
    }

    /// The types of the lines of each write, but of the first and the last.
    fn types(&self) -> Vec<Vec<String>> {
        let of = |text: &String| {
            let kind = |line: &str| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["type"].as_str().map(str::to_owned)
            };
            text.lines().filter_map(kind).filter(|kind| !["started", "ended"].contains(&kind.as_str())).collect()
        };
        self.all.lock().unwrap().iter().map(of).filter(|types: &Vec<_>| !types.is_empty()).collect()
    }

    fn await_types(&self, expected: &[&[&str]]) {
        let deadline = Instant::now() + LONG;
        while self.types() != expected {
            assert!(Instant::now() < deadline, "{:?}", self.types());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Journal for Writes {
    fn reserve(&mut self, _bytes: u64) -> io::Result<()> {
        if self.is_full.load(Ordering::SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn commit(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.all.lock().unwrap().push(String::from_utf8(bytes.to_vec()).unwrap());
        Ok(())
    }

    fn is_quick(&self) -> bool {
        self.is_quick
    }
}

fn outcome(id: &str) -> OutcomeRecord {
    OutcomeRecord { outcome: RecordedOutcome::Ok, detail: None, ..OutcomeRecord::not_sent(id, "") }
}

fn intent() -> Record {
    Record::new("intent", &serde_json::json!({}))
}

#[tokio::test]
async fn an_outcome_that_nobody_waits_for_is_written_with_the_next_intent() {
    for is_quick in [true, false] {
        let (writes, trail) = Writes::begin(is_quick);
        assert!(trail.intent("a", intent()).await);
        // Until the two come together: the thread may write the first of them before.
        let deadline = Instant::now() + LONG;
        while !writes.types().iter().any(|types| types == &["outcome", "intent"]) {
            assert!(Instant::now() < deadline, "{:?}", writes.types());
            trail.keep_outcome(&outcome("a"));
            assert!(trail.intent("a", intent()).await);
        }
        trail.close().unwrap();
    }
}

#[tokio::test]
async fn where_nothing_else_comes_it_is_written_soon_and_at_the_end_in_any_case() {
    for is_quick in [true, false] {
        let (writes, trail) = Writes::begin(is_quick);
        trail.keep_outcome(&outcome("a"));
        writes.await_types(&[&["outcome"]]);
        // The thread has been asleep for as long as it likes.
        trail.keep_outcome(&outcome("b"));
        writes.await_types(&[&["outcome"], &["outcome"]]);
        trail.keep_outcome(&outcome("c"));
        trail.close().unwrap();
        assert_eq!(writes.types().concat(), ["outcome"; 3]);
    }
}

#[tokio::test]
async fn where_there_is_no_room_it_is_written_and_the_intent_with_it_is_refused() {
    for is_quick in [true, false] {
        let (writes, trail) = Writes::begin(is_quick);
        assert!(trail.intent("a", intent()).await);
        writes.is_full.store(true, Ordering::SeqCst);
        trail.keep_outcome(&outcome("a"));
        assert!(!trail.intent("b", intent()).await);
        writes.await_types(&[&["intent"], &["outcome"]]);
        writes.is_full.store(false, Ordering::SeqCst);
        assert!(trail.intent("c", intent()).await);
        trail.close().unwrap();
    }
}
