//! What a server says unasked: its own requests, and notifications.

use std::collections::VecDeque;

use rmcp::model::{CustomRequest, PingRequest, RequestId, ServerJsonRpcMessage, ServerRequest};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Interceptor, MAX_ASKED, Waiting};
use crate::{
    elicitation::{self, Question},
    message::{self, MAX_TYPED, Progress},
};
use footbridge_calls::{
    events::{LogLevel, LoggedLine},
    provider::MAX_QUESTION,
};

/// `params` of `notifications/cancelled`.
#[derive(Deserialize)]
struct TakenBack<'a> {
    #[serde(borrow, rename = "requestId")]
    id: &'a RawValue,
}

/// `params` of `notifications/message`.
#[derive(Deserialize)]
struct ServerLine<'a> {
    level: LogLevel,
    #[serde(default)]
    logger: Option<String>,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// A request of the server.
pub(super) struct ServerAsks<'a> {
    pub(super) id: &'a RawValue,
    pub(super) method: &'a str,
    pub(super) params: Option<&'a RawValue>,
}

impl Interceptor {
    /// A request of the server. Only its method goes on, and only so many at a time.
    pub(super) fn asked(&self, asks: ServerAsks<'_>, text: &str, out: &mut VecDeque<ServerJsonRpcMessage>) {
        let ServerAsks { id, method, params } = asks;
        let Some(id) = message::plain_id(id) else {
            self.ignored.ignore("a request with an unusable id", text.as_bytes());
            return;
        };
        let mut waiting = self.waiting();
        if waiting.asked >= MAX_ASKED {
            drop(waiting);
            self.ignored.ignore("a request while too many are unanswered", text.as_bytes());
            return;
        }
        waiting.asked += 1;
        let request = if method == "ping" {
            ServerRequest::PingRequest(PingRequest::default())
        } else {
            let is_question = self.takes_questions && method == elicitation::METHOD;
            if is_question && !self.add_question(&mut waiting, &id, params) {
                self.ignored.ignore(
                    "a question that belongs to none or several of its calls, those that were just left among them",
                    text.as_bytes(),
                );
            }
            ServerRequest::CustomRequest(CustomRequest::new(method.chars().take(64).collect::<String>(), None))
        };
        out.push_back(ServerJsonRpcMessage::request(request, id));
    }

    /// Keeps a question for a person, where it can be told which call it belongs to.
    fn add_question(&self, waiting: &mut Waiting, id: &RequestId, params: Option<&RawValue>) -> bool {
        let params = params.map(RawValue::get).unwrap_or_default();
        // Cut past its limit: it is still too long then, and nobody reads what is secret in it.
        let params = self.redactor.scrub(&params[..params.floor_char_boundary(MAX_QUESTION + 1)]).into_owned();
        let running: Vec<_> = waiting.calls().cloned().collect();
        // One that was left may ask on, and would be answered what another was.
        let may_be_left = running.iter().any(|call| waiting.left_calls.may_ask(call.session()));
        !may_be_left && waiting.questions.add(id, params, running.iter())
    }

    /// The question that the server asked with this id, once.
    pub(crate) fn question(&self, id: &RequestId) -> Option<Question> {
        self.waiting().questions.take(id)
    }

    /// A notification of the server.
    pub(super) fn told(
        &self,
        method: &str,
        params: Option<&RawValue>,
        text: &str,
        out: &mut VecDeque<ServerJsonRpcMessage>,
    ) {
        match method {
            "notifications/progress" => self.progress(params, text),
            "notifications/cancelled" => {
                let id = params.and_then(|params| serde_json::from_str::<TakenBack<'_>>(params.get()).ok());
                if let Some(id) = id.and_then(|taken| message::plain_id(taken.id)) {
                    self.waiting().questions.take_back(&id);
                }
            }
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => self.has_changed(),
            "notifications/subscriptions/acknowledged" if text.len() <= MAX_TYPED => {
                if let Ok(message) = serde_json::from_str(text) {
                    out.push_back(message);
                }
            }
            "notifications/message" => self.log_line(params, text),
            _ => {}
        }
    }

    /// A line of the server's log. It goes to the call that runs, where that is one alone: nothing in it says which of
    /// several it is about, and they may be of guests that know nothing of each other. So it is of those that nobody waits for
    /// any more, for a while.
    fn log_line(&self, params: Option<&RawValue>, text: &str) {
        if tracing::enabled!(tracing::Level::DEBUG) {
            // Cut afterwards: a secret across the cut would not be found.
            let shown = self.redactor.scrub(text);
            let shown = &shown[..shown.floor_char_boundary(1000)];
            tracing::debug!(message = %footbridge_proto::text::Escaped(shown), "log of an MCP server");
        }
        let params = params.filter(|params| params.get().len() <= MAX_TYPED);
        let Some(Ok(line)) = params.map(|params| serde_json::from_str::<ServerLine<'_>>(params.get())) else { return };
        let waiting = self.waiting();
        let mut calls = waiting.calls();
        let (Some(pending), None) = (calls.next().cloned(), calls.next()) else { return };
        drop(calls);
        if waiting.left_calls.may_be_others(pending.session()) {
            return;
        }
        drop(waiting);
        let message = serde_json::from_str::<String>(line.data.get());
        let (is_json, message) = (message.is_err(), message.unwrap_or_else(|_| line.data.get().to_owned()));
        let redactor = pending.redactor().unwrap_or(&self.redactor);
        pending.logged(LoggedLine {
            level: line.level,
            logger: line.logger.map(|logger| redactor.scrub(&logger).into_owned()),
            message: redactor.scrub(&message).into_owned(),
            is_json,
        });
    }

    fn progress(&self, params: Option<&RawValue>, text: &str) {
        let progress = params.filter(|params| params.get().len() <= MAX_TYPED);
        let Some(Ok(progress)) = progress.map(|params| serde_json::from_str::<Progress>(params.get())) else {
            self.ignored.ignore("progress that is not of the protocol", text.as_bytes());
            return;
        };
        let pending = progress.token().and_then(|token| self.waiting().tokens.get(&token).cloned());
        match pending {
            Some(pending) => {
                let redactor = pending.redactor().unwrap_or(&self.redactor);
                let message = progress.message.as_deref().map(|message| redactor.scrub(message));
                pending.progressed(progress.progress, progress.total, message.as_deref());
            }
            None if progress.token().is_some_and(|token| self.waiting().is_late(token)) => {}
            None => self.ignored.ignore("progress of nothing that runs", text.as_bytes()),
        }
    }
}
