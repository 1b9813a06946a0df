//! The chain that a record is: every line holds its number and the digest of the line before.
//!
//! Lines are drafted first. The chain goes on from them only once they are durable, so what could not be written leaves
//! no gap.

use std::time::Instant;

use chrono::{SecondsFormat, Utc};

use super::record::{Place, Record};
use footbridge_core::digest::Digest;

/// Room for most lines, bytes.
const LINE_BYTES: usize = 1024;

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
    text: Vec<u8>,
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

    /// Lines behind it, written into this room.
    pub(super) fn draft(&self, mut room: Vec<u8>) -> Draft<'_> {
        room.clear();
        room.reserve(LINE_BYTES);
        let mono = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        let time = now();
        Draft { chain: self, end: self.end, text: room, time, mono }
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
        let start = self.text.len();
        let place = Place { seq, prev: self.end.hash, genesis, time: &self.time, mono: self.mono };
        // To memory, nothing can fail.
        let _ = record.write(place, &mut self.text);
        self.end = End { seq, hash: Some(Digest::of(&self.text[start..])) };
        self.text.push(b'\n');
    }

    /// Where the chain would end.
    pub(super) fn end(&self) -> End {
        self.end
    }

    pub(super) fn finish(self) -> (Vec<u8>, End) {
        (self.text, self.end)
    }
}

/// The time as records write it.
pub(super) fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)
}
