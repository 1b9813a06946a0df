//! What waits to be written: intents and refusals, which may be given up, and outcomes, which may not.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::record::{OutcomeRecord, Record};
use footbridge_core::limits::AuditLimits;

/// Most records of a kind in one commit.
const BATCH: usize = 256;

/// What a record is to others.
pub(super) enum Part {
    /// The intent of this id: room is kept for its outcome.
    Intent(String),
    /// The outcome of an intent.
    Outcome,
    /// Neither.
    Other,
}

/// Something to write, and who waits for it.
pub(super) struct Entry {
    pub(super) record: Record,
    pub(super) part: Part,
    /// Told when an intent or a refusal is durable, and anything else written.
    pub(super) written: oneshot::Sender<()>,
}

#[derive(Default)]
pub(super) struct State {
    /// Intents and refusals: bounded, and given up when they fail.
    pub(super) refusable: VecDeque<Entry>,
    /// Outcomes: as many as there are calls in flight, and never given up.
    pub(super) outcomes: VecDeque<Entry>,
    /// Refusals over a limit, by session and reason.
    pub(super) limited: BTreeMap<(String, &'static str), u64>,
    /// Whether outcomes are waiting for a journal that refuses them.
    pub(super) stuck: bool,
    /// Why the last write failed, until one does not.
    pub(super) failure: Option<String>,
    pub(super) closed: bool,
    /// Whether the writer's thread has to hear of records that others write.
    pub(super) wants_news: bool,
}

impl State {
    /// Whether there is anything to write but counts.
    pub(super) fn has_records(&self) -> bool {
        !self.refusable.is_empty() || !self.outcomes.is_empty()
    }

    /// What goes into the next commit: outcomes, and intents and refusals.
    pub(super) fn take(&mut self) -> Batch {
        let (outcomes, refusable) = (self.outcomes.len().min(BATCH), self.refusable.len().min(BATCH));
        Batch {
            outcomes: self.outcomes.drain(..outcomes).collect(),
            refusable: self.refusable.drain(..refusable).collect(),
        }
    }

    /// Has it written later, before what came meanwhile.
    pub(super) fn put_back(&mut self, batch: Batch) {
        let Batch { outcomes, refusable } = batch;
        outcomes.into_iter().rev().for_each(|entry| self.outcomes.push_front(entry));
        refusable.into_iter().rev().for_each(|entry| self.refusable.push_front(entry));
    }
}

/// What is written together.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) outcomes: Vec<Entry>,
    pub(super) refusable: Vec<Entry>,
}

/// The queue in front of the writer. Whoever pushes has it written.
pub(super) struct Queue {
    state: Mutex<State>,
    /// Told when there is something for the writer's thread.
    pub(super) changed: Condvar,
    limits: AuditLimits,
}

impl Queue {
    /// An empty one.
    pub(super) fn new(limits: AuditLimits) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), limits }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an intent or a refusal. `None` when the writer is stuck, behind, or gone.
    pub(super) fn push(&self, record: Record, intent: Option<String>) -> Option<oneshot::Receiver<()>> {
        let mut state = self.lock();
        if state.stuck || state.closed || state.refusable.len() >= self.limits.queue {
            return None;
        }
        let (written, receiver) = oneshot::channel();
        let part = intent.map_or(Part::Other, Part::Intent);
        state.refusable.push_back(Entry { record, part, written });
        Some(receiver)
    }

    /// Whether an intent would be queued.
    pub(super) fn takes_more(&self) -> bool {
        let state = self.lock();
        !state.stuck && !state.closed && state.refusable.len() < self.limits.queue
    }

    /// Queues an outcome. It is written whatever it takes.
    pub(super) fn push_outcome(&self, outcome: &OutcomeRecord) -> oneshot::Receiver<()> {
        self.push_unrefusable(Record::outcome(outcome), Part::Outcome)
    }

    /// Queues a record that must not be lost. It is written whatever it takes, and nothing is admitted before.
    pub(super) fn push_kept(&self, record: Record) -> oneshot::Receiver<()> {
        self.push_unrefusable(record, Part::Other)
    }

    fn push_unrefusable(&self, record: Record, part: Part) -> oneshot::Receiver<()> {
        let (written, receiver) = oneshot::channel();
        self.lock().outcomes.push_back(Entry { record, part, written });
        receiver
    }

    /// Counts a refusal over a limit.
    pub(super) fn count_limited(&self, session: String, reason: &'static str) {
        *self.lock().limited.entry((session, reason)).or_default() += 1;
        self.changed.notify_one();
    }
}
