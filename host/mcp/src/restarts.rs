//! When a server that ended may start again: growing pauses, and a breaker.
//!
//! A session that was lost is opened again after pauses of its own and does not count for the breaker: that costs the
//! server next to nothing, and some lose one at each deployment, or by timers of minutes.
//!
//! Pure: it is told the time. States: free; pausing, each time twice as long, while starts follow each other within
//! the window; open, when there were too many of them, until the breaker's time is over.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use footbridge_core::limits::ServerLimits;

/// Longest pause before a session is opened again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The starts of one server within the window.
#[derive(Debug)]
pub(super) struct Restarts {
    starts: VecDeque<Instant>,
    open_until: Option<Instant>,
    /// Sessions lost in a row, and when the last one was.
    lost: u32,
    lost_last: Option<Instant>,
    total: usize,
}

/// What to do about a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    /// Start after this pause.
    After(Duration),
    /// Do not start for this long.
    Wait(Duration),
}

impl Restarts {
    /// Never started.
    pub(super) fn new() -> Self {
        Self { starts: VecDeque::new(), open_until: None, lost: 0, lost_last: None, total: 0 }
    }

    /// How often it was started again.
    pub(super) fn total(&self) -> usize {
        self.total.saturating_sub(1)
    }

    /// The pause before a lost session is opened again: never none, twice as long each time while they are lost within
    /// the window of each other.
    pub(super) fn reopen(&mut self, now: Instant, limits: &ServerLimits) -> Duration {
        if self.lost_last.is_some_and(|last| now.duration_since(last) >= limits.restart_window) {
            self.lost = 0;
        }
        let pause = limits.first_pause.saturating_mul(1 << self.lost.min(16));
        self.lost = self.lost.saturating_add(1);
        self.lost_last = Some(now);
        self.total += 1;
        pause.min(LONGEST_PAUSE.max(limits.first_pause))
    }

    /// Asks for a start, and counts it if there will be one.
    pub(super) fn ask(&mut self, now: Instant, limits: &ServerLimits) -> Advice {
        if let Some(until) = self.open_until {
            if now < until {
                return Advice::Wait(until - now);
            }
            self.open_until = None;
            self.starts.clear();
        }
        while self.starts.front().is_some_and(|first| now.duration_since(*first) >= limits.restart_window) {
            self.starts.pop_front();
        }
        if self.starts.len() > limits.restarts {
            self.open_until = Some(now + limits.breaker_time);
            return Advice::Wait(limits.breaker_time);
        }
        let doublings = u32::try_from(self.starts.len().saturating_sub(1)).unwrap_or(u32::MAX).min(16);
        let pause = if self.starts.is_empty() { Duration::ZERO } else { limits.first_pause * (1 << doublings) };
        self.starts.push_back(now);
        self.total += 1;
        Advice::After(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_then_the_breaker_opens_and_closes_again() {
        let limits = ServerLimits::default();
        let mut restarts = Restarts::new();
        let start = Instant::now();
        let pauses: Vec<_> = (0..7).map(|_| restarts.ask(start, &limits)).collect();
        let ms = |n| Advice::After(Duration::from_millis(n));
        let open = Advice::Wait(Duration::from_secs(60));
        assert_eq!(pauses, [ms(0), ms(100), ms(200), ms(400), ms(800), ms(1600), open]);
        assert_eq!(restarts.ask(start + Duration::from_secs(20), &limits), Advice::Wait(Duration::from_secs(40)));
        assert_eq!(restarts.ask(start + Duration::from_secs(60), &limits), ms(0));
        assert_eq!(restarts.total(), 6);
    }

    #[test]
    fn lost_sessions_are_paced_and_never_open_the_breaker() {
        let limits = ServerLimits::default();
        let mut restarts = Restarts::new();
        let start = Instant::now();
        restarts.ask(start, &limits);
        let pauses: Vec<_> = (0..12).map(|_| restarts.reopen(start, &limits).as_millis()).collect();
        assert_eq!(pauses[..5], [100, 200, 400, 800, 1600]);
        assert_eq!(pauses[9..], [30_000; 3]);
        assert_eq!(restarts.reopen(start + limits.restart_window, &limits), limits.first_pause);
        assert_eq!(restarts.ask(start, &limits), Advice::After(limits.first_pause), "only the first start counts");
        assert_eq!(restarts.total(), 14);
    }

    #[test]
    fn a_server_that_ran_for_long_starts_at_once() {
        let limits = ServerLimits::default();
        let mut restarts = Restarts::new();
        let start = Instant::now();
        restarts.ask(start, &limits);
        assert_eq!(restarts.ask(start + limits.restart_window, &limits), Advice::After(Duration::ZERO));
    }
}
