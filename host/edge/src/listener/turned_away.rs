//! Counts connections that are closed at once, and says so now and then: a flood of them is no flood of lines.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many were turned away for one reason.
#[derive(Debug, Default)]
pub(super) struct TurnedAway(AtomicU64);

impl TurnedAway {
    /// Counts one more. Gives the count when it is worth a line: the first, the second, the fourth, and so on.
    pub(super) fn one_more(&self) -> Option<u64> {
        let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        count.is_power_of_two().then_some(count)
    }

    /// How many so far.
    #[cfg(test)]
    pub(super) fn so_far(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_make_ten_lines() {
        let away = TurnedAway::default();
        let lines: Vec<u64> = (0..1000).filter_map(|_| away.one_more()).collect();
        assert_eq!(lines, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
        assert_eq!(away.so_far(), 1000);
    }
}
