//! The answer to a call: one body, or server-sent events, made while they are sent.
//!
//! Which of the two is decided once there is something to say. A refusal before the call was admitted is always one
//! body, and so is an answer that came before any event to a client that takes both. Otherwise the head leaves with the
//! first event, the first sign of life or the result, and cannot be taken back.
//!
//! States of a stream: running, then ended (the reply is there; the events that came before it go first), then over.
//! Dropping it in any state before the last cancels the call, since hyper drops it when the client leaves.
//!
//! Events are taken when the reader has room for them. Those that it has none for are lost; the result waits.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures::{future::BoxFuture, stream::BoxStream};
use http::Response;
use serde_json::value::RawValue;
use tokio::{
    sync::mpsc,
    time::{Instant, Sleep, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    calls::{EndedCall, RunningCall},
    detach_on_drop::DetachOnDrop,
    dialect::{Answer, Encoder},
    http::{
        accept::Accepts,
        response::{self, Next, Pieces, Source},
        stream::Phase,
    },
};
use footbridge_calls::{events::CallEvent, provider::RawResult};
use footbridge_core::budget::Held;

/// Whatever the settings say: a stream of signs of life only is no stream.
pub(crate) const LEAST_HEARTBEAT: Duration = Duration::from_millis(50);

/// Who waits for a call, and how it wants its answer.
pub(crate) struct Client {
    pub(crate) encoder: Box<dyn Encoder>,
    pub(crate) accepts: Accepts,
    pub(crate) phase: Phase,
    /// How long a stream may be quiet.
    pub(crate) heartbeat: Duration,
}

/// The answer to a call. Dropping this future, or the answer's body, cancels the call.
pub(crate) async fn answer(call: RunningCall, client: Client) -> Response<Pieces> {
    let RunningCall { mut call, events, cancel } = call;
    let Client { mut encoder, accepts, phase, heartbeat } = client;
    let Some(mut events) = events else { return whole(&*encoder, call.await.answer) };
    let every = heartbeat.max(LEAST_HEARTBEAT);
    let (first, state) = tokio::select! {
        biased;
        Some(event) = next_event(&mut events, &mut *encoder) => (Some(event), State::Running(call.detached())),
        ended = &mut call => {
            // What it told in the same turn came before.
            let first = told_event(&mut events, &mut *encoder);
            if first.is_none() && (accepts.json || !ended.admitted) {
                return whole(&*encoder, ended.answer);
            }
            // A provider may have kept its end; what it told before is still taken out.
            events.close();
            (first, State::Ended(ended.answer))
        }
        () = sleep(every) => (Some(encoder.heartbeat()), State::Running(call.detached())),
    };
    let heartbeat = Box::pin(sleep(every));
    response::events(EventStream { encoder, events, first, state, heartbeat, every, phase, _cancel: cancel })
}

/// The next event that is one for this client; none where there are no more.
async fn next_event(events: &mut mpsc::Receiver<Box<CallEvent>>, encoder: &mut dyn Encoder) -> Option<Bytes> {
    while let Some(event) = events.recv().await {
        if let Some(event) = encoder.event(&event) {
            return Some(event);
        }
    }
    None
}

/// The same of those that are there already.
fn told_event(events: &mut mpsc::Receiver<Box<CallEvent>>, encoder: &mut dyn Encoder) -> Option<Bytes> {
    std::iter::from_fn(|| events.try_recv().ok()).find_map(|event| encoder.event(&event))
}

/// A stream that is no call's, until it ends or one of these does.
pub(crate) fn stream(
    events: BoxStream<'static, Bytes>,
    ends: Vec<CancellationToken>,
    client: Client,
) -> Response<Pieces> {
    let every = client.heartbeat.max(LEAST_HEARTBEAT);
    let (encoder, phase, heartbeat) = (client.encoder, client.phase, Box::pin(sleep(every)));
    let over = Box::pin(async move {
        futures::future::select_all(ends.iter().map(|end| Box::pin(end.cancelled()))).await;
    });
    response::events(OpenStream { encoder, events, over, heartbeat, every, phase })
}

/// A stream of what happens.
struct OpenStream {
    encoder: Box<dyn Encoder>,
    events: BoxStream<'static, Bytes>,
    over: BoxFuture<'static, ()>,
    heartbeat: Pin<Box<Sleep>>,
    every: Duration,
    phase: Phase,
}

impl Source for OpenStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Next>> {
        if self.over.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        let piece = match self.events.as_mut().poll_next(cx) {
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(piece)) => piece,
            Poll::Pending => {
                ready!(self.heartbeat.as_mut().poll(cx));
                self.encoder.heartbeat()
            }
        };
        self.phase.answer_begins();
        self.heartbeat.as_mut().reset(Instant::now() + self.every);
        Poll::Ready(Some(Next::Piece(piece)))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.phase.answered();
    }
}

/// An answer in one body. What it holds is given back once it is written.
pub(crate) fn whole(encoder: &dyn Encoder, answer: Answer) -> Response<Pieces> {
    let mut held = None;
    let mut response = encoder.whole(answer.map(|result| taken(result, &mut held)));
    response.body_mut().hold(held);
    response
}

fn taken(result: RawResult, held: &mut Option<Held>) -> Box<RawValue> {
    *held = result.held;
    result.text
}

/// A stream of events of one call.
struct EventStream {
    encoder: Box<dyn Encoder>,
    events: mpsc::Receiver<Box<CallEvent>>,
    /// What was taken from `events` or known before there was a stream.
    first: Option<Bytes>,
    state: State,
    heartbeat: Pin<Box<Sleep>>,
    every: Duration,
    phase: Phase,
    _cancel: DropGuard,
}

enum State {
    Running(DetachOnDrop<EndedCall>),
    Ended(Answer),
    Over,
}

impl Source for EventStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Next>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(self.event(first)));
        }
        if let State::Running(call) = &mut self.state
            && let Poll::Ready(ended) = Pin::new(call).poll(cx)
        {
            self.state = State::Ended(ended.answer);
            // A provider may have kept its end, and nothing that it tells from now on may hold the answer up.
            self.events.close();
        }
        let told = loop {
            match self.events.poll_recv(cx) {
                Poll::Ready(Some(event)) => {
                    if let Some(event) = self.encoder.event(&event) {
                        return Poll::Ready(Some(self.event(event)));
                    }
                }
                told => break told,
            }
        };
        match told {
            // Closed, it is pending only for the sake of fairness, and will be asked again.
            Poll::Pending if matches!(self.state, State::Ended(_)) => return Poll::Pending,
            Poll::Ready(_) | Poll::Pending => {}
        }
        match std::mem::replace(&mut self.state, State::Over) {
            State::Ended(answer) => {
                self.phase.answer_begins();
                Poll::Ready(Some(Next::Last(self.last(answer))))
            }
            State::Over => Poll::Ready(None),
            running @ State::Running(_) => {
                self.state = running;
                ready!(self.heartbeat.as_mut().poll(cx));
                let heartbeat = self.encoder.heartbeat();
                Poll::Ready(Some(self.event(heartbeat)))
            }
        }
    }
}

impl EventStream {
    fn event(&mut self, text: Bytes) -> Next {
        self.phase.answer_begins();
        self.heartbeat.as_mut().reset(Instant::now() + self.every);
        Next::Piece(text)
    }

    fn last(&self, answer: Answer) -> Pieces {
        let mut held = None;
        let mut pieces = self.encoder.last_event(answer.map(|result| taken(result, &mut held)));
        pieces.hold(held);
        pieces
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.phase.answered();
    }
}
