//! The chain that a record is: every line holds its number and the digest of the line before.
//!
//! Lines are drafted first. The chain goes on from them only once they are durable, so what could not be written leaves
//! no gap.

use std::time::Instant;

use chrono::{SecondsFormat, Utc};

use super::record::{Place, Record};
use footbridge_core::digest::{Digest, digest_text};

/// Where a chain ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct End {
    /// The number of the last line; 0 before the first.
    pub(super) seq: u64,
    /// Its digest.
    pub(super) hash: Option<Digest>,
}

/// One chain, as far as it is durable.
#[derive(Debug)]
pub(super) struct Chain {
    id: String,
    since: Instant,
    end: End,
}

/// Lines that continue a chain, once they are written.
pub(super) struct Draft<'c> {
    chain: &'c Chain,
    end: End,
    text: String,
    time: String,
    mono: u64,
}

impl Chain {
    pub(super) fn new(id: String) -> Self {
        Self { id, since: Instant::now(), end: End::default() }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn end(&self) -> End {
        self.end
    }

    pub(super) fn draft(&self) -> Draft<'_> {
        let mono = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        let time = now();
        Draft { chain: self, end: self.end, text: String::new(), time, mono }
    }

    /// Goes on from what was drafted and is durable now.
    pub(super) fn adopt(&mut self, end: End) {
        self.end = end;
    }
}

impl Draft<'_> {
    pub(super) fn add(&mut self, record: &Record) {
        let seq = self.end.seq + 1;
        let genesis = self.end.hash.is_none().then_some(self.chain.id.as_str());
        let prev = self.end.hash.map(digest_text);
        let text = record.line(&Place { seq, prev, genesis, time: &self.time, mono: self.mono });
        self.end = End { seq, hash: Some(Digest::of(text.trim_end_matches('\n'))) };
        self.text.push_str(&text);
    }

    /// Where the chain would end.
    pub(super) fn end(&self) -> End {
        self.end
    }

    pub(super) fn finish(self) -> (String, End) {
        (self.text, self.end)
    }
}

/// The time as records write it.
pub(super) fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)
}
