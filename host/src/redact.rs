//! Taking the values of configured secrets out of what servers say.
//!
//! A value is looked for as it stands and as JSON would write it. Values shorter than [`MIN_BYTES`] are not looked
//! for: they would take ordinary words with them.

use std::{
    borrow::Cow,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use aho_corasick::AhoCorasick;

use crate::secret::Secret;

/// Shortest value that is looked for.
pub const MIN_BYTES: usize = 8;
/// What stands for a value.
pub const MARK: &str = "[redacted]";

/// Finds and replaces the values of configured secrets. Clones share the count.
#[derive(Clone, Default)]
pub struct Redactor {
    finder: Option<Arc<AhoCorasick>>,
    replaced: Arc<AtomicU64>,
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
        let mut values = Vec::new();
        for secret in secrets {
            let plain = secret.expose();
            if plain.len() >= MIN_BYTES {
                let quoted = serde_json::Value::from(plain).to_string();
                values.push(plain.to_owned());
                values.push(quoted[1..quoted.len() - 1].to_owned());
            }
        }
        values.sort_by_key(|v| std::cmp::Reverse(v.len()));
        values.dedup();
        let finder = if values.is_empty() { None } else { finder(&values) };
        Self { finder: finder.map(Arc::new), replaced: Arc::default() }
    }

    /// The text without the values; borrowed when there is none in it.
    #[must_use]
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(finder) = &self.finder else { return Cow::Borrowed(text) };
        if !finder.is_match(text) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        finder.replace_all_with(text, &mut out, |_, _, out| {
            self.replaced.fetch_add(1, Ordering::Relaxed);
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

/// The longest value wins where several start at one place.
fn finder(values: &[String]) -> Option<AhoCorasick> {
    AhoCorasick::builder().match_kind(aho_corasick::MatchKind::LeftmostLongest).build(values).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_as_it_stands_and_as_json_writes_it() {
        let redactor = Redactor::new(&[Secret::new("pass\"word-1"), Secret::new("short"), Secret::new("longer-value")]);
        assert_eq!(redactor.scrub(r#"{"a":"x pass\"word-1 y","b":"short"}"#), r#"{"a":"x [redacted] y","b":"short"}"#);
        assert_eq!(redactor.scrub("pass\"word-1longer-value"), "[redacted][redacted]");
        assert_eq!(redactor.replaced(), 3);
        assert!(matches!(redactor.scrub("nothing"), Cow::Borrowed(_)));
    }
}
