//! What a dialect is: a way to write requests and answers. Everything between the two is shared.
//!
//! A dialect says which paths are its own, turns a head and a body into an [`Action`], and gives an [`Encoder`] that
//! writes what comes of it. It never runs a call, holds no connection and counts no bytes.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{future::BoxFuture, stream::BoxStream};
use http::{Method, Response, request::Parts};
use serde_json::value::RawValue;

use crate::{
    http::{head, refusal::Refusal, response, response::Pieces},
    kept_calls::{KeptCall, KeptCalls},
};
use footbridge_calls::{
    auth::Principal,
    call::{Checked, Stages},
    cause::Failure,
    events::{CallEvent, LogLevel},
    meta::CallMeta,
    provider::RawResult,
    request::CallRequest,
    session::Session,
};

/// A way to write requests and answers.
pub(crate) trait Dialect: Send + Sync + 'static {
    /// Whether requests of this path are its own.
    fn has_path(&self, path: &str) -> bool;

    /// Checks a method before the token.
    fn check_method(&self, method: &Method) -> Result<(), Refusal> {
        head::check_post(method)
    }

    /// The methods that there are, as `Allow` says them.
    fn methods(&self) -> &'static str {
        "POST"
    }

    /// Checks what a body is said to be, after the token.
    fn check_body(&self, head: &Parts) -> Result<(), Refusal> {
        head::check_json(&head.headers)
    }

    /// Reads a request. A large one is read beside the workers.
    fn read(&self, asked: Asked<'_>) -> ReadRequest;

    /// The answer to what is refused before it is read. Headers that go with a refusal are added to it.
    fn refuse(&self, refusal: Refusal) -> Response<Pieces> {
        response::refused(refusal)
    }
}

/// A request that came whole.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) head: &'a Parts,
    pub(crate) body: &'a Bytes,
    /// How deep its values may be nested.
    pub(crate) depth: usize,
    /// The session whose token was shown.
    pub(crate) session: &'a Arc<Session>,
}

/// What a request turned out to be.
pub(crate) enum ReadRequest {
    /// Nothing that needs more than its text.
    Answered(Response<Pieces>),
    /// The end of a call, if one of this key runs; the answer is the same if none does.
    Cancels(CallKey, Response<Pieces>),
    /// Something to do, and what writes the answer.
    Asked { action: Action, encoder: Box<dyn Encoder> },
}

/// What is to be done for a request.
pub(crate) enum Action {
    /// Something is looked up. It counts as a listing, and its bytes are held until they are read.
    LookUp(Lookup),
    /// What would be decided about a call.
    Check(CallRequest),
    /// A call; it is cancelled when its client leaves.
    Call(CallAction),
    /// A stream of whatever happens, for as long as its client reads it.
    Listen(Listen),
}

/// A call, and what its dialect knows of it.
pub(crate) struct CallAction {
    pub(crate) call: CallOf,
    /// What goes to the server besides, where that is said apart from the call.
    pub(crate) meta: Option<CallMeta>,
    /// What another request ends it by.
    pub(crate) key: Option<CallKey>,
    /// Whether its client hears that it waits for a person, where it takes events at all.
    pub(crate) hears_waiting: bool,
    /// The least that it wants to hear of logs, if anything.
    pub(crate) logs: Option<LogLevel>,
    /// Where it is kept for its client to ask for later, and that is the answer.
    pub(crate) kept: Option<Keep>,
}

/// How a call is kept.
pub(crate) struct Keep {
    pub(crate) calls: KeptCalls,
    /// Who may ask for it.
    pub(crate) client: Arc<str>,
    pub(crate) time: Duration,
    /// What is answered at once.
    pub(crate) told: fn(&KeptCall) -> Box<RawValue>,
}

/// What is called.
pub(crate) enum CallOf {
    /// As the request says it.
    Known(CallRequest),
    /// What is looked up first.
    Sought(FindCall),
}

impl CallAction {
    /// A call that ends with its client alone.
    pub(crate) fn of(call: CallRequest) -> Self {
        Self {
            call: CallOf::Known(call),
            meta: None,
            key: None,
            hears_waiting: true,
            logs: Some(LogLevel::Info),
            kept: None,
        }
    }
}

/// What a running call is known by to its client: the session's number, whatever tells clients of the session apart, and
/// the id of the request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CallKey {
    pub(crate) session: u64,
    pub(crate) client: Arc<str>,
    pub(crate) id: String,
}

/// Finds out which server a call is for. Where there is none it names what does not exist, so that the refusal is
/// recorded as any other.
pub(crate) type FindCall = Box<dyn FnOnce(Arc<Stages>, Principal) -> BoxFuture<'static, CallRequest> + Send>;

/// Begins a stream of events. It ends by itself, when its client leaves, or with the session or the harness.
pub(crate) type Listen = Box<dyn FnOnce(Arc<Stages>, Principal) -> BoxStream<'static, Bytes> + Send>;

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

    /// An event of a stream, if it is one for this client.
    fn event(&mut self, event: &CallEvent) -> Option<Bytes>;

    /// The event with the answer, which ends a stream.
    fn last_event(&self, answer: Found) -> Pieces;

    /// What keeps a stream alive: a comment, which clients skip.
    fn heartbeat(&self) -> Bytes {
        Bytes::from_static(b": still running\n\n")
    }
}
