//! Which part of a call is on the screen, and the word that is being typed, so that deceit and haste can be tested.

use std::time::{Duration, Instant};

use super::{
    PromptContext, WORDS,
    show::{self, wrap},
};
use footbridge_calls::approval::ApprovalInfo;

/// How long nothing that is typed counts once a call is shown.
const DEAF: Duration = Duration::from_millis(500);

/// Ctrl-C where a terminal makes sequences of keys, in spite of all: that of modifyOtherKeys, and that of kitty.
const CODINGS: [&[u8]; 2] = [b"\x1b[27;5;99~", b"\x1b[99;5u"];
const LONGEST_CODING: usize = 10;

/// Longest word.
const MAX_WORD: usize = 32;

/// Which part of a call is shown.
#[derive(Debug, Default)]
pub(super) struct Page {
    number: usize,
    all: Option<String>,
    /// Whether the words are shown in its place.
    help: bool,
}

/// Lines to show, and which page of them.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) head: String,
    pub(super) lines: Vec<String>,
    pub(super) page: usize,
}

impl Page {
    /// The next one, and after the last the first.
    pub(super) fn turn(&mut self) {
        self.number += 1;
    }

    /// Shows all of the arguments.
    pub(super) fn show_all(&mut self, arguments: String) {
        *self = Self { number: 0, all: Some(arguments), help: false };
    }

    /// Shows what the words mean, until the next one.
    pub(super) fn show_help(&mut self) {
        self.help = true;
    }

    /// Shows the call again. Whether the words were shown.
    pub(super) fn leave_help(&mut self) -> bool {
        std::mem::take(&mut self.help)
    }

    /// What there is to show.
    pub(super) fn lines(&self, place: &PromptContext, shown: Option<&ApprovalInfo>, waiting: usize) -> Lines {
        let name = place.name;
        let Some(one) = shown else {
            let lines = vec!["nothing waits for an answer".to_owned()];
            return Lines { head: name.to_owned(), lines, page: 0 };
        };
        if self.help {
            let stop = place.stop.map(|stop| format!("  {stop:<10} interrupts the command, as Ctrl-C would"));
            let leave = format!("  {:<10} leaves without an answer, as Ctrl-C does", place.leave);
            let lines = WORDS.lines().map(str::to_owned).chain([leave]).chain(stop);
            let end = "Enter alone turns pages, and from here leads back to the call.".to_owned();
            return Lines { head: format!("{name}: the words"), lines: lines.chain([end]).collect(), page: 0 };
        }
        let mut lines = show::fields(one, place.others);
        match &self.all {
            Some(all) => lines.push(show::whole(all)),
            None => lines.extend(show::ends(one)),
        }
        Lines { head: format!("{name}: {waiting} waiting"), lines, page: self.number }
    }
}

impl Lines {
    /// Cut to a screen: the heading, a part of the lines, and where it is.
    pub(super) fn fit(&self, rows: usize, columns: usize) -> Vec<String> {
        let wrapped: Vec<String> = self.lines.iter().flat_map(|line| wrap(line, columns)).collect();
        let pages: Vec<&[String]> = wrapped.chunks(rows.saturating_sub(1).max(1)).collect();
        let at = self.page % pages.len().max(1);
        let head = match pages.len() {
            0 | 1 => self.head.clone(),
            more => format!("{}, page {} of {more}", self.head, at + 1),
        };
        let mut out = wrap(&head, columns).into_iter().take(1).collect::<Vec<_>>();
        out.extend(pages.get(at).into_iter().flat_map(|page| page.iter().cloned()));
        out
    }
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
            // Capitals are shown as they are, so that one sees why they are no answer.
            b'a'..=b'z' | b'A'..=b'Z' if self.word.len() < MAX_WORD => self.word.push(char::from(key)),
            // Anything else makes it no word at all: keys of a paste or of an escape sequence are no answer.
            _ => {
                self.word.clear();
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

    #[test]
    fn a_megabyte_of_arguments_pushes_nothing_off_the_screen() {
        let one = info("ap-0000000000000001");
        let place = PromptContext { name: "x", leave: "later", stop: None, others: true };
        let mut page = Page::default();
        page.show_all("x\u{1b}\n".repeat(1 << 19));
        let lines = page.lines(&place, Some(&one), 3).fit(24, 80);
        assert!(lines.len() <= 24 && lines.iter().all(|line| line.chars().count() <= 80));
        assert!(lines[0].contains("3 waiting, page 1 of"), "{}", lines[0]);
        assert!(lines.iter().any(|line| line.starts_with("tool:")) && !lines.concat().contains('\u{1b}'));
        page.turn();
        assert!(page.lines(&place, Some(&one), 3).fit(24, 80)[0].contains("page 2 of"));
    }
}
