//! Words of a command line with places for arguments in them, and filling them. Pure.
//!
//! A value stays within its word: nothing in it is looked at again. What is missing takes its word with it, and all words
//! of its list. A word that a value has begin with `-` is refused, since programs would take it for an option, unless
//! `--` came before it or the place allows it.

use std::collections::BTreeMap;

use footbridge_core::secret::Secret;
use serde_json::{Value, json, value::RawValue};

/// Longest word that the kernel takes (MAX_ARG_STRLEN, 32 pages with the zero at its end), bytes.
const MAX_WORD: usize = 128 * 1024 - 1;

/// One argument of a program, or its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// What it is made of, one after the other.
    pub pieces: Vec<Piece>,
    /// Whether a value may have it begin with `-`.
    pub may_be_option: bool,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// As it is.
    Literal(Secret),
    /// The argument of this name.
    Value(String),
    /// All arguments, as one JSON object.
    All,
}

/// Why arguments are none for a program. It is told to the caller, whose own words it repeats at most by name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfitArguments {
    /// A value that would be taken for an option.
    #[error(
        "the value of \"{0}\" begins with \"-\" and would be taken for an option of the program: give one that does not, \
         such as \"./-x\" for a file; the operator can allow it with \"allowOptions\", or by \"--\" before it"
    )]
    Option(String),
    /// A zero, which ends a word.
    #[error("the value of \"{0}\" holds a zero byte, which no argument of a program can: leave it out")]
    Zero(String),
    /// More than a word takes.
    #[error("the value of \"{0}\" is too long for an argument of a program: at most {MAX_WORD} bytes")]
    TooLong(String),
    /// A list where one value fits.
    #[error("\"{0}\" is a list, and there is room for one value: give one")]
    List(String),
    /// What resolving rules out.
    #[error("the arguments are no JSON object")]
    NoObject,
}

/// The arguments of a call. Only what is used becomes a value.
#[derive(Debug)]
pub struct Arguments<'a> {
    whole: &'a RawValue,
    members: BTreeMap<String, &'a RawValue>,
}

impl<'a> Arguments<'a> {
    /// Of their canonical text.
    ///
    /// # Errors
    /// [`UnfitArguments::NoObject`].
    pub fn of(whole: &'a RawValue) -> Result<Self, UnfitArguments> {
        let members = serde_json::from_str(whole.get()).map_err(|_| UnfitArguments::NoObject)?;
        Ok(Self { whole, members })
    }

    /// A value as it is written on a command line: texts as they are, whole numbers without a fraction, all else as JSON.
    /// Nothing for what is missing.
    fn values(&self, name: &str) -> Values {
        let Some(raw) = self.members.get(name).filter(|raw| raw.get() != "null") else { return Values::None };
        match serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
            Ok(items) if items.is_empty() => Values::None,
            Ok(items) => Values::Many(items.into_iter().map(plain).collect()),
            Err(_) => Values::One(plain(raw)),
        }
    }
}

enum Values {
    None,
    One(String),
    Many(Vec<String>),
}

fn plain(raw: &RawValue) -> String {
    serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| {
        // 7.0 is an integer by JSON Schema, and to few programs.
        let is_number = raw.get().starts_with(|c: char| c == '-' || c.is_ascii_digit());
        raw.get().strip_suffix(".0").filter(|_| is_number).unwrap_or(raw.get()).to_owned()
    })
}

impl Word {
    /// One that is always the same.
    #[must_use]
    pub fn literal(text: Secret) -> Self {
        Self { pieces: vec![Piece::Literal(text)], may_be_option: false }
    }

    /// All arguments, as one JSON object.
    #[must_use]
    pub fn all() -> Self {
        Self { pieces: vec![Piece::All], may_be_option: false }
    }

    /// The names of its places.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(name) => Some(name.as_str()),
            Piece::Literal(_) | Piece::All => None,
        })
    }

    /// As it is written, for what makes a server this one.
    pub(super) fn written(&self, shown: &impl Fn(&str) -> Value) -> Value {
        let piece = |piece: &Piece| match piece {
            Piece::Literal(text) => shown(text.expose()),
            Piece::Value(name) => json!({ "value": name }),
            Piece::All => json!({"all": true}),
        };
        let pieces: Vec<Value> = self.pieces.iter().map(piece).collect();
        json!({"pieces": pieces, "may_be_option": self.may_be_option})
    }

    /// As one text, or nothing where a value is missing.
    ///
    /// # Errors
    /// [`UnfitArguments::List`].
    pub(super) fn text(&self, arguments: &Arguments<'_>) -> Result<Option<String>, UnfitArguments> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(literal.expose()),
                Piece::All => text.push_str(arguments.whole.get()),
                Piece::Value(name) => match arguments.values(name) {
                    Values::None => return Ok(None),
                    Values::One(value) => text.push_str(&value),
                    Values::Many(_) => return Err(UnfitArguments::List(name.clone())),
                },
            }
        }
        Ok(Some(text))
    }

    /// As words: one, or one for each item where it is nothing but the place of a list.
    fn words(&self, arguments: &Arguments<'_>) -> Result<Option<Vec<String>>, UnfitArguments> {
        if let [Piece::Value(name)] = &self.pieces[..]
            && let Values::Many(items) = arguments.values(name)
        {
            return Ok(Some(items));
        }
        Ok(self.text(arguments)?.map(|text| vec![text]))
    }

    /// Refuses what no program takes as it is meant.
    fn check(&self, word: &str, options_over: bool) -> Result<(), UnfitArguments> {
        let name = || self.names().next().unwrap_or("the arguments").to_owned();
        if word.contains('\0') {
            return Err(UnfitArguments::Zero(name()));
        }
        if word.len() > MAX_WORD {
            return Err(UnfitArguments::TooLong(name()));
        }
        let by_value = matches!(self.pieces.first(), Some(Piece::Value(_) | Piece::All));
        if by_value && word.starts_with('-') && !options_over && !self.may_be_option {
            return Err(UnfitArguments::Option(name()));
        }
        Ok(())
    }

    fn is_end_of_options(&self) -> bool {
        matches!(&self.pieces[..], [Piece::Literal(text)] if text.expose() == "--")
    }
}

/// All words, with the arguments in their places.
pub(super) fn fill(groups: &[Vec<Word>], arguments: &Arguments<'_>) -> Result<Vec<Secret>, UnfitArguments> {
    let (mut filled, mut options_over) = (Vec::new(), false);
    for group in groups {
        let words = group.iter().map(|word| Ok(word.words(arguments)?.map(|words| (word, words))));
        let Some(words) = words.collect::<Result<Option<Vec<_>>, UnfitArguments>>()? else { continue };
        for (word, texts) in words {
            for text in texts {
                word.check(&text, options_over)?;
                filled.push(Secret::new(text));
            }
            options_over |= word.is_end_of_options();
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Word {
        Word::literal(Secret::new(text))
    }

    fn place(name: &str) -> Word {
        Word { pieces: vec![Piece::Value(name.to_owned())], may_be_option: false }
    }

    fn after(start: &str, name: &str) -> Word {
        Word { pieces: vec![Piece::Literal(Secret::new(start)), Piece::Value(name.to_owned())], may_be_option: false }
    }

    fn filled(groups: &[Vec<Word>], arguments: &Value) -> Result<Vec<String>, UnfitArguments> {
        let raw = RawValue::from_string(arguments.to_string()).unwrap();
        let words = fill(groups, &Arguments::of(&raw).unwrap())?;
        Ok(words.iter().map(|word| word.expose().to_owned()).collect())
    }

    #[test]
    fn values_stay_within_their_words() {
        let groups = [vec![literal("log")], vec![after("--grep=", "text")], vec![place("n")]];
        let all = filled(&groups, &json!({"text": "a b; $(rm) {n} \"'", "n": 5})).unwrap();
        assert_eq!(all, ["log", "--grep=a b; $(rm) {n} \"'", "5"]);
        assert_eq!(filled(&[vec![Word::all()]], &json!({"a": [1]})).unwrap(), [r#"{"a":[1]}"#]);
        assert_eq!(filled(&[vec![place("x")]], &json!({"x": {"b": true}})).unwrap(), [r#"{"b":true}"#]);
        let numbers = json!({"x": [7.0, 1e3, -2.0, 2.5, 1e300, "7.0", [7.0]]});
        let words = ["7", "1000", "-2", "2.5", "1e+300", "7.0", "[7.0]"];
        let place = Word { may_be_option: true, ..place("x") };
        assert_eq!(filled(&[vec![place]], &numbers).unwrap(), words);
    }

    #[test]
    fn what_is_missing_takes_its_word_and_its_list_with_it() {
        let groups = [vec![literal("-n"), place("n")], vec![after("--since=", "since")], vec![literal("end")]];
        assert_eq!(filled(&groups, &json!({})).unwrap(), ["end"]);
        assert_eq!(filled(&groups, &json!({"n": null, "since": "x"})).unwrap(), ["--since=x", "end"]);
        assert_eq!(filled(&groups, &json!({"n": 1})).unwrap(), ["-n", "1", "end"]);
        assert_eq!(filled(&[vec![place("files")]], &json!({"files": []})).unwrap(), [""; 0]);
    }

    #[test]
    fn a_list_is_a_word_an_item_and_nothing_within_one() {
        assert_eq!(filled(&[vec![place("files")]], &json!({"files": ["a", "b c", 3]})).unwrap(), ["a", "b c", "3"]);
        let within = filled(&[vec![after("-f", "files")]], &json!({"files": ["a"]}));
        assert_eq!(within, Err(UnfitArguments::List("files".to_owned())));
    }

    #[test]
    fn what_looks_like_an_option_is_refused_unless_it_can_be_none() {
        let option = |name: &str| Err(UnfitArguments::Option(name.to_owned()));
        assert_eq!(filled(&[vec![place("path")]], &json!({"path": "--output=/etc/passwd"})), option("path"));
        assert_eq!(filled(&[vec![place("paths")]], &json!({"paths": ["a", "-rf"]})), option("paths"));
        assert_eq!(filled(&[vec![place("n")]], &json!({"n": -5})), option("n"));
        let two = Word { pieces: vec![Piece::Value("a".into()), Piece::Value("b".into())], may_be_option: false };
        assert_eq!(filled(&[vec![two]], &json!({"a": "", "b": "-x"})), option("a"));
        for (groups, words) in [
            (vec![vec![literal("--")], vec![place("path")]], vec!["--", "-x"]),
            (vec![vec![after("--path=", "path")]], vec!["--path=-x"]),
            (vec![vec![Word { may_be_option: true, ..place("path") }]], vec!["-x"]),
        ] {
            assert_eq!(filled(&groups, &json!({"path": "-x"})).unwrap(), words);
        }
        // One that is left out ends no options.
        let groups = [vec![literal("--"), place("one")], vec![place("two")]];
        assert_eq!(filled(&groups, &json!({"two": "-x"})), option("two"));
        // Nor does a value that is one.
        let groups = [vec![Word { may_be_option: true, ..place("one") }], vec![place("two")]];
        assert_eq!(filled(&groups, &json!({"one": "--", "two": "-x"})), option("two"));
    }

    #[test]
    fn what_no_argument_can_be_is_named() {
        assert_eq!(filled(&[vec![place("a")]], &json!({"a": "x\0y"})), Err(UnfitArguments::Zero("a".into())));
        let long = "x".repeat(MAX_WORD + 1);
        assert_eq!(filled(&[vec![place("a")]], &json!({ "a": long })), Err(UnfitArguments::TooLong("a".into())));
        assert_eq!(filled(&[vec![place("a")]], &json!({"a": "x".repeat(MAX_WORD)})).unwrap()[0].len(), MAX_WORD);
    }
}
