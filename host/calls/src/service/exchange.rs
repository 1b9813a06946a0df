//! A request whose answer has begun: what stands for it until its outcome is recorded.
//!
//! States: open, then closed by what passed its last byte, or dropped: its client left, its session ended, or its answer
//! broke off. Either way there is one outcome.

use footbridge_audit::{ExchangeRecord, OutcomeRecord, RecordedOutcome};

use crate::{admit::Receipt, record::Audit, session::Place};

/// A request whose answer has begun.
#[derive(Debug)]
pub struct OpenExchange {
    receipt: Receipt,
    audit: Audit,
    _place: Place,
    is_closed: bool,
}

impl OpenExchange {
    pub(super) fn new(receipt: Receipt, audit: Audit, place: Place) -> Self {
        Self { receipt, audit, _place: place, is_closed: false }
    }

    /// The record of it.
    #[must_use]
    pub fn record(&self) -> &str {
        &self.receipt.id
    }

    /// How long it has run, milliseconds.
    #[must_use]
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.receipt.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Records what became of it, the same more exactly, and what passed.
    pub fn close(mut self, outcome: RecordedOutcome, detail: Option<String>, passed: ExchangeRecord) {
        self.record_outcome(outcome, detail, Some(passed));
    }

    fn record_outcome(&mut self, outcome: RecordedOutcome, detail: Option<String>, passed: Option<ExchangeRecord>) {
        self.is_closed = true;
        let bytes = passed.as_ref().map_or(0, |passed| usize::try_from(passed.received).unwrap_or(usize::MAX));
        self.audit.trail.keep_outcome(&OutcomeRecord {
            id: self.receipt.id.clone(),
            outcome,
            detail,
            duration_ms: self.elapsed_ms(),
            bytes,
            exchange: passed.map(Box::new),
        });
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        if !self.is_closed {
            self.record_outcome(RecordedOutcome::Unknown, Some("the answer was not handed on".to_owned()), None);
        }
    }
}
