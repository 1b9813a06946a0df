//! What waits to be written: intents and refusals, which may be given up, and outcomes, which may not.

use std::{
    collections::{BTreeMap, VecDeque},
    hint::spin_loop,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::available_parallelism,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::record::{OutcomeRecord, Record};
use footbridge_core::limits::AuditLimits;

/// How long the writer stays awake for more once it has written.
const MOMENT: Duration = Duration::from_micros(50);

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
    pub(super) closed: bool,
}

/// The queue in front of the writer.
pub(super) struct Queue {
    state: Mutex<State>,
    pub(super) changed: Condvar,
    /// How much came in all, counted under the lock, for [`Self::more_soon`].
    pushed: AtomicU64,
    /// Whether others go on while it looks.
    stays_awake: bool,
    limits: AuditLimits,
}

impl Queue {
    /// An empty one.
    pub(super) fn new(limits: AuditLimits) -> Self {
        let stays_awake = available_parallelism().is_ok_and(|processors| processors.get() > 1);
        Self { state: Mutex::default(), changed: Condvar::new(), pushed: AtomicU64::new(0), stays_awake, limits }
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
        self.wake(state);
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
        state.outcomes.push_back(Entry { record, part, written });
        self.wake(state);
        receiver
    }

    fn wake(&self, state: MutexGuard<'_, State>) {
        self.pushed.fetch_add(1, Ordering::Release);
        // Without the lock: the writer would wake only to wait for it.
        drop(state);
        self.changed.notify_one();
    }

    /// How much came so far.
    pub(super) fn pushed(&self) -> u64 {
        self.pushed.load(Ordering::Acquire)
    }

    /// Looks for a moment, where there is a processor to spare, whether more comes than this. A call's outcome often
    /// follows its intent at once, and waking a thread on an idle processor takes longer than all else that is done for
    /// a record.
    pub(super) fn more_soon(&self, pushed: u64) {
        let since = Instant::now();
        while self.stays_awake && self.pushed() == pushed && since.elapsed() < MOMENT {
            spin_loop();
        }
    }

    /// Counts a refusal over a limit.
    pub(super) fn count_limited(&self, session: String, reason: &'static str) {
        *self.lock().limited.entry((session, reason)).or_default() += 1;
        self.changed.notify_one();
    }
}
