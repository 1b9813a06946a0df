//! Where raw messages of a server meet the MCP library.
//!
//! Every message passes here before the library sees it. Answers to our calls and listings go as raw JSON into the
//! [`PendingRequest`] of their request; where the library sent it, it gets an empty placeholder for the id. So unknown
//! members, big integers and memory are all safe from it. Progress, logs and change notices end here too, so that a flood
//! of them costs no task. Requests to us reach the library as a method name at most, a bounded number at a time; a
//! question for a person waits here for the library's handler.
//!
//! What is wrong (broken JSON, unknown or repeated ids, rubbish) is counted and ignored; where it still names a
//! waiting request, that request is answered at once. This file knows neither pipes nor HTTP.

mod batch;
mod left_calls;
mod unasked;

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use footbridge_proto::rpc::{IncomingError, IncomingMessage};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, GetExtensions, GetMeta, NumberOrString, RequestId, ServerJsonRpcMessage,
};
use serde_json::value::RawValue;
use tokio::sync::Notify;

use super::{
    elicitation::{self, Questions},
    hearing::Hearing,
    id_search::IdSearch,
    ignored::IgnoredMessages,
    message::{self, placeholder, unusable},
    message_buffer::{Beyond, Dropped, LostAnswer},
    pending_request::{Answer, PendingRequest},
    task_support::TaskSupport,
};
use batch::Batch;
use footbridge_calls::resolve::QUICK;
use footbridge_core::{budget::Held, redact::Redactor};
use left_calls::LeftCalls;
use unasked::ServerAsks;

/// A message beyond this takes long to read, bytes.
const LARGE: usize = 1024 * 1024;
/// Largest batch of messages in one line, bytes.
const MAX_BATCH: usize = 1024 * 1024;
/// Longest message of an error that is passed on.
const MAX_ERROR: usize = 64 * 1024;
/// Largest result that is copied out of its message.
const COPIED: usize = 64 * 1024;
/// Requests whose late answers are known as such.
const MAX_FORGOTTEN: usize = 256;
/// Requests of the server that may be unanswered at a time.
const MAX_ASKED: usize = 32;

/// The meeting point of one connection.
#[derive(Debug)]
pub(super) struct Interceptor {
    waiting: Mutex<Waiting>,
    redactor: Redactor,
    ignored: Arc<IgnoredMessages>,
    /// Whether the server was told that it may ask people.
    takes_questions: bool,
    /// Whether requests of ours go by the library, which then waits for their answers too.
    by_library: bool,
    changed: Notify,
    hearing: Arc<Hearing>,
    /// What is awaited beyond the limit of messages.
    beyond: Beyond,
    /// What the server says that it can do of tasks.
    tasks: OnceLock<TaskSupport>,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: HashMap<i64, Request>,
    tokens: HashMap<i64, PendingRequest>,
    /// Calls that were answered with a task, as may be: their server still says things about them.
    tasks: Vec<Request>,
    asked: usize,
    questions: Questions,
    /// The last requests that nobody waits for any more: what still answers them is no fault of the server.
    forgotten: VecDeque<ForgottenRequest>,
    left_calls: LeftCalls,
}

/// A request that nobody waits for any more.
#[derive(Debug)]
struct ForgottenRequest {
    id: i64,
    token: Option<i64>,
    /// Whose it was, where it was a call.
    session: Option<u64>,
}

/// A request of ours without an answer.
#[derive(Debug, Clone)]
struct Request {
    pending: Option<PendingRequest>,
    token: Option<i64>,
}

/// Whether a message was what somebody waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An answer to a request of ours.
    Answer,
    /// Anything else.
    Other,
}

impl Interceptor {
    /// A connection on which nothing has happened. Questions for people are requests like any other unless it
    /// `takes_questions`. Requests of ours go `by_library`, or straight to the transport.
    pub(super) fn new(
        redactor: Redactor,
        ignored: Arc<IgnoredMessages>,
        takes_questions: bool,
        by_library: bool,
    ) -> Self {
        Self {
            waiting: Mutex::default(),
            redactor,
            ignored,
            takes_questions,
            by_library,
            changed: Notify::new(),
            hearing: Arc::default(),
            beyond: Beyond::default(),
            tasks: OnceLock::new(),
        }
    }

    /// What calls that wait may have beyond the limit of messages.
    pub(super) fn beyond(&self) -> &Beyond {
        &self.beyond
    }

    /// Whether a message takes too long to be read on a worker: it is large, or values of secrets could stand in it in more
    /// ways than one.
    pub(super) fn takes_long(&self, message: &[u8]) -> bool {
        message.len() > LARGE || message.len() > QUICK && self.redactor.takes_long(message)
    }

    /// What takes the values of secrets out of what the server says.
    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Counts something that is wrong and no message.
    pub(super) fn ignore(&self, what: &str) {
        self.ignored.ignore(what, b"");
    }

    /// Has it logged, a few times, that the server refuses what it is sent.
    pub(super) fn refused(&self, why: &dyn std::fmt::Display) {
        self.ignored.refused(why);
    }

    /// Whether the server is told that it may ask people.
    pub(super) fn takes_questions(&self) -> bool {
        self.takes_questions
    }

    /// What the server says that it can do of tasks.
    pub(super) fn tasks(&self) -> TaskSupport {
        self.tasks.get().copied().unwrap_or_default()
    }

    /// Waits until the server said that its listings changed.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Its listings may have changed.
    pub(super) fn has_changed(&self) {
        self.changed.notify_one();
    }

    /// Whether it can say so.
    pub(super) fn hearing(&self) -> &Arc<Hearing> {
        &self.hearing
    }

    /// Takes note of a message that leaves now. False if it must not leave.
    pub(super) fn departs(&self, message: &ClientJsonRpcMessage) -> bool {
        let mut waiting = self.waiting();
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let RequestId::Number(id) = request.id else { return true };
                let pending = request.request.extensions().get::<PendingRequest>().cloned();
                if pending.as_ref().is_some_and(|pending| !pending.depart()) {
                    return false;
                }
                let token = match request.request.get_meta().get_progress_token().map(|token| token.0) {
                    Some(NumberOrString::Number(token)) => Some(token),
                    _ => None,
                };
                if let (Some(token), Some(pending)) = (token, &pending) {
                    waiting.tokens.insert(token, pending.clone());
                }
                waiting.requests.insert(id, Request { pending, token });
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(RequestId::Number(id)) = cancelled.params.request_id
                {
                    waiting.forget(id);
                }
            }
            ClientJsonRpcMessage::Response(response) => {
                waiting.asked = waiting.asked.saturating_sub(1);
                waiting.questions.answered(&response.id);
            }
            ClientJsonRpcMessage::Error(_) => waiting.asked = waiting.asked.saturating_sub(1),
        }
        true
    }

    /// Takes note that a message that left will not be answered. The server `may_have_it`, and carry it out.
    pub(super) fn forget(&self, message: &ClientJsonRpcMessage, may_have_it: bool) {
        if let ClientJsonRpcMessage::Request(request) = message
            && let RequestId::Number(id) = request.id
        {
            let mut waiting = self.waiting();
            if may_have_it {
                waiting.forget(id);
            } else {
                waiting.remove(id);
            }
        }
    }

    /// Takes note that nobody waits for the answer to this request any more, whether it left or not.
    pub(super) fn forget_pending(&self, pending: &PendingRequest) {
        let mut waiting = self.waiting();
        let is_its = |request: &Request| request.pending.as_ref().is_some_and(|other| other.is(pending));
        let ids: Vec<i64> = waiting.requests.iter().filter(|(_, request)| is_its(request)).map(|(id, _)| *id).collect();
        for id in ids {
            waiting.forget(id);
        }
        waiting.forget_task(is_its);
    }

    /// Takes note that a call that may have been a task came to its end: nothing of it goes on.
    pub(super) fn task_ended(&self, pending: &PendingRequest) {
        let is_its = |request: &Request| request.pending.as_ref().is_some_and(|other| other.is(pending));
        drop(self.waiting().take_tasks(is_its));
    }

    /// Whether somebody waits for an answer.
    pub(super) fn has_calls(&self) -> bool {
        let is_waiting = |pending: &PendingRequest| !pending.over().is_cancelled();
        let waiting = self.waiting();
        waiting.requests.values().chain(&waiting.tasks).filter_map(|request| request.pending.as_ref()).any(is_waiting)
    }

    /// Takes a whole message of the server; what the library is to see of it is added to `out`.
    pub(super) fn arrived(&self, bytes: Vec<u8>, held: Option<Held>, out: &mut VecDeque<ServerJsonRpcMessage>) -> Kind {
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                self.unread("a message that is not UTF-8", error.as_bytes(), out);
                return Kind::Other;
            }
        };
        if text.trim_start().starts_with('[') && text.len() <= MAX_BATCH {
            return self.batch(&text, out);
        }
        self.one(text, held, out)
    }

    /// Takes note of a message that was dropped on the way.
    pub(super) fn dropped(&self, id: Option<i64>, why: Dropped, head: &[u8], out: &mut VecDeque<ServerJsonRpcMessage>) {
        self.ignored.ignore(
            match why {
                Dropped::TooLong => "a message that is too long",
                Dropped::NoRoom => "a message that did not fit into the memory set aside",
            },
            head,
        );
        if let Some(id) = id {
            self.fail(id, answer_without(why), out);
        }
    }

    /// Takes note of an answer that is being dropped and has not ended. Without an id it is that of the request that alone
    /// can be answered, if one can.
    pub(super) fn lost(&self, lost: LostAnswer, out: &mut VecDeque<ServerJsonRpcMessage>) {
        let id = lost.id.or_else(|| self.waiting().only());
        if let Some(id) = id {
            self.fail(id, answer_without(lost.why), out);
        }
    }

    fn batch(&self, text: &str, out: &mut VecDeque<ServerJsonRpcMessage>) -> Kind {
        let Ok(Batch(messages)) = serde_json::from_str(text) else {
            self.ignored.ignore("a batch that is not JSON, or of too many messages", text.as_bytes());
            // Where one answer alone is awaited, it was in there if any was; what is only told has no id.
            let only = self.waiting().only().filter(|_| text.contains("\"id\""));
            only.into_iter().for_each(|id| self.fail(id, Answer::Unusable, out));
            return Kind::Other;
        };
        let mut kind = Kind::Other;
        for message in messages {
            if self.one(message.get().to_owned(), None, out) == Kind::Answer {
                kind = Kind::Answer;
            }
        }
        kind
    }

    fn one(&self, text: String, held: Option<Held>, out: &mut VecDeque<ServerJsonRpcMessage>) -> Kind {
        let envelope = match serde_json::from_str::<IncomingMessage<'_>>(&text) {
            Ok(envelope) => envelope,
            Err(_) => return self.broken(&text, out),
        };
        let id = envelope.id.and_then(message::number);
        if let Some(method) = &envelope.method {
            match envelope.id {
                Some(id) => self.asked(ServerAsks { id, method, params: envelope.params }, &text, out),
                None => self.told(method, envelope.params, &text, out),
            }
            return Kind::Other;
        }
        let Some(id) = id else {
            self.ignored.ignore("an answer without a usable id", text.as_bytes());
            return Kind::Other;
        };
        let Some(request) = self.awaited(id, &text) else { return Kind::Other };
        let Some(pending) = request.pending else {
            if let Some(said) = envelope.result.and_then(TaskSupport::said) {
                let _said_before = self.tasks.set(said);
            }
            out.push_back(message::typed(id, &text));
            return Kind::Answer;
        };
        let redactor = pending.redactor().unwrap_or(&self.redactor);
        let answer = match (envelope.result, envelope.error) {
            (Some(result), None) => {
                let start = result.get().as_ptr() as usize - text.as_ptr() as usize;
                let end = start + result.get().len();
                match redactor.scrub(result.get()) {
                    Cow::Owned(clean) => self.read_again(clean, held),
                    Cow::Borrowed(clean) if clean.len() <= COPIED => Answer::Result(result.to_owned(), held),
                    Cow::Borrowed(_) => self.cut_out(text, start..end, held),
                }
            }
            (None, Some(error)) => error_of(error, redactor),
            _ => Answer::Unusable,
        };
        if self.by_library {
            out.push_back(match &answer {
                Answer::Result(result, _) => message::stand_in(id, result),
                _ => placeholder(id),
            });
        }
        pending.answer(answer);
        Kind::Answer
    }

    /// The request that an answer is to; none if nobody waits for it any more, or ever did.
    fn awaited(&self, id: i64, text: &str) -> Option<Request> {
        let mut waiting = self.waiting();
        let late = waiting.forgotten.iter().position(|forgotten| forgotten.id == id);
        let late = late.and_then(|at| waiting.forgotten.remove(at));
        let is_late = late.is_some();
        if let Some(session) = late.and_then(|late| late.session) {
            waiting.left_calls.answered(session);
        }
        let request = waiting.answered(id);
        drop(waiting);
        if request.is_none() && !is_late {
            self.ignored.ignore("an answer that nobody waits for", text.as_bytes());
        }
        request
    }

    /// Cuts a result out of its message in place, without a second copy of it.
    fn cut_out(&self, mut text: String, result: std::ops::Range<usize>, held: Option<Held>) -> Answer {
        text.truncate(result.end);
        text.drain(..result.start);
        self.read_again(text, held)
    }

    fn read_again(&self, result: String, held: Option<Held>) -> Answer {
        match RawValue::from_string(result) {
            Ok(raw) => Answer::Result(raw, held),
            Err(_) => {
                self.ignored.ignore("a result that is no JSON without the values of configured secrets", b"");
                Answer::Unusable
            }
        }
    }

    fn broken(&self, text: &str, out: &mut VecDeque<ServerJsonRpcMessage>) -> Kind {
        self.unread("a message that is not JSON-RPC", text.as_bytes(), out);
        Kind::Other
    }

    /// Takes note of what cannot be read. Where it has the id of a request, it was meant to be its answer.
    fn unread(&self, what: &'static str, bytes: &[u8], out: &mut VecDeque<ServerJsonRpcMessage>) {
        self.ignored.ignore(what, bytes);
        self.ignored.unread(bytes);
        let mut search = IdSearch::default();
        search.feed(bytes);
        match search.id() {
            Some(id) if bytes.trim_ascii_start().starts_with(b"{") => self.fail(id, Answer::Unusable, out),
            _ => {}
        }
    }

    fn fail(&self, id: i64, answer: Answer, out: &mut VecDeque<ServerJsonRpcMessage>) {
        match self.waiting().remove(id) {
            Some(Request { pending: Some(pending), .. }) => {
                pending.answer(answer);
                if self.by_library {
                    out.push_back(placeholder(id));
                }
            }
            Some(Request { pending: None, .. }) => out.push_back(unusable(id)),
            None => {}
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is answered in place of what was dropped.
fn answer_without(why: Dropped) -> Answer {
    match why {
        Dropped::TooLong => Answer::TooLarge,
        Dropped::NoRoom => Answer::Busy,
    }
}

/// An error of the server, without the values of secrets and cut where it is long.
fn error_of(error: &RawValue, redactor: &Redactor) -> Answer {
    match serde_json::from_str::<IncomingError>(error.get()) {
        Ok(IncomingError { code, message }) => {
            let message = match code {
                elicitation::ADDRESSES_WANTED => elicitation::with_addresses(message, error),
                _ => message,
            };
            Answer::Error { code, message: cut_message(redactor.scrub(&message).into_owned()) }
        }
        Err(_) => Answer::Unusable,
    }
}

/// What a server says, cut where it is long.
pub(super) fn cut_message(mut message: String) -> String {
    if message.len() > MAX_ERROR {
        let end = message.floor_char_boundary(MAX_ERROR);
        message.truncate(end);
        message.push_str(" [cut: the message is too long]");
        message.shrink_to_fit();
    }
    message
}

impl Waiting {
    /// The request that alone can be answered.
    fn only(&self) -> Option<i64> {
        let id = *self.requests.keys().next()?;
        (self.requests.len() == 1 && self.forgotten.is_empty()).then_some(id)
    }

    fn remove(&mut self, id: i64) -> Option<Request> {
        let request = self.requests.remove(&id)?;
        if let Some(token) = request.token {
            self.tokens.remove(&token);
        }
        Some(request)
    }

    /// As [`Self::remove`], for one that may still be answered.
    fn forget(&mut self, id: i64) {
        let Some(Request { token, pending }) = self.remove(id) else { return };
        let session = pending.and_then(|pending| pending.session());
        session.into_iter().for_each(|session| self.left_calls.left(session));
        self.forgotten.push_back(ForgottenRequest { id, token, session });
        let over = self.forgotten.len().saturating_sub(MAX_FORGOTTEN);
        self.forgotten.drain(..over);
    }

    /// Whether this is the token of a request that nobody waits for any more.
    fn is_late(&self, token: i64) -> bool {
        self.forgotten.iter().any(|forgotten| forgotten.token == Some(token))
    }

    /// As [`Self::remove`], of one that is answered. Of one that may be a task now it is still known by what progress is told.
    fn answered(&mut self, id: i64) -> Option<Request> {
        let request = self.remove(id)?;
        if let Some(pending) = request.pending.as_ref().filter(|pending| pending.may_be_task()) {
            self.tokens.extend(request.token.map(|token| (token, pending.clone())));
            self.tasks.push(request.clone());
        }
        Some(request)
    }

    fn forget_task(&mut self, is_its: impl Fn(&Request) -> bool) {
        for task in self.take_tasks(is_its) {
            let session = task.pending.and_then(|pending| pending.session());
            session.into_iter().for_each(|session| self.left_calls.left(session));
        }
    }

    fn take_tasks(&mut self, is_its: impl Fn(&Request) -> bool) -> Vec<Request> {
        let taken: Vec<Request> = self.tasks.extract_if(.., |request| is_its(request)).collect();
        for token in taken.iter().filter_map(|task| task.token) {
            self.tokens.remove(&token);
        }
        taken
    }

    /// The calls that run.
    fn calls(&self) -> impl Iterator<Item = &PendingRequest> {
        let requests = self.requests.values().chain(&self.tasks);
        requests.filter_map(|request| request.pending.as_ref()).filter(|pending| pending.is_call())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ignored::IgnoredMessages;
    use crate::pending_request::Beside;
    use footbridge_calls::events::Events;
    use footbridge_core::secret::Secret;

    #[test]
    fn what_could_hide_a_secret_in_many_ways_takes_long_once_it_is_no_short_message() {
        let of = |redactor: Redactor| {
            let ignored = Arc::new(IgnoredMessages::of("x".parse().unwrap(), None, Redactor::default()));
            Interceptor::new(redactor, ignored, false, false)
        };
        let (secrets, none) = (of(Redactor::new(&[Secret::new("s3cret-value")])), of(Redactor::default()));
        for (message, long) in [
            ("%25".repeat(QUICK / 3), false),
            ("%25".repeat(QUICK), true),
            ("x".repeat(QUICK + 1), false),
            ("x".repeat(LARGE + 1), true),
        ] {
            assert_eq!(secrets.takes_long(message.as_bytes()), long, "{:.3} {}", message, message.len());
            assert_eq!(none.takes_long(message.as_bytes()), message.len() > LARGE, "{}", message.len());
        }
    }

    #[test]
    fn a_call_that_was_left_may_run_until_it_is_answered_and_what_is_no_call_says_nothing() {
        let call = |session| {
            let beside = Beside { session, ..Beside::default() };
            PendingRequest::of_call(Events::default(), beside, None, None)
        };
        let request = |pending| Request { pending: Some(pending), token: None };
        let mut waiting = Waiting::default();
        waiting.requests.insert(1, request(call(1)));
        waiting.requests.insert(2, request(PendingRequest::new()));
        waiting.forget(2);
        assert!(!waiting.left_calls.may_be_others(Some(2)), "what is no call says nothing of anybody");
        waiting.forget(1);
        assert!(waiting.left_calls.may_be_others(Some(2)) && !waiting.left_calls.may_be_others(Some(1)));
        // One that came to its end is none, and a task that nobody waits for is left, too.
        waiting.tasks.push(request(call(4)));
        assert_eq!(waiting.take_tasks(|_| true).len(), 1);
        assert!(!waiting.left_calls.may_be_others(Some(1)));
        waiting.tasks.push(request(call(3)));
        waiting.forget_task(|request| request.pending.as_ref().is_some_and(|pending| pending.session() == Some(3)));
        assert!(waiting.left_calls.may_be_others(Some(1)));
    }
}
