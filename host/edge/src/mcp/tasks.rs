//! Calls as tasks (MCP 2025-11-25), for clients that would rather ask later: any call of a tool can be one.
//!
//! A task is a call that is kept, see `kept_calls`. It is its client's alone, and for every other one that there is not.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, SecondsFormat, Utc};
use footbridge_proto::rpc::{ErrorCode, ErrorObject, Reason, raw};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    answers::{McpEncoder, Shape},
    clients::McpClient,
    refusals,
    request::TaskMessage,
};
use crate::{
    dialect::{Action, Asked, Found, ReadRequest},
    json_rpc::{RpcAnswer, envelope_error},
    kept_calls::{KeptCall, KeptCalls},
    wording::error_of,
};
use footbridge_calls::{cause::Cause, events::CallEvent};
use http::StatusCode;

/// How long a task is kept that does not say, and the longest.
const TIME: Duration = Duration::from_secs(30 * 60);
const LONGEST: Duration = Duration::from_secs(60 * 60);
/// Between two questions about a task, as is suggested.
const POLL_MS: u64 = 1000;

/// How long the task is kept that `task` of a call asks for.
pub(super) fn time(task: &RawValue) -> Result<Duration, ErrorObject> {
    #[derive(Deserialize)]
    struct Wanted {
        #[serde(default)]
        ttl: Option<u64>,
    }
    let wanted = serde_json::from_str::<Wanted>(task.get()).map_err(|_| {
        ErrorObject::new(Reason::BadRequest, "\"task\" is no object, or its \"ttl\" no number of milliseconds")
    })?;
    Ok(wanted.ttl.map_or(TIME, Duration::from_millis).min(LONGEST))
}

/// What a call is answered that became a task.
pub(super) fn created(kept: &KeptCall) -> Box<RawValue> {
    raw(&json!({ "task": state(kept) }))
}

/// How a task is.
fn state(kept: &KeptCall) -> Value {
    let time = |at| DateTime::<Utc>::from(at).to_rfc3339_opts(SecondsFormat::Millis, true);
    let progress = kept.progress();
    let (status, message) = match progress.answer.as_deref() {
        _ if progress.is_cancelled => ("cancelled", None),
        None => ("working", progress.told.as_ref().and_then(said)),
        Some(Ok(_)) => (if progress.is_error { "failed" } else { "completed" }, None),
        Some(Err(failure)) => ("failed", Some(refusals::error_for_models(failure).message)),
    };
    let mut state = json!({
        "taskId": &*kept.id, "status": status, "createdAt": time(kept.since), "lastUpdatedAt": time(progress.changed),
        "ttl": u64::try_from(kept.time.as_millis()).unwrap_or(u64::MAX), "pollInterval": POLL_MS,
    });
    if let Some(message) = message {
        state["statusMessage"] = message.into();
    }
    state
}

/// What a call told last, in words.
fn said(event: &CallEvent) -> Option<String> {
    match event {
        CallEvent::Progress { message: Some(message), .. } => Some(message.clone()),
        CallEvent::Progress { progress, total, message: None } => {
            Some(total.map_or_else(|| progress.to_string(), |total| format!("{progress} of {total}")))
        }
        CallEvent::Approval(event) => Some(refusals::approval_in_words(event)),
        CallEvent::Log(_) => None,
    }
}

/// Answers what a client asks about its tasks.
pub(super) fn answer(
    calls: &KeptCalls,
    asked: Asked<'_>,
    client: &McpClient,
    message: TaskMessage,
    answer: RpcAnswer,
) -> ReadRequest {
    let plain = |answer: RpcAnswer, result: &Value| {
        ReadRequest::Answered(McpEncoder::new(answer, client, Shape::Plain).result(raw(result)))
    };
    let refused = |answer: RpcAnswer, error: &ErrorObject| ReadRequest::Answered(answer.error(StatusCode::OK, error));
    // Who waits for a result is counted where it waits.
    if !matches!(message, TaskMessage::Result(_))
        && let Err(over) = asked.session.list()
    {
        return refused(answer, &error_of(&Cause::OverLimit(over).into()));
    }
    let (id, is_cancelled) = match message {
        TaskMessage::List => {
            let tasks: Vec<Value> = calls.of_client(asked.session, &client.id).iter().map(|kept| state(kept)).collect();
            return plain(answer, &json!({ "tasks": tasks }));
        }
        TaskMessage::Result(id) => {
            return match calls.find(asked.session, &client.id, &id) {
                Some(kept) => {
                    let encoder = McpEncoder::new(answer, client, Shape::Task(Arc::clone(&kept.id)));
                    let waits = Action::LookUp(Box::new(move |_, _| Box::pin(async move { ended(&kept).await })));
                    ReadRequest::Asked { action: waits, encoder: Box::new(encoder) }
                }
                None => refused(answer, &unknown()),
            };
        }
        TaskMessage::Get(id) => (id, false),
        TaskMessage::Cancel(id) => (id, true),
    };
    match calls.find(asked.session, &client.id, &id) {
        None => refused(answer, &unknown()),
        Some(kept) if is_cancelled && !kept.cancel() => {
            refused(answer, &invalid("This task has ended already, and cannot be cancelled"))
        }
        Some(kept) => plain(answer, &state(&kept)),
    }
}

/// What came of a task, once it ended.
async fn ended(kept: &KeptCall) -> Found {
    match &*kept.answer().await? {
        Ok(result) => Ok(result.text.clone()),
        Err(failure) => Err(failure.clone()),
    }
}

fn invalid(message: &str) -> ErrorObject {
    ErrorObject::new(Reason::BadRequest, message)
}

fn unknown() -> ErrorObject {
    invalid(
        "There is no such task (any more): it is forgotten once its \"ttl\" is over, and of another client it is none",
    )
}

/// What is answered to a request that cannot be a task.
pub(super) fn not_one(name: &str) -> ErrorObject {
    envelope_error(ErrorCode::MethodNotFound, format!("{name} is answered at once, and is no task"))
}
