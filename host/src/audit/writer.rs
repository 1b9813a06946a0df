//! The one thread that writes records, and the queue in front of it.
//!
//! Everything that waits is written and synced together, so concurrent calls share a sync.
//!
//! States and failure paths:
//! - An intent that cannot be written fails at once: its call does not happen.
//! - An intent whose caller stopped waiting before it was durable is followed by a `not_sent` outcome.
//! - An outcome that cannot be written is kept and tried again until it is; meanwhile every intent fails.
//! - On the end, what is queued is written; outcomes that still fail are counted in an error log.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use chrono::Utc;
use tokio::sync::oneshot;

use super::{
    journal::Journal,
    record::{Line, Outcome, Record},
};
use crate::limits::AuditLimits;

/// Pause before a failed outcome is tried again.
const RETRY: Duration = Duration::from_millis(200);
/// How often counted refusals are written.
const COUNTED_EVERY: Duration = Duration::from_secs(1);
/// How long the end waits for outcomes that cannot be written.
const LAST_CHANCE: Duration = Duration::from_secs(2);
/// Most records in one commit.
const BATCH: usize = 256;

/// Something to write, and who waits for it.
struct Entry {
    record: Record,
    durable: oneshot::Sender<()>,
}

#[derive(Default)]
struct State {
    /// Intents and refusals: bounded, and given up when they fail.
    refusable: VecDeque<Entry>,
    /// Outcomes: as many as there are calls in flight, and never given up.
    outcomes: VecDeque<Entry>,
    /// Refusals over a limit, by session and reason.
    limited: BTreeMap<(String, &'static str), u64>,
    /// Whether outcomes are waiting for a journal that refuses them.
    stuck: bool,
    closed: bool,
}

/// The queue in front of the writer.
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    limits: AuditLimits,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an intent or a refusal. `None` when the writer is stuck, behind, or gone.
    pub(super) fn push(&self, record: Record) -> Option<oneshot::Receiver<()>> {
        let mut state = self.lock();
        if state.stuck || state.closed || state.refusable.len() >= self.limits.queue {
            return None;
        }
        let (durable, receiver) = oneshot::channel();
        state.refusable.push_back(Entry { record, durable });
        // Without the lock: the writer would wake only to wait for it.
        drop(state);
        self.changed.notify_one();
        Some(receiver)
    }

    /// Whether an intent would be queued.
    pub(super) fn takes_more(&self) -> bool {
        let state = self.lock();
        !state.stuck && !state.closed && state.refusable.len() < self.limits.queue
    }

    /// Queues an outcome. It is written whatever it takes.
    pub(super) fn push_outcome(&self, outcome: Outcome) -> oneshot::Receiver<()> {
        self.push_kept(Record::Outcome(outcome))
    }

    /// Queues a record that must not be lost. It is written whatever it takes, and nothing is admitted before.
    pub(super) fn push_kept(&self, record: Record) -> oneshot::Receiver<()> {
        let (durable, receiver) = oneshot::channel();
        self.lock().outcomes.push_back(Entry { record, durable });
        self.changed.notify_one();
        receiver
    }

    /// Counts a refusal over a limit.
    pub(super) fn count_limited(&self, session: String, reason: &'static str) {
        *self.lock().limited.entry((session, reason)).or_default() += 1;
        self.changed.notify_one();
    }
}

/// The writing thread. Dropping it writes what is queued and waits for that.
pub(super) struct Writer {
    queue: Arc<Queue>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(journal: Box<dyn Journal>, limits: AuditLimits) -> io::Result<(Self, Arc<Queue>)> {
        let queue = Arc::new(Queue { state: Mutex::default(), changed: Condvar::new(), limits: limits.clone() });
        let mut pen = Pen { journal, seq: 0, open: 0, counted: Instant::now(), limits };
        let started = Record::Started { version: env!("CARGO_PKG_VERSION"), pid: std::process::id() };
        pen.commit(vec![started])?;
        let theirs = Arc::clone(&queue);
        let thread = thread::Builder::new().name("audit".to_owned()).spawn(move || pen.run(&theirs))?;
        Ok((Self { queue: Arc::clone(&queue), thread: Some(thread) }, queue))
    }

    /// Writes what is queued and ends the thread.
    pub(super) fn close(&mut self) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the audit writer panicked");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// What the thread owns.
struct Pen {
    journal: Box<dyn Journal>,
    seq: u64,
    /// Intents without an outcome: each has room reserved.
    open: u64,
    counted: Instant,
    limits: AuditLimits,
}

/// What to do next.
struct Work {
    refusable: Vec<Entry>,
    outcomes: Vec<Entry>,
    limited: BTreeMap<(String, &'static str), u64>,
    closed: bool,
}

impl Work {
    fn is_empty(&self) -> bool {
        self.refusable.is_empty() && self.outcomes.is_empty() && self.limited.is_empty()
    }
}

impl Pen {
    fn run(mut self, queue: &Queue) {
        loop {
            let work = self.next(queue);
            let closed = work.closed && work.is_empty();
            self.write_outcomes(queue, work.outcomes);
            self.write_limited(queue, work.limited);
            self.write_refusable(queue, work.refusable);
            if closed {
                return;
            }
        }
    }

    fn next(&self, queue: &Queue) -> Work {
        let mut state = queue.lock();
        loop {
            let due = COUNTED_EVERY.saturating_sub(self.counted.elapsed());
            let count_now = !state.limited.is_empty() && (due.is_zero() || state.closed);
            if count_now || state.closed || !state.refusable.is_empty() || !state.outcomes.is_empty() {
                let refusable = state.refusable.len().min(BATCH);
                let outcomes = state.outcomes.len().min(BATCH);
                return Work {
                    refusable: state.refusable.drain(..refusable).collect(),
                    outcomes: state.outcomes.drain(..outcomes).collect(),
                    limited: if count_now { std::mem::take(&mut state.limited) } else { BTreeMap::new() },
                    closed: state.closed,
                };
            }
            state = if state.limited.is_empty() {
                queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                queue.changed.wait_timeout(state, due).unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }

    /// Writes outcomes, trying until they are durable. While it tries, nothing new is admitted.
    fn write_outcomes(&mut self, queue: &Queue, entries: Vec<Entry>) {
        if entries.is_empty() {
            return;
        }
        let records: Vec<Record> = entries.iter().map(|e| e.record.clone()).collect();
        let count = records.iter().filter(|r| matches!(r, Record::Outcome(_))).count() as u64;
        let mut closing = None;
        while let Err(error) = self.commit(records.clone()) {
            tracing::error!(%error, outcomes = count, "outcomes cannot be recorded; no call is admitted until they are");
            let mut state = queue.lock();
            state.stuck = true;
            state.refusable.clear();
            if state.closed && closing.get_or_insert_with(Instant::now).elapsed() > LAST_CHANCE {
                tracing::error!(outcomes = count, "outcomes are lost: the harness ends and they cannot be recorded");
                return;
            }
            drop(queue.changed.wait_timeout(state, RETRY));
        }
        queue.lock().stuck = false;
        self.open = self.open.saturating_sub(count);
        for entry in entries {
            // Whoever waited may have left; the record stands.
            let _ = entry.durable.send(());
        }
    }

    /// Writes counted refusals. What cannot be written now is counted on, as long as there is a later.
    fn write_limited(&mut self, queue: &Queue, limited: BTreeMap<(String, &'static str), u64>) {
        if limited.is_empty() {
            return;
        }
        self.counted = Instant::now();
        let line = |((session, reason), count): (&(String, &'static str), &u64)| {
            let session = session.clone();
            Record::Limited { session, reason, count: *count }
        };
        if let Err(error) = self.commit_beside(limited.iter().map(line).collect(), 0) {
            tracing::error!(%error, "counted refusals cannot be recorded");
            let mut state = queue.lock();
            if !state.closed {
                limited.into_iter().for_each(|(key, count)| *state.limited.entry(key).or_default() += count);
            }
        }
    }

    /// Writes intents and refusals, or gives them up: their senders are dropped, which tells the callers.
    fn write_refusable(&mut self, queue: &Queue, entries: Vec<Entry>) {
        if entries.is_empty() {
            return;
        }
        let records: Vec<Record> = entries.iter().map(|e| e.record.clone()).collect();
        let intents = records.iter().filter(|r| matches!(r, Record::Intent(_))).count() as u64;
        if let Err(error) = self.commit_beside(records, intents) {
            tracing::error!(%error, calls = intents, "calls are refused: they cannot be recorded");
            return;
        }
        self.open += intents;
        for Entry { record, durable } in entries {
            if let (Err(()), Record::Intent(intent)) = (durable.send(()), record) {
                drop(queue.push_outcome(Outcome::not_sent(&intent.id, "recorded too late")));
            }
        }
    }

    /// Writes records that may be given up. The room of every open outcome, and of `intents` more, stays untouched.
    fn commit_beside(&mut self, records: Vec<Record>, intents: u64) -> io::Result<()> {
        let (count, text) = self.lines(records);
        self.journal.reserve((self.open + intents) * self.limits.outcome_reserve as u64 + text.len() as u64)?;
        self.journal.commit(text.as_bytes())?;
        self.seq += count;
        Ok(())
    }

    fn commit(&mut self, records: Vec<Record>) -> io::Result<()> {
        let (count, text) = self.lines(records);
        self.journal.commit(text.as_bytes())?;
        self.seq += count;
        Ok(())
    }

    /// How many lines, and their text.
    fn lines(&self, records: Vec<Record>) -> (u64, String) {
        let now = Utc::now();
        let count = records.len() as u64;
        let lines = records.into_iter().zip(self.seq + 1..).map(|(record, seq)| Line::new(seq, now, record).text());
        (count, lines.collect())
    }
}
