//! Strict JSON, and its canonical text.
//!
//! Two parsers that read one text differently are a way past a gate. So text from a guest is scanned once, before
//! anything else looks at it, and refused wherever parsers are known to differ: a member name that appears twice in
//! an object (after unescaping), a lone surrogate, nesting beyond a limit, bytes that are not UTF-8. The grammar is
//! RFC 8259. The scan builds no tree; what it holds is the names of the objects that are open.
//!
//! The canonical text is what an arguments digest covers: members sorted by code point, no white space, the fewest
//! escapes, and numbers that keep their value ([`measured`] finds those that would not).
//!
//! Text that was read before, or need not be JSON, is looked over by [`Scanner`] and [`Tokens`].

mod members;
mod mistake;
mod pairs;
mod tokens;

use std::{
    borrow::Cow,
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
};

use serde_json::Value;

pub use members::Members;
pub use mistake::JsonMistake;
pub use pairs::with_whole_pairs;
pub use tokens::{Part, Scanner, Tokens, value_bytes};

/// Deepest nesting of a request body.
pub const MAX_BODY_DEPTH: usize = 128;
/// Deepest nesting of the arguments of a call.
pub const MAX_ARGUMENT_DEPTH: usize = 64;
/// Deepest nesting of a result: many parsers go no deeper, and what indents one writes its depth on every line.
pub const MAX_RESULT_DEPTH: usize = 128;

/// Why a text is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// Not the grammar of RFC 8259.
    #[error("not JSON at byte {0}")]
    Syntax(usize),
    /// Nested deeper than allowed.
    #[error("nested deeper than {0}")]
    TooDeep(usize),
    /// A member name that the same object already has.
    #[error("a member name appears twice at byte {0}")]
    DuplicateName(usize),
    /// An escape that is half of a surrogate pair.
    #[error("a lone surrogate at byte {0}")]
    LoneSurrogate(usize),
}

/// Checks a whole text strictly and gives it back as text.
///
/// # Errors
/// [`JsonError`], the first thing that is wrong.
pub fn check(bytes: &[u8], max_depth: usize) -> Result<&str, JsonError> {
    let text = std::str::from_utf8(bytes).map_err(|_| JsonError::NotUtf8)?;
    Scan::new(text, max_depth).whole()?;
    Ok(text)
}

/// Checks what a server gave, which goes on as it is: as [`check`], but half a surrogate pair in a text is no reason to
/// refuse all of it.
///
/// # Errors
/// [`JsonError`], the first thing that is wrong.
pub fn check_result(text: &str, max_depth: usize) -> Result<(), JsonError> {
    Scan { takes_half_pairs: true, ..Scan::new(text, max_depth) }.whole()
}

/// What one look over a checked text finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured<'a> {
    /// How deep it is nested: 0 for a bare number, 1 for `{}`.
    pub depth: usize,
    /// The first number that would not keep its value: an integer beyond 64 bits, or more digits than a double holds.
    pub inexact: Option<&'a str>,
}

/// Looks over a text that passed [`check`]; of one that did not, what was seen up to there.
#[must_use]
pub fn measured(checked: &str) -> Measured<'_> {
    let mut scan = Scan { measures: true, ..Scan::new(checked, usize::MAX) };
    let _seen_so_far = scan.whole();
    Measured { depth: scan.deepest, inexact: scan.inexact.map(|(start, end)| &checked[start..end]) }
}

/// Sorts the members of every object by code point. Printed with `serde_json`, the result is the canonical text.
pub fn sort_members(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.sort_keys();
            map.values_mut().for_each(sort_members);
        }
        Value::Array(items) => items.iter_mut().for_each(sort_members),
        _ => {}
    }
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    deepest: usize,
    max_depth: usize,
    /// Whether it looks for numbers that would not keep their values.
    measures: bool,
    inexact: Option<(usize, usize)>,
    takes_half_pairs: bool,
    /// Names of the objects that are open, as far as they are compared, the outer ones' first.
    names: Vec<&'a str>,
    hasher: RandomState,
}

/// What the scan is inside of.
enum Open {
    Array,
    Object(Names),
}

/// The names that an object has so far.
struct Names {
    /// Where those begin, among the scan's names, that are compared: at most [`FEW`], none written with an escape.
    first: usize,
    /// Of more, or of others, only hashes are kept, since there may be millions. Their key is random, so that nobody can
    /// make two names that are taken for one.
    many: Option<HashSet<u64>>,
}

/// Names that are compared one by one.
const FEW: usize = 16;

/// Where halves of surrogate pairs stand meanwhile: characters that no text has a use for.
const HALF_PAIRS: u32 = 0xf_0000;

impl<'a> Scan<'a> {
    fn new(text: &'a str, max_depth: usize) -> Self {
        let (names, hasher) = (Vec::new(), RandomState::new());
        let (measures, inexact, takes_half_pairs) = (false, None, false);
        Self { text, at: 0, depth: 0, deepest: 0, max_depth, measures, inexact, takes_half_pairs, names, hasher }
    }

    /// One value and nothing after it. A loop with a stack of its own: nesting costs heap, not stack.
    fn whole(&mut self) -> Result<(), JsonError> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.space();
            if let Some(container) = self.value_start()? {
                self.enter()?;
                open.push(container);
                if !self.container_start(&mut open)? {
                    continue;
                }
            }
            if !self.after_value(&mut open)? {
                break;
            }
        }
        if self.at == self.text.len() { Ok(()) } else { Err(JsonError::Syntax(self.at)) }
    }

    fn enter(&mut self) -> Result<(), JsonError> {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        if self.depth > self.max_depth { Err(JsonError::TooDeep(self.max_depth)) } else { Ok(()) }
    }

    /// Consumes a scalar, or the opening bracket of a container.
    fn value_start(&mut self) -> Result<Option<Open>, JsonError> {
        match self.peek() {
            Some(b'{') => {
                self.at += 1;
                Ok(Some(Open::Object(Names { first: self.names.len(), many: None })))
            }
            Some(b'[') => {
                self.at += 1;
                Ok(Some(Open::Array))
            }
            Some(b'"') => self.string().map(|_| None),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => self.number().map(|()| None),
            _ => Err(JsonError::Syntax(self.at)),
        }
    }

    /// After an opening bracket: true if the container closed at once, false if a value comes next.
    fn container_start(&mut self, open: &mut Vec<Open>) -> Result<bool, JsonError> {
        self.space();
        match (open.last_mut(), self.peek()) {
            (Some(Open::Array), Some(b']')) | (Some(Open::Object(_)), Some(b'}')) => {
                self.leave(open);
                Ok(true)
            }
            (Some(Open::Object(names)), _) => self.member_name(names).map(|()| false),
            _ => Ok(false),
        }
    }

    /// After a value: closes containers, and says whether another value comes.
    fn after_value(&mut self, open: &mut Vec<Open>) -> Result<bool, JsonError> {
        loop {
            self.space();
            match (open.last_mut(), self.peek()) {
                (None, _) => return Ok(false),
                (Some(Open::Array), Some(b',')) => {
                    self.at += 1;
                    return Ok(true);
                }
                (Some(Open::Object(names)), Some(b',')) => {
                    self.at += 1;
                    self.space();
                    return self.member_name(names).map(|()| true);
                }
                (Some(Open::Array), Some(b']')) | (Some(Open::Object(_)), Some(b'}')) => {
                    self.leave(open);
                }
                _ => return Err(JsonError::Syntax(self.at)),
            }
        }
    }

    /// Consumes a closing bracket.
    fn leave(&mut self, open: &mut Vec<Open>) {
        self.at += 1;
        self.depth -= 1;
        if let Some(Open::Object(names)) = open.pop() {
            self.names.truncate(names.first);
        }
    }

    fn member_name(&mut self, names: &mut Names) -> Result<(), JsonError> {
        let start = self.at;
        let name = self.string()?;
        let few = &self.names[names.first..];
        let is_new = match name {
            Cow::Borrowed(name) if names.many.is_none() && few.len() < FEW => {
                let is_new = !few.contains(&name);
                self.names.push(name);
                is_new
            }
            name => {
                let hash = |name: &str| self.hasher.hash_one(name);
                let hashed = || self.names.drain(names.first..).map(hash).collect();
                names.many.get_or_insert_with(hashed).insert(hash(&name))
            }
        };
        if !is_new {
            return Err(JsonError::DuplicateName(start));
        }
        self.space();
        if self.peek() != Some(b':') {
            return Err(JsonError::Syntax(self.at));
        }
        self.at += 1;
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str) -> Result<Option<Open>, JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(JsonError::Syntax(self.at));
        }
        self.at += word.len();
        Ok(None)
    }

    /// A string, unescaped; borrowed when it has no escape.
    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(JsonError::Syntax(self.at));
        }
        self.at += 1;
        let mut plain = self.at;
        let mut out: Option<String> = None;
        loop {
            self.at += plain_bytes(&self.text.as_bytes()[self.at..]);
            match self.peek() {
                Some(b'"') => {
                    let tail = &self.text[plain..self.at];
                    self.at += 1;
                    return Ok(match out {
                        None => Cow::Borrowed(tail),
                        Some(text) => Cow::Owned(text + tail),
                    });
                }
                Some(b'\\') => {
                    let text = out.get_or_insert_default();
                    text.push_str(&self.text[plain..self.at]);
                    text.push(self.escape()?);
                    plain = self.at;
                }
                _ => return Err(JsonError::Syntax(self.at)),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        self.at += 1;
        let c = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape(start);
            }
            _ => return Err(JsonError::Syntax(self.at)),
        };
        self.at += 1;
        Ok(c)
    }

    fn unicode_escape(&mut self, start: usize) -> Result<char, JsonError> {
        let unit = self.hex4()?;
        if !(0xd800..0xe000).contains(&unit) {
            return char::from_u32(unit).ok_or(JsonError::Syntax(start));
        }
        let after = self.at;
        if unit >= 0xdc00 || !self.text[self.at..].starts_with("\\u") {
            return self.half_pair(unit, start, after);
        }
        self.at += 2;
        let low = self.hex4()?;
        if !(0xdc00..0xe000).contains(&low) {
            return self.half_pair(unit, start, after);
        }
        char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)).ok_or(JsonError::LoneSurrogate(start))
    }

    /// Half of a surrogate pair, from where it starts to where it ends.
    fn half_pair(&mut self, unit: u32, start: usize, end: usize) -> Result<char, JsonError> {
        self.at = end;
        let stands_for = char::from_u32(HALF_PAIRS + unit - 0xd800).filter(|_| self.takes_half_pairs);
        stands_for.ok_or(JsonError::LoneSurrogate(start))
    }

    fn hex4(&mut self) -> Result<u32, JsonError> {
        let bytes = self.text.as_bytes().get(self.at..self.at + 4).ok_or(JsonError::Syntax(self.at))?;
        let mut unit = 0;
        for b in bytes {
            unit = unit * 16 + char::from(*b).to_digit(16).ok_or(JsonError::Syntax(self.at))?;
        }
        self.at += 4;
        Ok(unit)
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(JsonError::Syntax(self.at)),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        if self.measures && self.inexact.is_none() && !keeps_its_value(&self.text[start..self.at]) {
            self.inexact = Some((start, self.at));
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(JsonError::Syntax(start)) } else { Ok(()) }
    }
}

/// How many bytes come before the first one that ends a string, begins an escape, or may not be in a string.
fn plain_bytes(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (n, word) in words.iter().enumerate() {
        let stops = stops(u64::from_le_bytes(*word));
        if stops != 0 {
            return n * 8 + stops.trailing_zeros() as usize / 8;
        }
    }
    let in_rest = rest.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\'));
    words.len() * 8 + in_rest.unwrap_or(rest.len())
}

/// The highest bit of each such byte of a word. Above the lowest of them others may be marked too.
fn stops(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | is(b'"') | is(b'\\')) & (ONES << 7)
}

/// Whether a number survives as a 64-bit integer or a double: its shortest text as such has the same decimal value.
fn keeps_its_value(number: &str) -> bool {
    if !number.contains(['.', 'e', 'E']) {
        return number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
    }
    match number.parse::<f64>() {
        // Of two shortest texts that are as near, the one that is written.
        Ok(double) => serde_json::Number::from_f64(double)
            .is_some_and(|written| Decimal::of(number) == Decimal::of(&written.to_string())),
        Err(_) => false,
    }
}

/// A decimal as significant digits and a power of ten, so that `1.50`, `15e-1` and `1.5` are equal.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// `None` when the exponent itself is out of any range; such a number never equals a double's.
    fn of(text: &str) -> Option<Self> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let kept = all.trim_start_matches('0').trim_end_matches('0');
        if kept.is_empty() {
            return Some(Self { negative: false, digits: String::new(), exponent: 0 });
        }
        let trailing = all.len() - all.trim_end_matches('0').len();
        let shift = i64::try_from(trailing).ok()? - i64::try_from(fraction.len()).ok()?;
        let exponent = exponent.parse::<i64>().ok()?.checked_add(shift)?;
        Some(Self { negative, digits: kept.to_owned(), exponent })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> JsonError {
        check(text.as_bytes(), MAX_BODY_DEPTH).unwrap_err()
    }

    #[test]
    fn what_parsers_read_differently_is_refused() {
        assert_eq!(error(r#"{"a":1,"a":2}"#), JsonError::DuplicateName(7));
        assert_eq!(error(r#"{"a":1,"\u0061":2}"#), JsonError::DuplicateName(7));
        assert_eq!(error(r#"{"x":{"b":[{"c":1,"c":1}]}}"#), JsonError::DuplicateName(18));
        assert_eq!(error(r#"["\ud800"]"#), JsonError::LoneSurrogate(2));
        assert_eq!(error(r#"["\ud800\u0041"]"#), JsonError::LoneSurrogate(2));
        assert_eq!(error(r#"["\udc00"]"#), JsonError::LoneSurrogate(2));
        assert_eq!(check(b"\"\xff\"", 1), Err(JsonError::NotUtf8));
        assert!(check(br#"[{"a":1},{"a":1},"\ud83d\ude00"]"#, 128).is_ok());
    }

    #[test]
    fn many_names_and_names_with_escapes_are_told_apart_as_few_are() {
        let names = |n: usize| (0..n).map(|n| format!(r#""n{n}":{{"x":1,"y":[{{"x":2}}]}},"#)).collect::<String>();
        for n in [1, 15, 16, 17, 40] {
            for (last, is_new) in [("n0", false), (r"n\u0030", false), ("x", true), (r"\u0078", true)] {
                let text = format!(r#"{{{}"{last}":0}}"#, names(n));
                let expected = if is_new { Ok(()) } else { Err(JsonError::DuplicateName(1 + names(n).len())) };
                assert_eq!(check(text.as_bytes(), 9).map(|_| ()), expected, "{text}");
            }
        }
        let escaped_first = r#"{"\u0061":1,"b":{"a":1,"b":2},"a":3}"#;
        assert_eq!(error(escaped_first), JsonError::DuplicateName(escaped_first.len() - 6));
        // A string may stop at any place of a block.
        for n in 0..40 {
            let plain = "é".repeat(n);
            assert!(check(format!("[\"{plain}\",\"{plain}\\n\"]").as_bytes(), 2).is_ok());
            let broken = format!("[\"{plain}\u{1}\"]");
            assert_eq!(error(&broken), JsonError::Syntax(2 + plain.len()));
            assert_eq!(error(&broken[..2 + plain.len()]), JsonError::Syntax(2 + plain.len()));
        }
    }

    #[test]
    fn half_a_pair_in_a_result_is_passed_over_and_all_else_is_not() {
        let result = |text: &str| check_result(text, MAX_RESULT_DEPTH);
        for text in [r#"["\ud800"]"#, r#"["\ud800\u0041","\udc00x"]"#, r#"{"\ud800":1,"\udc00":2,"\ufffd":3}"#] {
            assert_eq!(result(text), Ok(()), "{text}");
        }
        assert_eq!(result(r#"{"\ud800":1,"\ud800":2}"#), Err(JsonError::DuplicateName(12)));
        assert_eq!(result(r#"{"a":[{"b":1,"b":2}]}"#), Err(JsonError::DuplicateName(13)));
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(result(&nested(MAX_RESULT_DEPTH)), Ok(()));
        assert_eq!(result(&nested(MAX_RESULT_DEPTH + 1)), Err(JsonError::TooDeep(MAX_RESULT_DEPTH)));
    }

    #[test]
    fn of_two_shortest_texts_of_a_double_the_written_one_keeps_its_value() {
        assert_eq!(serde_json::json!(261_765_408_335_383.62).to_string(), "261765408335383.62");
        assert_eq!(measured("[261765408335383.62]").inexact, None);
        assert_eq!(measured("[261765408335383.63]").inexact, Some("261765408335383.63"));
    }

    #[test]
    fn nesting_is_counted_in_containers() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(check(nested(128).as_bytes(), MAX_BODY_DEPTH).is_ok());
        assert_eq!(error(&nested(129)), JsonError::TooDeep(128));
        assert_eq!(error(&"[".repeat(1_000_000)), JsonError::TooDeep(128));
        let depth = |text| measured(text).depth;
        assert_eq!((depth("1"), depth("{}"), depth(r#"{"a":[1,[]],"b":{}}"#)), (0, 1, 3));
    }

    #[test]
    fn not_json_is_refused() {
        for text in [
            "",
            " ",
            "{nope",
            "[1,]",
            "{\"a\":1,}",
            "{,}",
            "[1 2]",
            "01",
            "1.",
            ".5",
            "-",
            "+1",
            "1e",
            "NaN",
            "\"\n\"",
            "\"\\x\"",
            "\"",
            "[1]]",
            "{}{}",
            "nul",
            "{1:2}",
            "{\"a\" 1}",
            "\"\\u12g4\"",
            "[\"a\":1]",
            "\u{feff}{}",
        ] {
            assert!(matches!(error(text), JsonError::Syntax(_)), "{text}: {:?}", error(text));
        }
    }

    #[test]
    fn numbers_that_would_change_are_found() {
        for text in [
            "0",
            "-0",
            "1.0",
            "1.50",
            "15e-1",
            "1E5",
            "18446744073709551615",
            "-9223372036854775808",
            "0.1",
            "1e22",
            "0e99999",
            "5e-324",
        ] {
            assert_eq!(measured(text).inexact, None, "{text}");
        }
        for text in [
            "18446744073709551616",
            "-9223372036854775809",
            "0.10000000000000000001",
            "1e400",
            "9007199254740993.0",
            "1e-400",
            "1e99999999999999999999",
        ] {
            assert_eq!(measured(text).inexact, Some(text), "{text}");
        }
        assert_eq!(measured(r#"{"a":[1,1e400]}"#).inexact, Some("1e400"));
    }

    #[test]
    fn the_canonical_text_sorts_by_code_point_at_every_level() {
        let mut value: Value = serde_json::from_str(
            "{ \"b\": 1, \"a\": {\"\u{10000}\": 1, \"\u{ffff}\": 2, \"\\u0041\": \"\\u00e9\\u000a\\/\"} }",
        )
        .unwrap();
        sort_members(&mut value);
        assert_eq!(value.to_string(), "{\"a\":{\"A\":\"é\\n/\",\"\u{ffff}\":2,\"\u{10000}\":1},\"b\":1}");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_serde_prints_passes_and_keeps_its_numbers(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            prop_assert_eq!(check(text.as_bytes(), 128), Ok(text.as_str()));
            prop_assert_eq!(measured(&text).inexact, None);
        }

        #[test]
        fn what_passes_parses_and_the_canonical_text_is_a_fixed_point(text in r#"[\[\]{}",:0-9eE.\\u \-a]{0,24}"#) {
            if check(text.as_bytes(), 128).is_ok() && measured(&text).inexact.is_none() {
                let mut value: Value = serde_json::from_str(&text).unwrap();
                sort_members(&mut value);
                let canonical = value.to_string();
                let mut again: Value = serde_json::from_str(&canonical).unwrap();
                sort_members(&mut again);
                prop_assert_eq!(canonical, again.to_string());
            }
        }

        #[test]
        fn any_bytes_end_in_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let ours = check(&bytes, 128).is_ok();
            if ours { prop_assert!(serde_json::from_slice::<Value>(&bytes).is_ok() || measured(std::str::from_utf8(&bytes).unwrap()).inexact.is_some()); }
        }
    }
}
