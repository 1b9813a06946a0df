//! Which part of a call is on the screen and which parts have been, and the word that is being typed, so that deceit and
//! haste can be tested.

use std::time::{Duration, Instant};

use super::{
    PromptContext, WORDS,
    show::{ApprovalLines, wrap},
};

/// How long nothing that is typed counts once a call is shown.
const DEAF: Duration = Duration::from_millis(500);

/// Ctrl-C where a terminal makes sequences of keys, in spite of all: that of modifyOtherKeys, and that of kitty.
const CODINGS: [&[u8]; 2] = [b"\x1b[27;5;99~", b"\x1b[99;5u"];
const LONGEST_CODING: usize = 10;

/// Longest word.
const MAX_WORD: usize = 32;

/// A call laid out for a screen: its pages, and which of them have been on it. On a screen of another size they begin
/// anew: no part of them is where it was.
#[derive(Debug, Default)]
pub(super) struct Pages {
    size: (usize, usize),
    pages: Vec<Vec<String>>,
    seen: Vec<bool>,
    at: usize,
    /// The page on which all of it begins.
    begins_at: usize,
}

impl Pages {
    /// Lays it out for so many rows and columns, unless it is already. Several pages are the one with both ends, where
    /// what counts is more than a page, and then all of it from the beginning.
    pub(super) fn lay(&mut self, lines: impl FnOnce() -> ApprovalLines, rows: usize, columns: usize) {
        if self.size == (rows, columns) && !self.pages.is_empty() {
            return;
        }
        let lines = lines();
        let wrapped: Vec<String> = lines.all().flat_map(|line| wrap(line, columns)).collect();
        let first = if wrapped.len() > rows { lines.first_page(rows, columns) } else { None };
        let begins_at = usize::from(first.is_some());
        let pages: Vec<_> = first.into_iter().chain(wrapped.chunks(rows.max(1)).map(<[String]>::to_vec)).collect();
        *self = Self { size: (rows, columns), seen: vec![false; pages.len()], pages, at: 0, begins_at };
    }

    /// What is on the screen, and which page of how many that is, from 1.
    pub(super) fn shown(&self) -> (&[String], usize, usize) {
        (self.pages.get(self.at).map_or(&[], Vec::as_slice), self.at + 1, self.pages.len())
    }

    /// The page that is shown is on the screen.
    pub(super) fn drawn(&mut self) {
        if let Some(seen) = self.seen.get_mut(self.at) {
            *seen = true;
        }
    }

    /// How many have not been on the screen, if it is laid out at all.
    pub(super) fn left(&self) -> Option<usize> {
        (!self.pages.is_empty()).then(|| self.seen.iter().filter(|seen| !**seen).count())
    }

    /// The next one, and after the last the first. One that is not drawn yet is not passed over.
    pub(super) fn turn(&mut self) {
        if self.seen.get(self.at) == Some(&true) {
            self.at = (self.at + 1) % self.pages.len();
        }
    }

    /// The first one that was not on the screen.
    pub(super) fn turn_to_unseen(&mut self) {
        self.at = self.seen.iter().position(|seen| !seen).unwrap_or(self.at);
    }

    /// Where all of it begins.
    pub(super) fn turn_to_all(&mut self) {
        self.at = self.begins_at;
    }
}

/// What the words mean, a line each.
pub(super) fn help(place: &PromptContext) -> Vec<String> {
    let stop = place.stop.map(|stop| format!("  {stop:<10} interrupts the command, as Ctrl-C would"));
    let leave = format!("  {:<10} leaves without an answer, as Ctrl-C does", place.leave);
    let end = "Enter alone turns pages, and from here leads back to the call.".to_owned();
    WORDS.lines().map(str::to_owned).chain([leave]).chain(stop).chain([end]).collect()
}

/// What a key came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// Nothing yet.
    Nothing,
    /// A word and Enter.
    Word(String),
    /// Ctrl-C, Ctrl-D or Ctrl-\\.
    End,
}

/// The word that is being typed.
#[derive(Debug)]
pub(super) struct Typing {
    word: String,
    /// The last keys, for those that come as sequences.
    last: [u8; LONGEST_CODING],
    deaf_until: Instant,
}

impl Typing {
    /// Nothing; deaf for a moment.
    pub(super) fn new(now: Instant) -> Self {
        Self { word: String::new(), last: [0; LONGEST_CODING], deaf_until: now + DEAF }
    }

    /// As far as it is typed.
    pub(super) fn text(&self) -> &str {
        &self.word
    }

    /// Takes a key.
    pub(super) fn feed(&mut self, key: u8, now: Instant) -> Typed {
        self.last.rotate_left(1);
        self.last[LONGEST_CODING - 1] = key;
        match key {
            3 | 4 | 28 => return Typed::End,
            _ if CODINGS.iter().any(|coding| self.last.ends_with(coding)) => return Typed::End,
            _ if now < self.deaf_until => {}
            b'\r' | b'\n' => return Typed::Word(std::mem::take(&mut self.word)),
            8 | 127 => drop(self.word.pop()),
            21 => self.word.clear(),
            // What is typed is shown as it is, so that one sees why it is no answer.
            b' '..=b'~' if self.word.len() < MAX_WORD => self.word.push(char::from(key)),
            // Anything else makes it no word at all: keys of a paste or of an escape sequence are no answer.
            _ => {
                self.word.truncate(MAX_WORD - 1);
                self.word.push('?');
            }
        }
        Typed::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::{super::show::tests::info, *};

    fn types(typing: &mut Typing, keys: &str, now: Instant) -> Vec<Typed> {
        keys.bytes().map(|key| typing.feed(key, now)).filter(|typed| *typed != Typed::Nothing).collect()
    }

    #[test]
    fn what_is_typed_ahead_counts_for_nothing() {
        let start = Instant::now();
        let mut typing = Typing::new(start);
        assert_eq!(types(&mut typing, "allow\n", start + DEAF / 2), []);
        assert_eq!(types(&mut typing, "de\u{7f}eny\n", start + DEAF), [Typed::Word("deny".into())]);
        for end in ["\u{3}", "\u{1c}", "\u{1b}[27;5;99~", "\u{1b}[99;5u"] {
            assert_eq!(types(&mut Typing::new(start), end, start), [Typed::End], "{end:?}");
        }
    }

    #[test]
    fn only_a_whole_word_is_one() {
        let start = Instant::now();
        let later = start + DEAF;
        for keys in ["\u{1b}[Aallow\n", "ALLOW\n", "al low\n", "1allow\n"] {
            let mut typing = Typing::new(start);
            assert!(!types(&mut typing, keys, later).contains(&Typed::Word("allow".into())), "{keys:?}");
        }
        let long = "a".repeat(100) + "\n";
        assert!(!types(&mut Typing::new(start), &long, later).contains(&Typed::Word("a".repeat(100))));
    }

    fn laid(arguments: &str, rows: usize) -> Pages {
        let mut pages = Pages::default();
        pages.lay(|| ApprovalLines::of(&info("ap-0000000000000001"), Some(arguments), true), rows, 80);
        pages
    }

    #[test]
    fn a_megabyte_of_arguments_pushes_nothing_off_the_screen() {
        let mut pages = laid(&"x\u{1b}\n".repeat(1 << 19), 24);
        let (lines, at, all) = pages.shown();
        assert!(lines.len() <= 24 && lines.iter().all(|line| line.chars().count() <= 80));
        assert!(at == 1 && all > 100, "{at} of {all}");
        assert!(lines.iter().any(|line| line.starts_with("tool:")) && !lines.concat().contains('\u{1b}'));
        pages.drawn();
        pages.turn();
        assert_eq!(pages.shown().1, 2);
    }

    #[test]
    fn what_is_whole_on_the_first_page_is_not_shown_twice() {
        let mut pages = laid(&"x".repeat(340), 14);
        let (first, _, count) = pages.shown();
        assert!(count == 2 && first.iter().any(|line| line.starts_with("effects:")), "{first:#?}");
        let first = first.to_vec();
        pages.drawn();
        pages.turn();
        assert!(pages.shown().0.iter().all(|line| !first.contains(line)), "{:#?}", pages.shown().0);
        pages.turn_to_all();
        assert_eq!(pages.shown().1, 1);
    }

    #[test]
    fn all_of_it_is_on_the_pages_and_none_is_passed_over() {
        let arguments: String = (0..900).map(|number| format!("<{number}>")).collect();
        let mut pages = laid(&arguments, 12);
        let (count, mut text) = (pages.shown().2, String::new());
        for left in (0..count).rev() {
            pages.turn();
            pages.turn();
            assert_eq!(pages.left(), Some(left + 1), "what is not drawn was not seen");
            text.push_str(&pages.shown().0.concat());
            pages.drawn();
            assert_eq!(pages.left(), Some(left));
            pages.turn_to_unseen();
        }
        let text: String = text.chars().filter(|c| !" |".contains(*c)).collect();
        assert!((0..900).all(|number| text.contains(&format!("<{number}>"))), "{text}");
        pages.lay(|| ApprovalLines::of(&info("ap-1"), Some(&arguments), true), 13, 80);
        assert!(pages.left() > Some(1), "on another screen it begins anew");
    }
}
