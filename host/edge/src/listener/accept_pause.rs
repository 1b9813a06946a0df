//! What to do while nothing can be accepted: wait, and say so once when it begins and once when it is over.
//!
//! At the edge of what a machine has, accepting stops and goes on many times a second. So of pauses that follow each
//! other closely only the first, the second, the fourth and so on are said.

use std::{
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::time::sleep;

use super::{AcceptError, turned_away::TurnedAway};

/// AcceptPauses with less than this in between follow each other closely.
const CLOSE: Duration = Duration::from_secs(60);

/// Whether connections of one kind can be accepted; one for all listeners that share its meaning.
#[derive(Debug)]
pub struct AcceptPause {
    /// What cannot connect, as logs call it.
    what: &'static str,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How often accepting failed in this pause; 0 where there is none.
    failed: u64,
    is_said: bool,
    last_failure: Option<Instant>,
    /// Of those that follow each other closely.
    pauses: TurnedAway,
}

impl AcceptPause {
    /// No pause so far; `what` cannot connect while there is one, as logs call it.
    #[must_use]
    pub fn new(what: &'static str) -> Self {
        Self { what, state: Mutex::default() }
    }

    /// Waits after a failure: what fails may go on failing, and must not take a processor.
    pub async fn wait_after(&self, error: AcceptError) {
        match &error {
            AcceptError::Exhausted(error) => self.failed(error),
            AcceptError::Passing(error) => {
                tracing::debug!(what = self.what, %error, "a connection was gone before it was accepted");
            }
        }
        sleep(error.pause()).await;
    }

    /// One was accepted.
    pub fn is_over(&self) {
        let what = self.what;
        if let Some(failed) = self.state().over() {
            tracing::warn!(what, failed, "new connections are accepted again");
        }
    }

    fn failed(&self, error: &io::Error) {
        let what = self.what;
        if let Some(count) = self.state().one_more(Instant::now()) {
            tracing::warn!(
                what, count, %error,
                "no new connection can be accepted, and they wait; if this goes on, raise the limit of open files (ulimit -n)"
            );
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a failure. Gives the number of the pause where it begins and is worth a line.
    fn one_more(&mut self, now: Instant) -> Option<u64> {
        if self.last_failure.is_none_or(|last| now.duration_since(last) >= CLOSE) {
            self.pauses = TurnedAway::default();
        }
        self.last_failure = Some(now);
        self.failed += 1;
        let count = if self.failed == 1 { self.pauses.one_more() } else { None };
        self.is_said |= count.is_some();
        count
    }

    /// Ends the pause. Gives how often accepting failed in one that was said.
    fn over(&mut self) -> Option<u64> {
        let failed = std::mem::take(&mut self.failed);
        std::mem::take(&mut self.is_said).then_some(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_makes_two_lines_however_long_it_is() {
        let mut state = State::default();
        assert_eq!(state.over(), None);
        let now = Instant::now();
        let lines: Vec<u64> = (0..1000).filter_map(|_| state.one_more(now)).collect();
        assert_eq!((lines, state.over(), state.over()), (vec![1], Some(1000), None));
    }

    #[test]
    fn many_in_a_row_make_few_lines_and_one_much_later_makes_its_own() {
        let (mut state, now) = (State::default(), Instant::now());
        let pauses = (0..100).map(|_| (state.one_more(now), state.over()));
        let (begun, ended): (Vec<_>, Vec<_>) = pauses.unzip();
        assert_eq!(begun.into_iter().flatten().collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(ended.into_iter().flatten().count(), 7);
        assert_eq!(state.one_more(now + CLOSE), Some(1));
    }
}
