//! What waits to be written: intents and refusals, which may be given up, and outcomes, which may not.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::record::{OutcomeRecord, Record};
use footbridge_core::limits::AuditLimits;

/// Most records of a kind in one commit.
const BATCH: usize = 256;

/// How long an outcome that nobody waits for is left to go with what is written next.
const PUT_OFF: Duration = Duration::from_millis(5);

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
    /// Told when an intent or a refusal is durable, and anything else written; none where nobody waits for it.
    pub(super) written: Option<oneshot::Sender<()>>,
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
    /// When what waits is to be written, counts aside.
    due: Due,
    /// Whether an outcome was put off since the writer's thread looked.
    was_put_off: bool,
    /// Whether that thread looks again soon, and need not be woken for one.
    looks_soon: bool,
}

/// When what waits is to be written.
#[derive(Default, Clone, Copy)]
enum Due {
    /// Nothing waits.
    #[default]
    Never,
    At(Instant),
    Now,
}

impl State {
    /// How long until there is something to write but counts; none where nothing waits.
    pub(super) fn wait(&self) -> Option<Duration> {
        match self.due {
            Due::Never => None,
            Due::At(time) => Some(time.saturating_duration_since(Instant::now())),
            Due::Now => Some(Duration::ZERO),
        }
    }

    /// Whether there is something to write now.
    pub(super) fn is_due(&self) -> bool {
        self.wait().is_some_and(|wait| wait.is_zero())
    }

    /// How long the writer's thread sleeps at most, as it looks. Where outcomes were put off others are soon, mostly: it
    /// looks again by itself then, and is not woken for each.
    pub(super) fn sleep(&mut self) -> Option<Duration> {
        self.looks_soon = std::mem::take(&mut self.was_put_off);
        self.looks_soon.then_some(PUT_OFF)
    }

    /// What goes into the next commit: outcomes, and intents and refusals. `batch` is empty, and gives its room.
    pub(super) fn take(&mut self, mut batch: Batch) -> Batch {
        first(&mut self.outcomes, &mut batch.outcomes);
        first(&mut self.refusable, &mut batch.refusable);
        if self.outcomes.is_empty() && self.refusable.is_empty() {
            self.due = Due::Never;
        }
        batch
    }

    /// Has it written later, before what came meanwhile.
    pub(super) fn put_back(&mut self, batch: Batch) {
        let Batch { outcomes, refusable } = batch;
        outcomes.into_iter().rev().for_each(|entry| self.outcomes.push_front(entry));
        refusable.into_iter().rev().for_each(|entry| self.refusable.push_front(entry));
        self.due = Due::Now;
    }
}

/// What is written together.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) outcomes: VecDeque<Entry>,
    pub(super) refusable: VecDeque<Entry>,
}

/// Moves the first entries, which may be all, to where there are none.
fn first(from: &mut VecDeque<Entry>, to: &mut VecDeque<Entry>) {
    if from.len() <= BATCH { std::mem::swap(from, to) } else { to.extend(from.drain(..BATCH)) }
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
        state.refusable.push_back(Entry { record, part, written: Some(written) });
        state.due = Due::Now;
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
        let mut state = self.lock();
        state.outcomes.push_back(Entry { record, part, written: Some(written) });
        state.due = Due::Now;
        receiver
    }

    /// Queues an outcome that nobody waits for: it goes with what is written next, which is soon.
    pub(super) fn put_off_outcome(&self, outcome: &OutcomeRecord) {
        let record = Record::outcome(outcome);
        let mut state = self.lock();
        state.outcomes.push_back(Entry { record, part: Part::Outcome, written: None });
        if matches!(state.due, Due::Never) {
            state.due = Due::At(Instant::now() + PUT_OFF);
        }
        state.was_put_off = true;
        if !std::mem::replace(&mut state.looks_soon, true) {
            self.changed.notify_one();
        }
    }

    /// Counts a refusal over a limit.
    pub(super) fn count_limited(&self, session: String, reason: &'static str) {
        *self.lock().limited.entry((session, reason)).or_default() += 1;
        self.changed.notify_one();
    }
}
