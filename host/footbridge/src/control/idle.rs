//! The connections that ask for nothing at the moment, the longest silent first: one of them gives way to a new one.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// All that are idle. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct IdleConnections(Arc<Mutex<IdleList>>);

#[derive(Debug, Default)]
struct IdleList {
    /// By when they fell silent.
    waiting: BTreeMap<u64, CancellationToken>,
    next: u64,
}

/// A connection that is idle for as long as it has this.
#[derive(Debug)]
pub(super) struct IdleConnection {
    all: IdleConnections,
    since: u64,
    gives_way: CancellationToken,
}

impl IdleConnections {
    /// From now on a connection is idle.
    pub(super) fn begin(&self) -> IdleConnection {
        let gives_way = CancellationToken::new();
        let mut silent = self.lock();
        let since = silent.next;
        silent.next += 1;
        silent.waiting.insert(since, gives_way.clone());
        IdleConnection { all: self.clone(), since, gives_way }
    }

    /// Has the one give way that is idle for longest. False where none is.
    pub(super) fn close_oldest(&self) -> bool {
        let oldest = self.lock().waiting.pop_first();
        oldest.inspect(|(_, gives_way)| gives_way.cancel()).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, IdleList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IdleConnection {
    /// Returns once the connection has to give way.
    pub(super) async fn over(&self) {
        self.gives_way.cancelled().await;
    }
}

impl Drop for IdleConnection {
    fn drop(&mut self) {
        self.all.lock().waiting.remove(&self.since);
    }
}
