//! A journal that keeps nothing: for tests and trials.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, PoisonError},
};

/// Lines that are kept; older ones go.
const LINES: usize = 10_000;

/// A journal in memory, gone with the process: nothing of it is a record that anybody can rely on. Clones are the same
/// journal, to read what was written.
#[derive(Debug, Clone, Default)]
pub struct VolatileJournal {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl VolatileJournal {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The last 10,000 lines, each a JSON object.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl super::Journal for VolatileJournal {
    fn reserve(&mut self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn commit(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend(String::from_utf8_lossy(bytes).lines().map(str::to_owned));
        let over = lines.len().saturating_sub(LINES);
        lines.drain(..over);
        Ok(())
    }

    fn is_quick(&self) -> bool {
        true
    }
}
