//! Taking values out of bytes that pass: what is kept back is only what could be the beginning of a value.
//!
//! A value is replaced by a mark of its own length, so that a length that was announced stays right.
//!
//! Who sends a guess to an origin that repeats it could see what is kept back. So that hangs on nothing of a value but its
//! first bytes ([`SEEN`]) and its length: what begins like one is kept back until as much came as it is long, whatever it
//! is, or until a line ended.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use memchr::{memchr3, memrchr};

use super::{Finder, MARK, Redactor, Unescaped};

/// How many first bytes of a value could be told by what is kept back; of long ones a part, since they begin with what is
/// no secret, as keys in PEM and JSON do.
const SEEN: usize = 4;
const SEEN_PART: usize = 10;

/// What a call sends in pieces: the values in it are left in its answer from then on.
#[derive(Debug)]
pub struct SentText {
    redactor: Redactor,
    /// What could be the beginning of a value, of what was sent.
    tail: Vec<u8>,
}

impl SentText {
    /// Whether it looks for nothing.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.redactor.finder().is_none()
    }

    /// What of these bytes is to be looked at next, in pieces of this size where that takes long.
    #[must_use]
    pub fn next_piece(&self, bytes: &[u8], size: usize) -> LookPiece {
        if self.is_idle() { LookPiece::whole(bytes) } else { LookPiece::of(&self.tail, bytes, size) }
    }

    /// Looks at what is about to be sent.
    pub fn pass(&mut self, bytes: &[u8]) {
        let Some(finder) = self.redactor.finder() else { return };
        let mut window = std::mem::take(&mut self.tail);
        window.extend_from_slice(bytes);
        self.redactor.spared.add(finder.owners_in(&window));
        self.tail = window.split_off(finder.undecided(&window, 0));
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

    /// Whether values could stand in these bytes in more than one way, so that looking for them takes long.
    #[must_use]
    pub fn takes_long(&self, bytes: &[u8]) -> bool {
        self.finder().is_some() && has_escapes(bytes)
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

    /// Whether something is kept back.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// What of these bytes is to be looked at next, in pieces of this size where that takes long.
    #[must_use]
    pub fn next_piece(&self, bytes: &[u8], size: usize) -> LookPiece {
        if self.is_idle() { LookPiece::whole(bytes) } else { LookPiece::of(&self.held, bytes, size) }
    }

    /// What can go on, now that these bytes came.
    #[must_use]
    pub fn push(&mut self, bytes: Bytes) -> Bytes {
        let Some(finder) = self.finder.clone() else { return bytes };
        let whole = if self.held.is_empty() {
            bytes
        } else {
            self.held.extend_from_slice(&bytes);
            std::mem::take(&mut self.held).into()
        };
        let (mut end, found) = (finder.undecided(&whole, 0), finder.found(&whole, &self.redactor.spared));
        if end == whole.len() && found.is_empty() {
            return whole;
        }
        let mut buffer = Vec::from(whole);
        for one in found {
            if one.start >= end {
                break;
            }
            if one.end > end {
                end = finder.undecided(&buffer, one.end);
            }
            self.replace(&mut buffer[one]);
        }
        self.held = buffer.split_off(end);
        buffer.into()
    }

    /// What is left at the end of the stream.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.held);
        let found = self.finder.iter().flat_map(|finder| finder.found(&rest, &self.redactor.spared));
        for one in found.collect::<Vec<_>>() {
            self.replace(&mut rest[one]);
        }
        rest
    }

    fn replace(&self, place: &mut [u8]) {
        self.redactor.replaced.fetch_add(1, Ordering::Relaxed);
        mark(place);
    }
}

/// The next piece of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookPiece {
    /// How long it is, bytes.
    pub length: usize,
    /// How many bytes have to be read in more than one way for it: none where nothing in them can be.
    pub cost: usize,
}

impl LookPiece {
    fn whole(bytes: &[u8]) -> Self {
        Self { length: bytes.len(), cost: 0 }
    }

    /// Of what came behind what was kept back: all up to the first escape, or as much as that.
    fn of(kept: &[u8], bytes: &[u8], size: usize) -> Self {
        let escape = if has_escapes(kept) { Some(0) } else { first_escape(bytes) };
        match escape {
            None => Self::whole(bytes),
            Some(at) if at >= size => Self { length: at, cost: 0 },
            Some(_) => {
                let length = bytes.len().min(size);
                Self { length, cost: kept.len() + length }
            }
        }
    }
}

fn first_escape(bytes: &[u8]) -> Option<usize> {
    memchr3(b'\\', b'&', b'%', bytes)
}

fn has_escapes(bytes: &[u8]) -> bool {
    first_escape(bytes).is_some()
}

/// How the spellings begin that are not found by what they read unescaped.
pub(super) struct Beginnings {
    /// First bytes, and of how long a text.
    all: Vec<(Vec<u8>, usize)>,
    /// Which byte one of them begins with.
    first: [bool; 256],
    /// Whether a value may stand on several lines.
    cross_lines: bool,
}

impl Beginnings {
    pub(super) fn of(texts: &[String]) -> Self {
        let is_read = |text: &String| {
            let plain = Unescaped::of(text.as_bytes());
            plain.is_some_and(|plain| texts.iter().any(|other| other != text && other.as_bytes() == plain.text()))
        };
        let beginning = |text: &String| {
            let seen = SEEN.max(text.len() / SEEN_PART).min(text.len());
            (text.as_bytes()[..seen].to_owned(), text.len())
        };
        let all: Vec<(Vec<u8>, usize)> = texts.iter().filter(|text| !is_read(text)).map(beginning).collect();
        let mut first = [false; 256];
        all.iter().for_each(|(start, _)| first[usize::from(start[0])] = true);
        let cross_lines = texts.iter().any(|text| text.contains('\n'));
        Self { all, first, cross_lines }
    }

    /// The first place from which something may become a value, if the text goes on.
    fn open(&self, text: &[u8]) -> Option<usize> {
        let longest = self.all.iter().map(|(_, length)| *length).max().unwrap_or_default();
        let earliest = text.len().saturating_sub(longest);
        (earliest..text.len()).find(|at| self.first[usize::from(text[*at])] && self.is_open(&text[*at..]))
    }

    fn is_open(&self, rest: &[u8]) -> bool {
        self.all.iter().any(|(start, length)| {
            let seen = start.len().min(rest.len());
            rest.len() < *length && rest[..seen] == start[..seen]
        })
    }
}

impl Finder {
    /// Where something begins, at or after `from`, of which it is not decided yet whether it is a value; the end where
    /// nothing does.
    fn undecided(&self, bytes: &[u8], from: usize) -> usize {
        // Of what is before that nothing hangs on what comes.
        let from = from.max(bytes.len().saturating_sub(self.escaped()));
        let line = if self.beginnings.cross_lines { None } else { memrchr(b'\n', &bytes[from..]) };
        let from = line.map_or(from, |at| from + at + 1);
        let as_it_stands = self.beginnings.open(&bytes[from..]).map_or(bytes.len(), |at| from + at);
        // Unescaped, what is no whole escape yet may become anything.
        let tail = from.max(bytes.len().saturating_sub(self.escaped()));
        if memchr3(b'\\', b'&', b'%', &bytes[tail..]).is_none() {
            return as_it_stands;
        }
        let mut undecided = as_it_stands;
        for plain in Unescaped::all_of_part(&bytes[tail..]) {
            for (rounds, text) in plain.texts() {
                let open = self.beginnings.open(text).unwrap_or(text.len());
                undecided = undecided.min(tail + plain.origin(rounds, open));
            }
        }
        undecided
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
    fn a_value_goes_whichever_of_its_letters_are_escaped_and_wherever_it_is_cut() {
        let redactor = Redactor::new(&[Secret::new("abc/d&f secret"), Secret::new("ab\u{1f600}+cdefgh")]);
        for value in [
            r"\u0061bc/d&f secret",
            r"\u0061bc\/d&f s\u0065cret",
            r"abc/d\u0026f secre\u0074",
            "abc/d&amp;f secret",
            "abc&#47;d&#x26;f&#32secret",
            r"abc/d\\u0026f secret",
            r"abc/d\u0026amp;f secret",
            "abc/%64%26f secret",
            r"ab\ud83d\ude00\u002Bcdefgh",
            "ab\u{1f600}&plus;cdefgh",
            // Letters of an escape that are escaped themselves.
            "%&#x36;1bc/d&f secret",
            "%%36%31bc/d&f secret",
            "%&#x%33%36;1bc/d&f secret",
            r"\&#117;0061bc/d&f secret",
            "abc/d&am%70;f secret",
            "ab&#x1f60%30;+cdefgh",
        ] {
            let (text, marked) = (format!("x {value} y"), format!("x [redacted]{} y", "*".repeat(value.len() - 10)));
            for cut in 0..=text.len() {
                let out = through(&redactor, &[&text.as_bytes()[..cut], &text.as_bytes()[cut..]]);
                assert_eq!(String::from_utf8_lossy(&out), marked, "{value} {cut}");
            }
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(through(&redactor, &bytes), marked.as_bytes(), "{value}");
        }
    }

    /// Letters of a text, escaped in the ways of encoders, by these choices in turn.
    fn escaped(text: &str, choices: &[u8]) -> String {
        let mut choices = choices.iter().cycle();
        let write = |letter: char| match choices.next() {
            Some(0) => format!("\\u{:04x}", u32::from(letter)),
            Some(1) => format!("&#x{:x};", u32::from(letter)),
            Some(2) => format!("&#{};", u32::from(letter)),
            Some(3) => format!("%{:02x}", u32::from(letter)),
            _ => letter.to_string(),
        };
        text.chars().map(write).collect()
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(60))]
        #[test]
        fn escapes_in_escapes_hide_nothing_where_a_text_is_cut(
            rounds in proptest::collection::vec(proptest::collection::vec(0..12_u8, 1..40), 1..4),
        ) {
            let redactor = Redactor::new(&[Secret::new("abc/d&f secret")]);
            let text = format!("x {} y", rounds.iter().fold("abc/d&f secret".to_owned(), |text, round| escaped(&text, round)));
            // A longer one is found where it comes in one piece alone.
            proptest::prop_assume!(text.len() <= redactor.finder().unwrap().escaped());
            let whole = through(&redactor, &[text.as_bytes()]);
            for cut in 0..=text.len() {
                let out = through(&redactor, &[&text.as_bytes()[..cut], &text.as_bytes()[cut..]]);
                proptest::prop_assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&whole), "{} {}", text, cut);
            }
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            proptest::prop_assert_eq!(through(&redactor, &bytes), whole, "{}", text);
        }
    }

    #[test]
    fn what_stands_before_a_value_takes_none_of_its_letters_for_an_escape() {
        let redactor = Redactor::new(&[Secret::new("abc/d&f secret"), Secret::new("dXNlcjpwYXNz+d29yZA==")]);
        for (before, value) in [
            ("&#x", r"abc\u002fd&f secret"),
            ("&amp;#x", "abc/d&amp;f secret"),
            (r"\u0026#x", r"abc\u002fd\u0026f secret"),
            ("&amp;#x", "dXNlcjpwYXNz&#43;d29yZA&#61;&#61;"),
            ("&#x", "dXNlcjpwYXNz&#43;d29yZA&#61;&#61;"),
        ] {
            let (text, marked) =
                (format!("{before}{value}"), format!("{before}[redacted]{}", "*".repeat(value.len() - 10)));
            assert_eq!(redactor.scrub(&text), format!("{before}[redacted]"));
            for cut in 0..=text.len() {
                let out = through(&redactor, &[&text.as_bytes()[..cut], &text.as_bytes()[cut..]]);
                assert_eq!(String::from_utf8_lossy(&out), marked, "{text} {cut}");
            }
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(through(&redactor, &bytes), marked.as_bytes(), "{text}");
        }
    }

    #[test]
    fn what_is_kept_back_does_not_tell_how_much_of_a_guess_is_right() {
        const VALUE: &str = "sk-ant-api03-kQ7/x%Zp";
        let redactor = Redactor::new(&[Secret::new(VALUE)]);
        let passed = |text: &str| redactor.stream().push(Bytes::copy_from_slice(text.as_bytes())).len();
        let written: [fn(char) -> String; 3] =
            [|c| c.to_string(), |c| format!("\\u{:04x}", u32::from(c)), |c| format!("&#{};", u32::from(c))];
        for write in written {
            let spelled = |text: &str| text.chars().map(write).collect::<String>();
            for right in SEEN + 1..VALUE.len() {
                // One whose number has as many digits.
                let wrong = if VALUE.as_bytes()[right - 1] < 100 { '!' } else { '~' };
                let (right, wrong) = (spelled(&VALUE[..right]), spelled(&format!("{}{wrong}", &VALUE[..right - 1])));
                assert_eq!(passed(&format!("x {right}")), passed(&format!("x {wrong}")), "{right} {wrong}");
            }
        }
        // Once as much came as a value is long, it is decided.
        assert_eq!(passed(&format!("sk-ant{}", "x".repeat(VALUE.len()))), VALUE.len() + 6);
        // And at the end of a line, which the value has none of.
        assert_eq!(passed("data: sk-ant\n"), "data: sk-ant\n".len());
        let pem = Redactor::new(&[Secret::new("-----BEGIN KEY-----\nabcdefgh\nijklmnop\n-----END KEY-----")]);
        let cut: [&[u8]; 2] = [b"x -----BEGIN KEY-----\n", b"abcdefgh\nijklmnop\n-----END KEY----- y"];
        assert!(!String::from_utf8(through(&pem, &cut)).unwrap().contains("BEGIN"), "one of several lines");
    }

    #[test]
    fn a_large_text_is_looked_through_to_its_end() {
        let redactor = Redactor::new(&[Secret::new("abc/d&f secret")]);
        for before in
            [super::super::WINDOW - 40, super::super::WINDOW - 7, super::super::WINDOW, 3 * super::super::WINDOW - 20]
        {
            let filler = r"\/".repeat(before / 2);
            let text = format!(r#"{filler}\u0061bc\/d&f s\u0065cret{filler}"#);
            let clean = redactor.scrub(&text);
            assert_eq!(clean.len(), 2 * filler.len() + MARK.len(), "{before}");
            assert!(clean[filler.len()..].starts_with(MARK));
        }
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
    fn what_can_be_read_in_one_way_alone_costs_nothing() {
        let redactor = Redactor::new(&[Secret::new("s3cret-value")]);
        let (mut stream, mut sent) = (redactor.stream(), redactor.sparing([]).sent());
        let piece = |length, cost| LookPiece { length, cost };
        for (text, next) in [
            ("a plain text", piece(12, 0)),
            ("100 %", piece(5, 5)),
            ("100 % and more", piece(6, 6)),
            ("more than it, and then %", piece(23, 0)),
        ] {
            let text = text.as_bytes();
            assert_eq!([stream.next_piece(text, 6), sent.next_piece(text, 6)], [next; 2]);
        }
        let _passed = stream.push(Bytes::from_static(br"x \u0073"));
        sent.pass(br"x \u0073");
        assert!(stream.next_piece(b"3", 6).cost > 1 && sent.next_piece(b"3", 6).cost > 1, "with what was kept back");
        assert_eq!(Redactor::default().stream().next_piece(b"100 %", 3), piece(5, 0), "nothing is looked for");
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
