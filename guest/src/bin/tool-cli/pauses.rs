//! How long to wait before a bridge that sent nothing on is asked again.
//!
//! Pauses grow, since whoever comes too often keeps others out, and no two clients' are alike: those that were told the
//! same moment would all come at it. Pure: random bits are handed in.

use std::time::Duration;

/// What a pause grows by with each time that it was for nothing.
const GROWTH: f64 = 1.5;
/// The pause that growing ends at, unless the bridge says a longer one.
const LONGEST: Duration = Duration::from_secs(3);
/// How much longer than that chance may make it, of its own length.
const SPREAD: f64 = 0.5;

/// The pauses of one step.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    taken: i32,
}

impl Pauses {
    /// The next pause, where one ends before `left` has passed. `told` is when the bridge said to come again, and no
    /// pause is shorter; `chance` is at random.
    pub(crate) fn next(&mut self, told: Duration, left: Duration, chance: u64) -> Option<Duration> {
        if told >= left {
            return None;
        }
        let grown = told.as_secs_f64() * GROWTH.powi(self.taken.min(64));
        let grown = grown.clamp(told.as_secs_f64(), LONGEST.max(told).as_secs_f64());
        self.taken += 1;
        let share = (chance % 1024) as f64 / 1024.0;
        Some(Duration::from_secs_f64(grown * (1.0 + share * SPREAD)).min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn pauses_grow_to_a_most_and_are_never_shorter_than_was_said() {
        let mut pauses = Pauses::default();
        let mut all = (0..200).map(|_| pauses.next(SECOND, SECOND * 60, 0).unwrap());
        assert_eq!((all.next(), all.next()), (Some(SECOND), Some(SECOND.mul_f64(1.5))));
        assert_eq!(all.last(), Some(LONGEST));
        assert_eq!(Pauses::default().next(SECOND * 20, SECOND * 60, 0), Some(SECOND * 20));
    }

    #[test]
    fn chance_makes_them_longer_and_time_is_not_passed() {
        let at = |chance, left| Pauses::default().next(SECOND, left, chance);
        assert!(at(7, SECOND * 60) != at(900, SECOND * 60) && at(u64::MAX, SECOND * 60) < Some(SECOND * 2));
        assert_eq!(at(1023, SECOND.mul_f64(1.1)), Some(SECOND.mul_f64(1.1)));
        assert_eq!(at(0, SECOND), None, "it would be over before it could be asked");
    }
}
