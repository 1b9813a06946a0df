//! When something is over, however long the machine slept: a time of life goes on in suspend, and does not jump when
//! somebody sets the clock.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Longest wait before the clock is read again: timers stand still in suspend.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// A point of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// Since the machine was started.
    at: Duration,
}

impl Deadline {
    /// So long from now; nothing where that is further than anybody counts.
    pub fn after(left: Duration) -> Option<Self> {
        now().checked_add(left).map(|at| Self { at })
    }

    /// Whether it is over.
    pub fn is_past(self) -> bool {
        self.left().is_zero()
    }

    /// Waits for it.
    pub async fn passed(self) {
        while !self.is_past() {
            tokio::time::sleep(self.left().min(LOOK_AGAIN)).await;
        }
    }

    fn left(self) -> Duration {
        self.at.saturating_sub(now())
    }
}

/// Since the start of the machine, suspend included. Every Linux since 2.6.39 has this clock.
fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_passes_once_its_time_is_there() {
        let soon = Deadline::after(Duration::from_millis(20)).unwrap();
        assert!(!Deadline::after(Duration::from_secs(3600)).unwrap().is_past());
        soon.passed().await;
        assert!(soon.is_past() && Deadline::after(Duration::ZERO).unwrap().is_past());
        assert_eq!(Deadline::after(Duration::MAX), None);
    }
}
