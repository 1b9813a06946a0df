//! What goes to a provider, and what became of it.

use std::{sync::Arc, time::Duration};

use footbridge_audit::ExchangeRecord;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use super::Elicit;
use crate::{
    meta::CallMeta,
    request::OutgoingRequest,
    session::{BudgetOf, Spending},
};
use footbridge_core::names::ServerName;
use footbridge_core::{budget::Held, limits::Limits};

/// A call on its way out. It comes out of an [`Admitted`](crate::admit::Admitted) and nowhere else, and using it uses it up.
#[derive(Debug)]
pub struct Outgoing {
    server: ServerName,
    request: OutgoingRequest,
    limits: Arc<Limits>,
    elicitor: Option<Arc<dyn Elicit>>,
    spending: Option<Spending>,
    meta: Option<CallMeta>,
    session: u64,
    looks: Option<Arc<Semaphore>>,
}

impl Outgoing {
    /// For `admit`, which makes admissions. The limits are those of the call's session.
    pub(crate) fn new(server: ServerName, request: OutgoingRequest, limits: Arc<Limits>) -> Self {
        Self { server, request, limits, elicitor: None, spending: None, meta: None, session: 0, looks: None }
    }

    /// How long the call may take, and how large its result may be.
    #[must_use]
    pub fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.limits)
    }

    /// Says who can be asked while the call runs.
    pub(crate) fn with_elicitor(self, elicitor: Arc<dyn Elicit>) -> Self {
        Self { elicitor: Some(elicitor), ..self }
    }

    /// Says whose it is.
    pub(crate) fn of_session(self, session: u64, looks: Arc<Semaphore>) -> Self {
        Self { session, looks: Some(looks), ..self }
    }

    /// The one turn that its session has at looking through what passes.
    #[must_use]
    pub fn looks(&self) -> Arc<Semaphore> {
        self.looks.clone().unwrap_or_else(|| Arc::new(Semaphore::new(1)))
    }

    /// The number of its session in this process, for what is kept apart by sessions.
    #[must_use]
    pub fn session(&self) -> u64 {
        self.session
    }

    /// Says what its guest says besides.
    pub(crate) fn with_meta(self, meta: Option<CallMeta>) -> Self {
        Self { meta, ..self }
    }

    /// What its guest says besides: `_meta` of MCP.
    #[must_use]
    pub fn meta(&self) -> Option<&CallMeta> {
        self.meta.as_ref()
    }

    /// All that a guest says with it.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.request.texts().chain(self.meta.iter().map(|meta| meta.text().get()))
    }

    /// Says what it spends of its session's budget while it runs.
    pub(crate) fn with_spending(self, spending: Option<Spending>) -> Self {
        Self { spending, ..self }
    }

    /// What it spends of its session's budget while it runs: of requests to services.
    #[must_use]
    pub fn spending(&self) -> Option<&Spending> {
        self.spending.as_ref()
    }

    /// Who can be asked while the call runs, if anybody.
    #[must_use]
    pub fn elicitor(&self) -> Option<&Arc<dyn Elicit>> {
        self.elicitor.as_ref()
    }

    /// The server it goes to.
    #[must_use]
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// What to send.
    #[must_use]
    pub fn request(&self) -> &OutgoingRequest {
        &self.request
    }

    /// Takes it apart, to send what is in it.
    #[must_use]
    pub fn into_parts(self) -> (ServerName, OutgoingRequest) {
        (self.server, self.request)
    }
}

/// What became of a call that was admitted.
#[derive(Debug)]
pub enum Outcome {
    /// The server answered; the result is as it wrote it, less the values of configured secrets.
    Result(RawResult),
    /// The server answered with a JSON-RPC error.
    ServerError {
        /// Its code.
        code: i64,
        /// Its message, less the values of configured secrets.
        message: String,
    },
    /// The server answered with more than a guest may get.
    TooLarge {
        /// The limit, bytes.
        limit: usize,
        /// Its name.
        setting: &'static str,
    },
    /// It left, and its server says by an HTTP status that it did nothing. Whether that is so nobody here knows.
    Declined(String),
    /// The same, since it has been asked too often; for how long to wait, if it says that.
    Throttled(Option<Duration>),
    /// It left, and its server says by the protocol that it has not processed it, and will not. The text is for the guest.
    Refused(String),
    /// Nothing left the harness.
    NotSent(NotSent),
    /// It left, and no usable answer came.
    Unknown(NoAnswer),
}

impl Outcome {
    /// For an answer that is over what its session may have.
    #[must_use]
    pub fn too_large(limit: usize) -> Self {
        Self::TooLarge { limit, setting: "calls.result_bytes" }
    }

    /// For a request of a kind that the server has nothing for.
    #[must_use]
    pub fn not_offered(server: &ServerName) -> Self {
        Self::NotSent(NotSent::Unavailable(format!("Server \"{server}\" does not offer this. Nothing was sent")))
    }
}

/// A request to a service that has no answer.
#[derive(Debug)]
pub struct Unanswered {
    /// What became of it.
    pub outcome: Outcome,
    /// What of its body went, where it was sent.
    pub passed: Option<Box<ExchangeRecord>>,
}

impl From<Outcome> for Unanswered {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, passed: None }
    }
}

/// A result as raw JSON, and the bytes it holds.
#[derive(Debug)]
pub struct RawResult {
    /// The text: a JSON object of MCP, such as `{"content": [...]}`.
    pub text: Box<RawValue>,
    /// Its part of the budget, where the provider took it; otherwise it is taken for it.
    pub held: Option<Held>,
}

/// Why a call did not leave.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// The server does not run. The text is for the guest: no path, no address.
    #[error("{0}")]
    Unavailable(String),
    /// There is no way to send it. The text is for the guest and for the record: nothing of it is a server's.
    #[error("{why}")]
    Unreached {
        /// Why.
        why: String,
        /// Whether that may be gone in a moment, so that the same may be tried again.
        may_pass: bool,
    },
    /// The tool or the service is not any more what the call was decided about.
    #[error("the tool or the service changed")]
    Changed,
    /// Too many calls at once.
    #[error("too many calls at once")]
    Busy,
    /// The client left first.
    #[error("cancelled before it was sent")]
    Cancelled,
}

/// Why there is no answer to what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The server ended, or its connection did.
    #[error("the server ended before it answered")]
    ServerGone,
    /// The total time ran out.
    #[error("the server did not answer in time")]
    Timeout,
    /// Neither answer nor progress within the idle time.
    #[error("the server said nothing for too long")]
    Silent,
    /// The client left; the server was told.
    #[error("cancelled")]
    Cancelled,
    /// What came is no answer: broken, too long, or not of the protocol.
    #[error("the server's answer cannot be used")]
    Unusable,
    /// More was sent than a request may have.
    #[error("the request's body is over the limit")]
    TooMuchSent,
    /// What passed, or was about to, is more than is left of the session's budget.
    #[error("over the session's budget")]
    OverBudget(BudgetOf),
    /// The body of the request broke off.
    #[error("the request's body broke off")]
    BodyBroken,
    /// More was held than may be.
    #[error("the answer did not fit into memory set aside for answers")]
    Busy,
}
