//! What one request of ours and its answer share, from the caller to the transport, by way of the MCP library or not.
//!
//! The library's form of the request carries a [`PendingRequest`] as an extension that is never written to the wire. The
//! transport marks the moment the request leaves, and puts the raw answer into it; the library itself gets a
//! placeholder where it sent it, so that nothing of a result is lost or held twice.
//!
//! States: waiting, then departed or withdrawn. A withdrawn request never leaves; a departed one cannot be withdrawn.
//! That single decision is what "never sent" and "outcome unknown" rest on.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use footbridge_calls::{
    events::{Events, LoggedLine},
    meta::CallMeta,
    pause::Pause,
    provider::Elicit,
};
use footbridge_core::{budget::Held, redact::Redactor};

const WAITING: u8 = 0;
const DEPARTED: u8 = 1;
const WITHDRAWN: u8 = 2;

/// The rendezvous of a request and its answer. Clones are the same request.
#[derive(Debug, Clone)]
pub(super) struct PendingRequest(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: AtomicU8,
    withdrawn: CancellationToken,
    answer: Mutex<Option<Answer>>,
    answered: Notify,
    life: Notify,
    events: Events,
    beside: Mutex<Option<Beside>>,
    elicitor: Option<Arc<dyn Elicit>>,
    redactor: Option<Redactor>,
    /// The session of a call.
    session: Option<u64>,
    may_be_task: bool,
    over: CancellationToken,
}

/// What is written of a call besides what the library knows of it.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// The arguments.
    pub(super) arguments: Option<Box<RawValue>>,
    /// What its guest says besides.
    pub(super) meta: Option<CallMeta>,
    /// How long the task is wanted that the server is to make of it, where it is to make one.
    pub(super) task: Option<Duration>,
    /// Whose it is, which is not written.
    pub(super) session: u64,
}

/// What came back, before it is judged.
#[derive(Debug)]
pub(super) enum Answer {
    /// A result as raw JSON.
    Result(Box<RawValue>, Option<Held>),
    /// A JSON-RPC error.
    Error { code: i64, message: String },
    /// More than may be kept.
    TooLarge,
    /// No answer of the protocol.
    Unusable,
    /// The budget for answers was spent.
    Busy,
    /// The server did not take the request, for certain; why, for the guest.
    Refused(&'static str),
    /// The server says by its HTTP status that it did nothing; what it says, for the guest.
    Declined(&'static str),
    /// The same, since it has been asked too often; for how long to wait, if it says that.
    Throttled(Option<Duration>),
    /// It may have got there, and its connection is gone.
    Lost,
}

impl PendingRequest {
    /// A pending request, of a request that has not left and is no call.
    pub(super) fn new() -> Self {
        Self::of(Events::default(), None, None, None)
    }

    /// The same, about a call that was answered with a task.
    pub(super) fn about(call: &Self) -> Self {
        Self::of(Events::default(), None, None, call.redactor().cloned())
    }

    /// A pending request, of a call of which this is written, who can be asked while it runs, and what takes secrets out of
    /// what is said about it. Its progress goes to `events`.
    pub(super) fn of_call(
        events: Events,
        beside: Beside,
        elicitor: Option<Arc<dyn Elicit>>,
        redactor: Option<Redactor>,
    ) -> Self {
        Self::of(events, Some(beside), elicitor, redactor)
    }

    fn of(
        events: Events,
        beside: Option<Beside>,
        elicitor: Option<Arc<dyn Elicit>>,
        redactor: Option<Redactor>,
    ) -> Self {
        Self(Arc::new(Inner {
            state: AtomicU8::new(WAITING),
            withdrawn: CancellationToken::new(),
            answer: Mutex::default(),
            answered: Notify::new(),
            life: Notify::new(),
            events,
            session: beside.as_ref().map(|beside| beside.session),
            may_be_task: beside.as_ref().is_some_and(|beside| beside.task.is_some()),
            beside: Mutex::new(beside),
            elicitor,
            redactor,
            over: CancellationToken::new(),
        }))
    }

    /// Whether both are one request's.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Who can be asked while it runs, if anybody.
    pub(super) fn elicitor(&self) -> Option<&Arc<dyn Elicit>> {
        self.0.elicitor.as_ref()
    }

    /// What takes secrets out of what is said about it, where that is its own.
    pub(super) fn redactor(&self) -> Option<&Redactor> {
        self.0.redactor.as_ref()
    }

    /// What holds its time while somebody is asked.
    pub(super) fn pause(&self) -> Pause {
        self.elicitor().map(|elicitor| elicitor.pause().clone()).unwrap_or_default()
    }

    /// Cancelled when nobody waits for its answer any more.
    pub(super) fn over(&self) -> &CancellationToken {
        &self.0.over
    }

    /// Whether it is a call.
    pub(super) fn is_call(&self) -> bool {
        self.0.session.is_some()
    }

    /// Whose call it is; of no session where it is none.
    pub(super) fn session(&self) -> Option<u64> {
        self.0.session
    }

    /// Whether it may be answered with a task, so that it goes on behind its answer.
    pub(super) fn may_be_task(&self) -> bool {
        self.0.may_be_task
    }

    /// What is written of its call, once: it is written once.
    pub(super) fn take_beside(&self) -> Option<Beside> {
        self.0.beside.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Marks that the request leaves now. False if it was withdrawn: then it must not.
    pub(super) fn depart(&self) -> bool {
        let state = &self.0.state;
        state.compare_exchange(WAITING, DEPARTED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Keeps the request from leaving. False if it has left.
    pub(super) fn withdraw(&self) -> bool {
        let state = &self.0.state;
        match state.compare_exchange(WAITING, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                self.0.withdrawn.cancel();
                true
            }
            Err(now) => now == WITHDRAWN,
        }
    }

    /// Waits until it is withdrawn.
    pub(super) async fn withdrawn(&self) {
        self.0.withdrawn.cancelled().await;
    }

    /// Puts the answer in. The first one stays.
    pub(super) fn answer(&self, answer: Answer) {
        let mut place = self.0.answer.lock().unwrap_or_else(PoisonError::into_inner);
        place.get_or_insert(answer);
        drop(place);
        self.0.answered.notify_one();
    }

    /// Waits until there is an answer, for whoever is the only one to wait.
    pub(super) async fn answered(&self) {
        self.0.answered.notified().await;
    }

    /// Takes the answer out.
    pub(super) fn take(&self) -> Option<Answer> {
        self.0.answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Notes progress: it keeps the request alive, and goes on to whoever watches.
    pub(super) fn progressed(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.0.life.notify_one();
        self.0.events.progress(progress, total, message);
    }

    /// A line of its server's log, for whoever watches.
    pub(super) fn logged(&self, line: LoggedLine) {
        self.0.events.line(line);
    }

    /// Waits for the next sign of life.
    pub(super) async fn sign_of_life(&self) {
        self.0.life.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_leaves_or_is_withdrawn_but_never_both() {
        let pending = PendingRequest::new();
        assert!(pending.depart() && !pending.withdraw() && !pending.depart());
        let pending = PendingRequest::new();
        assert!(pending.withdraw() && pending.withdraw() && !pending.depart());
    }
}
