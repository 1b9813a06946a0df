//! Bodies: collecting one within its limits, and sending one, whole or as a stream of events, without copying what a
//! server wrote.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use footbridge_proto::rpc::ErrorObject;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::{
    http::head::{Refusal, RefusalBody},
    live::{Answer, Live, Next},
};
use footbridge_calls::provider::RawResult;
use footbridge_calls::session::Session;
use footbridge_core::budget::Held;

/// What an early refusal reads of a body, so that the client gets its answer and not a reset.
const DRAIN_BYTES: usize = 1024 * 1024 + 64 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// An answer's body: pieces that go out one after the other.
#[derive(Default)]
pub(crate) struct Pieces {
    pieces: VecDeque<Bytes>,
    /// What gives more pieces.
    live: Option<Box<Live>>,
    /// Given back to the budget when the answer is written, or its connection is gone.
    held: Option<Held>,
}

impl Pieces {
    /// Whether more comes than is known now.
    pub(crate) fn is_live(&self) -> bool {
        self.live.is_some()
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if let (true, Some(live)) = (this.pieces.is_empty(), &mut this.live) {
            match ready!(live.poll_next(cx)) {
                Some(Next::Event(event)) => this.pieces.push_back(event),
                Some(Next::Result(id, answer)) => {
                    (this.pieces, this.held) = last_event(id.as_deref(), answer);
                    this.live = None;
                }
                None => this.live = None,
            }
        }
        Poll::Ready(this.pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.live.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_live() {
            return SizeHint::default();
        }
        SizeHint::with_exact(self.pieces.iter().map(|piece| piece.len() as u64).sum())
    }
}

/// A body that did not come as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadBody {
    TooLarge,
    TooSlow,
    Broken,
    /// Too many bytes are held for others.
    Busy,
}

/// Collects a body of known length.
pub(crate) async fn collect(length: Option<u64>, body: Incoming, session: &Session) -> Result<(Bytes, Held), BadBody> {
    let (budget, limits) = (&session.bytes(), &session.limits().edge);
    let length = length.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    if length > limits.body_bytes {
        drain(body).await;
        return Err(BadBody::TooLarge);
    }
    let Ok(held) = budget.take(length) else {
        drain(body).await;
        return Err(BadBody::Busy);
    };
    match timeout(limits.body_time, Limited::new(body, length).collect()).await {
        Err(_) => Err(BadBody::TooSlow),
        Ok(Err(_)) => Err(BadBody::Broken),
        Ok(Ok(collected)) => Ok((collected.to_bytes(), held)),
    }
}

/// Reads what is left of a body that is not wanted, up to a limit, and keeps none of it.
pub(crate) async fn drain(body: Incoming) {
    let mut body = Limited::new(body, DRAIN_BYTES);
    let all = async { while let Some(Ok(_)) = body.frame().await {} };
    // Whether it ended, was too long or too slow: the answer is the same.
    let _ = timeout(DRAIN_TIME, all).await;
}

fn json_response(status: StatusCode, body: Pieces) -> Response<Pieces> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn of_text(text: String) -> Pieces {
    Pieces { pieces: VecDeque::from([Bytes::from(text)]), ..Pieces::default() }
}

fn id_text(id: Option<&RawValue>) -> &str {
    id.map_or("null", RawValue::get)
}

/// The answer to a request that went well.
pub(crate) fn result(id: Option<&RawValue>, result: RawResult) -> Response<Pieces> {
    let RawResult { text, held } = result;
    let text: Box<str> = text.into();
    let pieces = of_result(id, text.into_boxed_bytes().into());
    json_response(StatusCode::OK, Pieces { pieces, held, live: None })
}

fn of_result(id: Option<&RawValue>, text: Vec<u8>) -> VecDeque<Bytes> {
    VecDeque::from([
        Bytes::from_static(br#"{"jsonrpc":"2.0","result":"#),
        Bytes::from(text),
        Bytes::from(format!(r#","id":{}}}"#, id_text(id))),
    ])
}

/// A stream of events, the last of which is the answer.
pub(crate) fn stream(live: Live) -> Response<Pieces> {
    let mut response = Response::new(Pieces { live: Some(Box::new(live)), ..Pieces::default() });
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The event that holds the answer. A line break in JSON is white space between two tokens, never part of a string, so
/// a blank in its place says the same, and the data stays one line.
fn last_event(id: Option<&RawValue>, answer: Answer) -> (VecDeque<Bytes>, Option<Held>) {
    let (mut pieces, held) = match answer {
        Ok(RawResult { text, held }) => {
            let text: Box<str> = text.into();
            let mut text: Vec<u8> = text.into_boxed_bytes().into();
            for byte in &mut text {
                if matches!(*byte, b'\n' | b'\r') {
                    *byte = b' ';
                }
            }
            (of_result(id, text), held)
        }
        Err(error) => (VecDeque::from([Bytes::from(error_text(id, &error))]), None),
    };
    pieces.push_front(Bytes::from_static(b"event: result\ndata: "));
    pieces.push_back(Bytes::from_static(b"\n\n"));
    (pieces, held)
}

/// The answer to a request that did not.
pub(crate) fn error(status: StatusCode, id: Option<&RawValue>, error: &ErrorObject) -> Response<Pieces> {
    json_response(status, of_text(error_text(id, error)))
}

fn error_text(id: Option<&RawValue>, error: &ErrorObject) -> String {
    let error = footbridge_proto::rpc::raw(error);
    format!(r#"{{"jsonrpc":"2.0","error":{},"id":{}}}"#, error.get(), id_text(id))
}

/// The answer to a head that is refused.
pub(crate) fn refusal(refusal: Refusal) -> Response<Pieces> {
    let mut response = match refusal.body {
        RefusalBody::Short(text) => {
            json_response(refusal.status, of_text(serde_json::json!({ "error": text }).to_string()))
        }
        RefusalBody::Rpc(object) => error(refusal.status, None, &object),
    };
    if refusal.close {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if refusal.status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Pieces> {
    let mut response = Response::new(Pieces::default());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_of_many_lines_is_one_line_of_the_same_meaning() {
        let text = "{\r\n  \"a\": \"x\\ny\",\n\t\"b\": [1.50,\r12345678901234567890]\n}";
        let result = RawResult { text: RawValue::from_string(text.to_owned()).unwrap(), held: None };
        let id = RawValue::from_string("7".to_owned()).unwrap();
        let (pieces, _) = last_event(Some(&id), Ok(result));
        let whole: Vec<u8> = pieces.into_iter().flatten().collect();
        assert_eq!(
            String::from_utf8(whole).unwrap(),
            "event: result\ndata: {\"jsonrpc\":\"2.0\",\"result\":{    \"a\": \"x\\ny\", \t\"b\": [1.50, 12345678901234567890] },\"id\":7}\n\n"
        );
        let error = ErrorObject::new(footbridge_proto::rpc::Reason::Busy, "a\nb");
        let (pieces, _) = last_event(None, Err(error));
        assert_eq!(pieces.into_iter().flatten().filter(|byte| *byte == b'\n').count(), 3);
    }
}
