//! Taking the values of configured secrets out of what servers say.
//!
//! A value is looked for as it stands and as JSON would write it. Values shorter than [`MIN_BYTES`] are not looked
//! for: they would take ordinary words with them. What is a token by its looks is found by [`shapes`].

pub mod shapes;

use std::{
    borrow::Cow,
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use aho_corasick::{AhoCorasick, MatchKind};

use crate::secret::Secret;

/// Shortest value that is looked for.
pub const MIN_BYTES: usize = 8;
/// What stands for a value.
pub const MARK: &str = "[redacted]";

/// Finds and replaces the values of configured secrets. Clones share what they look for, and the count.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<RwLock<Known>>,
    replaced: Arc<AtomicU64>,
}

/// What is looked for.
#[derive(Default)]
struct Known {
    secrets: Vec<Secret>,
    finder: Option<Arc<AhoCorasick>>,
    /// Bytes of the longest spelling of one.
    longest: usize,
}

/// The automaton's own text would spell the values out.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor(hidden)")
    }
}

impl Redactor {
    /// Looks for these values.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let redactor = Self::default();
        redactor.learn(secrets);
        redactor
    }

    /// Looks for these values too, from now on. None is ever forgotten: a server may still hold an old one.
    pub fn learn<'a>(&self, secrets: impl IntoIterator<Item = &'a Secret>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for secret in secrets {
            if secret.expose().len() >= MIN_BYTES && !known.secrets.contains(secret) {
                known.secrets.push(secret.clone());
            }
        }
        let mut values = Vec::new();
        for secret in &known.secrets {
            values.push(secret.expose().to_owned());
            values.extend(spellings(secret.expose()));
        }
        // The longest value wins where several start at one place.
        values.sort_by_key(|v| std::cmp::Reverse(v.len()));
        values.dedup();
        if values.is_empty() {
            return;
        }
        match AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&values) {
            Ok(finder) => {
                known.longest = values.first().map_or(0, String::len);
                known.finder = Some(Arc::new(finder));
            }
            // Only gigabytes of values get here.
            Err(error) => tracing::error!(%error, "values of new secrets are not taken out of what servers say"),
        }
    }

    /// The text without the values, which are counted; borrowed when there is none in it.
    #[must_use]
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replace(text, || {
            self.replaced.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// Bytes of the longest text that is looked for.
    pub fn longest(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).longest
    }

    /// A part of a text without the values, and where it ends. It starts and ends after a value that lies across its
    /// bounds, so that no part of one is left. Bounds are those of characters.
    pub fn scrub_part(&self, text: &str, part: std::ops::Range<usize>) -> (String, usize) {
        let finder = self.known.read().unwrap_or_else(PoisonError::into_inner).finder.clone();
        let (mut out, mut done, mut end) = (String::new(), part.start, part.end);
        for found in finder.iter().flat_map(|finder| finder.find_iter(text)) {
            if found.start() >= end {
                break;
            }
            if found.start() >= done {
                self.replaced.fetch_add(1, Ordering::Relaxed);
                out.push_str(&text[done..found.start()]);
                out.push_str(MARK);
            }
            done = done.max(found.end());
            end = end.max(done);
        }
        out.push_str(&text[done..end]);
        (out, end)
    }

    /// As [`Self::scrub`], for what no server said: nothing is counted.
    #[must_use]
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replace(text, || {})
    }

    fn replace<'t>(&self, text: &'t str, each: impl Fn()) -> Cow<'t, str> {
        let finder = self.known.read().unwrap_or_else(PoisonError::into_inner).finder.clone();
        let Some(finder) = finder else { return Cow::Borrowed(text) };
        if !finder.is_match(text) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        finder.replace_all_with(text, &mut out, |_, _, out| {
            each();
            out.push_str(MARK);
            true
        });
        Cow::Owned(out)
    }

    /// How many values were replaced so far.
    #[must_use]
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }
}

/// The ways in which encoders write a text inside JSON: they differ in slashes, in what is not ASCII, and in what HTML
/// would read.
fn spellings(plain: &str) -> Vec<String> {
    let quoted = serde_json::Value::from(plain).to_string();
    let minimal = &quoted[1..quoted.len() - 1];
    let mut found = vec![minimal.to_owned()];
    for html in [false, true] {
        for slash in [false, true] {
            for upper in [false, true] {
                found.push(minimal.chars().map(|c| spelled(c, (html, slash, upper))).collect());
                found.push(minimal.chars().map(|c| spelled_ascii(c, (html, slash, upper))).collect());
            }
        }
    }
    found
}

fn spelled(c: char, (html, slash, upper): (bool, bool, bool)) -> String {
    match c {
        '<' | '>' | '&' | '\'' if html => unit(u16::try_from(u32::from(c)).unwrap_or_default(), upper),
        '/' if slash => "\\/".to_owned(),
        c => c.to_string(),
    }
}

fn spelled_ascii(c: char, how: (bool, bool, bool)) -> String {
    if c.is_ascii() {
        return spelled(c, how);
    }
    c.encode_utf16(&mut [0; 2]).iter().map(|code| unit(*code, how.2)).collect()
}

fn unit(code: u16, upper: bool) -> String {
    if upper { format!("\\u{code:04X}") } else { format!("\\u{code:04x}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_however_an_encoder_spells_it() {
        let redactor = Redactor::new(&[Secret::new("abc/def+é<&x")]);
        for text in [
            r#""abc\/def+é<&x""#,
            r#""abc/def+\u00e9<&x""#,
            r#""abc\/def+\u00E9<&x""#,
            r#""abc/def+é\u003c\u0026x""#,
            r#""abc\/def+\u00e9\u003c\u0026x""#,
        ] {
            assert_eq!(redactor.scrub(text), "\"[redacted]\"", "{text}");
        }
    }

    #[test]
    fn a_value_is_found_as_it_stands_and_as_json_writes_it() {
        let redactor = Redactor::new(&[Secret::new("pass\"word-1"), Secret::new("short"), Secret::new("longer-value")]);
        assert_eq!(redactor.scrub(r#"{"a":"x pass\"word-1 y","b":"short"}"#), r#"{"a":"x [redacted] y","b":"short"}"#);
        assert_eq!(redactor.scrub("pass\"word-1longer-value"), "[redacted][redacted]");
        assert_eq!(redactor.replaced(), 3);
        assert!(matches!(redactor.scrub("nothing"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_is_learnt_is_taken_out_by_every_clone_and_nothing_is_forgotten() {
        let redactor = Redactor::new([&Secret::new("old-secret")]);
        let clone = redactor.clone();
        redactor.learn([&Secret::new("new-secret"), &Secret::new("short")]);
        assert_eq!(clone.scrub("old-secret new-secret short"), "[redacted] [redacted] short");
        assert_eq!(redactor.replaced(), 2);
    }
}
