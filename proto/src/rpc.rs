//! The JSON-RPC 2.0 envelope, its error codes, and the machine-readable reasons that Footbridge adds.

mod envelope;

use serde::{Deserialize, Serialize};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

pub use envelope::{
    IncomingError, IncomingMessage, IncomingRequest, OutgoingAnswer, RESULT_START, Request, Response, error_answer,
    notification, result_end,
};

/// Error codes on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i64)]
pub enum ErrorCode {
    /// The body is not JSON.
    Parse = -32700,
    /// The body is no JSON-RPC request.
    InvalidRequest = -32600,
    /// No such method.
    MethodNotFound = -32601,
    /// Names or arguments are wrong.
    InvalidParams = -32602,
    /// The server failed, or something here did.
    Internal = -32603,
    /// Cancelled or timed out before anything was sent.
    NotSent = -32000,
    /// Policy or a person said no, or has not said yes yet.
    Denied = -32001,
    /// Over a limit.
    Limit = -32002,
    /// The MCP server does not run.
    ServerUnavailable = -32003,
    /// It was sent, and what became of it is not known.
    OutcomeUnknown = -32004,
    /// The record cannot be written, so nothing is sent.
    AuditUnavailable = -32005,
}

impl ErrorCode {
    const ALL: [Self; 11] = [
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::NotSent,
        Self::Denied,
        Self::Limit,
        Self::ServerUnavailable,
        Self::OutcomeUnknown,
        Self::AuditUnavailable,
    ];

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> i64 {
        self as i64
    }

    /// The code of a number, if it is one of ours.
    #[must_use]
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal => $code:ident,)*) => {
        /// Why a request was refused: `error.data.reason`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Reason { $($(#[$doc])* #[serde(rename = $text)] $name,)* }

        impl Reason {
            /// The word on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str { match self { $(Self::$name => $text,)* } }

            /// The error code that goes with it.
            ///
            /// `bad_request` goes with several; for it this is the one of wrong parameters.
            #[must_use]
            pub fn code(self) -> ErrorCode { match self { $(Self::$name => ErrorCode::$code,)* } }
        }
    };
}

reasons! {
    /// The request itself is wrong.
    BadRequest = "bad_request" => InvalidParams,
    /// No such server in this session.
    UnknownServer = "unknown_server" => InvalidParams,
    /// No such tool on that server.
    UnknownTool = "unknown_tool" => InvalidParams,
    /// No such resource on that server.
    UnknownResource = "unknown_resource" => InvalidParams,
    /// No such prompt on that server.
    UnknownPrompt = "unknown_prompt" => InvalidParams,
    /// The arguments break the tool's schema or the limits on arguments.
    InvalidArguments = "invalid_arguments" => InvalidParams,
    /// The policy refuses this call.
    DeniedByPolicy = "denied_by_policy" => Denied,
    /// A person has to answer first.
    ApprovalRequired = "approval_required" => Denied,
    /// A person said no.
    ApprovalDenied = "approval_denied" => Denied,
    /// Nobody answered in time, or the grant was not used in time.
    ApprovalExpired = "approval_expired" => Denied,
    /// The tool is not what was pinned.
    DefinitionChanged = "definition_changed" => Denied,
    /// Too many calls a second.
    RateLimited = "rate_limited" => Limit,
    /// Too much at once.
    Busy = "busy" => Limit,
    /// A result or request beyond its size.
    TooLarge = "too_large" => Limit,
    /// The session's budget is spent.
    BudgetSpent = "budget_spent" => Limit,
    /// The MCP server does not run.
    ServerUnavailable = "server_unavailable" => ServerUnavailable,
    /// Sent, and no answer came or the outcome could not be recorded.
    OutcomeUnknown = "outcome_unknown" => OutcomeUnknown,
    /// The record cannot be written.
    AuditUnavailable = "audit_unavailable" => AuditUnavailable,
    /// The client left before anything was sent.
    Cancelled = "cancelled" => NotSent,
    /// Time ran out before anything was sent.
    Timeout = "timeout" => NotSent,
    /// Something here failed.
    Internal = "internal" => Internal,
    /// The tool's own schema is not valid.
    InvalidSchema = "invalid_schema" => Internal,
    /// The MCP server answered with an error.
    ProviderError = "provider_error" => Internal,
}

/// `error` of a [`Response`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// See [`ErrorCode`].
    pub code: i64,
    /// For people; generation 0 reads nothing else.
    pub message: String,
    /// For programs: `reason`, `auditId` and what belongs to the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ErrorObject {
    /// An error with the code that goes with its reason.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self::with_code(reason.code(), reason, message)
    }

    /// An error with a code of its own, for the envelope's errors that share [`Reason::BadRequest`].
    #[must_use]
    pub fn with_code(code: ErrorCode, reason: Reason, message: impl Into<String>) -> Self {
        let data = Map::from_iter([("reason".to_owned(), Value::from(reason.as_str()))]);
        Self { code: code.number(), message: message.into(), data: Some(Value::Object(data)) }
    }

    /// Adds a member to `data`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        if let Some(Value::Object(data)) = &mut self.data {
            data.insert(name.to_owned(), value.into());
        }
        self
    }

    /// The reason, where the bridge sent one that is known.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        serde_json::from_value(self.data.as_ref()?.get("reason")?.clone()).ok()
    }
}

/// Any value as raw JSON. Our own types always serialize, so a failure here is `null`.
#[must_use]
pub fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_the_code_that_clients_know_it_by() {
        let table = [
            (-32602, "bad_request unknown_server unknown_tool unknown_resource unknown_prompt invalid_arguments"),
            (-32001, "denied_by_policy approval_required approval_denied approval_expired definition_changed"),
            (-32002, "rate_limited busy too_large budget_spent"),
            (-32003, "server_unavailable"),
            (-32004, "outcome_unknown"),
            (-32005, "audit_unavailable"),
            (-32000, "cancelled timeout"),
            (-32603, "internal invalid_schema provider_error"),
        ];
        for (code, reasons) in table {
            for word in reasons.split(' ') {
                let reason: Reason = serde_json::from_value(word.into()).unwrap();
                let error = ErrorObject::new(reason, "no");
                assert_eq!((error.code, reason.as_str()), (code, word));
                assert_eq!(error.data.unwrap()["reason"], word);
            }
            assert_eq!(ErrorCode::from_number(code).map(ErrorCode::number), Some(code));
        }
        assert_eq!(ErrorCode::from_number(-32006), None);
    }
}
