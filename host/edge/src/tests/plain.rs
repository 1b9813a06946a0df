//! A second dialect, which shows that one needs no second copy of anything: `POST /plain/SERVER/TOOL` with the
//! arguments as the body. The raw result is the answer; errors and events are lines of text.

use bytes::Bytes;
use footbridge_calls::call::Checked;
use footbridge_proto::json;
use footbridge_proto::rpc::raw;
use http::{Response, StatusCode};
use serde_json::value::RawValue;

use crate::{
    dialect::{Action, Asked, CallAction, Dialect, Encoder, Found, ReadRequest},
    http::{
        head,
        refusal::Refusal,
        response::{Pieces, typed},
    },
};
use footbridge_calls::{
    events::CallEvent,
    request::{CallRequest, Target},
};

/// The dialect.
pub(super) struct Plain;

/// Writes for any of its requests: nothing of them is repeated.
struct PlainEncoder;

impl Dialect for Plain {
    fn has_path(&self, path: &str) -> bool {
        path.starts_with("/plain/")
    }

    fn read(&self, Asked { head, body, depth, .. }: Asked<'_>) -> ReadRequest {
        let named = head::path(head).strip_prefix("/plain/").and_then(|path| path.split_once('/'));
        let arguments = json::check(body, depth).ok().and_then(|text| serde_json::from_str(text).ok());
        let (Some((server, tool)), Some(arguments)) = (named, arguments) else {
            return ReadRequest::Answered(line(StatusCode::BAD_REQUEST, "not /plain/SERVER/TOOL with a body of JSON"));
        };
        let call = CallRequest {
            server: server.to_owned(),
            target: Target::Tool(tool.to_owned()),
            arguments: Some(arguments),
            meta: None,
            held: None,
        };
        ReadRequest::Asked { action: Action::Call(CallAction::of(call)), encoder: Box::new(PlainEncoder) }
    }

    fn refuse(&self, refusal: Refusal) -> Response<Pieces> {
        line(refusal.status(), refusal.message())
    }
}

impl Encoder for PlainEncoder {
    fn whole(&self, answer: Found) -> Response<Pieces> {
        match answer {
            Ok(text) => typed(StatusCode::OK, "application/json", text.get().to_owned().into()),
            Err(failure) => line(StatusCode::CONFLICT, failure.cause.reason().as_str()),
        }
    }

    fn checked(&self, checked: Checked) -> Box<RawValue> {
        raw(&checked.decision.as_str())
    }

    fn event(&mut self, event: &CallEvent) -> Option<Bytes> {
        let text = match event {
            CallEvent::Progress { progress, .. } => format!("progress {progress}"),
            CallEvent::Log(line) => format!("log {}", line.message.escape_debug()),
            CallEvent::Approval(event) => format!("approval {}", event.state),
        };
        Some(format!("data: {text}\n\n").into())
    }

    fn last_event(&self, answer: Found) -> Pieces {
        let text = match answer {
            Ok(text) => text.get().replace(['\r', '\n'], " "),
            Err(failure) => format!("error: {}", failure.cause.reason().as_str()),
        };
        format!("data: {text}\n\n").into()
    }
}

fn line(status: StatusCode, text: &str) -> Response<Pieces> {
    typed(status, "text/plain", format!("error: {text}\n").into())
}
