//! Why there is no result, as MCP has it said: a call of a tool that is refused has a result that says so, since that is
//! what a model gets to read; everything else has an error.

use footbridge_proto::rpc::{ErrorCode, ErrorObject, Reason, raw};
use serde_json::{json, value::RawValue};

use super::{request::McpCall, revision::Revision};
use crate::{http::refusal::Refusal, json_rpc::code_of, wording::error_of};
use footbridge_calls::{
    cause::{Cause, Failure},
    events::ApprovalEvent,
    request::{Completed, repeated},
};

/// A resource that is not there, in the revisions before 2026-07-28.
const RESOURCE_NOT_FOUND: i64 = -32002;
const INVALID_PARAMS: i64 = ErrorCode::InvalidParams.number();

/// The word for what `resources/read` names.
const RESOURCE: &str = "Resource";

/// The member of `_meta` in which the reason is.
const MEMBER: &str = "footbridge/refusal";

/// What a client named, for the refusal where no server has it.
#[derive(Debug, Clone)]
pub(super) struct Sought {
    /// The word for it.
    kind: &'static str,
    reason: Reason,
    name: String,
}

impl Sought {
    /// What a call names.
    pub(super) fn by(call: &McpCall) -> Self {
        let (kind, reason, name) = match call {
            McpCall::Tool { name, .. } => ("Tool", Reason::UnknownTool, name.as_str()),
            McpCall::Resource { uri } => (RESOURCE, Reason::UnknownResource, uri.as_str()),
            McpCall::Prompt { name, .. } | McpCall::Completion { about: Completed::Prompt { name }, .. } => {
                ("Prompt", Reason::UnknownPrompt, name.as_str())
            }
            McpCall::Completion { about: Completed::Template { uri }, .. } => {
                ("Resource template", Reason::UnknownResource, uri.as_str())
            }
        };
        Self { kind, reason, name: repeated(name).into_owned() }
    }

    /// The error where it is on no server; none where there is another reason.
    fn nowhere(&self, failure: &Failure) -> Option<ErrorObject> {
        let Self { kind, reason, name } = self;
        let of_no_server = matches!(&*failure.cause, Cause::UnknownServer { server, .. } if server.is_empty());
        of_no_server.then(|| {
            let error = ErrorObject::new(*reason, format!("{kind} \"{name}\" not found on any server"));
            failure.record.iter().fold(error, |error, id| error.with("auditId", id.as_str()))
        })
    }
}

/// Why a call of a tool has no result of its own: as a result, or as an error where it names nothing that there is.
pub(super) fn of_tool(failure: &Failure, sought: Option<&Sought>) -> Result<Box<RawValue>, ErrorObject> {
    if let Some(error) = sought.and_then(|sought| sought.nowhere(failure)) {
        return Err(error);
    }
    let error = error_for_models(failure);
    match &*failure.cause {
        Cause::UnknownServer { .. } | Cause::UnknownTool { .. } => Err(error),
        Cause::ServerError { code, .. } => Err(ErrorObject { code: *code, ..error }),
        _ => Ok(raw(&json!({
            "content": [{"type": "text", "text": error.message}],
            "isError": true,
            "_meta": {MEMBER: error.data},
        }))),
    }
}

/// Why anything else has none.
pub(super) fn of_other(failure: &Failure, sought: Option<&Sought>, revision: Revision) -> ErrorObject {
    let no_resource = |error: ErrorObject, uri: &str| {
        let code = if revision.has_handshake() { RESOURCE_NOT_FOUND } else { INVALID_PARAMS };
        ErrorObject { code, ..error }.with("uri", uri)
    };
    if let Some((sought, error)) = sought.and_then(|sought| Some((sought, sought.nowhere(failure)?))) {
        return if sought.kind == RESOURCE { no_resource(error, &sought.name) } else { error };
    }
    let error = error_for_models(failure);
    match &*failure.cause {
        Cause::UnknownResource { uri, .. } => no_resource(error, &repeated(uri)),
        Cause::ServerError { code, .. } => ErrorObject { code: *code, ..error },
        _ => error,
    }
}

/// The same words as everywhere, but for what is done next where there is no `tool-cli`.
pub(super) fn error_for_models(failure: &Failure) -> ErrorObject {
    let mut error = error_of(failure);
    if let (Cause::ApprovalRequired { until, grant_time }, Some(approval)) = (&*failure.cause, &failure.approval) {
        error.message = format!(
            "This call waits for a person's approval, {approval}, until {until}. It was not made; once it is allowed, \
             make exactly the same call again within {grant_time:?}"
        );
    }
    error
}

/// What became of asking a person, in words.
pub(super) fn approval_in_words(event: &ApprovalEvent) -> String {
    format!("Approval {}: {}. {}", event.id, event.state, event.summary)
}

/// The error for what is refused before it is read. Some refusals are none of JSON-RPC.
pub(super) fn of_refusal(refusal: Refusal) -> Option<ErrorObject> {
    let (code, message) = match refusal {
        Refusal::Busy => return Some(error_of(&Cause::BytesHeld.into())),
        Refusal::NotPost => (ErrorCode::InvalidRequest, "Only POST, GET and DELETE accepted"),
        Refusal::NotJson | Refusal::Encoded => (ErrorCode::InvalidRequest, refusal.message()),
        other => (code_of(other)?, other.message()),
    };
    let reason = if code == ErrorCode::Internal { Reason::Internal } else { Reason::BadRequest };
    Some(ErrorObject::with_code(code, reason, message))
}
