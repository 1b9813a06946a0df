//! The one thread that writes records.
//!
//! Everything that waits is written and synced together, so concurrent calls share a sync. An outcome is answered for
//! once it is written, and its sync follows at once: what could be lost with the power is only that a call, whose
//! intent is durable, came back. Whoever reads the record then finds it open, and takes it for made.
//!
//! States and failure paths:
//! - An intent that cannot be written fails at once: its call does not happen.
//! - An intent whose caller stopped waiting before it was durable is followed by a `not_sent` outcome.
//! - An outcome that cannot be written, or synced, is kept and tried again until it is; meanwhile every intent fails.
//! - A file that is full is followed by the next one; where that cannot be begun, it grows on.
//! - On the end, what is queued is written, and that it is the end; outcomes that still fail are counted in an error
//!   log.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::{
    chain::Chain,
    chain_writer::ChainWriter,
    queue::{Entry, Part, Queue},
    record::{OutcomeRecord, Record},
    recorder::Recorder,
    sparingly::Sparingly,
};
use footbridge_core::{limits::AuditLimits, random::random_text};

/// Pause before a failed outcome is tried again.
const RETRY: Duration = Duration::from_millis(200);
/// How often counted refusals are written.
const COUNTED_EVERY: Duration = Duration::from_secs(1);
/// How long the end waits for outcomes that cannot be written.
const LAST_CHANCE: Duration = Duration::from_secs(2);
/// Most records of a kind in one commit.
const BATCH: usize = 256;

/// The writing thread. Dropping it writes what is queued and waits for that.
pub(super) struct Writer {
    queue: Arc<Queue>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread, once the first line is written.
    pub(super) fn start(mut recorder: Recorder, limits: AuditLimits) -> io::Result<(Self, Arc<Queue>)> {
        let queue = Arc::new(Queue::new(limits.clone()));
        let chain = match recorder.journal.chain() {
            Some(chain) => chain,
            None => random_text::<12>().map_err(io::Error::other)?,
        };
        let (heads, sync) = (recorder.take_heads()?, recorder.settings().sync);
        let mut chain_writer =
            ChainWriter::new(recorder.journal, Chain::new(chain), heads, limits.outcome_reserve as u64);
        chain_writer.begin(sync)?;
        let (not_written, not_counted) = (Sparingly::default(), Sparingly::default());
        let writer = WriterThread { chain_writer, sync, open: 0, counted: Instant::now(), not_written, not_counted };
        let theirs = Arc::clone(&queue);
        let thread = thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&theirs))?;
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
struct WriterThread {
    chain_writer: ChainWriter,
    sync: bool,
    /// Intents without an outcome: each has room reserved.
    open: u64,
    counted: Instant,
    /// What is wrong with the disk is wrong for each call: it is not said for each.
    not_written: Sparingly,
    not_counted: Sparingly,
}

/// What to do next.
struct Work {
    refusable: Vec<Entry>,
    outcomes: Vec<Entry>,
    limited: BTreeMap<(String, &'static str), u64>,
    closed: bool,
    /// How much the queue had seen by then.
    pushed: u64,
}

impl Work {
    fn is_empty(&self) -> bool {
        self.refusable.is_empty() && self.outcomes.is_empty() && self.limited.is_empty()
    }
}

impl WriterThread {
    fn run(mut self, queue: &Queue) {
        loop {
            let work = self.next(queue);
            let closed = work.closed && work.is_empty();
            self.write_limited(queue, work.limited);
            self.write(queue, work.outcomes, work.refusable);
            if closed {
                return self.chain_writer.finish(self.open);
            }
            if self.chain_writer.head_is_due()
                && let Err(error) = self.chain_writer.commit(&[], Some(self.open))
            {
                tracing::error!(%error, "a head cannot be recorded");
            }
            // Where records are synced, the disk is what takes time.
            if !self.sync {
                queue.more_soon(work.pushed);
            }
        }
    }

    fn next(&self, queue: &Queue) -> Work {
        let mut state = queue.lock();
        loop {
            let due = COUNTED_EVERY.saturating_sub(self.counted.elapsed());
            let count_now = !state.limited.is_empty() && (due.is_zero() || state.closed);
            let idle = state.refusable.is_empty() && state.outcomes.is_empty();
            if count_now || state.closed || !idle || self.chain_writer.head_is_due() {
                let refusable = state.refusable.len().min(BATCH);
                let outcomes = state.outcomes.len().min(BATCH);
                return Work {
                    refusable: state.refusable.drain(..refusable).collect(),
                    outcomes: state.outcomes.drain(..outcomes).collect(),
                    limited: if count_now { std::mem::take(&mut state.limited) } else { BTreeMap::new() },
                    closed: state.closed,
                    pushed: queue.pushed(),
                };
            }
            let head = self.chain_writer.head_wait();
            let count = (!state.limited.is_empty()).then_some(due);
            state = match head.into_iter().chain(count).min() {
                None => queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(wait) => queue.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    /// Writes outcomes, then intents and refusals, and syncs them together.
    fn write(&mut self, queue: &Queue, outcomes: Vec<Entry>, refusable: Vec<Entry>) {
        if !outcomes.is_empty() {
            let records: Vec<&Record> = outcomes.iter().map(|entry| &entry.record).collect();
            if self.retry_until_done(queue, records.len(), |chain_writer| chain_writer.append(&records)) {
                self.outcomes_are_written(outcomes);
            }
        }
        self.write_refusable(queue, refusable);
        self.retry_until_done(queue, 0, ChainWriter::sync);
    }

    /// Tries until it is done; meanwhile nothing new is admitted. False where the harness ends before.
    fn retry_until_done(
        &mut self,
        queue: &Queue,
        records: usize,
        attempt: impl Fn(&mut ChainWriter) -> io::Result<()>,
    ) -> bool {
        let (mut failed, mut closing) = (false, None);
        while let Err(error) = attempt(&mut self.chain_writer) {
            if !std::mem::replace(&mut failed, true) {
                tracing::error!(%error, records, "what happened cannot be recorded; no call is admitted until it is");
            }
            let mut state = queue.lock();
            state.stuck = true;
            state.refusable.clear();
            if state.closed && closing.get_or_insert_with(Instant::now).elapsed() > LAST_CHANCE {
                tracing::error!(records, "the harness ends and cannot record what happened");
                return false;
            }
            drop(queue.changed.wait_timeout(state, RETRY));
        }
        if failed {
            queue.lock().stuck = false;
        }
        true
    }

    fn outcomes_are_written(&mut self, entries: Vec<Entry>) {
        self.open = self.open.saturating_sub(count_outcomes(&entries));
        for entry in entries {
            // Whoever waited may have left; the record stands.
            let _ = entry.written.send(());
        }
    }

    /// Writes counted refusals. What cannot be written now is counted on, as long as there is a later.
    fn write_limited(&mut self, queue: &Queue, limited: BTreeMap<(String, &'static str), u64>) {
        if limited.is_empty() {
            return;
        }
        self.counted = Instant::now();
        let line =
            |((session, reason), count): (&(String, &'static str), &u64)| Record::limited(session, reason, *count);
        let records: Vec<Record> = limited.iter().map(line).collect();
        if let Err(error) = self.chain_writer.commit(&records.iter().collect::<Vec<_>>(), Some(self.open)) {
            if self.not_counted.may_say(1, Instant::now()).is_some() {
                tracing::error!(%error, "counted refusals cannot be recorded");
            }
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
        let records: Vec<&Record> = entries.iter().map(|entry| &entry.record).collect();
        let intents = count_intents(&entries);
        if let Err(error) = self.chain_writer.commit(&records, Some(self.open + intents)) {
            if let Some(calls) = self.not_written.may_say(intents, Instant::now()) {
                tracing::error!(%error, calls, "calls are refused: they cannot be recorded");
            }
            return;
        }
        self.refusable_are_durable(queue, entries);
    }

    fn refusable_are_durable(&mut self, queue: &Queue, entries: Vec<Entry>) {
        self.open += count_intents(&entries);
        for Entry { part, written, .. } in entries {
            if let (Err(()), Part::Intent(id)) = (written.send(()), part) {
                drop(queue.push_outcome(&OutcomeRecord::not_sent(&id, "recorded too late")));
            }
        }
    }
}

fn count_outcomes(entries: &[Entry]) -> u64 {
    entries.iter().filter(|entry| matches!(entry.part, Part::Outcome)).count() as u64
}

fn count_intents(entries: &[Entry]) -> u64 {
    entries.iter().filter(|entry| matches!(entry.part, Part::Intent(_))).count() as u64
}
