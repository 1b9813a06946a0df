//! Calls at the edge: each in a task of its own, answered by one JSON body or by a stream of events.
//!
//! Which of the two is decided once there is something to say. A refusal before the call was admitted is always JSON,
//! and so is an answer that came before any event to a client that takes both. Otherwise the head leaves with the first
//! event, the first sign of life or the result, and cannot be taken back.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Response, StatusCode};
use serde_json::value::RawValue;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::bridge::wording::error_of;
use crate::{
    http::{
        accept::Accepts,
        body::{self, Pieces},
        stream::Phase,
    },
    live::{Answer, First, Live},
    requests::Handler,
};
use footbridge_calls::{
    call::Stages, cause::Cause, provider::RawResult, reply::Reply, session::Session, watcher::Watcher,
};

/// Whatever the settings say: a stream of signs of life only is no stream.
const LEAST_HEARTBEAT: Duration = Duration::from_millis(50);

/// Who asked, and how it wants its answer.
pub(crate) struct Asked {
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) accepts: Accepts,
    pub(crate) phase: Phase,
}

/// A call in its task.
pub(crate) struct Running(JoinHandle<Ended>);

/// A call that ended.
pub(crate) struct Ended {
    admitted: bool,
    pub(crate) answer: Answer,
}

impl Future for Running {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        Pin::new(&mut self.0).poll(cx).map(|ended| {
            ended.unwrap_or_else(|error| {
                tracing::error!(%error, "a call's task failed");
                Ended { admitted: true, answer: Err(error_of(&Cause::HarnessFailed.into())) }
            })
        })
    }
}

impl Handler {
    /// Runs a call in a task of its own and answers with what comes of it. Dropping this future, or the answer's body,
    /// cancels the call; its task still ends it properly.
    pub(crate) async fn call<F>(
        &self,
        asked: Asked,
        run: impl FnOnce(Stages, Watcher, CancellationToken) -> F,
    ) -> Response<Pieces>
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        let Asked { id, accepts, phase } = asked;
        let cancel = self.session.over().child_token();
        let guard = cancel.clone().drop_guard();
        let (watcher, events) = if accepts.events {
            let (watcher, events) = Watcher::listening();
            (watcher, Some(events))
        } else {
            (Watcher::silent(), None)
        };
        let call = run(self.edge.stages.clone(), watcher.waiting_for_person(accepts.waits), cancel);
        let session = Arc::clone(&self.session);
        let mut running = Running(self.edge.tasks.spawn(async move {
            let reply = call.await;
            Ended {
                admitted: reply.was_admitted(),
                answer: reply.into_answer().map_err(|refusal| error_of(&refusal)).and_then(|it| held(&session, it)),
            }
        }));
        let Some(mut events) = events else { return one_body(id.as_deref(), running.await.answer) };
        let every = self.edge.limits.heartbeat_time.max(LEAST_HEARTBEAT);
        let first = tokio::select! {
            biased;
            Some(event) = events.recv() => First::Event(event),
            ended = &mut running => {
                if accepts.json || !ended.admitted {
                    return one_body(id.as_deref(), ended.answer);
                }
                First::End(ended.answer)
            }
            () = sleep(every) => First::Silence,
        };
        body::stream(Live::new(id, (running, guard), (first, events), phase, every))
    }
}

fn one_body(id: Option<&RawValue>, answer: Answer) -> Response<Pieces> {
    match answer {
        Ok(result) => body::result(id, result),
        Err(error) => body::error(StatusCode::OK, id, &error),
    }
}

/// Counts what an answer holds for its session: one that does not read its answers cannot take them all.
fn held(session: &Session, mut answer: RawResult) -> Answer {
    if let Some(held) = answer.held.take() {
        let no_room = |_| error_of(&Cause::AnswersUnread.into());
        answer.held = Some(session.bytes().hold(held).map_err(no_room)?);
    }
    Ok(answer)
}
