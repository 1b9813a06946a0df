//! A person is asked on a terminal: one call at a time on the alternate screen, and an answer typed as a word.
//!
//! This is the whole of what is shown and of what keys mean, purely; [`loops`] is what all that bring a terminal, the
//! clock and whoever takes answers have in common. What was typed before a call is shown, and in its first half
//! second, counts for nothing; an answer is about the call that is on the screen and no other. A call that does not fit
//! has pages, and nothing allows it before each of them was on the screen.
//!
//! States: nothing is shown; a call is shown, and of a long one its arguments are missing or there. A call that ends
//! elsewhere makes place for the next.

pub(crate) mod loops;
mod page;
pub(crate) mod plain;
pub(crate) mod show;

use std::{fmt::Display, time::Instant};

use footbridge_proto::text::Escaped;

use footbridge_calls::approval::ApprovalInfo;
use page::{Pages, Typed, Typing, help};
use show::{ApprovalLines, time_left, wrap};

/// What the words of an answer mean, for a help text.
pub(crate) const WORDS: &str = "  allow      this call, once
  remember   this call, and exactly the same one again in this session
  deny       this call
  all        show all of it from the beginning; Enter goes from page to page
  next       look at the next one
  help       these words";

/// What is said where nothing is asked.
const NOTHING_WAITS: &str = "nothing waits for an answer";

/// Smallest screen on which a call is shown, rows and columns.
const SMALLEST: (u16, u16) = (4, 20);

/// What is said on a smaller one.
const TOO_SMALL: &str = "too small: enlarge the terminal";

/// Where a person is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptContext {
    /// The command that asks.
    pub(crate) name: &'static str,
    /// The word that leaves without an answer.
    pub(crate) leave: &'static str,
    /// The word that interrupts the command that asks, where there is one, and leaves.
    pub(crate) stop: Option<&'static str>,
    /// Whether `footbridge approvals` answers what is asked here.
    pub(crate) others: bool,
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptAnswer {
    /// Yes; to a server's question, with the defaults of its fields.
    Allow {
        /// And the same call again.
        remember: bool,
    },
    /// No.
    Deny,
}

impl PromptAnswer {
    fn as_str(self) -> &'static str {
        match self {
            Self::Allow { remember: false } => "allow",
            Self::Allow { remember: true } => "remember",
            Self::Deny => "deny",
        }
    }
}

/// What whoever brings the terminal has to do.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Nothing.
    Nothing,
    /// Another call is shown, or none: forget the keys that nobody has read.
    Turned,
    /// Leave without an answer.
    Leave,
    /// Interrupt the command as a typed Ctrl-C would, and leave.
    Stop,
    /// Answer this approval, and say how that went by [`Prompt::answered`].
    Answer(String, PromptAnswer),
}

/// What is on the screen, and what was typed.
#[derive(Debug)]
pub(crate) struct Prompt {
    place: PromptContext,
    typing: Typing,
    pages: Pages,
    /// Whether the words are shown in the call's place.
    help: bool,
    /// The whole arguments of the call that is shown, or why they are not to be had.
    whole: Option<Result<String, String>>,
    waiting: Vec<ApprovalInfo>,
    /// The call that is on the screen.
    shown: Option<ApprovalInfo>,
    /// Whether it is on the screen for sure.
    drawn: bool,
    /// Whether the screen was too small to show it when it was made last.
    is_too_small: bool,
    note: String,
    /// What is said where nothing waits.
    idle: String,
}

impl Prompt {
    /// Nothing is shown, and nothing counts for a moment.
    pub(crate) fn new(place: PromptContext, now: Instant) -> Self {
        Self {
            place,
            typing: Typing::new(now),
            pages: Pages::default(),
            help: false,
            whole: None,
            waiting: Vec::new(),
            shown: None,
            drawn: true,
            is_too_small: false,
            note: String::new(),
            idle: NOTHING_WAITS.to_owned(),
        }
    }

    /// Says this where nothing waits, or that nothing does.
    pub(crate) fn idles(&mut self, why: Option<String>) {
        self.idle = why.unwrap_or_else(|| NOTHING_WAITS.to_owned());
    }

    /// Takes what waits for an answer now, the oldest first.
    fn update(&mut self, waiting: Vec<ApprovalInfo>, now: Instant) -> Step {
        self.waiting = waiting;
        let same = |one: &&ApprovalInfo| self.shown.as_ref().is_some_and(|shown| one.id == shown.id);
        if let Some(shown) = self.waiting.iter().find(same).cloned() {
            // It has less time left.
            self.shown = Some(shown);
            return Step::Nothing;
        }
        self.turn_to(self.waiting.first().cloned(), now)
    }

    /// Shows another call, or none. Nothing that was typed before counts for it.
    fn turn_to(&mut self, next: Option<ApprovalInfo>, now: Instant) -> Step {
        if self.shown.is_none() && next.is_none() {
            return Step::Nothing;
        }
        self.typing = Typing::new(now);
        (self.pages, self.help, self.whole) = (Pages::default(), false, None);
        self.shown = next;
        self.drawn = false;
        Step::Turned
    }

    /// Which call is shown without its whole arguments: they have to be brought by [`Self::whole`] before it is drawn.
    fn missing(&self) -> Option<String> {
        let shown = self.shown.as_ref().filter(|one| !one.tail.is_empty() && one.question.is_none());
        shown.filter(|_| self.whole.is_none()).map(|one| one.id.clone())
    }

    /// Takes that the terminal has taken what [`Self::text`] gave. A new call is on the screen only from now on,
    /// however long that took: what was typed before, and is not read yet, falls into the half second that counts for
    /// nothing, but for a Ctrl-C.
    pub(crate) fn drawn(&mut self, now: Instant) {
        if self.is_too_small {
            self.drawn = false;
            return;
        }
        if !std::mem::replace(&mut self.drawn, true) {
            self.typing = Typing::new(now);
        }
        if !self.help {
            self.pages.drawn();
        }
    }

    /// Takes a key.
    fn feed(&mut self, key: u8, now: Instant) -> Step {
        match self.typing.feed(key, now) {
            Typed::Nothing => Step::Nothing,
            Typed::End => Step::Leave,
            Typed::Word(_) if !self.drawn => Step::Nothing,
            Typed::Word(word) if word == self.place.leave => Step::Leave,
            Typed::Word(word) if Some(word.as_str()) == self.place.stop => Step::Stop,
            Typed::Word(word) => self.word(&word, now),
        }
    }

    fn word(&mut self, word: &str, now: Instant) -> Step {
        let Some(shown) = &self.shown else { return Step::Nothing };
        let id = shown.id.clone();
        self.note.clear();
        // An answer is about what is on the screen: from the help a word leads back to it.
        let helped = std::mem::take(&mut self.help);
        match word {
            "" if helped => {}
            "" => self.pages.turn(),
            "help" => self.help = true,
            "allow" | "remember" | "deny" if helped => self.note = format!("type \"{word}\" again, for this call"),
            "next" => {
                let at = self.waiting.iter().position(|one| one.id == id).map_or(0, |at| at + 1);
                let next = self.waiting.get(at).or(self.waiting.first()).cloned();
                return self.turn_to(next, now);
            }
            "all" => self.pages.turn_to_all(),
            "deny" => return Step::Answer(id, PromptAnswer::Deny),
            "allow" | "remember" => return self.allow(id, word == "remember"),
            other => self.note = format!("\"{other}\" is none of the words: {}", self.words()),
        }
        Step::Nothing
    }

    /// Allows it, if all of it was on the screen.
    fn allow(&mut self, id: String, remember: bool) -> Step {
        if self.is_too_small {
            return Step::Nothing;
        }
        if let Some(Err(why)) = &self.whole {
            self.note = format!("it cannot be allowed here, since its arguments are not to be had: {why}");
            return Step::Nothing;
        }
        match self.pages.left().filter(|_| self.missing().is_none()) {
            Some(0) => Step::Answer(id, PromptAnswer::Allow { remember }),
            left => {
                self.pages.turn_to_unseen();
                let left = left.unwrap_or_default();
                self.note = match left {
                    1 => "not allowed yet: this page of it was not shown".to_owned(),
                    left => {
                        format!("not allowed yet: {left} of its pages were not shown, and this is the first of them")
                    }
                };
                Step::Nothing
            }
        }
    }

    /// The words that are an answer, or lead on.
    fn words(&self) -> String {
        let stop = self.place.stop.map(|stop| format!(", {stop}")).unwrap_or_default();
        format!("allow, deny, remember, all, next, help, {}{stop}", self.place.leave)
    }

    /// Takes the whole arguments of the call that [`Self::missing`] names, or why they are not to be had.
    fn whole(&mut self, got: Result<String, impl Display>) {
        self.pages = Pages::default();
        self.whole = Some(got.map_err(|why| why.to_string()));
    }

    /// Notes what became of an answer. The call is shown no more: what waits next comes by [`Self::update`].
    fn answered(&mut self, id: &str, word: PromptAnswer, got: Result<(), impl Display>, now: Instant) -> Step {
        self.note = got.map_or_else(|why| why.to_string(), |()| format!("{id}: {}", word.as_str()));
        self.waiting.retain(|one| one.id != id);
        self.turn_to(None, now)
    }

    /// The ids of all that waits.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &str> {
        self.waiting.iter().map(|one| one.id.as_str())
    }

    /// The screen, for a terminal in which a line ends with CR and LF. All that guests and servers wrote is escaped.
    pub(crate) fn text(&mut self, size: Option<(u16, u16)>) -> String {
        // A terminal that does not know its size says 0.
        let (rows, columns) = size.filter(|(rows, columns)| *rows > 0 && *columns > 0).unwrap_or((24, 80));
        self.is_too_small = rows < SMALLEST.0 || columns < SMALLEST.1;
        let (rows, columns) = (usize::from(rows), usize::from(columns));
        if self.is_too_small {
            let lines = wrap(TOO_SMALL, columns);
            return format!("\x1b[2J\x1b[H{}", lines[..rows.min(lines.len())].join("\r\n"));
        }
        let cut = |text: &str| text.chars().take(columns - 1).collect::<String>();
        // But for the heading, the note and the line that is typed on.
        let (head, lines) = self.lines(rows - 3, columns);
        let mut text = format!("\x1b[2J\x1b[H{}\r\n", cut(&head));
        lines.iter().for_each(|line| text.push_str(&format!("{line}\r\n")));
        let note = Escaped(&self.note()).to_string();
        text.push_str(&format!("\x1b[{};1H{}", rows - 1, cut(&note)));
        let words = format!("{}> {}", self.words(), self.typing.text());
        text.push_str(&format!("\x1b[{rows};1H{}", cut(&words)));
        text
    }

    /// A heading, and what is below it.
    fn lines(&mut self, rows: usize, columns: usize) -> (String, Vec<String>) {
        let name = self.place.name;
        let Some(one) = &self.shown else {
            return (name.to_owned(), wrap(&self.idle, columns));
        };
        if self.help {
            let lines = help(&self.place).iter().flat_map(|line| wrap(line, columns)).take(rows).collect();
            return (format!("{name}: the words"), lines);
        }
        let all = self.whole.as_ref().and_then(|whole| whole.as_deref().ok());
        let all = all.or(one.tail.is_empty().then_some(&*one.head));
        self.pages.lay(|| ApprovalLines::of(one, all, self.place.others), rows, columns);
        let mut head = format!("{name}: {} waiting, {} to answer", self.waiting.len(), time_left(one.seconds_left));
        let (lines, at, of) = self.pages.shown();
        if of > 1 {
            head.push_str(&format!(", page {at} of {of}"));
        }
        (head, lines.to_vec())
    }

    /// What is said below a call: of what was typed last, or else of what is not read yet.
    fn note(&self) -> String {
        match self.pages.left() {
            _ if !self.note.is_empty() => self.note.clone(),
            Some(left @ 1..) if self.pages.shown().2 > 1 && !self.help => {
                let others = left - 1;
                format!("Enter: next page; allow counts once {others} more were shown")
            }
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests;
