//! Taking values out of bytes that pass: what is kept back is only what could be the beginning of a value.
//!
//! A value is replaced by a mark of its own length, so that a length that was announced stays right.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;

use super::{Finder, MARK, Redactor, Spared};

/// What a call sends in pieces: the values in it are left in its answer from then on.
#[derive(Debug)]
pub struct SentText {
    redactor: Redactor,
    /// What could be a part of a value, of what was sent.
    tail: Vec<u8>,
}

/// How much longer than its longest spelling a value may be, with escapes in one another.
const ESCAPED: usize = 2;

impl SentText {
    /// Looks at what is about to be sent.
    pub fn pass(&mut self, bytes: &[u8]) {
        let Some(finder) = self.redactor.finder() else { return };
        let mut window = std::mem::take(&mut self.tail);
        window.extend_from_slice(bytes);
        self.redactor.spared.add(finder.owners_in(&String::from_utf8_lossy(&window)));
        let kept = ESCAPED * self.redactor.longest();
        self.tail = window.split_off(window.len().saturating_sub(kept));
    }
}

/// Takes values out of one stream of bytes.
#[derive(Debug)]
pub struct StreamRedactor {
    redactor: Redactor,
    finder: Option<Arc<Finder>>,
    /// What could be the beginning of a value.
    held: Vec<u8>,
}

impl Redactor {
    /// For one stream of bytes.
    #[must_use]
    pub fn stream(&self) -> StreamRedactor {
        StreamRedactor { redactor: self.clone(), finder: self.finder(), held: Vec::new() }
    }

    /// For what a call sends in pieces, of one that is [`sparing`](Self::sparing) and of this call alone.
    #[must_use]
    pub fn sent(&self) -> SentText {
        SentText { redactor: self.clone(), tail: Vec::new() }
    }
}

impl StreamRedactor {
    /// Whether it looks for nothing.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.finder.is_none()
    }

    /// What can go on, now that these bytes came.
    #[must_use]
    pub fn push(&mut self, bytes: Bytes) -> Bytes {
        let Some(finder) = self.finder.clone() else { return bytes };
        if self.held.is_empty() && finder.has_nothing_of(&bytes, &self.redactor.spared) {
            return bytes;
        }
        let mut buffer = std::mem::take(&mut self.held);
        buffer.extend_from_slice(&bytes);
        let mut from = 0;
        let mut end = finder.beginning(&buffer, from);
        for (start, stop) in finder.spans(&buffer, &self.redactor.spared) {
            if start >= end {
                break;
            }
            if stop > end {
                from = stop;
                end = finder.beginning(&buffer, from);
            }
            self.redactor.replaced.fetch_add(1, Ordering::Relaxed);
            mark(&mut buffer[start..stop]);
        }
        self.held = buffer.split_off(end);
        buffer.into()
    }

    /// What is left at the end of the stream.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.held);
        let found: Vec<(usize, usize)> =
            self.finder.iter().flat_map(|finder| finder.spans(&rest, &self.redactor.spared)).collect();
        for (start, stop) in found {
            self.redactor.replaced.fetch_add(1, Ordering::Relaxed);
            mark(&mut rest[start..stop]);
        }
        rest
    }
}

impl Finder {
    fn spans(&self, bytes: &[u8], spared: &Spared) -> Vec<(usize, usize)> {
        let found = self.automaton.find_iter(bytes).filter(|one| !spared.has(self.owners[one.pattern()]));
        found.map(|one| (one.start(), one.end())).collect()
    }

    /// Whether there is neither a value nor what could be the beginning of one at the end.
    fn has_nothing_of(&self, bytes: &[u8], spared: &Spared) -> bool {
        self.beginning(bytes, 0) == bytes.len() && self.spans(bytes, spared).is_empty()
    }

    /// Where what could be the beginning of a value begins, at or after `from`; the end where nothing could.
    fn beginning(&self, bytes: &[u8], from: usize) -> usize {
        let earliest = from.max(bytes.len().saturating_sub(self.texts.first().map_or(0, String::len)));
        let begins = |(at, byte): (usize, &u8)| {
            let is_start = |text: &String| text.len() > bytes.len() - at && text.as_bytes().starts_with(&bytes[at..]);
            self.first_bytes[usize::from(*byte)] && self.texts.iter().any(is_start)
        };
        let found = bytes.iter().enumerate().skip(earliest).find(|one| begins(*one));
        found.map_or(bytes.len(), |(at, _)| at)
    }
}

/// The mark, cut or filled up to the length of what it stands for.
fn mark(place: &mut [u8]) {
    let marked = MARK.bytes().chain(std::iter::repeat(b'*'));
    place.iter_mut().zip(marked).for_each(|(byte, mark)| *byte = mark);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn through(redactor: &Redactor, parts: &[&[u8]]) -> Vec<u8> {
        let mut stream = redactor.stream();
        let mut out: Vec<u8> = parts.iter().flat_map(|part| stream.push(Bytes::copy_from_slice(part))).collect();
        out.extend(stream.finish());
        out
    }

    #[test]
    fn a_value_goes_wherever_it_is_cut_and_the_length_stays() {
        let redactor = Redactor::new(&[Secret::new("s3cret-value"), Secret::new("s3cret-value-long")]);
        let text = b"a s3cret-value b s3cret-value-lon s3cret-value-long s3cret-val";
        let expected = "a [redacted]** b [redacted]**-lon [redacted]******* s3cret-val";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let out = through(&redactor, &[&text[..first], &text[first..second], &text[second..]]);
                assert_eq!(String::from_utf8(out).unwrap(), expected, "{first} {second}");
            }
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(through(&redactor, &bytes), expected.as_bytes());
    }

    #[test]
    fn what_a_call_sends_in_pieces_stays_in_its_answer_alone() {
        let all = Redactor::new(&[Secret::new("s3cret-value-0042"), Secret::new("other-secret-value")]);
        let answer: &[&[u8]] = &[b"s3cret-value-0042 other-secret-value"];
        let kept = b"s3cret-value-0042 [redacted]********".to_vec();
        for said in [&b"a s3cret-value-0042 b"[..], b"a s3cret%2dvalue-004\\u0032 b", b"czNjcmV0LXZhbHVlLTAwNDI="] {
            for cut in 0..5 {
                let own = all.sparing([]);
                let mut sent = own.sent();
                sent.pass(&said[..cut]);
                assert_ne!(through(&own, answer), kept, "not all of it was sent");
                sent.pass(&said[cut..]);
                assert_eq!(through(&own, answer), kept, "{cut}");
            }
        }
        assert_eq!(through(&all, answer), through(&all.sparing(["s3cret-value-0041"]), answer));
        assert_ne!(through(&all, answer), kept, "only in that answer");
        assert_eq!(through(&all.sparing(["s3cret-value-0042"]), answer), kept);
    }

    #[test]
    fn an_event_without_a_value_is_not_kept_back() {
        let redactor = Redactor::new(&[Secret::new("s3cret-value")]);
        let mut stream = redactor.stream();
        let mut push = |text: &'static str| stream.push(text.into());
        assert_eq!(push("data: {}\n\n"), "data: {}\n\n");
        assert_eq!(push("data: s3c"), "data: ");
        assert_eq!(push("ond\n\n"), "s3cond\n\n");
        assert!(Redactor::default().stream().is_idle());
    }
}
