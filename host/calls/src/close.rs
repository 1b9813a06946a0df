//! After a call came back: what is recorded of it, and only then its reply.

use footbridge_audit::{OutcomeRecord, RecordedOutcome as Recorded};

use crate::{
    admit::Receipt,
    catalogue::no_such_resource,
    cause::{Broken, Cause},
    provider::{NotSent, Outcome, RawResult},
    record::Audit,
    reply::Reply,
    upstream::Executed,
};

/// What MCP servers answer for a resource that they do not have (MCP 2025-11-25, resources, error handling).
const RESOURCE_NOT_FOUND: i64 = -32002;

impl Audit {
    /// Records what became of a call, and gives its reply.
    pub(crate) async fn close_call(&self, executed: Executed) -> Reply {
        let (receipt, outcome, passed) = executed.into_parts();
        let mut line = OutcomeRecord { exchange: passed, ..outcome_line(&receipt, &outcome) };
        let within = receipt.spend(&outcome);
        if !within {
            line.detail = Some("kept back: over the session's budget".to_owned());
        }
        let answer = if self.trail.outcome(&line).await {
            if within { answer(&receipt, outcome) } else { Err(Cause::KeptBack) }
        } else {
            Err(unrecorded(&receipt, outcome))
        };
        Reply::admitted(answer, &receipt.id)
    }
}

/// The answer to a call whose outcome is recorded.
fn answer(receipt: &Receipt, outcome: Outcome) -> Result<RawResult, Cause> {
    match outcome {
        Outcome::Result(result) => Ok(result),
        other => Err(cause_of(receipt, other)),
    }
}

/// The cause where its outcome could not be recorded in time.
fn unrecorded(receipt: &Receipt, outcome: Outcome) -> Cause {
    match outcome {
        Outcome::NotSent(_) => cause_of(receipt, outcome),
        _ => Cause::OutcomeNotRecorded,
    }
}

/// The cause for an outcome that is no result.
fn cause_of(receipt: &Receipt, outcome: Outcome) -> Cause {
    let server = receipt.server.clone();
    match outcome {
        Outcome::Result(_) => Cause::Internal(Broken::Result),
        Outcome::ServerError { code, message } => match &receipt.resource {
            Some(uri) if code == RESOURCE_NOT_FOUND => no_such_resource(&server, uri),
            _ => Cause::ServerError { code, message },
        },
        Outcome::TooLarge { limit, setting } => Cause::ResultTooLarge { server, limit, setting },
        Outcome::NotSent(NotSent::Unavailable(why) | NotSent::Unreached { why, may_pass: false })
        | Outcome::Declined(why) => Cause::Unavailable(why),
        Outcome::NotSent(NotSent::Unreached { why, may_pass: true }) | Outcome::Refused(why) => {
            Cause::NotProcessed(why)
        }
        Outcome::Throttled(retry_after) => Cause::Throttled { server, retry_after },
        Outcome::NotSent(NotSent::Changed) => Cause::ChangedOnTheWay,
        Outcome::NotSent(NotSent::Busy) => Cause::ServerBusy(server),
        Outcome::NotSent(NotSent::Cancelled) => Cause::Cancelled,
        Outcome::Unknown(why) => Cause::NoAnswer { server, why },
    }
}

/// The record of an outcome.
fn outcome_line(receipt: &Receipt, outcome: &Outcome) -> OutcomeRecord {
    let (recorded, detail, bytes) = match outcome {
        Outcome::Result(result) => {
            (if is_tool_error(result) { Recorded::ToolError } else { Recorded::Ok }, None, result.text.get().len())
        }
        Outcome::ServerError { code, message } => (Recorded::ServerError, Some(format!("code {code}")), message.len()),
        Outcome::TooLarge { limit, setting } => {
            (Recorded::TooLarge, Some(format!("over {limit} bytes ({setting})")), 0)
        }
        Outcome::Declined(_) | Outcome::Throttled(_) => {
            (Recorded::ServerError, Some("declined by an HTTP status".to_owned()), 0)
        }
        Outcome::Refused(_) => (Recorded::ServerError, Some("refused unprocessed".to_owned()), 0),
        Outcome::NotSent(why) => (Recorded::NotSent, Some(not_sent_word(why).to_owned()), 0),
        Outcome::Unknown(why) => (Recorded::Unknown, Some(why.to_string()), 0),
    };
    let duration_ms = u64::try_from(receipt.since.elapsed().as_millis()).unwrap_or(u64::MAX);
    OutcomeRecord { id: receipt.id.clone(), outcome: recorded, detail, duration_ms, bytes, exchange: None }
}

fn not_sent_word(why: &NotSent) -> &str {
    match why {
        NotSent::Unavailable(_) => "server unavailable",
        NotSent::Unreached { why, .. } => why.trim_end_matches(". Nothing was sent"),
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
    // There is one way to write it, and most results have none.
    let text = result.text.get();
    text.contains("true") && serde_json::from_str::<Flag>(text).is_ok_and(|flag| flag.is_error == Some(true))
}
