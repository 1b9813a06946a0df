//! What passes of an answer: counted against budgets, digested, read for a model's use, and without the credential.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use footbridge_audit::ExchangeRecord;
use footbridge_calls::{cause::BudgetOf, session::Spending};
use footbridge_core::redact::{LookPiece, Redactor, StreamRedactor};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, response::Parts};
use tokio::time::Instant;

use crate::{
    answered::ModelUse,
    body_digest::BodyDigest,
    credential::has_credential,
    events::{EventEnds, Last},
    media::{is_as_it_is, is_events, is_text, unread},
    pace::{PIECE, Pace},
    upload::Tally,
    usage::{UsageOf, UsageReader},
};

/// Headers of one connection alone, what is said by Footbridge itself, and what a service tells its client for later: cookies
/// are credentials, and another address is none that a guest could reach.
const DROPPED: [&str; 12] = [
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
    pub(crate) pace: Pace,
}

/// What is known of what passed.
pub(crate) struct Passing {
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
    pub(crate) is_whole: bool,
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

/// What of some data passes.
pub(crate) enum Passed {
    /// This, and the answer goes on.
    On(Bytes),
    /// This, and no more: a budget is spent.
    Last(Bytes, BudgetOf),
    /// Nothing: a budget is spent.
    Over(BudgetOf),
}

impl Passing {
    /// With the pace at which it is to be looked through. The body may say how long it is.
    pub(crate) fn new(head: &Parts, announced: Option<u64>, begun: Begun) -> (Self, Pace) {
        let Begun { upload, redactor, usage, first_byte_ms, spending, pace, .. } = begun;
        let (is_text, is_as_it_is) = (is_text(&head.headers), is_as_it_is(&head.headers));
        let is_plain = is_text && is_as_it_is;
        let text = is_plain.then(|| redactor.stream()).filter(|stream| !stream.is_idle());
        let has_events = is_events(&head.headers);
        let usage = usage.map(|of| Box::new(UsageReader::new(of, unread(&head.headers)).with_events(has_events)));
        let events = (is_plain && has_events).then(EventEnds::default);
        let passing = Self {
            status: head.status,
            upload,
            received: 0,
            digest: BodyDigest::of(announced),
            redactor,
            text,
            usage,
            first_byte_ms,
            spending,
            tokens: 0,
            is_whole: false,
            events,
            ending: None,
        };
        (passing, pace)
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The body of its request.
    pub(crate) fn upload(&self) -> &Arc<Tally> {
        &self.upload
    }

    /// What of these data is to be looked through next.
    pub(crate) fn next_piece(&self, data: &[u8]) -> LookPiece {
        let all = LookPiece { length: data.len(), cost: 0 };
        self.text.as_ref().map_or(all, |text| text.next_piece(data, PIECE))
    }

    pub(crate) fn pass(&mut self, data: Bytes) -> Passed {
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
    pub(crate) fn holds(&self) -> bool {
        self.text.as_ref().is_some_and(StreamRedactor::holds)
    }

    pub(crate) fn rest(&mut self) -> Bytes {
        let rest: Bytes = self.text.as_mut().map(StreamRedactor::finish).unwrap_or_default().into();
        if !rest.is_empty() {
            self.digest.push(&rest);
        }
        rest
    }

    pub(crate) fn trailers(&self, all: HeaderMap) -> HeaderMap {
        let crosses = |(name, value): &(&HeaderName, &HeaderValue)| {
            !is_dropped(name.as_str()) && !has_credential(name, value, &self.redactor)
        };
        let keep = all.iter().filter(crosses);
        keep.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// What it said of a model's use, for when it is known what was sent for it.
    pub(crate) fn model_use(&mut self) -> Option<ModelUse> {
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
    pub(crate) fn record(&mut self) -> ExchangeRecord {
        ExchangeRecord {
            status: Some(self.status.as_u16()),
            received: self.received,
            received_digest: self.digest.so_far(),
            first_byte_ms: Some(self.first_byte_ms),
            redacted: self.redactor.replaced(),
            ..ExchangeRecord::default()
        }
    }
}

/// Whether a header of an answer, or one that comes behind its body, does not cross for its name alone.
pub(crate) fn is_dropped(name: &str) -> bool {
    DROPPED.contains(&name)
}
