//! What comes of a request, as MCP writes it. A server's own words go out as they are, but for halves of
//! surrogate pairs, at which clients stop that hold answers to be text, and for what strict clients do not take.

use std::{borrow::Cow, collections::HashMap, fmt::Write as _, sync::Arc};

use bytes::Bytes;
use footbridge_proto::{
    json::with_whole_pairs,
    rpc::{self, ErrorObject, raw},
};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json, value::RawValue};

use super::{
    SESSION, client_shape,
    clients::McpClient,
    one_hop,
    refusals::{self, Sought},
    related,
    request::McpCall,
    revision::Revision,
};
use crate::{
    dialect::{Encoder, Found},
    http::response::Pieces,
    json_rpc::{RpcAnswer, number, text_of_event},
    wording::error_of,
};
use footbridge_calls::{
    call::Checked,
    events::{CallEvent, LogLevel},
};

/// What kind of result is answered.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// Of `initialize`, with the id to be shown from now on.
    Initialized(Arc<str>),
    /// A listing.
    Listed,
    /// Of a tool.
    Tool,
    /// The same of a task, by its id.
    Task(Arc<str>),
    /// A resource.
    Read,
    /// Any other.
    Plain,
}

impl Shape {
    /// The shape of what comes of a call.
    pub(super) fn of(call: &McpCall) -> Self {
        match call {
            McpCall::Tool { .. } => Self::Tool,
            McpCall::Resource { .. } => Self::Read,
            McpCall::Prompt { .. } | McpCall::Completion { .. } => Self::Plain,
        }
    }
}

/// Writes the answer to one request.
pub(super) struct McpEncoder {
    answer: RpcAnswer,
    revision: Revision,
    shape: Shape,
    /// What its call names.
    sought: Option<Sought>,
    /// What progress is told by, if it is.
    token: Option<Box<RawValue>>,
    /// Whether approvals are told besides, as events that are no messages.
    approvals: bool,
    level: Option<LogLevel>,
    /// The progress that was told: it only ever grows.
    furthest: f64,
}

/// What an event of a stream begins with.
const EVENT: &[u8] = b"event: message\ndata: ";

/// How much a step of waiting for a person counts as progress: less than any that a server tells.
const STEP: f64 = 1.0 / 1024.0;

impl McpEncoder {
    /// For a request of this client.
    pub(super) fn new(answer: RpcAnswer, client: &McpClient, shape: Shape) -> Self {
        Self {
            answer,
            revision: client.revision,
            shape,
            sought: None,
            token: None,
            approvals: false,
            level: client.level,
            furthest: 0.0,
        }
    }

    /// The same, of a call that names this.
    pub(super) fn of_call(self, sought: Sought) -> Self {
        Self { sought: Some(sought), ..self }
    }

    /// The same, which tells progress by this token, and approvals besides where that is asked for.
    pub(super) fn telling(self, token: Option<Box<RawValue>>, approvals: bool) -> Self {
        Self { token, approvals, ..self }
    }

    /// A result in one body.
    pub(super) fn result(&self, text: Box<RawValue>) -> Response<Pieces> {
        let text = with_whole_pairs(text);
        let members = self.members(&text);
        let mut response = self.answer.result(text, &members);
        if let Shape::Initialized(id) = &self.shape
            && let Ok(id) = HeaderValue::from_str(id)
        {
            response.headers_mut().insert(SESSION, id);
        }
        response
    }

    /// What the revision without a handshake wants in each result, where it is not there.
    fn members(&self, text: &RawValue) -> String {
        let mut members = String::new();
        if self.revision.has_handshake() {
            return members;
        }
        let wanted: &[(&str, &str)] = match self.shape {
            Shape::Listed | Shape::Read => {
                &[("resultType", "\"complete\""), ("ttlMs", "0"), ("cacheScope", "\"private\"")]
            }
            Shape::Initialized(_) | Shape::Tool | Shape::Task(_) | Shape::Plain => &[("resultType", "\"complete\"")],
        };
        for (name, value) in wanted {
            if !has_member(text, name) {
                // Writing to a string does not fail.
                let _ = write!(members, "\"{name}\":{value},");
            }
        }
        members
    }

    /// What came of it, in the shape that clients take, and of a server's own words what is its to say.
    fn taken(&self, answer: Found) -> Found {
        match self.shape {
            Shape::Tool | Shape::Task(_) => {
                answer.map(|result| client_shape::result(one_hop::without(result), self.revision))
            }
            Shape::Read | Shape::Plain => answer.map(one_hop::without),
            Shape::Initialized(_) | Shape::Listed => answer,
        }
    }

    fn refused(&self, failure: &footbridge_calls::cause::Failure) -> Result<Box<RawValue>, ErrorObject> {
        match self.shape {
            Shape::Tool | Shape::Task(_) => refusals::of_tool(failure, self.sought.as_ref()),
            _ => Err(refusals::of_other(failure, self.sought.as_ref(), self.revision)),
        }
    }

    fn progress(&mut self, progress: f64, total: Option<f64>, message: Option<&str>) -> Option<Bytes> {
        let token = self.token.as_deref()?;
        if progress <= self.furthest && self.furthest > 0.0 {
            return None;
        }
        self.furthest = progress;
        let mut params = json!({"progress": number(progress)});
        for (name, value) in [("total", total.map(number)), ("message", message.map(Value::from))] {
            if let Some(value) = value {
                params[name] = value;
            }
        }
        let params = params.to_string();
        Some(notification("notifications/progress", &format!("{{\"progressToken\":{token},{}", &params[1..])))
    }
}

/// Whether an object has a member of this name. Most do not even have the word, and are not read for it.
fn has_member(text: &RawValue, name: &str) -> bool {
    text.get().contains(name)
        && serde_json::from_str::<HashMap<Cow<'_, str>, &RawValue>>(text.get())
            .is_ok_and(|members| members.contains_key(name))
}

/// A notification as an event of a stream, with the text of its parameters. JSON has no raw line breaks, so it is one
/// line.
pub(super) fn notification(method: &str, params: &str) -> Bytes {
    [EVENT, rpc::notification(method, Some(params)).as_bytes(), b"\n\n"].concat().into()
}

impl Encoder for McpEncoder {
    fn whole(&self, answer: Found) -> Response<Pieces> {
        let answer = self.taken(answer).or_else(|failure| self.refused(&failure));
        let answer = match &self.shape {
            Shape::Task(id) => {
                answer.and_then(|text| related::to_task(&text, id).map_err(|failure| error_of(&failure)))
            }
            _ => answer,
        };
        match answer {
            Ok(text) => self.result(text),
            Err(error) => self.answer.error(StatusCode::OK, &error),
        }
    }

    fn checked(&self, checked: Checked) -> Box<RawValue> {
        raw(&checked.decision.as_str())
    }

    fn event(&mut self, event: &CallEvent) -> Option<Bytes> {
        match event {
            CallEvent::Progress { progress, total, message } => self.progress(*progress, *total, message.as_deref()),
            CallEvent::Log(line) if self.level.is_some_and(|least| line.level >= least) => {
                let mut params = json!({"level": line.level.as_str()});
                if let Some(logger) = &line.logger {
                    params["logger"] = logger.as_str().into();
                }
                // What is JSON goes on as its server wrote it.
                let json = line.is_json.then(|| RawValue::from_string(line.message.clone()).ok()).flatten();
                let data = json.map_or_else(|| raw(&line.message), with_whole_pairs);
                let params = params.to_string();
                Some(notification(
                    "notifications/message",
                    &format!("{},\"data\":{data}}}", &params[..params.len() - 1]),
                ))
            }
            CallEvent::Log(_) => None,
            CallEvent::Approval(approval) => {
                let told = self.progress(self.furthest + STEP, None, Some(&refusals::approval_in_words(approval)));
                if !self.approvals {
                    return told;
                }
                Some([told.unwrap_or_default(), text_of_event(event)].concat().into())
            }
        }
    }

    fn last_event(&self, answer: Found) -> Pieces {
        let answer = self.taken(answer).map(with_whole_pairs).or_else(|failure| self.refused(&failure));
        let members = answer.as_ref().map(|text| self.members(text)).unwrap_or_default();
        self.answer.last_event(EVENT, answer.map(|text| (text, members.as_str())))
    }
}
