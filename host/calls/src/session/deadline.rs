//! When something is over: after so long, time in which the machine slept included, or at a time of the clock on the
//! wall, whichever is reached first. So a clock that is set back lengthens nothing, and one that was wrong and is put
//! right, or jumps, ends what is over by it.

use std::time::{Duration, SystemTime};

use nix::time::{ClockId, clock_gettime};

/// Longest wait before the clocks are read again: timers stand still in suspend, and know nothing of a clock that is set.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// A point of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// Since the machine was started.
    at: Duration,
    /// By the clock on the wall.
    by_wall: SystemTime,
}

impl Deadline {
    /// At this time of the clock on the wall, and after as long as that is from now; nothing where that is further than
    /// anybody counts.
    pub fn at(by_wall: SystemTime) -> Option<Self> {
        Self::of(by_wall, by_wall.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// At this time of the clock on the wall, or after so long.
    fn of(by_wall: SystemTime, left: Duration) -> Option<Self> {
        since_start().checked_add(left).map(|at| Self { at, by_wall })
    }

    /// Whether it is over.
    pub(crate) fn is_past(self) -> bool {
        self.left().is_zero()
    }

    /// Waits for it.
    pub async fn passed(self) {
        while !self.is_past() {
            tokio::time::sleep(self.left().min(LOOK_AGAIN)).await;
        }
    }

    fn left(self) -> Duration {
        let by_wall = self.by_wall.duration_since(SystemTime::now()).unwrap_or_default();
        self.at.saturating_sub(since_start()).min(by_wall)
    }
}

/// Since the start of the machine, suspend included. Every Linux since 2.6.39 has this clock.
fn since_start() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn it_passes_once_its_time_is_there_by_either_clock() {
        let soon = Deadline::at(SystemTime::now() + Duration::from_millis(20)).unwrap();
        assert!(!Deadline::at(SystemTime::now() + HOUR).unwrap().is_past());
        soon.passed().await;
        assert!(soon.is_past() && Deadline::at(SystemTime::UNIX_EPOCH).unwrap().is_past());
        // The clock on the wall was set on, or back, since.
        let (set_on, set_back) = (SystemTime::now() - HOUR, SystemTime::now() + 24 * HOUR);
        for jumped in [Deadline::of(set_on, HOUR).unwrap(), Deadline::of(set_back, Duration::ZERO).unwrap()] {
            jumped.passed().await;
            assert!(jumped.is_past());
        }
        assert_eq!(Deadline::of(set_back, Duration::MAX), None);
    }
}
