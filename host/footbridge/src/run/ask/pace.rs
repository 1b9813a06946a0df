//! When a call may open the prompt, so that no command can keep the person from their terminal by asking.
//!
//! A call has to wait for a moment before it opens the prompt. After the person left there is a pause for all calls,
//! and so there is after some that ended before the person answered. Pauses grow as long as it goes on; an answer, or
//! some quiet, ends that. The clock is handed in.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// The first pause. It is longer than anybody takes to press Ctrl-C again, which then reaches the command.
const PAUSE: Duration = Duration::from_secs(3);

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(60);

/// Prompts in a row that may end without an answer before there is a pause.
const FOR_NOTHING: u32 = 2;

/// After so long without a prompt, the next pause is the first one again.
const QUIET: Duration = Duration::from_secs(120);

/// When the prompt may open.
#[derive(Debug)]
pub(super) struct Pace {
    /// How long a call has to wait before it opens the prompt.
    settle: Duration,
    /// Whether calls that were left open the prompt again after the pause.
    comes_back: bool,
    /// Since when each call is known.
    known: BTreeMap<String, Instant>,
    /// Those that the person left for later.
    left: BTreeSet<String>,
    pause_until: Option<Instant>,
    pauses: u32,
    for_nothing: u32,
    last: Option<Instant>,
}

impl Pace {
    pub(super) fn new(settle: Duration, comes_back: bool) -> Self {
        let (known, left) = (BTreeMap::new(), BTreeSet::new());
        Self { settle, comes_back, known, left, pause_until: None, pauses: 0, for_nothing: 0, last: None }
    }

    /// Takes the ids of all that waits. Says when the prompt may open, if anything may open it.
    pub(super) fn opens_at<'a>(&mut self, waiting: impl Iterator<Item = &'a str>, now: Instant) -> Option<Instant> {
        let waiting: BTreeSet<&str> = waiting.collect();
        self.known.retain(|id, _| waiting.contains(id.as_str()));
        self.left.retain(|id| waiting.contains(id.as_str()));
        for id in &waiting {
            self.known.entry((*id).to_owned()).or_insert(now);
        }
        let open = self.known.iter().filter(|(id, _)| self.comes_back || !self.left.contains(*id));
        let first = open.map(|(_, since)| *since + self.settle).min()?;
        Some(self.pause_until.map_or(first, |until| first.max(until)))
    }

    /// The prompt opens: what was left before, to be shown last. Where it comes back, it is not left any more.
    pub(super) fn opened(&mut self, now: Instant) -> BTreeSet<String> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) > QUIET) {
            (self.pauses, self.for_nothing) = (0, 0);
        }
        if self.comes_back { std::mem::take(&mut self.left) } else { self.left.clone() }
    }

    /// Whether this one was left.
    pub(super) fn is_left(&self, id: &str) -> bool {
        self.left.contains(id)
    }

    /// The person left these, and has the terminal for a while.
    pub(super) fn leave<'a>(&mut self, waiting: impl Iterator<Item = &'a str>, now: Instant) {
        self.left.extend(waiting.map(str::to_owned));
        self.pause(now);
    }

    /// The prompt closed as nothing waits any more, after an answer that was given there or not.
    pub(super) fn closed(&mut self, answered: bool, now: Instant) {
        self.last = Some(now);
        if answered {
            (self.pauses, self.for_nothing) = (0, 0);
            return;
        }
        self.for_nothing += 1;
        if self.for_nothing >= FOR_NOTHING {
            self.pause(now);
        }
    }

    fn pause(&mut self, now: Instant) {
        let pause = PAUSE.saturating_mul(1 << self.pauses.min(10)).min(LONGEST);
        self.pauses += 1;
        self.pause_until = Some(now + pause);
        self.last = self.pause_until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLE: Duration = Duration::from_millis(300);
    const SECOND: Duration = Duration::from_secs(1);

    fn opens(pace: &mut Pace, ids: &[&str], now: Instant) -> Option<Instant> {
        pace.opens_at(ids.iter().copied(), now)
    }

    #[test]
    fn a_call_waits_for_a_moment_before_it_opens_the_prompt() {
        let start = Instant::now();
        let mut pace = Pace::new(SETTLE, false);
        assert_eq!(opens(&mut pace, &[], start), None);
        assert_eq!(opens(&mut pace, &["a"], start), Some(start + SETTLE));
        // Each by itself: one that follows another waits as long.
        let later = start + SETTLE / 2;
        assert_eq!(opens(&mut pace, &["b"], later), Some(later + SETTLE));
    }

    #[test]
    fn after_it_was_left_the_prompt_stays_away_for_longer_each_time_and_until_it_is_quiet() {
        let mut now = Instant::now();
        let mut pace = Pace::new(SETTLE, false);
        for seconds in [3, 6, 12, 24, 48, 60, 60] {
            pace.opened(now);
            pace.leave(["old"].into_iter(), now);
            let opens_at = opens(&mut pace, &["old", "new"], now);
            assert_eq!(opens_at, Some(now + seconds * SECOND), "not even for a new one");
            assert_eq!(opens(&mut pace, &["old"], now + 100 * SECOND), None, "what was left stays so");
            now = now + seconds * SECOND + SETTLE;
        }
        now += QUIET + SECOND;
        pace.opened(now);
        pace.leave([].into_iter(), now);
        assert_eq!(opens(&mut pace, &["x"], now), Some(now + PAUSE));
        pace.closed(true, now);
        pace.leave([].into_iter(), now);
        assert_eq!(opens(&mut pace, &["x"], now), Some(now + PAUSE), "an answer ends it too");
    }

    #[test]
    fn calls_that_end_before_an_answer_hold_the_prompt_back() {
        let now = Instant::now();
        let mut pace = Pace::new(SETTLE, false);
        pace.closed(false, now);
        assert_eq!(opens(&mut pace, &["a"], now), Some(now + SETTLE));
        pace.closed(false, now);
        assert_eq!(opens(&mut pace, &["a"], now), Some(now + PAUSE));
        pace.closed(false, now);
        assert_eq!(opens(&mut pace, &["a"], now), Some(now + 2 * PAUSE));
        pace.closed(true, now);
        pace.closed(false, now + LONGEST);
        let now = now + LONGEST;
        assert_eq!(opens(&mut pace, &["b"], now), Some(now + SETTLE));
    }

    #[test]
    fn where_nobody_else_answers_what_was_left_comes_back() {
        let now = Instant::now();
        let mut pace = Pace::new(SETTLE, true);
        assert!(opens(&mut pace, &["a"], now).is_some());
        assert!(pace.opened(now).is_empty());
        pace.leave(["a"].into_iter(), now);
        assert_eq!(opens(&mut pace, &["a"], now), Some(now + PAUSE));
        assert_eq!(pace.opened(now + PAUSE), BTreeSet::from(["a".to_owned()]));
        assert!(!pace.is_left("a"));
    }
}
