//! How long a command is let go on that does not end by signals: until its user insists, or has left.
//!
//! A command may do as it likes about a signal, and what is hostile does nothing. Whoever sends signals in a row means
//! it; and whoever closed the terminal, so that no more signals can come from there, gets what a closed terminal means
//! to a program that takes its signals, only later.

use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep_until};

use footbridge_processes::terminal::has_controlling_terminal;

/// So many signals in a row are enough, if there is no longer pause between them.
const INSISTS: usize = 3;
const IN_A_ROW: Duration = Duration::from_secs(5);

/// How long the command may go on once the terminal is closed.
const LEFT: Duration = Duration::from_secs(10);

/// What was heard of the user so far.
pub(super) struct Patience {
    count: usize,
    last: Option<Instant>,
    had_terminal: bool,
    /// When SIGHUP came first.
    left: Option<Instant>,
}

impl Patience {
    /// With nothing heard.
    pub(super) fn new() -> Self {
        Self { count: 0, last: None, had_terminal: has_controlling_terminal(), left: None }
    }

    /// Takes note of a signal. Whether that was one too many.
    pub(super) fn ends_by(&mut self, signal: Signal, now: Instant) -> bool {
        if signal == Signal::SIGHUP {
            if self.had_terminal {
                self.left.get_or_insert(now);
            }
            // Others are told by it to read their settings again.
            return false;
        }
        let in_a_row = self.last.replace(now).is_some_and(|last| now.duration_since(last) <= IN_A_ROW);
        self.count = if in_a_row { self.count + 1 } else { 1 };
        self.count >= INSISTS
    }

    /// Waits until the terminal was closed for long enough. A SIGHUP that somebody sent closes none.
    pub(super) async fn ends_by_itself(&mut self) {
        while let Some(left) = self.left {
            sleep_until(left + LEFT).await;
            if !has_controlling_terminal() {
                return;
            }
            self.left = None;
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(had_terminal: bool) -> Patience {
        Patience { count: 0, last: None, had_terminal, left: None }
    }

    #[test]
    fn three_signals_in_a_row_are_enough_and_others_are_not() {
        let (start, mut patience) = (Instant::now(), of(false));
        let mut heard = Vec::new();
        for seconds in [0, 4, 10, 14, 15] {
            heard.push(patience.ends_by(Signal::SIGTERM, start + Duration::from_secs(seconds)));
        }
        assert_eq!(heard, [false, false, false, false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn where_no_terminal_was_none_is_closed() {
        let mut patience = of(false);
        assert!(!patience.ends_by(Signal::SIGHUP, Instant::now()));
        tokio::time::timeout(LEFT * 2, patience.ends_by_itself()).await.unwrap_err();
    }
}
