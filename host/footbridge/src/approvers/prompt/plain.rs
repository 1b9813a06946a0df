//! Text of guests and servers as a person decides about it: what is on the screen is what is there.
//!
//! Beyond what no terminal gets ([`needs_escape`]), characters are shown by their numbers where they could be taken for
//! others or for nothing: marks that combine with what stands before them, but for those of its own script; blanks other
//! than the plain one; what has no script or no meaning to Unicode; and look-alikes (Unicode's UTS #39), which are
//! characters that look like ASCII, outside words, in words of several scripts, and in words that look like ASCII as a
//! whole. Letters that run from right to left stay, between `<rtl:` and `:rtl>`: those keep them from carrying what
//! stands beside them to another place.

use std::fmt::Write as _;

use footbridge_proto::text::{Escaped, needs_escape};
use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_script::{Script, UnicodeScript as _};
use unicode_security::{MixedScript as _, skeleton};

/// Marks in a row that a letter may have: with more, they pile up on other lines.
const MOST_MARKS: usize = 3;

/// What a text has in it that is marked.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    /// What shows as nothing, as a blank, or upon something else.
    pub(crate) unseen: bool,
    /// What looks like something else.
    pub(crate) alike: bool,
    /// What runs from right to left.
    pub(crate) right_to_left: bool,
}

impl Marks {
    /// Of a text.
    pub(crate) fn of(text: &str) -> Self {
        Plain::of(text).marks
    }

    /// Of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            unseen: self.unseen || other.unseen,
            alike: self.alike || other.alike,
            right_to_left: self.right_to_left || other.right_to_left,
        }
    }

    /// What to tell a person, if there is anything.
    pub(crate) fn warning(self) -> Option<String> {
        let found = [
            (self.unseen, "characters that do not show as themselves (here as \\u{NUMBER})"),
            (self.alike, "letters or signs that look like others (here as \\u{NUMBER})"),
            (self.right_to_left, "words from right to left (here between <rtl: and :rtl>)"),
        ];
        let words: Vec<&str> = found.into_iter().filter(|(is, _)| *is).map(|(_, words)| words).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// The text on one line, marked.
pub(crate) fn plain(text: &str) -> String {
    Plain::of(text).out
}

#[derive(Default)]
struct Plain {
    out: String,
    marks: Marks,
    /// Whether letters from right to left were written last, and whether one blank followed them.
    right_to_left: bool,
    blank: bool,
    /// The script of what was written last, and the marks upon it.
    last: Option<Script>,
    marked: usize,
}

impl Plain {
    fn of(text: &str) -> Self {
        if text.is_ascii() {
            return Self { out: Escaped(text).to_string(), ..Self::default() };
        }
        let mut plain = Self::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c| !is_in_word(c)).unwrap_or(rest.len());
            let (part, others) = rest.split_at(if end == 0 { first.len_utf8() } else { end });
            let doubt = if end == 0 { Doubt::Signs } else { Doubt::of_word(part) };
            part.chars().for_each(|c| plain.put(c, doubt));
            rest = others;
        }
        plain.close();
        plain
    }

    fn put(&mut self, c: char, doubt: Doubt) {
        if !c.is_ascii() {
            if self.is_unseen(c) {
                self.marks.unseen = true;
                return self.escape(c);
            }
            if doubt.is_about(c) {
                self.marks.alike = true;
                return self.escape(c);
            }
            if is_right_to_left(c) {
                return self.put_right_to_left(c);
            }
        } else if c == ' ' && self.right_to_left && !self.blank {
            self.blank = true;
            return;
        }
        self.close();
        self.note_script(c);
        if c.is_ascii() {
            self.out.push_str(&Escaped(c.encode_utf8(&mut [0; 4])).to_string());
        } else {
            self.out.push(c);
        }
    }

    fn put_right_to_left(&mut self, c: char) {
        self.note_script(c);
        self.marks.right_to_left = true;
        if !std::mem::replace(&mut self.right_to_left, true) {
            self.out.push_str("<rtl:");
        }
        if std::mem::take(&mut self.blank) {
            self.out.push(' ');
        }
        self.out.push(c);
    }

    /// Nothing that follows is part of what runs from right to left.
    fn close(&mut self) {
        if std::mem::take(&mut self.right_to_left) {
            self.out.push_str(":rtl>");
        }
        if std::mem::take(&mut self.blank) {
            self.out.push(' ');
        }
    }

    fn escape(&mut self, c: char) {
        self.close();
        self.last = None;
        // Writing to a text does not fail.
        let _ = write!(self.out, "\\u{{{:x}}}", u32::from(c));
    }

    fn note_script(&mut self, c: char) {
        self.marked = if is_mark(c) { self.marked + 1 } else { 0 };
        self.last = Some(c.script());
    }

    fn is_unseen(&self, c: char) -> bool {
        use GeneralCategory::{Control, Format, PrivateUse, Surrogate, Unassigned};
        let category = get_general_category(c);
        let is_upon_its_own = || self.last == Some(c.script()) && self.marked < MOST_MARKS && !is_shared(c.script());
        needs_escape(c)
            || c.is_whitespace()
            || c == '\u{2800}'
            || matches!(category, Control | Format | PrivateUse | Surrogate | Unassigned)
            || (is_mark(c) && !is_upon_its_own())
    }
}

/// Why characters may be look-alikes where they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// They are in a word that reads as nothing else.
    None,
    /// They are no letters.
    Signs,
    /// They are in a word that looks like ASCII, or of scripts that are written together.
    LikeAscii,
    /// They are in a word of several scripts.
    Mixed,
}

impl Doubt {
    fn of_word(word: &str) -> Self {
        if word.is_ascii() {
            return Self::None;
        }
        let is_mixed = !word.is_single_script();
        let is_written_with_ascii = |c: char| {
            use Script::{Bopomofo, Common, Han, Hangul, Hiragana, Inherited, Katakana, Latin};
            matches!(c.script(), Bopomofo | Common | Han | Hangul | Hiragana | Inherited | Katakana | Latin)
        };
        if is_mixed && !word.chars().all(is_written_with_ascii) {
            Self::Mixed
        } else if is_mixed || word.chars().all(looks_like_ascii) {
            Self::LikeAscii
        } else {
            Self::None
        }
    }

    fn is_about(self, c: char) -> bool {
        match self {
            Self::None => false,
            Self::Signs | Self::LikeAscii => looks_like_ascii(c),
            Self::Mixed => c.script() != Script::Latin || looks_like_ascii(c),
        }
    }
}

fn looks_like_ascii(c: char) -> bool {
    // Of letters in full width, Unicode's table has but some.
    c.is_ascii() || matches!(c, '\u{ff01}'..='\u{ff5e}') || skeleton(c.encode_utf8(&mut [0; 4])).all(|c| c.is_ascii())
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || is_mark(c)
}

fn is_mark(c: char) -> bool {
    use GeneralCategory::{EnclosingMark, NonspacingMark, SpacingMark};
    !c.is_ascii() && matches!(get_general_category(c), EnclosingMark | NonspacingMark | SpacingMark)
}

/// Whether what has this script is of many.
fn is_shared(script: Script) -> bool {
    matches!(script, Script::Common | Script::Inherited | Script::Unknown)
}

/// Where Unicode puts what runs from right to left (UAX #9, 3.2, with the defaults of what is not assigned yet).
fn is_right_to_left(c: char) -> bool {
    matches!(c,
        '\u{0590}'..='\u{08ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_stays_as_it_is() {
        for text in
            ["a\"b\\", "Zürich, déjà-vu", "Привет, мир", "東京のAPI、Tシャツ", "สวัสดี ที่นี่", "हिन्दी", "🎈", "Ελληνικά"]
        {
            assert_eq!(plain(text), text);
            assert_eq!(Marks::of(text), Marks::default(), "{text}");
        }
        assert_eq!(plain("a\n\u{1b}"), "a\\n\\u{1b}");
    }

    #[test]
    fn what_does_not_show_is_shown_by_its_number() {
        for c in "\u{34f}\u{17b4}\u{17b5}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{fe0f}\u{e0041}\u{200d}\u{2066}\u{a0}\u{2003}\u{3000}\u{2800}\u{301}\u{336}\u{20e0}\u{3099}\u{e001}\u{fdd0}\u{94d}".chars() {
            let text = format!("a{c}b");
            assert_eq!(plain(&text), format!("a\\u{{{:x}}}b", u32::from(c)));
            assert!(Marks::of(&text).unseen && Marks::of(&text).warning().is_some(), "{c:?}");
        }
        let piled = format!("ก{}", "\u{e48}".repeat(50));
        assert_eq!(plain(&piled).matches("\\u{e48}").count(), 47);
    }

    #[test]
    fn look_alikes_are_shown_by_their_numbers() {
        for (text, shown) in [
            ("р\u{430}ypal", "\\u{440}\\u{430}ypal"),
            ("\u{430}\u{440}\u{440}\u{4cf}\u{435}.com", "\\u{430}\\u{440}\\u{440}\\u{4cf}\\u{435}.com"),
            ("APIинт", "API\\u{438}\\u{43d}\\u{442}"),
            ("/etc\u{2215}passwd", "/etc\\u{2215}passwd"),
            ("etc\u{30ce}passwd", "etc\\u{30ce}passwd"),
            ("\u{ff52}\u{ff4d}", "\\u{ff52}\\u{ff4d}"),
            ("\u{1d42b}m", "\\u{1d42b}m"),
            ("\u{201c},\u{201c}path", "\\u{201c},\\u{201c}path"),
            ("\u{3bf}тчёт", "\\u{3bf}\\u{442}\\u{447}\\u{451}\\u{442}"),
        ] {
            assert_eq!(plain(text), shown);
            assert!(Marks::of(text).alike, "{text}");
        }
    }

    #[test]
    fn what_runs_from_right_to_left_is_between_letters_that_do_not() {
        assert_eq!(plain("{\"a\":\"שלום עולם\",\"b\":1}"), "{\"a\":\"<rtl:שלום עולם:rtl>\",\"b\":1}");
        assert_eq!(plain("مرحبا  12"), "<rtl:مرحبا:rtl>  12");
        assert!(Marks::of("של").right_to_left);
    }
}
