//! A call's answer as server-sent events, made while it is sent.
//!
//! States: running, then ended (the reply is there; the events that came before it go first), then over. Dropping it
//! in any state before the last cancels the call, since hyper drops it when the client leaves.
//!
//! Events are taken when the reader has room for them. Those that it has none for are lost; the result waits.

use std::{
    fmt::Write as _,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use footbridge_proto::rpc::ErrorObject;
use serde_json::{Number, Value, json, value::RawValue};
use tokio::{
    sync::mpsc,
    time::{Instant, Sleep, sleep},
};
use tokio_util::sync::DropGuard;

use crate::{calls::Running, http::stream::Phase};
use footbridge_calls::{events::CallEvent, provider::RawResult};

/// What keeps a stream alive: a comment, which clients skip.
const HEARTBEAT: &[u8] = b": still running\n\n";

/// The end of a call.
pub(crate) type Answer = Result<RawResult, ErrorObject>;

/// What a stream says next.
pub(crate) enum Next {
    /// An event, or a sign of life.
    Event(Bytes),
    /// The last event: the answer to the request of this id.
    Result(Option<Box<RawValue>>, Answer),
}

/// A stream of events of one call.
pub(crate) struct Live {
    id: Option<Box<RawValue>>,
    events: mpsc::Receiver<CallEvent>,
    /// What was taken from `events` or known before there was a stream.
    first: Option<Bytes>,
    state: State,
    heartbeat: Pin<Box<Sleep>>,
    every: Duration,
    phase: Phase,
    _cancel: DropGuard,
}

enum State {
    Running(Running),
    Ended(Answer),
    Over,
}

/// What a stream begins with.
pub(crate) enum First {
    Event(CallEvent),
    Silence,
    End(Answer),
}

impl Live {
    /// A stream over a call that runs, or has just ended.
    pub(crate) fn new(
        id: Option<Box<RawValue>>,
        (running, cancel): (Running, DropGuard),
        (first, events): (First, mpsc::Receiver<CallEvent>),
        phase: Phase,
        every: Duration,
    ) -> Self {
        let (first, state) = match first {
            First::Event(event) => (Some(text_of(&event)), State::Running(running)),
            First::Silence => (Some(Bytes::from_static(HEARTBEAT)), State::Running(running)),
            First::End(answer) => (None, State::Ended(answer)),
        };
        Self { id, events, first, state, heartbeat: Box::pin(sleep(every)), every, phase, _cancel: cancel }
    }

    /// What comes next. Not to be asked again after the result.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Next>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(self.event(first)));
        }
        if let State::Running(running) = &mut self.state
            && let Poll::Ready(ended) = Pin::new(running).poll(cx)
        {
            self.state = State::Ended(ended.answer);
            // A provider may have kept its end, and nothing that it tells from now on may hold the answer up.
            self.events.close();
        }
        match self.events.poll_recv(cx) {
            Poll::Ready(Some(event)) => return Poll::Ready(Some(self.event(text_of(&event)))),
            // Closed, it is pending only for the sake of fairness, and will be asked again.
            Poll::Pending if matches!(self.state, State::Ended(_)) => return Poll::Pending,
            Poll::Ready(None) | Poll::Pending => {}
        }
        match std::mem::replace(&mut self.state, State::Over) {
            State::Ended(answer) => {
                self.phase.answer_begins();
                Poll::Ready(Some(Next::Result(self.id.take(), answer)))
            }
            State::Over => Poll::Ready(None),
            running @ State::Running(_) => {
                self.state = running;
                ready!(self.heartbeat.as_mut().poll(cx));
                Poll::Ready(Some(self.event(Bytes::from_static(HEARTBEAT))))
            }
        }
    }

    fn event(&mut self, text: Bytes) -> Next {
        self.phase.answer_begins();
        self.heartbeat.as_mut().reset(Instant::now() + self.every);
        Next::Event(text)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.phase.answered();
    }
}

/// An event as it goes out. JSON has no raw line breaks, so its data is one line.
fn text_of(event: &CallEvent) -> Bytes {
    let (name, data) = match event {
        CallEvent::Progress { progress, total, message } => (
            "progress",
            members([
                ("progress", Some(number(*progress))),
                ("total", total.map(number)),
                ("message", message.as_deref().map(Value::from)),
            ]),
        ),
        CallEvent::Log { level, message } => ("log", json!({"level": level.as_str(), "message": message})),
        CallEvent::Approval(event) => {
            let data = [
                ("id", Some(Value::from(event.id.as_str()))),
                ("state", Some(event.state.into())),
                ("expiresAt", event.expires_at.as_deref().map(Value::from)),
                ("summary", Some(event.summary.as_str().into())),
            ];
            ("approval", members(data))
        }
    };
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(text, "event: {name}\ndata: {data}\n\n");
    text.into()
}

fn members<const N: usize>(all: [(&str, Option<Value>); N]) -> Value {
    all.into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// A number as a person would write it: 3, not 3.0.
fn number(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
    if value.fract() == 0.0 && value.abs() < EXACT {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use footbridge_calls::events::{ApprovalEvent, LogLevel};

    #[test]
    fn events_are_one_line_of_json_whatever_is_in_them() {
        let text = |event| String::from_utf8(text_of(&event).to_vec()).unwrap();
        assert_eq!(
            text(CallEvent::Progress {
                progress: 1.0,
                total: Some(2.5),
                message: Some("a\r\n\ndata: x\u{2028}".into())
            }),
            "event: progress\ndata: {\"progress\":1,\"total\":2.5,\"message\":\"a\\r\\n\\ndata: x\u{2028}\"}\n\n"
        );
        assert_eq!(text(CallEvent::progress(1e300, None, None)), "event: progress\ndata: {\"progress\":1e+300}\n\n");
        assert_eq!(
            text(CallEvent::Log { level: LogLevel::Warning, message: "odd".into() }),
            "event: log\ndata: {\"level\":\"warning\",\"message\":\"odd\"}\n\n"
        );
        let event = ApprovalEvent {
            id: "a1".into(),
            state: "pending",
            expires_at: Some("2026-11-22T13:43:52Z".into()),
            summary: "s/t".into(),
        };
        assert_eq!(
            text(CallEvent::Approval(event)),
            "event: approval\ndata: {\"id\":\"a1\",\"state\":\"pending\",\"expiresAt\":\"2026-11-22T13:43:52Z\",\"summary\":\"s/t\"}\n\n"
        );
    }
}
