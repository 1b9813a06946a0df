//! Calls that run: each ends properly, whatever becomes of its client.
//!
//! A connection never owns a call. Whoever waits for one holds a [`RunningCall`], and dropping that cancels the call.
//! It refuses to know how anything is written.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::mpsc;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    detach_on_drop::DetachOnDrop,
    dialect::{Answer, CallKey},
    http::accept::Accepts,
};
use footbridge_calls::{
    auth::Principal,
    call::Stages,
    cause::Cause,
    events::{CallEvent, LogLevel},
    provider::RawResult,
    request::CallRequest,
    session::Session,
    watcher::Watcher,
};

/// A call that runs. Dropping the last part of it cancels the call.
pub(crate) struct RunningCall {
    pub(crate) call: DetachOnDrop<EndedCall>,
    /// What comes before its answer, where somebody listens.
    pub(crate) events: Option<mpsc::Receiver<Box<CallEvent>>>,
    pub(crate) cancel: DropGuard,
}

/// A call that ended.
pub(crate) struct EndedCall {
    /// Whether anything of it can have left.
    pub(crate) admitted: bool,
    pub(crate) answer: Answer,
}

impl EndedCall {
    fn failed() -> Self {
        Self { admitted: true, answer: Err(Cause::HarnessFailed.into()) }
    }
}

impl RunningCall {
    /// A call, which counts among these tasks, for a client that waits for it.
    pub(crate) fn start(
        tasks: &TaskTracker,
        stages: Arc<Stages>,
        principal: Principal,
        request: CallRequest,
        client: WaitingClient,
    ) -> Self {
        let (watcher, events) = watcher(&client);
        let CallEnd { cancel, known } = client.end;
        let guard = cancel.clone().drop_guard();
        let call = async move {
            let _known = known;
            run(&stages, principal, request, &watcher, &cancel).await
        };
        Self { call: DetachOnDrop::new(tasks, call, EndedCall::failed), events, cancel: guard }
    }
}

/// Who waits for a call.
pub(crate) struct WaitingClient {
    pub(crate) accepts: Accepts,
    /// Whether it hears that the call waits for a person.
    pub(crate) hears_waiting: bool,
    /// The least that it wants to hear of logs, if anything.
    pub(crate) logs: Option<LogLevel>,
    /// What ends it.
    pub(crate) end: CallEnd,
}

/// What ends a call before it is over: its session's end, and where it is known by a key, another request.
pub(crate) struct CallEnd {
    cancel: CancellationToken,
    known: Option<KnownCall>,
}

impl CallEnd {
    /// Of a call that no other request ends.
    pub(crate) fn of(session: &Session) -> Self {
        Self { cancel: session.over().child_token(), known: None }
    }
}

/// Calls that a second request may end. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningCalls(Arc<Mutex<HashMap<CallKey, CancellationToken>>>);

impl RunningCalls {
    /// A call of this session that can be ended from now on, by this key where it has one.
    pub(crate) fn begin(&self, session: &Session, key: Option<CallKey>) -> CallEnd {
        let CallEnd { cancel, .. } = CallEnd::of(session);
        CallEnd { known: key.and_then(|key| self.add(key, &cancel)), cancel }
    }

    /// Ends the call of this key, if it runs.
    pub(crate) fn cancel(&self, key: &CallKey) {
        if let Some(cancel) = self.all().get(key) {
            cancel.cancel();
        }
    }

    /// Adds a call for as long as the guard lives. Of two with one key the first keeps it.
    fn add(&self, key: CallKey, cancel: &CancellationToken) -> Option<KnownCall> {
        match self.all().entry(key.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                place.insert(cancel.clone());
                Some(KnownCall { calls: self.clone(), key })
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<CallKey, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes its call out of those that may be ended.
struct KnownCall {
    calls: RunningCalls,
    key: CallKey,
}

impl Drop for KnownCall {
    fn drop(&mut self) {
        self.calls.all().remove(&self.key);
    }
}

fn watcher(client: &WaitingClient) -> (Watcher, Option<mpsc::Receiver<Box<CallEvent>>>) {
    let accepts = client.accepts;
    let (watcher, events) = if accepts.events {
        let (watcher, events) = Watcher::listening();
        (watcher.hearing_of_waiting(client.hears_waiting).hearing_logs(client.logs), Some(events))
    } else {
        (Watcher::silent(), None)
    };
    (watcher.waiting_for_person(accepts.waits), events)
}

async fn run(
    stages: &Stages,
    principal: Principal,
    request: CallRequest,
    watcher: &Watcher,
    cancel: &CancellationToken,
) -> EndedCall {
    let asker = principal.clone();
    let reply = stages.call(principal, request, watcher, cancel).await;
    let admitted = reply.was_admitted();
    let answer = reply.into_answer().and_then(|result| held(asker.session(), result));
    EndedCall { admitted, answer }
}

/// Counts what an answer holds for its session: one that does not read its answers cannot take them all.
fn held(session: &Session, mut answer: RawResult) -> Answer {
    if let Some(held) = answer.held.take() {
        answer.held = Some(session.bytes().hold(held).map_err(|_| Cause::AnswersUnread)?);
    }
    Ok(answer)
}
