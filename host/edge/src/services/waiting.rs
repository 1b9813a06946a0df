//! What a client hears while a person is asked about its request: nothing, or, where it takes a stream of events,
//! comments, so that its time limit does not end what it waits for.
//!
//! The head leaves with the first comment, so what comes then is told in the stream: the events of the answer, or an
//! event that says why there are none. Until then nothing is different from any other request.
//!
//! States: asking, then passing (the answer is a stream of events), or reading (it is anything else, and becomes one
//! event) and, where it is long JSON, telling (that event goes on), then over. Dropped, its client left, and the request ends.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use footbridge_calls::cause::Failure;
use footbridge_services::{Behind, ErrorShape, ServiceAnswer};
use http::{HeaderMap, StatusCode, header};
use tokio::{
    sync::oneshot,
    time::{Instant, Sleep, sleep},
};

use super::errors;
use crate::{
    detach_on_drop::DetachOnDrop,
    http::{
        response::{Next, Source},
        stream::Phase,
    },
};

/// What is read of an answer that is no stream of events before it is told, bytes; of one that is no JSON this is all.
const TOLD: usize = 64 * 1024;

/// A request that is carried out.
pub(super) type RunningRequest = DetachOnDrop<Result<ServiceAnswer, Failure>>;

/// Whether a client says that it takes events.
pub(super) fn accepts_events(headers: &HeaderMap) -> bool {
    let names = |value: &str| value.split(',').any(|one| is_of(one, "text/event-stream"));
    headers.get_all(header::ACCEPT).iter().any(|value| value.to_str().is_ok_and(names))
}

/// Whether this names a media type.
fn is_of(value: &str, media: &str) -> bool {
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media)
}

/// JSON in one line: what breaks one stands between its values alone.
fn in_one_line(data: &[u8]) -> Bytes {
    data.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect::<Vec<u8>>().into()
}

/// Ends once a person has been asked for so long; with the id of what is asked.
pub(super) async fn asked_for_long(question: oneshot::Receiver<String>, time: Duration) -> String {
    let Ok(id) = question.await else { return std::future::pending().await };
    sleep(time).await;
    id
}

/// How the client of a request is told of things.
pub(super) struct Telling {
    pub(super) shape: ErrorShape,
    pub(super) phase: Phase,
    pub(super) behind: Behind,
}

/// An answer that has begun: its status, its headers, and its body as it comes.
pub(super) type Begun = (StatusCode, HeaderMap, Box<dyn Source>);

/// The answer to a request while a person is asked about it, and after that.
pub(super) struct Waiting {
    state: State,
    comment: Bytes,
    heartbeat: Pin<Box<Sleep>>,
    every: Duration,
    shape: ErrorShape,
    phase: Phase,
    /// Until there is an answer, which has it then.
    behind: Option<Behind>,
    begin: fn(ServiceAnswer, Telling) -> Option<Begun>,
}

enum State {
    Asking(RunningRequest),
    Passing(Box<dyn Source>),
    Reading(Reading),
    Telling(Box<dyn Source>),
    Over,
}

/// An answer that is no stream of events, as far as it was read.
struct Reading {
    body: Box<dyn Source>,
    status: StatusCode,
    is_json: bool,
    read: Vec<u8>,
}

impl Reading {
    fn begins_an_object(&self, next: &[u8]) -> bool {
        let first = |bytes: &[u8]| bytes.trim_ascii_start().first().copied();
        first(&self.read).or_else(|| first(next)) == Some(b'{')
    }

    /// What is told once this came, and what comes then; nothing where that is too early.
    fn comes(&mut self, next: Option<Next>, shape: ErrorShape) -> Option<(Next, State)> {
        let is_whole = match next {
            Some(Next::Piece(data)) if self.read.len() + data.len() <= TOLD => {
                self.read.extend_from_slice(&data);
                return None;
            }
            Some(Next::Trailers(_)) => return None,
            Some(Next::Broken) => return Some((Next::Broken, State::Over)),
            Some(Next::Piece(data)) if self.is_json && self.begins_an_object(&data) => {
                let begins = errors::answered_event_begins(self.status).as_bytes();
                let body = std::mem::replace(&mut self.body, Box::new(Nothing));
                let told = [begins, &in_one_line(&self.read), &in_one_line(&data)].concat();
                return Some((Next::Piece(told.into()), State::Telling(body)));
            }
            Some(Next::Piece(data)) => {
                let room = TOLD - self.read.len();
                self.read.extend_from_slice(data.get(..room).unwrap_or(&data));
                false
            }
            Some(Next::Last(_)) | None => true,
        };
        Some((Next::Piece(errors::answered_event(shape, self.status, &self.read, is_whole)), State::Over))
    }
}

/// No body.
struct Nothing;

impl Source for Nothing {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Next>> {
        Poll::Ready(None)
    }
}

impl Waiting {
    /// The first comment leaves at once.
    pub(super) fn new(
        request: RunningRequest,
        asked: &str,
        every: Duration,
        telling: Telling,
        begin: fn(ServiceAnswer, Telling) -> Option<Begun>,
    ) -> Self {
        let Telling { shape, phase, behind } = telling;
        let comment = format!(": waits for a person (approval {asked})\n\n").into();
        let heartbeat = Box::pin(sleep(Duration::ZERO));
        Self {
            state: State::Asking(request.detached()),
            comment,
            heartbeat,
            every,
            shape,
            phase,
            behind: Some(behind),
            begin,
        }
    }

    fn poll_asking(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let State::Asking(request) = &mut self.state else { return Poll::Ready(None) };
        match Pin::new(request).poll(cx) {
            Poll::Ready(Ok(answer)) => {
                self.state = self.answered(answer);
                Poll::Ready(None)
            }
            Poll::Ready(Err(failure)) => {
                self.state = State::Over;
                Poll::Ready(Some(errors::failed_event(self.shape, &failure)))
            }
            Poll::Pending => {
                ready!(self.heartbeat.as_mut().poll(cx));
                self.heartbeat.as_mut().reset(Instant::now() + self.every);
                Poll::Ready(Some(self.comment.clone()))
            }
        }
    }

    fn answered(&mut self, answer: ServiceAnswer) -> State {
        let Some(behind) = self.behind.take() else { return State::Over };
        let telling = Telling { shape: self.shape, phase: self.phase.clone(), behind };
        let Some((status, headers, body)) = (self.begin)(answer, telling) else { return State::Over };
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if status.is_success() && is_of(kind, "text/event-stream") {
            return State::Passing(body);
        }
        let is_json = is_of(kind, "application/json") && !headers.contains_key(header::CONTENT_ENCODING);
        State::Reading(Reading { body, status, is_json, read: Vec::new() })
    }
}

impl Source for Waiting {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Next>> {
        loop {
            let piece = match &mut self.state {
                State::Asking(_) => match ready!(self.poll_asking(cx)) {
                    Some(piece) => piece,
                    None => continue,
                },
                State::Passing(body) => return body.poll_next(cx),
                State::Reading(reading) => {
                    let next = ready!(reading.body.poll_next(cx));
                    let Some((told, state)) = reading.comes(next, self.shape) else { continue };
                    self.state = state;
                    match told {
                        Next::Piece(piece) => piece,
                        other => return Poll::Ready(Some(other)),
                    }
                }
                State::Telling(body) => match ready!(body.poll_next(cx)) {
                    Some(Next::Piece(data)) => in_one_line(&data),
                    Some(Next::Trailers(_)) => continue,
                    Some(Next::Broken) => return Poll::Ready(Some(Next::Broken)),
                    Some(Next::Last(_)) | None => {
                        self.state = State::Over;
                        Bytes::from_static(b"\n\n")
                    }
                },
                State::Over => return Poll::Ready(None),
            };
            self.phase.answer_begins();
            return Poll::Ready(Some(Next::Piece(piece)));
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.phase.answered();
    }
}

#[cfg(test)]
mod tests {
    use footbridge_calls::cause::Cause;
    use tokio::{sync::oneshot, time::timeout};
    use tokio_util::{sync::CancellationToken, task::TaskTracker};

    use super::*;

    #[tokio::test]
    async fn a_request_that_waits_goes_on_though_its_client_reads_nothing() {
        let (tasks, (go, begun), (ends, ended)) = (TaskTracker::new(), oneshot::channel::<()>(), oneshot::channel());
        let work = async move {
            begun.await.unwrap();
            ends.send(()).unwrap();
            Err(Cause::HarnessFailed.into())
        };
        let running = RunningRequest::new(&tasks, work, || Err(Cause::HarnessFailed.into()));
        let cancel = CancellationToken::new();
        let behind = Behind { guard: cancel.clone().drop_guard(), cancel, tasks: tasks.clone() };
        let telling = Telling { shape: ErrorShape::default(), phase: Phase::default(), behind };
        let _unread = Waiting::new(running, "ap-1", Duration::from_secs(1), telling, |_, _| None);
        go.send(()).unwrap();
        timeout(Duration::from_secs(20), ended).await.expect("it waits for its client").unwrap();
    }
}
