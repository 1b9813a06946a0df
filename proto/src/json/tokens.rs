//! Where strings, values and containers of a JSON text begin and end, without making values of them.
//!
//! [`Scanner`] goes over bytes in any pieces, [`Tokens`] over a text that is there as a whole. Neither judges the
//! grammar, which [`super::check`] does: of a text that is no JSON they give some parts, and never fail.

use std::ops::Range;

/// What a byte of a JSON text is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// White space between tokens.
    Space,
    /// `{` or `[`.
    Open,
    /// `}` or `]`.
    Close,
    /// `:` behind a member's name.
    Colon,
    /// `,` between members or items.
    Comma,
    /// The quote that a string begins with.
    StringStart,
    /// Inside of a string, escapes as they are written.
    InString,
    /// The quote that a string ends with.
    StringEnd,
    /// A number, `true`, `false`, `null`, or what is no JSON.
    Scalar,
}

/// What is known between two bytes of a text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Scanner {
    /// Goes over the next byte, and says what it is part of.
    pub fn step(&mut self, byte: u8) -> Part {
        if self.in_string {
            return self.step_in_string(byte);
        }
        match byte {
            b'"' => {
                self.in_string = true;
                Part::StringStart
            }
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                Part::Open
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                Part::Close
            }
            b':' => Part::Colon,
            b',' => Part::Comma,
            b' ' | b'\t' | b'\r' | b'\n' => Part::Space,
            _ => Part::Scalar,
        }
    }

    fn step_in_string(&mut self, byte: u8) -> Part {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => {
                self.in_string = false;
                return Part::StringEnd;
            }
            _ => {}
        }
        Part::InString
    }

    /// How many containers are open.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }
}

/// What a value takes besides its text, wherever it is: 72 bytes.
const VALUE: usize = 72;
/// What the first item of a list takes besides: room for four of them.
const LIST: usize = 250;
/// What the first member of an object takes besides: room for three of them, and a table of their names.
const OBJECT: usize = 320;
/// What the name of a member takes besides its text.
const MEMBER: usize = 40;
/// What a string takes besides its text.
const STRING: usize = 32;

/// How many bytes a text takes as a [`serde_json::Value`], about: from twice its length, where it is one long string, to a
/// hundred times that, where it is lists with one item each.
#[must_use]
pub fn value_bytes(text: &str) -> usize {
    let mut scanner = Scanner::default();
    let of = |byte: &u8| match (scanner.step(*byte), byte) {
        (Part::Open, b'[') => LIST,
        (Part::Open, _) => OBJECT,
        (Part::Comma, _) => VALUE,
        (Part::Colon, _) => MEMBER,
        (Part::StringStart, _) => STRING,
        _ => 0,
    };
    2 * text.len() + VALUE + text.as_bytes().iter().map(of).sum::<usize>()
}

/// The tokens of a text one after the other: what kind each is of, and where it is. A string is one token, with its
/// quotes, and its kind is [`Part::StringStart`].
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    /// The tokens of this text.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0 }
    }

    /// Where the next string is. What comes before it is skipped.
    pub fn next_string(&mut self) -> Option<Range<usize>> {
        self.find(|(kind, _)| *kind == Part::StringStart).map(|(_, place)| place)
    }

    /// Skips the value that comes next, whatever it is, and says where it ends.
    pub fn skip_value(&mut self) -> usize {
        let mut open = 0_usize;
        loop {
            let before = self.at;
            let Some((kind, place)) = self.next() else { return self.at };
            match kind {
                // There is no value: what encloses it ends here.
                Part::Close | Part::Comma | Part::Colon if open == 0 => {
                    self.at = before;
                    return before;
                }
                Part::Open => open += 1,
                Part::Close => open -= 1,
                _ => {}
            }
            if open == 0 {
                return place.end;
            }
        }
    }
}

impl Iterator for Tokens<'_> {
    type Item = (Part, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let mut scanner = Scanner::default();
        let spaces = self.bytes[self.at..].iter().take_while(|byte| scanner.step(**byte) == Part::Space).count();
        let start = self.at + spaces;
        let mut rest = self.bytes.get(start..)?.iter();
        let mut scanner = Scanner::default();
        let kind = scanner.step(*rest.next()?);
        let more = match kind {
            Part::StringStart => rest.position(|byte| scanner.step(*byte) == Part::StringEnd).map(|length| length + 1),
            Part::Scalar => rest.position(|byte| scanner.step(*byte) != Part::Scalar),
            _ => Some(0),
        };
        self.at = more.map_or(self.bytes.len(), |more| start + 1 + more);
        Some((kind, start..self.at))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the lists of a value and all in them take, by the room that they have.
    fn in_lists(value: &serde_json::Value) -> usize {
        match value {
            serde_json::Value::Array(items) => items.capacity() * VALUE + items.iter().map(in_lists).sum::<usize>(),
            serde_json::Value::String(text) => text.capacity(),
            _ => 0,
        }
    }

    #[test]
    fn what_a_text_takes_as_a_value_is_told_by_its_tokens() {
        assert_eq!(size_of::<serde_json::Value>(), VALUE);
        let lists = |of: &str| format!("[{}]", vec![of; 1 << 13].join(","));
        for text in [lists("[0]"), lists("0"), lists("[12.5,47.1]"), lists(r#"[["a"],["b"]]"#)] {
            let (taken, told) = (in_lists(&serde_json::from_str(&text).unwrap()), value_bytes(&text));
            assert!(told * 5 / 4 >= taken && told < 2 * taken + 8 * text.len(), "{}: {taken} {told}", &text[..20]);
        }
        assert!(value_bytes(&format!("[\"{}\"]", "[{:,".repeat(1000))) < 2 * 4000 + 1000, "a text is no tokens");
        assert!(value_bytes(&lists(r#"{"a":1}"#)) > (1 << 13) * 400);
    }

    #[test]
    fn tokens_are_whole_and_spaces_are_none() {
        let text = " {\"a\\\"\" : [1.5e3,\ttrue , \"}\\\\\"] }\n";
        let found: Vec<&str> = Tokens::of(text).map(|(_, place)| &text[place]).collect();
        assert_eq!(found, ["{", r#""a\"""#, ":", "[", "1.5e3", ",", "true", ",", r#""}\\""#, "]", "}"]);
    }

    #[test]
    fn a_value_of_any_kind_is_skipped_whole() {
        for value in ["1", "null", r#""a,]\"}""#, "[]", r#"{"a":[{"b":"]"},2]}"#] {
            let text = format!("{value},7");
            let mut tokens = Tokens::of(&text);
            assert_eq!((tokens.skip_value(), tokens.next().map(|(kind, _)| kind)), (value.len(), Some(Part::Comma)));
        }
        assert_eq!(
            (Tokens::of("]").skip_value(), Tokens::of(",1").skip_value(), Tokens::of("[1").skip_value()),
            (0, 0, 2)
        );
    }

    proptest! {
        #[test]
        fn any_text_ends_and_its_tokens_follow_each_other(text in r#"[\[\]{}",:0-9\\ é]{0,40}"#) {
            let mut end = 0;
            for (_, place) in Tokens::of(&text) {
                prop_assert!(place.start >= end && place.end > place.start);
                prop_assert!(text[end..place.start].chars().all(|c| c == ' '));
                end = place.end;
            }
            let mut tokens = Tokens::of(&text);
            prop_assert!(tokens.skip_value() <= text.len());
        }
    }
}
