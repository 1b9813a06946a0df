//! Whoever waits for a call: what it hears before the answer, and whether it waits for a person.
//!
//! Events go over a bounded channel and are never waited for: one that does not fit is lost, the answer never is.

use std::sync::{Arc, Mutex, PoisonError};

use footbridge_core::redact::Redactor;
use tokio::sync::{mpsc, oneshot};

use crate::events::{ApprovalEvent, CallEvent, Events, LogLevel, short};

/// Events that wait for a slow reader. Each has at most a few KiB.
const WAITING: usize = 8;

/// Whoever waits for a call. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Watcher {
    hears: Hears,
    waits_for_person: bool,
    hears_of_waiting: bool,
    logs: Option<LogLevel>,
}

/// What it hears before the answer.
#[derive(Debug, Clone)]
enum Hears {
    Nothing,
    Events(mpsc::Sender<Box<CallEvent>>),
    /// That a person is asked, once. A channel of events takes as long to make as much else of a request to a service.
    Asked(Arc<Mutex<Option<oneshot::Sender<String>>>>),
}

impl Watcher {
    /// One that hears nothing before the answer.
    #[must_use]
    pub fn silent() -> Self {
        Self { hears: Hears::Nothing, waits_for_person: true, hears_of_waiting: false, logs: None }
    }

    /// One that hears events, and where they come out: in boxes, since a channel has room for 32 from its start, and most
    /// calls tell nothing.
    #[must_use]
    pub fn listening() -> (Self, mpsc::Receiver<Box<CallEvent>>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let logs = Some(LogLevel::Info);
        (Self { hears: Hears::Events(sender), waits_for_person: true, hears_of_waiting: true, logs }, receiver)
    }

    /// One that hears that a person is asked, and nothing else: the id of what is asked comes out once.
    #[must_use]
    pub fn listening_for_question() -> (Self, oneshot::Receiver<String>) {
        let (sender, receiver) = oneshot::channel();
        let hears = Hears::Asked(Arc::new(Mutex::new(Some(sender))));
        (Self { hears, waits_for_person: true, hears_of_waiting: true, logs: None }, receiver)
    }

    /// The same, and whether it waits for a person to answer.
    #[must_use]
    pub fn waiting_for_person(self, waits_for_person: bool) -> Self {
        Self { waits_for_person, ..self }
    }

    /// The same, and whether what it hears tells it that the call waits for a person.
    #[must_use]
    pub fn hearing_of_waiting(self, hears_of_waiting: bool) -> Self {
        Self { hears_of_waiting, ..self }
    }

    /// The same, and the least of logs that it is told, if anything is.
    #[must_use]
    pub fn hearing_logs(self, logs: Option<LogLevel>) -> Self {
        Self { logs, ..self }
    }

    /// Whether it hears that the call waits for a person, so that it can wait for long.
    #[must_use]
    pub fn hears_of_waiting(&self) -> bool {
        self.hears_of_waiting
    }

    /// Whether a call that needs a person may wait for one. If not it is answered `approval_required` at once.
    #[must_use]
    pub(crate) fn waits_for_person(&self) -> bool {
        self.waits_for_person
    }

    /// Tells it about an approval. The stream of events begins with this, so it may come before the call is admitted.
    pub fn approval(&self, mut event: ApprovalEvent) {
        // No more than a few of these come, and before any progress; a reader that misses one still gets the answer.
        match &self.hears {
            Hears::Nothing => {}
            Hears::Events(events) => {
                event.summary = short(event.summary);
                let _missed = events.try_send(Box::new(CallEvent::Approval(event)));
            }
            Hears::Asked(asked) => {
                let first = asked.lock().unwrap_or_else(PoisonError::into_inner).take();
                let _missed = first.map(|first| first.send(event.id));
            }
        }
    }

    /// Where what a provider tells goes, less the values of secrets.
    pub(crate) fn events(&self, redactor: &Redactor) -> Events {
        let events = match &self.hears {
            Hears::Events(events) => Some(events.clone()),
            Hears::Nothing | Hears::Asked(_) => None,
        };
        Events::new(events, redactor, self.logs)
    }
}
