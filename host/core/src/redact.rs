//! Taking the values of configured secrets out of what servers say.
//!
//! A value is looked for in all its [`spellings`], with one automaton, in the text as it stands and in what it reads
//! where nothing is escaped ([`unescaped`]), and without white space at its ends too, which programs that read it leave out. Values shorter than [`MIN_BYTES`] are not looked
//! for: they would take ordinary words with them. What is a token by its looks is found by [`shapes`].
//!
//! A value that stands in the arguments of a call is left in its answer ([`Redactor::sparing`]): whoever sent it has it,
//! and an echo that lacked it would tell a guess that it was right. What is sent while the answer may come already is looked
//! at as it passes ([`SentText`]). For the same reason what is kept back of a stream hangs on no more than how a value
//! begins ([`StreamRedactor`]).

pub mod shapes;
mod spellings;
mod stream;
mod unescaped;
pub mod words;

use std::{
    borrow::Cow,
    fmt,
    ops::Range,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use aho_corasick::{AhoCorasick, MatchKind};

use crate::secret::Secret;
use stream::Beginnings;
pub use stream::{LookPiece, SentText, StreamRedactor};
use unescaped::Unescaped;

/// Shortest value that is looked for, bytes.
pub const MIN_BYTES: usize = 8;
/// What stands for a value.
pub const MARK: &str = "[redacted]";

/// Finds and replaces the values of configured secrets. Clones share what they look for, and the count.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<RwLock<Known>>,
    replaced: Arc<AtomicU64>,
    /// Which secrets are left where they are.
    spared: Arc<Spared>,
}

/// Secrets that are left where they are, by their number.
#[derive(Default)]
struct Spared(RwLock<Vec<usize>>);

/// What is looked for.
#[derive(Default)]
struct Known {
    /// In the order in which they were learnt, which is their number.
    secrets: Vec<Secret>,
    /// Whether all of them are one and the same, written in several ways: whoever says one of them knows the others.
    are_one: bool,
    finder: Option<Arc<Finder>>,
}

/// All spellings of all secrets.
struct Finder {
    automaton: AhoCorasick,
    /// The secret of each spelling.
    owners: Vec<usize>,
    /// Bytes of the longest spelling, and of the longest value itself.
    longest: usize,
    longest_plain: usize,
    /// How values in a stream begin.
    beginnings: Beginnings,
}

impl fmt::Debug for Finder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Finder(hidden)")
    }
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

    /// Looks for one value that is written in several ways. Whoever says it in one of them knows the others too.
    #[must_use]
    pub fn of_one<'a>(ways: impl IntoIterator<Item = &'a Secret>) -> Self {
        let known = Known { are_one: true, ..Known::default() };
        let redactor = Self { known: Arc::new(RwLock::new(known)), ..Self::default() };
        redactor.learn(ways);
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
        let are_one = known.are_one;
        let owned = |(number, secret): (usize, &Secret)| {
            let owner = if are_one { 0 } else { number };
            let plain = secret.expose();
            let mut texts = spellings::all(plain);
            let bare = plain.trim();
            if bare.len() != plain.len() && bare.len() >= MIN_BYTES {
                texts.extend(spellings::all(bare));
            }
            // One that looks escaped itself is read as another text.
            let read = Unescaped::of(plain.as_bytes()).map(|read| String::from_utf8_lossy(read.text()).into_owned());
            texts.extend(read.filter(|read| read.len() >= MIN_BYTES));
            texts.into_iter().map(move |text| (text, owner)).collect::<Vec<_>>()
        };
        let longest_plain = known.secrets.iter().map(|secret| secret.expose().len()).max().unwrap_or_default();
        let mut all: Vec<(String, usize)> = known.secrets.iter().enumerate().flat_map(owned).collect();
        // The longest first; what two secrets have in common is of the first of them.
        all.sort_by(|(a, first), (b, second)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)).then(first.cmp(second)));
        all.dedup_by(|(a, _), (b, _)| a == b);
        let Some((longest, _)) = all.first() else { return };
        let longest = longest.len();
        let (texts, owners): (Vec<String>, Vec<usize>) = all.into_iter().unzip();
        match AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&texts) {
            Ok(automaton) => {
                let beginnings = Beginnings::of(&texts);
                known.finder = Some(Arc::new(Finder { automaton, owners, longest, longest_plain, beginnings }));
            }
            // Only gigabytes of values get here.
            Err(error) => tracing::error!(%error, "values of new secrets are not taken out of what servers say"),
        }
    }

    /// The same, which leaves the values that stand in these texts, in any spelling: those of a call, for its answer.
    #[must_use]
    pub fn sparing<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Self {
        // Its own, even where nothing is found: what is sent after it may hold more.
        let spares = Self { spared: Arc::default(), ..self.clone() };
        if let Some(finder) = self.finder() {
            texts.into_iter().for_each(|text| spares.spared.add(finder.owners_in(text.as_bytes())));
        }
        spares
    }

    /// The same, which counts by itself from now on.
    #[must_use]
    pub fn counting_anew(&self) -> Self {
        Self { replaced: Arc::default(), ..self.clone() }
    }

    fn finder(&self) -> Option<Arc<Finder>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).finder.clone()
    }

    /// The text without the values, which are counted; borrowed when there is none in it.
    #[must_use]
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replace(text, || {
            self.replaced.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// Whether a value stands in a text all of whose letters were made small, as in the name of a header.
    #[must_use]
    pub fn is_in_small_letters(&self, text: &str) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let spared = self.spared.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_in = |(number, secret): (usize, &Secret)| {
            let (plain, owner) = (secret.expose().trim(), if known.are_one { 0 } else { number });
            (MIN_BYTES..=text.len()).contains(&plain.len())
                && !spared.contains(&owner)
                && text.contains(&plain.to_ascii_lowercase())
        };
        known.secrets.iter().enumerate().any(is_in)
    }

    /// Bytes of the longest text that is looked for.
    pub fn longest(&self) -> usize {
        self.finder().map_or(0, |finder| finder.longest)
    }

    /// A part of a text without the values, and where it ends. It starts and ends after a value that lies across its
    /// bounds, so that no part of one is left. Bounds are those of characters.
    pub fn scrub_part(&self, text: &str, part: Range<usize>) -> (String, usize) {
        let finder = self.finder();
        let (mut out, mut done, mut end) = (String::new(), part.start, part.end);
        for found in finder.iter().flat_map(|finder| finder.found(text.as_bytes(), &self.spared)) {
            if found.start >= end {
                break;
            }
            if found.start >= done {
                self.replaced.fetch_add(1, Ordering::Relaxed);
                out.push_str(&text[done..found.start]);
                out.push_str(MARK);
            }
            done = done.max(found.end);
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
        let Some(finder) = self.finder() else { return Cow::Borrowed(text) };
        let found = finder.found(text.as_bytes(), &self.spared);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut out, mut done) = (String::with_capacity(text.len()), 0);
        for one in found {
            each();
            out.push_str(&text[done..one.start]);
            out.push_str(MARK);
            done = one.end;
        }
        out.push_str(&text[done..]);
        Cow::Owned(out)
    }

    /// How many values were replaced so far.
    #[must_use]
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }
}

impl Spared {
    fn add(&self, owners: impl IntoIterator<Item = usize>) {
        let mut owners = owners.into_iter().peekable();
        if owners.peek().is_some() {
            let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
            all.extend(owners);
            all.sort_unstable();
            all.dedup();
        }
    }

    fn has(&self, owner: usize) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&owner)
    }
}

/// How many bytes of a text are unescaped at a time.
const WINDOW: usize = 256 << 10;
/// How many times as long as it is a value with escapes is looked for, and how much longer.
const ESCAPED: usize = 8;
const ESCAPES: usize = 1024;

impl Finder {
    /// Where values are, but for those that are spared: in order, and none across another.
    fn found(&self, text: &[u8], spared: &Spared) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = self.find(text, spared).collect();
        let as_it_stands = found.len();
        for (from, unescaped) in self.windows(text) {
            for (rounds, plain) in unescaped.texts() {
                let origin = |at| from + unescaped.origin(rounds, at);
                let escaped = self.find(plain, spared).map(|one| origin(one.start)..origin(one.end));
                found.extend(escaped.filter(|one| one.start < from + WINDOW));
            }
        }
        if found.len() == as_it_stands {
            return found;
        }
        found.sort_unstable_by_key(|one| (one.start, one.end));
        found.dedup_by(|one, before| {
            let across = one.start < before.end;
            before.end = if across { before.end.max(one.end) } else { before.end };
            across
        });
        found
    }

    fn find<'t>(&'t self, text: &'t [u8], spared: &'t Spared) -> impl Iterator<Item = Range<usize>> + 't {
        let found = self.automaton.find_iter(text).filter(|one| !spared.has(self.owners[one.pattern()]));
        found.map(|one| one.range())
    }

    /// What a text reads unescaped, in windows that overlap by what one value may take, each with where it begins.
    fn windows<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = (usize, Unescaped)> + use<'t> {
        let reach = WINDOW + self.escaped();
        let window = move |from: usize| {
            Unescaped::all_of(&text[from..text.len().min(from + reach)]).map(move |unescaped| (from, unescaped))
        };
        (0..text.len()).step_by(WINDOW).flat_map(window)
    }

    /// Most bytes that a value takes with what is escaped in it.
    fn escaped(&self) -> usize {
        (ESCAPED * self.longest_plain + ESCAPES).max(self.longest)
    }

    /// The secrets whose values stand in a text.
    fn owners_in(&self, text: &[u8]) -> Vec<usize> {
        let owners = |text: &[u8]| -> Vec<usize> {
            self.automaton.find_iter(text).map(|found| self.owners[found.pattern()]).collect()
        };
        let mut all = owners(text);
        self.windows(text).for_each(|(_, read)| read.texts().for_each(|(_, plain)| all.extend(owners(plain))));
        all
    }
}

#[cfg(test)]
mod tests {
    use base64::{
        Engine as _,
        engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
    };

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
    fn a_value_is_found_whichever_of_its_letters_are_escaped() {
        let redactor = Redactor::new(&[Secret::new("abc/d&f secret")]);
        for text in [
            r#""\u0061bc/d&f secret""#.to_owned(),
            r#""\u0061bc\/d&f s\u0065cret""#.to_owned(),
            r#""abc/d\u0026f secre\u0074""#.to_owned(),
            "\"abc/d&amp;f secret\"".to_owned(),
            "\"abc&#47;d&#x26;f&#32;secret\"".to_owned(),
            r#""abc/d\\u0026f secret""#.to_owned(),
            r#""abc/d\u0026amp;f secret""#.to_owned(),
        ] {
            assert_eq!(redactor.scrub(&text), "\"[redacted]\"", "{text}");
            let twice = format!("{text} abc/d&f secret {text}");
            assert_eq!(redactor.scrub(&twice), "\"[redacted]\" [redacted] \"[redacted]\"");
            assert_eq!(redactor.sparing([text.as_str()]).scrub(&twice), twice, "what the call said stays");
        }
    }

    #[test]
    fn a_value_that_looks_escaped_itself_is_found_however_it_is_written() {
        let redactor = Redactor::new(&[Secret::new("p%40ss&word1")]);
        for text in ["p%40ss&word1", "p%40ss&amp;word1", r"\u0070%40ss&word1", "p%2540ss%26word1", "p@ss&amp;word1"] {
            assert_eq!(redactor.scrub(text), MARK, "{text}");
        }
    }

    #[test]
    fn a_value_is_found_without_the_white_space_at_its_ends() {
        let redactor = Redactor::new(&["trailing-KEY ", "\tleading-KEY", " both-KEY-1\r\n"].map(Secret::new));
        for plain in ["trailing-KEY", "leading-KEY", "both-KEY-1"] {
            let hex = plain.bytes().map(|byte| format!("{byte:02x}")).collect();
            for text in [plain.to_owned(), STANDARD.encode(plain), hex] {
                assert_eq!(redactor.scrub(&text), MARK, "{plain}");
            }
            assert!(redactor.is_in_small_letters(&format!("x-{}", plain.to_lowercase())));
            assert_eq!(redactor.sparing([plain]).scrub(plain), plain, "what the call said stays");
        }
        assert_eq!(redactor.scrub("<trailing-KEY >"), "<[redacted]>");
        assert!(matches!(Redactor::new(&[Secret::new("short   ")]).scrub("short"), Cow::Borrowed(_)));
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

    #[test]
    fn a_value_is_found_in_its_usual_encodings() {
        const VALUE: &str = "s3cr/et+v\u{e9}lue? 1";
        let redactor = Redactor::new([&Secret::new(VALUE)]);
        let encoded = |engine: &base64::engine::GeneralPurpose| engine.encode(VALUE);
        let hex = |upper: bool| -> String {
            VALUE.bytes().map(|b| if upper { format!("{b:02X}") } else { format!("{b:02x}") }).collect()
        };
        for text in [
            encoded(&STANDARD),
            encoded(&STANDARD_NO_PAD),
            encoded(&URL_SAFE),
            encoded(&URL_SAFE_NO_PAD),
            encoded(&STANDARD).replace('/', "\\/"),
            hex(false),
            hex(true),
            "s3cr%2Fet%2Bv%C3%A9lue%3F%201".to_owned(),
            "s3cr%2fet%2bv%c3%a9lue%3f%201".to_owned(),
            "s3cr/et%2Bv%C3%A9lue%3F%201".to_owned(),
            "s3cr%2Fet%2Bv%C3%A9lue%3F+1".to_owned(),
            "s3cr/et+v%C3%A9lue?%201".to_owned(),
            VALUE.bytes().map(|b| format!("%{b:02X}")).collect(),
            VALUE.encode_utf16().map(|code| format!("\\u{code:04x}")).collect(),
        ] {
            assert_eq!(redactor.scrub(&format!("<{text}>")), "<[redacted]>", "{text}");
        }
        for (before, after) in [("", ""), ("a", "b"), ("user:", ""), ("ab", "cd"), ("user:x", "\n")] {
            let text = STANDARD.encode(format!("{before}{VALUE}{after}"));
            let clean = redactor.scrub(&text);
            let left = clean.replace(MARK, "").len();
            assert!(clean.contains(MARK) && left <= (before.len() + after.len()) * 4 / 3 + 8, "{text} {clean}");
        }
        let quoted = Redactor::new([&Secret::new("pass\"word-1")]);
        assert_eq!(quoted.scrub(r#"{"a":"{\"b\":\"pass\\\"word-1\"}"}"#), r#"{"a":"{\"b\":\"[redacted]\"}"}"#);
    }

    #[test]
    fn whoever_says_a_value_in_one_way_is_not_told_whether_another_way_of_it_is_right() {
        let ways = ["s3cret-value", "Bearer s3cret-value"].map(Secret::new);
        let (one, several) = (Redactor::of_one(&ways), Redactor::new(&ways));
        for said in ["s3cret-value", "Bearer s3cret-value"] {
            for answer in ["s3cret-value", "Bearer s3cret-value"] {
                assert_eq!(one.sparing([said]).scrub(answer), answer, "{said}");
            }
        }
        assert_eq!(one.sparing(["Bearer s3cret"]).scrub("s3cret-value"), MARK);
        assert_eq!(several.sparing(["Bearer s3cret-value"]).scrub("s3cret-value"), MARK, "these are two");
    }

    #[test]
    fn what_a_call_itself_says_stays_in_its_answer_so_that_a_guess_is_not_answered() {
        let redactor = Redactor::new([&Secret::new("the-first-secret"), &Secret::new("the-other-secret")]);
        for said in [r#"{"guess":"the-first-secret"}"#.to_owned(), STANDARD.encode("xx the-first-secret")] {
            let spares = redactor.sparing([said.as_str(), "nothing"]);
            let answer = format!("{said} the-first-secret {} the-other-secret", STANDARD.encode("the-first-secret"));
            let expected = answer.replace("the-other-secret", MARK);
            assert_eq!(spares.scrub(&answer), expected);
            assert_eq!(redactor.scrub("the-first-secret"), MARK, "only in that answer");
        }
        assert_eq!(redactor.sparing(["the-first-guess"]).scrub("the-first-secret"), MARK);
    }
}
