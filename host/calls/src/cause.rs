//! Why a call is not answered with a result: causes with their data. What a guest reads is worded where it is answered,
//! in the dialect that it speaks.

use std::borrow::Cow;

use footbridge_core::{catalogue::ListKind, gate::Decision, names::ServerName, schema::Violation, service::TUNNELS};
use footbridge_proto::rpc::Reason;

pub use crate::session::BudgetOf;
use crate::{provider::NoAnswer, session::OverLimit};

/// A call that is refused or failed: why, and what it can be asked about by.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Why.
    pub cause: Box<Cause>,
    /// The approval that it waited for, or used.
    pub approval: Option<String>,
    /// The record of it.
    pub record: Option<String>,
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        Self { cause: Box::new(cause), approval: None, record: None }
    }
}

impl Failure {
    /// The same, and the record of it.
    #[must_use]
    pub(crate) fn recorded(self, id: impl Into<String>) -> Self {
        Self { record: Some(id.into()), ..self }
    }
}

/// Why there is no result. Names of guests are as they wrote them, however long.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// The session sees no such server.
    UnknownServer {
        /// What was asked for.
        server: String,
        /// What it sees.
        known: Vec<ServerName>,
    },
    /// The session sees no such tool.
    UnknownTool {
        /// The server.
        server: ServerName,
        /// What was asked for.
        tool: String,
        /// What it sees: the first hundred.
        discovered: Vec<String>,
    },
    /// The session sees no such prompt.
    UnknownPrompt {
        /// The server.
        server: ServerName,
        /// What was asked for.
        prompt: String,
        /// What it sees: the first hundred.
        discovered: Vec<String>,
    },
    /// The session sees no such resource, or its server has none.
    UnknownResource {
        /// The server.
        server: ServerName,
        /// What was asked for.
        uri: String,
    },
    /// The session has no such service.
    UnknownService {
        /// What was asked for.
        service: String,
        /// Method and path.
        request: String,
        /// What it has.
        known: Vec<ServerName>,
        /// Whether it has one of this name that is not configured any more.
        is_gone: bool,
    },
    /// The service does not take such a request.
    RequestNotAllowed {
        /// The service.
        service: ServerName,
        /// Method and path.
        request: String,
        /// Whether it does, and the policy hides it: that is for the record alone.
        is_hidden: bool,
    },
    /// The service takes no WebSockets.
    NoWebSockets {
        /// The service.
        service: ServerName,
    },
    /// The body of a request to a service is over a limit.
    BodyTooLarge {
        /// The limit, bytes.
        limit: usize,
        /// Whether it is that of bodies that a person is asked about.
        asked: bool,
    },
    /// The head of a request to a service can be read in two ways, or would leak.
    BadHead {
        /// Which, in the words of whoever read it, and in none of the guest's.
        why: String,
    },
    /// The body of a request to a service did not come whole, or not in time.
    BodyBroken,
    /// The tool is not what was pinned.
    NotAsPinned {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: String,
    },
    /// The tool, the service or the policy changed while a person was asked.
    ChangedWhileAsked,
    /// The tool or the service changed after the call was admitted.
    ChangedOnTheWay,
    /// The server did not list what it has.
    NotListed {
        /// The server.
        server: ServerName,
        /// What was to be listed.
        kind: ListKind,
        /// Why.
        why: String,
    },
    /// The server does not run; the text is its provider's.
    Unavailable(String),
    /// The server says that it has not processed it, and will not, or was not reached for now: it may be made again. The
    /// text is its provider's.
    NotProcessed(String),
    /// The arguments of a tool do not fit.
    Arguments {
        /// The server.
        server: ServerName,
        /// The tool or prompt.
        name: String,
        /// Why.
        why: BadArguments,
    },
    /// The arguments of a prompt do not fit.
    PromptArguments {
        /// The server.
        server: ServerName,
        /// The prompt.
        prompt: String,
        /// Why.
        why: BadPromptArguments,
    },
    /// What is to be completed is not said as it must be.
    CompletionArguments {
        /// The server.
        server: ServerName,
        /// What it is about.
        name: String,
    },
    /// The tool's own schema cannot be used.
    InvalidSchema {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: String,
        /// Why.
        why: String,
    },
    /// Something failed here.
    Internal(Broken),
    /// The client left before anything was sent.
    Cancelled,
    /// The session ended, or its token or policy was replaced, before anything was sent.
    SessionReplaced,
    /// The session has as many calls as it may.
    OverLimit(OverLimit),
    /// Too many bytes are held at once.
    BytesHeld,
    /// The machine has no thread for it at the moment.
    NoThread,
    /// So many calls of the session wait for a person already.
    ApprovalsPending(usize),
    /// The policy denies it; or it asks, and nobody can be asked.
    Policy {
        /// The server.
        server: ServerName,
        /// The kind of what is called, in the record's word.
        kind: &'static str,
        /// Its name or URI.
        name: String,
        /// What the policy says.
        decision: Decision,
        /// What decided, where guests may know.
        by: Option<DecidedBy>,
    },
    /// The same was denied a moment ago, and nobody is asked for so many seconds.
    DeniedBefore {
        /// Seconds.
        seconds: u64,
    },
    /// Whoever was asked said no.
    DeniedByPerson,
    /// Nobody allowed it in time.
    ApprovalExpired,
    /// Whoever was to be asked gave no answer that counts.
    NoUsableAnswer,
    /// It waits for a person longer than its client.
    ApprovalRequired {
        /// Until when, RFC 3339.
        until: String,
        /// How long a grant may be used then.
        grant_time: std::time::Duration,
    },
    /// It cannot be recorded, and was not made.
    NotRecorded,
    /// The use of its approval cannot be recorded, and it was not made.
    GrantNotRecorded,
    /// The session's budget does not cover it.
    BudgetSpent(BudgetOf),
    /// It was made, and its result is more than is left of the session's budget.
    KeptBack,
    /// The server answered with an error.
    ServerError {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
    },
    /// The server answered with more than a guest may get.
    ResultTooLarge {
        /// The server.
        server: ServerName,
        /// The limit, bytes.
        limit: usize,
        /// Its name.
        setting: &'static str,
    },
    /// The server has as many calls as it may.
    ServerBusy(ServerName),
    /// The server says that it is asked too often, and did nothing.
    Throttled {
        /// The server.
        server: ServerName,
        /// For how long to wait, if it says that.
        retry_after: Option<std::time::Duration>,
    },
    /// It was sent, and no usable answer came.
    NoAnswer {
        /// The server.
        server: ServerName,
        /// Why.
        why: NoAnswer,
    },
    /// It was made, and what became of it cannot be recorded.
    OutcomeNotRecorded,
    /// It was made, and there is no room for its answer: those of its session are unread.
    AnswersUnread,
    /// The task that ran it failed.
    HarnessFailed,
}

/// What of a tool's arguments does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadArguments {
    /// They are no object.
    NotAnObject,
    /// They are nested deeper than this.
    TooDeep(usize),
    /// A number would not keep its value.
    Inexact(String),
    /// They break the tool's schema.
    Violations(Vec<Violation>),
    /// Checking them would cost too much.
    TooCostly,
    /// There is never room for so many bytes.
    TooLarge,
}

/// What of a prompt's arguments does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadPromptArguments {
    /// They are no object of strings.
    NotStrings,
    /// The prompt has no such argument.
    Unknown {
        /// What was given.
        name: String,
        /// What it takes.
        takes: Vec<String>,
    },
    /// These are missing.
    Missing(Vec<String>),
}

/// What failed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// Reading the arguments.
    Reading,
    /// Looking something up in what servers offer.
    LookingUp,
    /// Writing the arguments.
    Writing,
    /// Handing on the result.
    Result,
    /// The system's random bytes.
    Randomness,
}

/// What decided about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidedBy {
    /// The policy's name.
    pub policy: String,
    /// The rule's id; none where no rule matched.
    pub rule: Option<String>,
}

impl Cause {
    /// What a record says of it besides its word: short, and in no words of a guest or a server.
    pub(crate) fn detail(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(match self {
            Self::UnknownService { is_gone: true, .. } => "the service is not configured any more",
            Self::UnknownService { .. } => "the session has no such service",
            Self::RequestNotAllowed { is_hidden: true, .. } => "hidden by the policy",
            Self::RequestNotAllowed { service, .. } if service.as_str() == TUNNELS => {
                "not among the hosts of [tunnels]"
            }
            Self::RequestNotAllowed { .. } => "not among the requests of the service",
            Self::NoWebSockets { .. } => "the service takes no WebSockets",
            Self::BodyTooLarge { limit, asked } => {
                let setting = if *asked { "services.asked_bytes" } else { "services.request_bytes" };
                return Some(Cow::Owned(format!("over {limit} bytes ({setting})")));
            }
            Self::BodyBroken => "the body did not arrive whole",
            Self::BadHead { why } => why,
            Self::NoUsableAnswer => "whoever was to be asked gave no usable answer",
            _ => return None,
        }))
    }

    /// The word for it, in records and for programs.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::UnknownServer { .. } | Self::UnknownService { .. } => Reason::UnknownServer,
            Self::RequestNotAllowed { .. } | Self::NoWebSockets { .. } => Reason::DeniedByPolicy,
            Self::BodyTooLarge { .. } => Reason::TooLarge,
            Self::BodyBroken | Self::BadHead { .. } => Reason::BadRequest,
            Self::UnknownTool { .. } => Reason::UnknownTool,
            Self::UnknownPrompt { .. } => Reason::UnknownPrompt,
            Self::UnknownResource { .. } => Reason::UnknownResource,
            Self::NotAsPinned { .. } | Self::ChangedWhileAsked | Self::ChangedOnTheWay => Reason::DefinitionChanged,
            Self::Unavailable(_) | Self::NotProcessed(_) => Reason::ServerUnavailable,
            Self::Arguments { why: BadArguments::TooLarge, .. } | Self::ResultTooLarge { .. } => Reason::TooLarge,
            Self::Arguments { .. } | Self::PromptArguments { .. } | Self::CompletionArguments { .. } => {
                Reason::InvalidArguments
            }
            Self::InvalidSchema { .. } => Reason::InvalidSchema,
            Self::Internal(_) => Reason::Internal,
            Self::Cancelled | Self::SessionReplaced => Reason::Cancelled,
            Self::OverLimit(over) => over.reason(),
            Self::BytesHeld
            | Self::NoThread
            | Self::ApprovalsPending(_)
            | Self::ServerBusy(_)
            | Self::Throttled { .. } => Reason::Busy,
            Self::Policy { .. } => Reason::DeniedByPolicy,
            Self::DeniedBefore { .. } | Self::DeniedByPerson => Reason::ApprovalDenied,
            Self::ApprovalExpired | Self::NoUsableAnswer => Reason::ApprovalExpired,
            Self::ApprovalRequired { .. } => Reason::ApprovalRequired,
            Self::NotRecorded | Self::GrantNotRecorded => Reason::AuditUnavailable,
            Self::BudgetSpent(_) | Self::KeptBack | Self::NoAnswer { why: NoAnswer::OverBudget(_), .. } => {
                Reason::BudgetSpent
            }
            Self::ServerError { .. } | Self::NotListed { .. } => Reason::ProviderError,
            Self::NoAnswer { .. } | Self::OutcomeNotRecorded | Self::AnswersUnread | Self::HarnessFailed => {
                Reason::OutcomeUnknown
            }
        }
    }
}
