//! What writes records, one at a time, and the thread that does what may take long.
//!
//! Everything that waits is written and synced together, so concurrent calls share a sync. An outcome is answered for
//! once it is written, and its sync follows within a few milliseconds, with that of the next intent if one comes: what
//! could be lost with the power is only that a call, whose intent is durable, came back. Whoever reads the record then
//! finds it open, and takes it for made.
//!
//! An outcome that nobody waits for, as of a request to a service, is left for a moment to go with what is written next:
//! mostly the next intent, and then both are one write. The thread writes it where nothing comes.
//!
//! Where a write ends in memory, whoever records something writes it, if nobody else is writing: handing it to the
//! thread and waiting to be woken takes longer than all else that is done for a record. Whoever finds another one writing
//! leaves it to that one. At most one is writing, so a disk that stalls all the same holds one of them; from then on the
//! thread writes, for a while.
//!
//! States and failure paths:
//! - An intent that cannot be written fails at once: its call does not happen.
//! - An intent whose caller stopped waiting before it was durable is followed by a `not_sent` outcome.
//! - An outcome that cannot be written, or synced, is kept and tried again by the thread until it is; meanwhile every
//!   intent fails.
//! - Where the thread itself ends by an error, nothing is admitted any more.
//! - A file that is full is followed by the next one; where that cannot be begun, it grows on.
//! - On the end, what is queued is written, and that it is the end; outcomes that still fail are counted, and whoever
//!   ends it is told.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{
    chain::Chain,
    chain_writer::ChainWriter,
    queue::{Batch, Entry, Part, Queue},
    record::{OutcomeRecord, Record},
    recorder::Recorder,
};
use footbridge_core::{limits::AuditLimits, random::random_text, sparingly::Sparingly};

/// Pause before a failed outcome is tried again.
const RETRY: Duration = Duration::from_millis(200);
/// How often counted refusals are written.
const COUNTED_EVERY: Duration = Duration::from_secs(1);
/// How long the end waits for outcomes that cannot be written.
const LAST_CHANCE: Duration = Duration::from_secs(2);
/// How often in a row one of those who record writes what others left to it.
const OTHERS: usize = 8;
/// What takes longer than this waited for a disk, or for a processor: twice within this time, it is the disk, and only the
/// thread writes for as long.
const STALL: Duration = Duration::from_millis(5);
const AFTER_STALL: Duration = Duration::from_secs(1);

/// The writing thread. Dropping it writes what is queued and waits for that.
pub(super) struct Writer {
    writing: Arc<Writing>,
    thread: Option<thread::JoinHandle<Result<(), RecordLost>>>,
}

impl Writer {
    /// Starts the thread, once the first line is written.
    pub(super) fn start(mut recorder: Recorder, limits: AuditLimits) -> io::Result<(Self, Arc<Writing>)> {
        let chain = match recorder.journal.chain() {
            Some(chain) => chain,
            None => random_text::<12>().map_err(io::Error::other)?,
        };
        let (heads, sync) = (recorder.take_heads()?, recorder.settings().sync);
        let mut chain_writer =
            ChainWriter::new(recorder.journal, Chain::new(chain), heads, limits.outcome_reserve as u64);
        chain_writer.begin(sync)?;
        let writing = Arc::new(Writing {
            is_quick: chain_writer.is_quick(),
            queue: Queue::new(limits),
            records: Mutex::new(RecordWriter {
                chain_writer,
                open: 0,
                lost: 0,
                is_synced: true,
                counted: Instant::now(),
                stalls: Stalls::default(),
                has_failed: false,
                room: Batch::default(),
                not_written: Sparingly::default(),
                not_counted: Sparingly::default(),
                no_head: Sparingly::default(),
            }),
        });
        let (theirs, thread_start) = (Arc::clone(&writing), recorder.thread_start);
        let run = move || {
            let _gone = WhenGone(&theirs.queue);
            thread_start();
            theirs.run()
        };
        let thread = thread::Builder::new().name("audit".to_owned()).spawn(run)?;
        Ok((Self { writing: Arc::clone(&writing), thread: Some(thread) }, writing))
    }

    /// Writes what is queued and ends the thread.
    pub(super) fn close(&mut self) -> Result<(), RecordLost> {
        self.writing.queue.lock().closed = true;
        self.writing.queue.changed.notify_one();
        match self.thread.take().map(thread::JoinHandle::join) {
            None => Ok(()),
            Some(Ok(kept)) => kept,
            Some(Err(_panicked)) => Err(RecordLost::WriterPanicked),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "the record was closed");
        }
    }
}

/// What the record lacks at its end.
#[derive(Debug, thiserror::Error)]
pub enum RecordLost {
    /// So many records of what happened could not be written until the end, each of which was tried again and again.
    #[error("the record lacks what happened at its end: {0} could not be written, as the log says")]
    NotWritten(usize),
    /// The end of it: the disk would not sync it, or take that it ends.
    #[error("the end of the record may not be on the disk, as the log says")]
    EndNotKept,
    /// What was queued then was written by nobody.
    #[error(
        "the thread that writes the record ended by an error of footbridge: the record may lack what happened since"
    )]
    WriterPanicked,
}

/// Where the thread ends by an error in it, nothing is admitted any more: what it had is written by nobody.
struct WhenGone<'q>(&'q Queue);

impl Drop for WhenGone<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!("the thread that writes the record panicked; no call is admitted any more");
            let mut state = self.0.lock();
            state.stuck = true;
            state.failure = Some("the thread that writes it ended by an error of footbridge; start it anew".to_owned());
            state.refusable.clear();
        }
    }
}

/// What waits to be written, and what writes it: the thread, and whoever records something.
pub(super) struct Writing {
    queue: Queue,
    /// Locked before the queue, where both are.
    records: Mutex<RecordWriter>,
    /// Whether whoever records something may write it.
    is_quick: bool,
}

impl Writing {
    /// Has an intent or a refusal written. `None` when the writer is stuck, behind, or gone.
    pub(super) fn push(&self, record: Record, intent: Option<String>) -> Option<oneshot::Receiver<()>> {
        let queued = self.queue.push(record, intent);
        self.write_soon();
        queued
    }

    /// Has an outcome written, whatever it takes.
    pub(super) fn push_outcome(&self, outcome: &OutcomeRecord) -> oneshot::Receiver<()> {
        let queued = self.queue.push_outcome(outcome);
        self.write_soon();
        queued
    }

    /// Has an outcome written that nobody waits for.
    pub(super) fn put_off_outcome(&self, outcome: &OutcomeRecord) {
        self.queue.put_off_outcome(outcome);
    }

    /// Has a record written that must not be lost.
    pub(super) fn push_kept(&self, record: Record) -> oneshot::Receiver<()> {
        let queued = self.queue.push_kept(record);
        self.write_soon();
        queued
    }

    /// Counts a refusal over a limit.
    pub(super) fn count_limited(&self, session: String, reason: &'static str) {
        self.queue.count_limited(session, reason);
    }

    /// Whether an intent would be queued.
    pub(super) fn takes_more(&self) -> bool {
        self.queue.takes_more()
    }

    /// Why the last write failed, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        self.queue.lock().failure.clone()
    }

    /// Writes what waits, where that is quick and nobody else is writing, and leaves it to the thread otherwise.
    fn write_soon(&self) {
        let rounds = if self.is_quick { OTHERS } else { 0 };
        for _ in 0..rounds {
            let mut records = match self.records.try_lock() {
                Ok(records) => records,
                // Whoever is writing looks again behind that.
                Err(TryLockError::WouldBlock) => return,
                Err(TryLockError::Poisoned(_)) => break,
            };
            if !records.write_now(&self.queue) {
                break;
            }
            drop(records);
            if !self.queue.lock().is_due() {
                return;
            }
        }
        self.queue.changed.notify_one();
    }

    fn records(&self) -> MutexGuard<'_, RecordWriter> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the thread does. Gives what it had to give up in the end.
    fn run(&self) -> Result<(), RecordLost> {
        loop {
            self.wait();
            let mut records = self.records();
            let (mut batch, limited, closed) = records.take(&self.queue);
            let is_last = closed && batch.outcomes.is_empty() && batch.refusable.is_empty() && limited.is_empty();
            records.write_limited(&self.queue, limited);
            records.write(&self.queue, &mut batch);
            records.room = batch;
            if is_last {
                let open = records.open;
                let is_ended = records.chain_writer.finish(open);
                return match records.lost {
                    0 if is_ended && records.is_synced => Ok(()),
                    0 => Err(RecordLost::EndNotKept),
                    lost => Err(RecordLost::NotWritten(lost)),
                };
            }
            records.sign_if_due();
        }
    }

    /// Waits until there is something to do for the thread.
    fn wait(&self) {
        loop {
            self.queue.lock().wants_news = true;
            let (head, sync, due) = {
                let RecordWriter { chain_writer, counted, .. } = &*self.records();
                (chain_writer.head_wait(), chain_writer.sync_wait(), COUNTED_EVERY.saturating_sub(counted.elapsed()))
            };
            let mut state = self.queue.lock();
            let counts = (!state.limited.is_empty()).then_some(due);
            let wait = head.into_iter().chain(sync).chain(counts).chain(state.wait()).min();
            if state.closed || wait.is_some_and(|wait| wait.is_zero()) {
                return;
            }
            match wait.into_iter().chain(state.sleep()).min() {
                // Somebody wrote since it was looked at whether a head is wanted.
                None if !state.wants_news => {}
                None => drop(self.queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner)),
                Some(wait) => {
                    state.wants_news = false;
                    drop(self.queue.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }
}

/// What writes.
struct RecordWriter {
    chain_writer: ChainWriter,
    /// Intents without an outcome: each has room reserved.
    open: u64,
    /// Records of what happened that could not be written until the end.
    lost: usize,
    /// Whether the last sync was done.
    is_synced: bool,
    counted: Instant,
    stalls: Stalls,
    /// Whether the last write failed.
    has_failed: bool,
    /// An empty batch, for its room.
    room: Batch,
    /// What is wrong with the disk is wrong for each call: it is not said for each.
    not_written: Sparingly,
    not_counted: Sparingly,
    no_head: Sparingly,
}

/// Writes that should have been quick and were not.
#[derive(Debug, Default)]
struct Stalls {
    last: Option<Instant>,
    /// Until when only the thread writes.
    until: Option<Instant>,
}

impl Stalls {
    fn are_there(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Counts a write that began at `since`.
    fn count(&mut self, since: Instant, now: Instant) {
        if now.duration_since(since) > STALL {
            let again = self.last.is_some_and(|last| since.saturating_duration_since(last) < AFTER_STALL);
            self.until = again.then_some(now + AFTER_STALL);
            self.last = Some(now);
        }
    }
}

impl RecordWriter {
    /// What the thread has to write, and whether this is the end. Counts come once a second.
    fn take(&mut self, queue: &Queue) -> (Batch, BTreeMap<(String, &'static str), u64>, bool) {
        let mut state = queue.lock();
        let counts = state.closed || self.counted.elapsed() >= COUNTED_EVERY;
        let limited = if counts { std::mem::take(&mut state.limited) } else { BTreeMap::new() };
        (state.take(std::mem::take(&mut self.room)), limited, state.closed)
    }

    /// Writes what waits, for whoever recorded some of it. False where there is something for the thread to do.
    fn write_now(&mut self, queue: &Queue) -> bool {
        let since = Instant::now();
        if self.stalls.are_there(since) {
            return false;
        }
        let mut batch = {
            let mut state = queue.lock();
            if state.closed || state.stuck {
                return false;
            }
            state.take(std::mem::take(&mut self.room))
        };
        if !self.write_together(queue, &mut batch) {
            if !batch.outcomes.is_empty() && self.chain_writer.append(records(&batch.outcomes)).is_err() {
                // The thread says so, and tries until it is done.
                queue.lock().put_back(batch);
                return false;
            }
            self.outcomes_are_written(&mut batch.outcomes);
            self.write_refusable(queue, &mut batch.refusable);
        }
        self.room = batch;
        self.stalls.count(since, Instant::now());
        !std::mem::take(&mut queue.lock().wants_news)
    }

    fn sign_if_due(&mut self) {
        if self.chain_writer.head_is_due()
            && let Err(error) = self.chain_writer.commit([], Some(self.open))
            && let Some(count) = self.no_head.may_say(1, Instant::now())
        {
            tracing::error!(%error, count, "a head cannot be recorded");
        }
    }

    /// Writes outcomes and what is behind them at once, where both are there and no outcome would wait for a sync that
    /// is not its own. False where they are to be written one after the other, as where that fails.
    fn write_together(&mut self, queue: &Queue, batch: &mut Batch) -> bool {
        let Batch { outcomes, refusable } = batch;
        let is_waited_for = || outcomes.iter().any(|entry| entry.written.is_some());
        if outcomes.is_empty() || refusable.is_empty() || (is_waited_for() && !self.chain_writer.is_quick()) {
            return false;
        }
        let open = self.open.saturating_sub(count_outcomes(outcomes)) + count_intents(refusable);
        if self.chain_writer.commit(records(outcomes).chain(records(refusable)), Some(open)).is_err() {
            return false;
        }
        self.outcomes_are_written(outcomes);
        self.refusable_are_written(queue, refusable);
        true
    }

    /// Writes outcomes, then intents and refusals, and syncs them together; outcomes alone once that is due.
    fn write(&mut self, queue: &Queue, batch: &mut Batch) {
        if !self.write_together(queue, batch) {
            let Batch { outcomes, refusable } = batch;
            let append = |chain_writer: &mut ChainWriter| chain_writer.append(records(outcomes));
            if !outcomes.is_empty() && self.retry_until_done(queue, outcomes.len(), append) {
                self.outcomes_are_written(outcomes);
            }
            outcomes.clear();
            self.write_refusable(queue, refusable);
        }
        self.is_synced = self.retry_until_done(queue, 0, ChainWriter::sync);
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
            state.failure = Some(error.to_string());
            state.refusable.clear();
            if state.closed && closing.get_or_insert_with(Instant::now).elapsed() > LAST_CHANCE {
                tracing::error!(records, "the harness ends and cannot record what happened");
                self.lost += records;
                return false;
            }
            drop(queue.changed.wait_timeout(state, RETRY));
        }
        if failed {
            let mut state = queue.lock();
            (state.stuck, state.failure) = (false, None);
        }
        true
    }

    fn outcomes_are_written(&mut self, entries: &mut VecDeque<Entry>) {
        self.open = self.open.saturating_sub(count_outcomes(entries));
        for written in entries.drain(..).filter_map(|entry| entry.written) {
            // Whoever waited may have left; the record stands.
            let _ = written.send(());
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
        if let Err(error) = self.chain_writer.commit(&records, Some(self.open)) {
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
    fn write_refusable(&mut self, queue: &Queue, entries: &mut VecDeque<Entry>) {
        if entries.is_empty() {
            return;
        }
        let intents = count_intents(entries);
        if let Err(error) = self.chain_writer.commit(records(entries), Some(self.open + intents)) {
            entries.clear();
            self.has_failed = true;
            queue.lock().failure = Some(error.to_string());
            if let Some(calls) = self.not_written.may_say_why(&error.to_string(), intents, Instant::now()) {
                tracing::error!(%error, calls, "calls are refused: they cannot be recorded");
            }
            return;
        }
        self.refusable_are_written(queue, entries);
    }

    /// Intents and refusals are durable.
    fn refusable_are_written(&mut self, queue: &Queue, entries: &mut VecDeque<Entry>) {
        if std::mem::take(&mut self.has_failed) {
            queue.lock().failure = None;
        }
        if let Some(calls) = self.not_written.rest() {
            tracing::warn!(calls, "records can be written again; these calls were refused meanwhile");
        }
        self.open += count_intents(entries);
        for Entry { part, written, .. } in entries.drain(..) {
            let is_late = written.is_some_and(|written| written.send(()).is_err());
            if let (true, Part::Intent(id)) = (is_late, part) {
                drop(queue.push_outcome(&OutcomeRecord::not_sent(&id, "recorded too late")));
                queue.changed.notify_one();
            }
        }
    }
}

fn records(entries: &VecDeque<Entry>) -> impl Iterator<Item = &Record> {
    entries.iter().map(|entry| &entry.record)
}

fn count_outcomes(entries: &VecDeque<Entry>) -> u64 {
    entries.iter().filter(|entry| matches!(entry.part, Part::Outcome)).count() as u64
}

fn count_intents(entries: &VecDeque<Entry>) -> u64 {
    entries.iter().filter(|entry| matches!(entry.part, Part::Intent(_))).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_write_waited_for_a_processor_and_two_for_a_disk() {
        let (mut stalls, start) = (Stalls::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        stalls.count(at(0), at(1));
        stalls.count(at(10), at(20));
        assert!(!stalls.are_there(at(20)));
        stalls.count(at(30), at(31));
        stalls.count(at(500), at(520));
        assert!(stalls.are_there(at(521)) && stalls.are_there(at(1519)) && !stalls.are_there(at(1520)));
        stalls.count(at(3000), at(3010));
        assert!(!stalls.are_there(at(3010)));
        stalls.count(at(3020), at(6000));
        assert!(stalls.are_there(at(6001)), "however long each takes");
    }
}
