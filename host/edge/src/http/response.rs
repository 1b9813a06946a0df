//! Answers: whole, or as a stream of events, without copying what a server wrote. It knows no dialect.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use hyper::body::{Body, Frame, SizeHint};

use super::refusal::Refusal;
use footbridge_core::budget::Held;

/// An answer's body: pieces that go out one after the other.
#[derive(Default)]
pub(crate) struct Pieces {
    pieces: VecDeque<Bytes>,
    /// What gives more pieces.
    source: Option<Box<dyn Source>>,
    /// Given back to the budget when the answer is written, or its connection is gone.
    held: Option<Held>,
}

/// What gives the pieces of an answer while it is sent. It is dropped when the client leaves.
pub(crate) trait Source: Send {
    /// What comes next; nothing at the end. Not to be asked again after the end, or the last.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Next>>;
}

/// What comes next in an answer.
pub(crate) enum Next {
    /// A piece.
    Piece(Bytes),
    /// All that is left.
    Last(Pieces),
    /// What comes behind the body.
    Trailers(HeaderMap),
    /// It ends before its end: its connection is cut, so that nobody takes it for whole.
    Broken,
}

/// An answer that ends before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer broke off")]
pub(crate) struct BrokenOff;

impl Pieces {
    /// Whether more comes than is known now.
    pub(crate) fn is_live(&self) -> bool {
        self.source.is_some()
    }

    /// What is known of it now.
    pub(crate) fn into_known(self) -> impl Iterator<Item = Bytes> {
        self.pieces.into_iter()
    }

    /// Bytes that are held until this is written.
    pub(crate) fn hold(&mut self, held: Option<Held>) {
        self.held = held;
    }
}

impl<const N: usize> From<[Bytes; N]> for Pieces {
    fn from(pieces: [Bytes; N]) -> Self {
        Self { pieces: pieces.into(), ..Self::default() }
    }
}

impl From<String> for Pieces {
    fn from(text: String) -> Self {
        Self::from([Bytes::from(text)])
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.get_mut();
        if let (true, Some(source)) = (this.pieces.is_empty(), &mut this.source) {
            match ready!(source.poll_next(cx)) {
                Some(Next::Piece(piece)) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Some(Next::Last(pieces)) => *this = pieces,
                Some(Next::Trailers(all)) => return Poll::Ready(Some(Ok(Frame::trailers(all)))),
                Some(Next::Broken) => {
                    this.source = None;
                    return Poll::Ready(Some(Err(BrokenOff)));
                }
                None => this.source = None,
            }
        }
        Poll::Ready(this.pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.source.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_live() {
            return SizeHint::default();
        }
        SizeHint::with_exact(self.pieces.iter().map(|piece| piece.len() as u64).sum())
    }
}

/// An answer of a type.
pub(crate) fn typed(status: StatusCode, media_type: &'static str, pieces: Pieces) -> Response<Pieces> {
    let mut response = Response::new(pieces);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// A stream of server-sent events.
pub(crate) fn events(source: impl Source + 'static) -> Response<Pieces> {
    let mut response = typed(StatusCode::OK, "text/event-stream", live(source));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// An answer that comes as its source gives it.
pub(crate) fn live(source: impl Source + 'static) -> Pieces {
    Pieces { source: Some(Box::new(source)), ..Pieces::default() }
}

/// What is refused, in the shape of no dialect: `{"error": "..."}`.
pub(crate) fn refused(refusal: Refusal) -> Response<Pieces> {
    let text = serde_json::json!({ "error": refusal.message() }).to_string();
    typed(refusal.status(), "application/json", text.into())
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Pieces> {
    let mut response = Response::new(Pieces::default());
    *response.status_mut() = status;
    response
}
