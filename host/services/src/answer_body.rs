//! The body of an answer, as it passes to the guest: bounded in time, counted, digested, and without the credential.
//!
//! States: coming, then ended by its last byte, by silence, by the end of its time or by its origin, and recorded as
//! that. Dropped before its end, its client left, or its session is over; the connection to its origin goes with it. Where
//! the body of the request still comes when the answer has ended, what is recorded is `answered`'s to say.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use footbridge_audit::RecordedOutcome;
use footbridge_calls::{cause::BudgetOf, service::OpenExchange};
use footbridge_core::redact::LookPiece;
use http::{HeaderMap, StatusCode, response::Parts};
use hyper::body::{Body as _, Frame, Incoming};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{
    answered::{Answered, Behind},
    client::ServiceLease,
    connection_task::ReadAhead,
    connections::Known,
    pace::Pace,
    passing::{Begun, Passed, Passing},
    upload::UploadError,
};

/// How long what could be the beginning of a credential is held where nothing more comes: whoever reads a stream must not
/// wait for what comes next to have what came.
const HELD: Duration = Duration::from_millis(500);

/// The body of an answer.
#[derive(Debug)]
pub struct AnswerBody {
    body: Incoming,
    /// None where other answers share its connection.
    ahead: Option<ReadAhead>,
    /// What it comes over.
    lease: ServiceLease,
    passing: Passing,
    pace: Pace,
    /// What came and is still to be looked through.
    left: Bytes,
    timer: Pin<Box<Sleep>>,
    silence: Duration,
    until: Instant,
    /// What stands for it in the record, once that is known.
    open: Option<Open>,
    stage: Stage,
}

/// How far an answer is.
#[derive(Debug)]
enum Stage {
    Coming,
    /// Its origin broke it off, which is said once what came before is on its way.
    BrokenOff,
    /// It is recorded, and this is still to be handed on.
    Over(Option<Box<AnswerPart>>),
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

impl AnswerBody {
    pub(crate) fn new(body: Incoming, head: &Parts, begun: Begun, lease: ServiceLease) -> Self {
        let (silence, until) = (begun.silence, begun.until);
        let (passing, pace) = Passing::new(head, body.size_hint().exact(), begun);
        let ahead = lease.shared().is_none().then(ReadAhead::default);
        lease.meter().iter().for_each(|meter| meter.answers());
        let timer = Box::pin(sleep_until((Instant::now() + silence).min(until)));
        Self {
            body,
            ahead,
            lease,
            passing,
            pace,
            left: Bytes::new(),
            timer,
            silence,
            until,
            open: None,
            stage: Stage::Coming,
        }
    }

    /// Whether its origin answers before it has the body of the request.
    #[must_use]
    pub fn is_early(&self) -> bool {
        !self.passing.upload().is_whole()
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
    pub fn handed_on(&mut self, behind: Behind) {
        if let Some(open) = &mut self.open {
            open.behind = Some(behind);
        }
        if self.has_come() || matches!(self.passing.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            let _there_was_nothing = self.ended(None);
        }
    }

    /// Whether there is nothing of it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// What comes next; nothing at the end.
    ///
    /// # Errors
    /// Where it breaks off; that is recorded.
    pub fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnswerPart, BrokenAnswer>>> {
        loop {
            match &mut self.stage {
                Stage::Coming => {}
                Stage::BrokenOff => return Poll::Ready(Some(self.broken_off())),
                Stage::Over(last) => return Poll::Ready(last.take().map(|part| Ok(*part))),
            }
            if !self.left.is_empty() {
                // It is no silence, and nothing that is kept back is let go of.
                let data = match self.poll_left(cx) {
                    Poll::Ready(data) => data,
                    Poll::Pending if Instant::now() < self.until => return Poll::Pending,
                    Poll::Pending => return Poll::Ready(Some(Err(self.broken(BrokenAnswer::TooLong)))),
                };
                self.begin_silence();
                match data {
                    Ok(data) if data.is_empty() => continue,
                    part => return Poll::Ready(Some(part.map(AnswerPart::Data))),
                }
            }
            let frame = match self.poll_frame(cx) {
                Poll::Ready(frame) => frame,
                Poll::Pending => return self.waiting(cx),
            };
            let data = match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) if !data.is_empty() => {
                    self.left = data;
                    continue;
                }
                Some(Ok(Ok(data))) => self.passed(data),
                // Nothing comes behind them.
                Some(Ok(Err(frame))) => {
                    let trailers =
                        frame.into_trailers().ok().map(|all| AnswerPart::Trailers(self.passing.trailers(all)));
                    Ok(self.ended(trailers))
                }
                Some(Err(error)) => {
                    tracing::debug!(%error, "an answer broke off");
                    return self.breaks_off(cx);
                }
                None if self.was_cut() => return self.breaks_off(cx),
                None => Ok(self.ended(None)),
            };
            self.begin_silence();
            match data {
                Ok(data) if data.is_empty() => {}
                part => return Poll::Ready(Some(part.map(AnswerPart::Data))),
            }
        }
    }

    fn breaks_off<T>(&mut self, cx: &Context<'_>) -> Poll<T> {
        self.stage = Stage::BrokenOff;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether it has no more and did not end: an origin may reset a stream of HTTP/2 without an error, which is meant for
    /// the request, behind the end of an answer (RFC 9113, 8.1), and hyper takes it for an end.
    fn was_cut(&self) -> bool {
        self.lease.shared().is_some() && !self.has_come()
    }

    /// Looks through a piece of what came, once it may.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, BrokenAnswer>> {
        let LookPiece { length, cost } = self.passing.next_piece(&self.left);
        let _turn = ready!(self.pace.poll(cost, cx));
        // What is left then has nothing of what came any more.
        let piece = self.left.split_to(length);
        let passed = self.passed(piece);
        if !matches!(self.stage, Stage::Coming) {
            self.left = Bytes::new();
        }
        Poll::Ready(passed)
    }

    /// Begins anew the time in which nothing of it may pass.
    fn begin_silence(&mut self) {
        let time = if self.passing.holds() { HELD.min(self.silence) } else { self.silence };
        self.timer.as_mut().reset((Instant::now() + time).min(self.until));
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let mut ask = || Pin::new(&mut self.body).poll_frame(cx);
        let asked = match &mut self.ahead {
            Some(ahead) => ahead.piece(ask),
            None => ask(),
        };
        if asked.is_ready() {
            self.lease.meter().iter().for_each(|meter| meter.answers());
        }
        asked
    }

    /// What of some data is handed on.
    fn passed(&mut self, data: Bytes) -> Result<Bytes, BrokenAnswer> {
        let data = match self.passing.pass(data) {
            Passed::On(data) => data,
            Passed::Last(data, of) => {
                self.close(RecordedOutcome::BudgetSpent, Some(BrokenAnswer::Budget(of).to_string()));
                self.stage = Stage::Over(Some(Box::new(AnswerPart::Spent(of))));
                return Ok(data);
            }
            Passed::Over(of) => return Err(self.broken(BrokenAnswer::Budget(of))),
        };
        // Whoever knows the length asks no more once it is there, though an origin may say its end by itself.
        if !self.left.is_empty() || !self.has_come() {
            return Ok(data);
        }
        let rest = self.ended(None);
        Ok(if rest.is_empty() { data } else { [data, rest].concat().into() })
    }

    /// Whether no data are to come, by what its head said of their length.
    fn has_come(&self) -> bool {
        self.body.is_end_stream() || self.body.size_hint().exact() == Some(0)
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
        let silent = self.passing.upload().moved() + self.silence;
        if Instant::now() < silent.min(self.until) {
            self.timer.as_mut().reset(silent.min(self.until));
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let why = if Instant::now() >= self.until { BrokenAnswer::TooLong } else { BrokenAnswer::Silence };
        if why == BrokenAnswer::Silence {
            self.lease.shared().into_iter().for_each(Known::gives_no_more);
        }
        Poll::Ready(Some(Err(self.broken(why))))
    }

    /// What was kept back, as all of it has come; `last` is still to be handed on.
    fn ended(&mut self, last: Option<AnswerPart>) -> Bytes {
        let rest = self.passing.rest();
        let is_error = self.passing.status().as_u16() >= 400;
        self.close(if is_error { RecordedOutcome::HttpError } else { RecordedOutcome::Ok }, None);
        self.stage = Stage::Over(last.map(Box::new));
        rest
    }

    /// What was kept back, and then that there is no more.
    fn broken_off(&mut self) -> Result<AnswerPart, BrokenAnswer> {
        let rest = self.passing.rest();
        if rest.is_empty() { Err(self.broken(BrokenAnswer::Origin)) } else { Ok(AnswerPart::Data(rest)) }
    }

    fn broken(&mut self, why: BrokenAnswer) -> BrokenAnswer {
        let outcome = match why {
            BrokenAnswer::Budget(_) => RecordedOutcome::BudgetSpent,
            BrokenAnswer::Origin | BrokenAnswer::Silence | BrokenAnswer::TooLong => RecordedOutcome::Unknown,
        };
        self.close(outcome, Some(why.to_string()));
        self.stage = Stage::Over(None);
        why
    }

    fn close(&mut self, outcome: RecordedOutcome, detail: Option<String>) {
        // Free for another request before its client has this answer.
        self.ahead.iter_mut().for_each(ReadAhead::carry_on);
        if outcome.is_whole_answer() {
            self.lease.give_back();
        }
        let Some(Open { exchange, behind }) = self.open.take() else { return };
        let (is_whole, upload) = (outcome.is_whole_answer(), Arc::clone(self.passing.upload()));
        if !is_whole {
            upload.stop(UploadError::Unanswered);
            upload.forget();
        }
        self.passing.is_whole |= is_whole;
        let (passed, model_use) = (self.passing.record(), self.passing.model_use());
        let answered =
            Answered { exchange, outcome, detail, passed, model_use, upload, shared: self.lease.shared().cloned() };
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
