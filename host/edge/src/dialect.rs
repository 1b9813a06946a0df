//! What a dialect is: a way to write requests and answers. Everything between the two is shared.
//!
//! A dialect says which paths are its own, turns a head and a body into an [`Action`], and gives an [`Encoder`] that
//! writes what comes of it. It never runs a call, holds no connection and counts no bytes.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Response, request::Parts};
use serde_json::value::RawValue;

use crate::http::{head, refusal::Refusal, response, response::Pieces};
use footbridge_calls::{
    auth::Principal,
    call::{Checked, Stages},
    cause::Failure,
    events::CallEvent,
    provider::RawResult,
    request::CallRequest,
};

/// A way to write requests and answers.
pub(crate) trait Dialect: Send + Sync + 'static {
    /// Whether requests of this path are its own.
    fn has_path(&self, path: &str) -> bool;

    /// Checks a method before the token.
    fn check_method(&self, method: &Method) -> Result<(), Refusal> {
        head::check_post(method)
    }

    /// Checks what a body is said to be, after the token.
    fn check_body(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        head::check_json(headers)
    }

    /// Reads a request, of values nested no deeper than `depth`. A large one is read beside the workers.
    fn read(&self, head: &Parts, body: &Bytes, depth: usize) -> ReadRequest;

    /// The answer to what is refused before it is read. Headers that go with a refusal are added to it.
    fn refuse(&self, refusal: Refusal) -> Response<Pieces> {
        response::refused(refusal)
    }
}

/// What a request turned out to be.
pub(crate) enum ReadRequest {
    /// Nothing that needs more than its text.
    Answered(Response<Pieces>),
    /// Something to do, and what writes the answer.
    Asked { action: Action, encoder: Box<dyn Encoder> },
}

/// What is to be done for a request.
pub(crate) enum Action {
    /// Something is looked up. It counts as a listing, and its bytes are held until they are read.
    LookUp(Lookup),
    /// What would be decided about a call.
    Check(CallRequest),
    /// A call, in a task of its own; it ends when its client leaves.
    Call(CallRequest),
}

/// Looks something up for whoever asks.
pub(crate) type Lookup = Box<dyn FnOnce(Arc<Stages>, Principal) -> BoxFuture<'static, Found> + Send>;

/// What was found.
pub(crate) type Found = Result<Box<RawValue>, Failure>;

/// What comes of an action.
pub(crate) type Answer = Result<RawResult, Failure>;

/// Writes what comes of one request, with what its answer repeats of it.
pub(crate) trait Encoder: Send + Sync {
    /// An answer in one body.
    fn whole(&self, answer: Found) -> Response<Pieces>;

    /// What would be decided about a call.
    fn checked(&self, checked: Checked) -> Box<RawValue>;

    /// An event of a stream.
    fn event(&self, event: &CallEvent) -> Bytes;

    /// The event with the answer, which ends a stream.
    fn last_event(&self, answer: Found) -> Pieces;

    /// What keeps a stream alive: a comment, which clients skip.
    fn heartbeat(&self) -> Bytes {
        Bytes::from_static(b": still running\n\n")
    }
}
