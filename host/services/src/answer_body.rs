//! The body of an answer, as it passes to the guest: bounded in time, counted, digested, and without the credential.
//!
//! States: coming, then ended by its last byte, by silence, by the end of its time or by its origin, and recorded as
//! that. Dropped before its end, its client left, or its session is over; the connection to its origin goes with it. Where
//! the body of the request still comes when the answer has ended, what is recorded is `answered`'s to say.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use footbridge_audit::{ExchangeRecord, RecordedOutcome};
use footbridge_calls::{cause::BudgetOf, service::OpenExchange, session::Spending};
use footbridge_core::{
    digest::digest_text,
    redact::{Redactor, StreamRedactor},
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version, response::Parts};
use hyper::body::{Body as _, Frame, Incoming};
use hyper_util::client::legacy::connect::CaptureConnection;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{
    answered::{Answered, Behind, ModelUse},
    body_digest::BodyDigest,
    client::gives_no_more,
    connection_task::ReadAhead,
    credential::has_credential,
    events::{EventEnds, Last},
    media::{is_as_it_is, is_events, is_text},
    origin_stream::Meter,
    upload::{Tally, UploadError},
    usage::{UsageOf, UsageReader},
};

/// Headers of one connection alone, what is said by Footbridge itself, and what a service tells its client for later: cookies
/// are credentials, and another address is none that a guest could reach.
pub(crate) const DROPPED: [&str; 12] = [
    "footbridge-record",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authentication-info",
    "te",
    "transfer-encoding",
    "upgrade",
    "set-cookie",
    "set-cookie2",
    "alt-svc",
];

/// How long something is kept back that could be the beginning of a credential, where nothing more comes: whoever reads a
/// stream must not wait for what comes next to have what came.
const HELD: Duration = Duration::from_millis(500);

/// The body of an answer.
#[derive(Debug)]
pub struct AnswerBody {
    body: Incoming,
    /// None where other answers share its connection.
    ahead: Option<ReadAhead>,
    /// The connection, where other answers share it.
    shared: Option<CaptureConnection>,
    /// What counts what comes besides.
    meter: Option<Meter>,
    passing: Passing,
    timer: Pin<Box<Sleep>>,
    silence: Duration,
    until: Instant,
    /// What stands for it in the record, once that is known.
    open: Option<Open>,
    is_over: bool,
    /// What came before trailers and is still to be handed on.
    trailers: Option<Box<HeaderMap>>,
    /// The budget that ended it, which is still to be said.
    spent: Option<BudgetOf>,
    /// Whether its origin broke it off, which is said once what came before is on its way.
    breaks: bool,
}

/// What is known of what passed.
struct Passing {
    status: StatusCode,
    upload: Arc<Tally>,
    received: u64,
    digest: BodyDigest,
    redactor: Redactor,
    /// None where the body is no text, or encoded.
    text: Option<StreamRedactor>,
    usage: Option<Box<UsageReader>>,
    first_byte_ms: u64,
    spending: Option<Spending>,
    /// Tokens that were counted.
    tokens: u64,
    /// Whether it came to its end, or said as a stream that this is all.
    is_whole: bool,
    /// Of a stream of events whose end the client can be told in one.
    events: Option<EventEnds>,
    /// The budget that is spent, where the answer goes on to the end of an event.
    ending: Option<BudgetOf>,
}

impl std::fmt::Debug for Passing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Passing")
            .field("status", &self.status)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

/// What comes next of an answer.
#[derive(Debug)]
pub enum AnswerPart {
    /// Some of its body.
    Data(Bytes),
    /// What comes behind it.
    Trailers(HeaderMap),
    /// Nothing more: a budget of its session is spent, and an event can say so.
    Spent(BudgetOf),
}

/// An answer that ends before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrokenAnswer {
    /// Its origin broke it off.
    #[error("the service broke off")]
    Origin,
    /// Nothing came for too long.
    #[error("the service was silent for too long")]
    Silence,
    /// It took too long in all.
    #[error("the request took too long")]
    TooLong,
    /// A budget of its session is spent.
    #[error("over the session's budget")]
    Budget(BudgetOf),
}

/// What an answer is recorded by.
#[derive(Debug)]
struct Open {
    exchange: OpenExchange,
    /// None until it is handed on.
    behind: Option<Behind>,
}

/// What is known when the head of an answer is there.
pub(crate) struct Begun {
    pub(crate) upload: Arc<Tally>,
    pub(crate) redactor: Redactor,
    /// Whose use of a model it tells of; none where it tells of none.
    pub(crate) usage: Option<UsageOf>,
    pub(crate) silence: Duration,
    pub(crate) until: Instant,
    pub(crate) first_byte_ms: u64,
    pub(crate) spending: Option<Spending>,
}

impl AnswerBody {
    pub(crate) fn new(body: Incoming, head: &Parts, begun: Begun, connection: CaptureConnection) -> Self {
        let Parts { status, version, headers, .. } = head;
        let Begun { upload, redactor, usage, silence, until, first_byte_ms, spending } = begun;
        let ahead = (*version < Version::HTTP_2).then(ReadAhead::default);
        let (is_text, is_as_it_is) = (is_text(headers), is_as_it_is(headers));
        let is_plain = is_text && is_as_it_is;
        let text = is_plain.then(|| redactor.stream()).filter(|stream| !stream.is_idle());
        let usage = usage.filter(|_| is_text).map(|of| Box::new(UsageReader::new(of, is_as_it_is)));
        let events = (is_plain && is_events(headers)).then(EventEnds::default);
        let (digest, tokens, ending) = (BodyDigest::default(), 0, None);
        let passing = Passing {
            status: *status,
            upload,
            received: 0,
            digest,
            redactor,
            text,
            usage,
            first_byte_ms,
            spending,
            tokens,
            is_whole: false,
            events,
            ending,
        };
        let timer = Box::pin(sleep_until((Instant::now() + silence).min(until)));
        Self {
            body,
            ahead,
            shared: (*version >= Version::HTTP_2).then_some(connection),
            meter: Meter::of(&head.extensions),
            passing,
            timer,
            silence,
            until,
            open: None,
            is_over: false,
            trailers: None,
            spent: None,
            breaks: false,
        }
    }

    /// Whether its origin answers before it has the body of the request.
    #[must_use]
    pub fn is_early(&self) -> bool {
        !self.passing.upload.is_whole()
    }

    pub(crate) fn recorded_by(&mut self, exchange: OpenExchange) {
        self.open = Some(Open { exchange, behind: None });
    }

    /// The record of it, while it is open.
    #[must_use]
    pub fn record(&self) -> Option<&str> {
        self.open.as_ref().map(|open| open.exchange.record())
    }

    /// How long nothing of it may pass.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.silence
    }

    /// When its request is to be over.
    #[must_use]
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Has its outcome recorded when it ends, and the body of its request has.
    #[must_use]
    pub fn handed_on(mut self, behind: Behind) -> Self {
        if let Some(open) = &mut self.open {
            open.behind = Some(behind);
        }
        let has_none = matches!(self.passing.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if self.body.is_end_stream() || self.body.size_hint().exact() == Some(0) || has_none {
            self.ended();
        }
        self
    }

    /// Whether there is nothing of it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// What comes next; nothing at the end.
    ///
    /// # Errors
    /// Where it breaks off; that is recorded.
    pub fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnswerPart, BrokenAnswer>>> {
        loop {
            if let Some(trailers) = self.trailers.take() {
                return Poll::Ready(Some(Ok(AnswerPart::Trailers(*trailers))));
            }
            if let Some(of) = self.spent.take() {
                return Poll::Ready(Some(Ok(AnswerPart::Spent(of))));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            if self.breaks {
                return Poll::Ready(Some(self.broken_off()));
            }
            let frame = match self.poll_frame(cx) {
                Poll::Ready(frame) => frame,
                Poll::Pending => return self.waiting(cx),
            };
            self.timer.as_mut().reset((Instant::now() + self.silence).min(self.until));
            match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        let passed = self.passed(data);
                        if self.passing.holds() {
                            self.timer.as_mut().reset((Instant::now() + HELD).min(self.until));
                        }
                        match passed {
                            Ok(data) if data.is_empty() => {}
                            part => return Poll::Ready(Some(part.map(AnswerPart::Data))),
                        }
                    }
                    // Nothing comes behind them.
                    Err(frame) => {
                        self.trailers = frame.into_trailers().ok().map(|all| Box::new(self.passing.trailers(all)));
                        let rest = self.passing.rest();
                        self.ended();
                        if !rest.is_empty() {
                            return Poll::Ready(Some(Ok(AnswerPart::Data(rest))));
                        }
                    }
                },
                Some(Err(error)) => {
                    tracing::debug!(%error, "an answer broke off");
                    self.breaks = true;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                None => {
                    let rest = self.passing.rest();
                    self.ended();
                    if !rest.is_empty() {
                        return Poll::Ready(Some(Ok(AnswerPart::Data(rest))));
                    }
                }
            }
        }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let mut ask = || Pin::new(&mut self.body).poll_frame(cx);
        let asked = match &mut self.ahead {
            Some(ahead) => ahead.piece(ask),
            None => ask(),
        };
        if asked.is_ready() {
            self.meter.iter().for_each(Meter::answers);
        }
        asked
    }

    /// What of some data is handed on.
    fn passed(&mut self, data: Bytes) -> Result<Bytes, BrokenAnswer> {
        let mut data = match self.passing.pass(data) {
            Passed::On(data) => data,
            Passed::Last(data, of) => {
                self.is_over = true;
                self.spent = Some(of);
                self.close(RecordedOutcome::BudgetSpent, Some(BrokenAnswer::Budget(of).to_string()));
                return Ok(data);
            }
            Passed::Over(of) => return Err(self.broken(BrokenAnswer::Budget(of))),
        };
        // Whoever knows the length asks no more once it is there, though an origin may say its end by itself.
        if self.body.is_end_stream() || self.body.size_hint().exact() == Some(0) {
            let rest = self.passing.rest();
            if !rest.is_empty() {
                data = [data, rest].concat().into();
            }
            self.ended();
        }
        Ok(data)
    }

    fn waiting(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnswerPart, BrokenAnswer>>> {
        if self.timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        if self.passing.holds() && Instant::now() < self.until {
            self.timer.as_mut().reset((Instant::now() + self.silence.saturating_sub(HELD)).min(self.until));
            return Poll::Ready(Some(Ok(AnswerPart::Data(self.passing.rest()))));
        }
        // What passes the other way is no silence.
        let silent = self.passing.upload.moved() + self.silence;
        if Instant::now() < silent.min(self.until) {
            self.timer.as_mut().reset(silent.min(self.until));
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let why = if Instant::now() >= self.until { BrokenAnswer::TooLong } else { BrokenAnswer::Silence };
        if why == BrokenAnswer::Silence {
            self.shared.iter().for_each(gives_no_more);
        }
        Poll::Ready(Some(Err(self.broken(why))))
    }

    fn ended(&mut self) {
        self.is_over = true;
        let is_error = self.passing.status.as_u16() >= 400;
        self.close(if is_error { RecordedOutcome::HttpError } else { RecordedOutcome::Ok }, None);
    }

    /// What was kept back, and then that there is no more.
    fn broken_off(&mut self) -> Result<AnswerPart, BrokenAnswer> {
        let rest = self.passing.rest();
        if rest.is_empty() { Err(self.broken(BrokenAnswer::Origin)) } else { Ok(AnswerPart::Data(rest)) }
    }

    fn broken(&mut self, why: BrokenAnswer) -> BrokenAnswer {
        self.is_over = true;
        let outcome = match why {
            BrokenAnswer::Budget(_) => RecordedOutcome::BudgetSpent,
            BrokenAnswer::Origin | BrokenAnswer::Silence | BrokenAnswer::TooLong => RecordedOutcome::Unknown,
        };
        self.close(outcome, Some(why.to_string()));
        why
    }

    fn close(&mut self, outcome: RecordedOutcome, detail: Option<String>) {
        // Free for another request before its client has this answer.
        self.ahead.iter_mut().for_each(ReadAhead::carry_on);
        let Some(Open { exchange, behind }) = self.open.take() else { return };
        let (is_whole, upload) = (outcome.is_whole_answer(), Arc::clone(&self.passing.upload));
        if !is_whole {
            upload.stop(UploadError::Unanswered);
            upload.forget();
        }
        self.passing.is_whole |= is_whole;
        let (passed, model_use) = (self.passing.record(), self.passing.model_use());
        let answered = Answered { exchange, outcome, detail, passed, model_use, upload, shared: self.shared.take() };
        match behind.filter(|_| is_whole) {
            Some(behind) => answered.end(behind, self.silence, self.until),
            None => answered.record(),
        }
    }

    /// Ends it since its client reads nothing.
    pub fn is_not_read(&mut self) {
        let why = if Instant::now() < self.until {
            "its client read nothing of it for as long as services.silence_time and edge.write_time allow".to_owned()
        } else {
            BrokenAnswer::TooLong.to_string()
        };
        self.close(RecordedOutcome::Unknown, Some(why));
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        let Some(open) = &self.open else { return };
        // A session that is over cuts the connection of its client.
        let why = match &open.behind {
            Some(behind) if behind.cancel.is_cancelled() => "its session, or the harness, ended",
            Some(_) => "its client left before the end of the answer",
            None => "its client left before it had the answer",
        };
        self.close(RecordedOutcome::Unknown, Some(why.to_owned()));
    }
}

/// What of some data passes.
enum Passed {
    /// This, and the answer goes on.
    On(Bytes),
    /// This, and no more: a budget is spent.
    Last(Bytes, BudgetOf),
    /// Nothing: a budget is spent.
    Over(BudgetOf),
}

impl Passing {
    fn pass(&mut self, data: Bytes) -> Passed {
        self.received += data.len() as u64;
        if let Some(usage) = &mut self.usage {
            usage.push(&data);
            self.is_whole |= self.events.as_ref().is_some_and(|events| events.say_all(&data));
        }
        let (was_ending, spent) = (self.ending.is_some(), self.spend(data.len()));
        // Whoever has no tokens left may still hear how many it used, within its bytes.
        self.ending = spent.filter(|of| *of != BudgetOf::Tokens).or(self.ending).or(spent);
        let mut data: Bytes = match &mut self.text {
            Some(text) => text.push(data),
            None => data,
        };
        let last = match (self.ending, &mut self.events) {
            (None, None) => Last::All,
            (None, Some(events)) => {
                events.passed(&data);
                Last::All
            }
            (Some(_), Some(events)) => events.last_of(&data, !was_ending),
            // What an answer says of its tokens stands at its end, if it is no stream.
            (Some(BudgetOf::Tokens), None) => Last::All,
            (Some(_), None) => Last::Never,
        };
        match (last, self.ending) {
            (Last::Until(at), Some(of)) => {
                data.truncate(at);
                self.digest.push(&data);
                Passed::Last(data, of)
            }
            (Last::Never, Some(of)) => Passed::Over(of),
            _ => {
                self.digest.push(&data);
                Passed::On(data)
            }
        }
    }

    /// Counts what came, and what it says of tokens; the budget that it was too much for.
    fn spend(&mut self, bytes: usize) -> Option<BudgetOf> {
        let spending = self.spending.as_ref()?;
        let passed = spending.bytes(bytes);
        let said = self.usage.as_ref().map(|usage| usage.tokens()).unwrap_or_default();
        let used = spending.tokens(said.saturating_sub(self.tokens));
        self.tokens = self.tokens.max(said);
        passed.and(used).err()
    }

    /// Whether something is kept back.
    fn holds(&self) -> bool {
        self.text.as_ref().is_some_and(StreamRedactor::holds)
    }

    fn rest(&mut self) -> Bytes {
        let rest = self.text.as_mut().map(StreamRedactor::finish).unwrap_or_default();
        if !rest.is_empty() {
            self.digest.push(&rest);
        }
        rest.into()
    }

    fn trailers(&self, all: HeaderMap) -> HeaderMap {
        let crosses = |name: &HeaderName, value: &HeaderValue| {
            !DROPPED.contains(&name.as_str()) && !has_credential(name, value, &self.redactor)
        };
        let keep = all.iter().filter(|(name, value)| crosses(name, value));
        keep.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// What it said of a model's use, for when it is known what was sent for it.
    fn model_use(&mut self) -> Option<ModelUse> {
        let said = self.usage.take()?;
        Some(ModelUse {
            spending: self.spending.take(),
            received: self.received,
            is_of_events: self.events.is_some(),
            is_all: !self.status.is_success() || (self.is_whole && said.tokens() > 0),
            said,
        })
    }

    /// What passed of the answer.
    fn record(&mut self) -> ExchangeRecord {
        let received = self.digest.so_far().map(digest_text);
        ExchangeRecord {
            status: Some(self.status.as_u16()),
            received: self.received,
            received_digest: received,
            first_byte_ms: Some(self.first_byte_ms),
            redacted: self.redactor.replaced(),
            ..ExchangeRecord::default()
        }
    }
}
