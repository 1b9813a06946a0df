//! What would be said again and again is said once a minute, with how often it would have been.
//!
//! The clock is handed in.

use std::time::{Duration, Instant};

/// How often it is said.
const EVERY: Duration = Duration::from_secs(60);

/// One thing to say.
#[derive(Debug, Default)]
pub struct Sparingly {
    said: Option<Instant>,
    count: u64,
    why: String,
}

impl Sparingly {
    /// Counts what there is to say. Where it is time to say it, gives the count since it was said last.
    #[must_use]
    pub fn may_say(&mut self, count: u64, now: Instant) -> Option<u64> {
        self.count += count;
        if self.said.is_some_and(|said| now.saturating_duration_since(said) < EVERY) {
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.count))
    }

    /// The same of what has a reason: another one than the last is said at once.
    #[must_use]
    pub fn may_say_why(&mut self, why: &str, count: u64, now: Instant) -> Option<u64> {
        if self.why != why {
            (self.why, self.said) = (why.to_owned(), None);
        }
        self.may_say(count, now)
    }

    /// Where there is nothing more to say for now: the count of what was left out, if anything was.
    #[must_use]
    pub fn rest(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.count)).filter(|count| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_at_once_and_then_once_a_minute_with_what_was_left_out() {
        let (mut sparingly, start) = (Sparingly::default(), Instant::now());
        assert_eq!(sparingly.may_say(1, start), Some(1));
        assert_eq!(sparingly.may_say(2, start + EVERY / 2), None);
        assert_eq!(sparingly.may_say(3, start + EVERY), Some(5));
        assert_eq!(sparingly.may_say(4, start + EVERY), None);
        assert_eq!((sparingly.rest(), sparingly.rest()), (Some(4), None));
        assert_eq!(sparingly.may_say_why("full", 1, start + EVERY), Some(1), "why is news");
        assert_eq!(sparingly.may_say_why("full", 2, start + EVERY), None);
        assert_eq!(sparingly.may_say_why("gone", 1, start + EVERY), Some(3));
    }
}
