//! From what became of a call to what the guest is told. One table; nothing else turns causes into answers.

use footbridge_proto::rpc::{ErrorObject, Reason};

use super::Receipt;
use crate::{
    decide::Verdict,
    provider::{NoAnswer, NotSent, Outcome, RawResult},
    resolve::{no_such_resource, repeated},
};
use footbridge_audit::OutcomeRecord;
use footbridge_core::gate::Decision;

/// What MCP servers answer for a resource that they do not have (MCP 2025-11-25, resources, error handling).
const RESOURCE_NOT_FOUND: i64 = -32002;

/// The answer to a call. Only the audit stage makes one, once what it says is recorded.
#[derive(Debug)]
pub struct Reply {
    answer: Result<RawResult, ErrorObject>,
    admitted: bool,
}

impl Reply {
    pub(super) fn refusal(error: ErrorObject) -> Self {
        Self { answer: Err(error), admitted: false }
    }

    /// The answer to a call whose outcome is recorded.
    pub(super) fn of(receipt: &Receipt, outcome: Outcome) -> Self {
        let answer = match outcome {
            Outcome::Result(result) => Ok(result),
            other => Err(error_of(receipt, &other)),
        };
        Self { answer: answer.map_err(|error| error.with("auditId", receipt.id.as_str())), admitted: true }
    }

    /// The answer to a call whose result is more than its session may still get.
    pub(super) fn kept_back(receipt: &Receipt) -> Self {
        let message = "The call was made, but its result is more than is left of this session's budget, and is kept \
                       back. Do not repeat it; ask for less, or ask the operator";
        let error = ErrorObject::new(Reason::BudgetSpent, message).with("auditId", receipt.id.as_str());
        Self::refusal(error)
    }

    /// The answer to a call whose outcome could not be recorded in time.
    pub(super) fn unrecorded(receipt: &Receipt, outcome: &Outcome) -> Self {
        let error = match outcome {
            Outcome::NotSent(_) => error_of(receipt, outcome),
            _ => ErrorObject::new(Reason::OutcomeUnknown, "The call ran, but could not be recorded; do not repeat it"),
        };
        Self { answer: Err(error.with("auditId", receipt.id.as_str())), admitted: true }
    }

    /// Whether it is about a call that was admitted. If not, nothing of it can have left.
    #[must_use]
    pub fn was_admitted(&self) -> bool {
        self.admitted
    }

    /// The result as the server wrote it, or the error for the guest.
    ///
    /// # Errors
    /// The error for the guest.
    pub fn into_answer(self) -> Result<RawResult, ErrorObject> {
        self.answer
    }
}

/// The error for an outcome that is no result.
fn error_of(receipt: &Receipt, outcome: &Outcome) -> ErrorObject {
    let server = &receipt.server;
    match outcome {
        Outcome::Result(_) => ErrorObject::new(Reason::Internal, "The result could not be handed on"),
        Outcome::ServerError { code, message } => match &receipt.resource {
            Some(uri) if *code == RESOURCE_NOT_FOUND => no_such_resource(server, uri),
            _ => ErrorObject::new(Reason::ProviderError, message.as_str()).with("serverCode", *code),
        },
        Outcome::TooLarge { limit } => {
            let message = format!("The result of server \"{server}\" is over {limit} bytes: ask for less at a time");
            ErrorObject::new(Reason::TooLarge, message)
        }
        Outcome::NotSent(NotSent::Unavailable(why)) => ErrorObject::new(Reason::ServerUnavailable, why.as_str()),
        Outcome::NotSent(NotSent::Changed) => {
            let message = "The tool changed while the call was on its way, and was not called: look at it again";
            ErrorObject::new(Reason::DefinitionChanged, message)
        }
        Outcome::NotSent(NotSent::Busy) => {
            let message = format!("Server \"{server}\" has too many calls at once: try again in a moment");
            ErrorObject::new(Reason::Busy, message).with("retryAfterMs", 1000)
        }
        Outcome::NotSent(NotSent::Cancelled) => {
            ErrorObject::new(Reason::Cancelled, "The call was cancelled before it was sent")
        }
        Outcome::Unknown(why) => ErrorObject::new(Reason::OutcomeUnknown, unknown_message(*why, server.as_str())),
    }
}

/// The error for a call that the policy does not let through.
pub(crate) fn denied(verdict: &Verdict) -> ErrorObject {
    let server = verdict.call().server();
    let (kind, name) = verdict.call().request().named();
    let what = format!("{kind} \"{}\" on server \"{server}\"", repeated(name));
    let (why, then) = match verdict.decision() {
        Decision::Ask => (
            "needs a person's approval, and nobody can be asked here",
            "ask the operator to run this where somebody can answer, or under a policy that allows it",
        ),
        Decision::Allow | Decision::Deny => ("is denied by policy", "ask the operator if it is needed"),
    };
    let mut message = format!("This call to {what} {why}. It was not made; {then}");
    if !verdict.policy().settings().reveal_rules {
        return ErrorObject::new(Reason::DeniedByPolicy, message);
    }
    let (policy, rule) = (verdict.policy().name(), verdict.rule());
    message.push_str(&match rule {
        Some(rule) => format!(" (rule \"{rule}\" of policy \"{policy}\")"),
        None => format!(" (no rule of policy \"{policy}\" matches)"),
    });
    ErrorObject::new(Reason::DeniedByPolicy, message).with("policy", policy).with("rule", rule)
}

/// The error for a call of a session that has nothing left.
pub(super) fn spent(of: &str) -> ErrorObject {
    let message =
        format!("This session's budget for bytes of {of} does not cover this call. It was not made; ask the operator");
    ErrorObject::new(Reason::BudgetSpent, message)
}

fn unknown_message(why: NoAnswer, server: &str) -> String {
    let what = match why {
        NoAnswer::ServerGone => format!("Server \"{server}\" ended before it answered"),
        NoAnswer::Timeout => format!("Server \"{server}\" did not answer in time"),
        NoAnswer::Cancelled => "The call was cancelled after it was sent".to_owned(),
        NoAnswer::Unusable => format!("The answer of server \"{server}\" cannot be used"),
        NoAnswer::Busy => format!("The answer of server \"{server}\" did not fit into memory set aside for answers"),
    };
    format!("{what}. The call was sent, and may have had its effect; do not repeat it blindly")
}

/// The record of an outcome.
pub(super) fn outcome_line(receipt: &Receipt, outcome: &Outcome) -> OutcomeRecord {
    let (word, detail, bytes) = match outcome {
        Outcome::Result(result) => {
            (if is_tool_error(result) { "tool_error" } else { "ok" }, None, result.text.get().len())
        }
        Outcome::ServerError { code, message } => ("server_error", Some(format!("code {code}")), message.len()),
        Outcome::TooLarge { limit } => ("too_large", Some(format!("over {limit} bytes")), 0),
        Outcome::NotSent(why) => ("not_sent", Some(not_sent_word(why).to_owned()), 0),
        Outcome::Unknown(why) => ("unknown", Some(why.to_string()), 0),
    };
    let duration_ms = u64::try_from(receipt.since.elapsed().as_millis()).unwrap_or(u64::MAX);
    OutcomeRecord { id: receipt.id.clone(), outcome: word, detail, duration_ms, bytes }
}

fn not_sent_word(why: &NotSent) -> &'static str {
    match why {
        NotSent::Unavailable(_) => "server unavailable",
        NotSent::Changed => "definition changed",
        NotSent::Busy => "busy",
        NotSent::Cancelled => "cancelled",
    }
}

/// Whether a tool's result says that the tool failed, read without making values of the rest.
fn is_tool_error(result: &RawResult) -> bool {
    #[derive(serde::Deserialize)]
    struct Flag {
        #[serde(rename = "isError", default)]
        is_error: Option<bool>,
    }
    serde_json::from_str::<Flag>(result.text.get()).is_ok_and(|flag| flag.is_error == Some(true))
}
