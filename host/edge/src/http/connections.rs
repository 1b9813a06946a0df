//! Places for connections: so many in all, so many a session, and a few that each session always has.
//!
//! A session fills its reserved places first and then takes from what all share. What is shared shrinks as sessions
//! come, so no session can be locked out by the others; with very many sessions the reserved places alone may be more
//! than the total, and then they are what counts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use footbridge_core::limits::EdgeLimits;

/// All places of one harness.
#[derive(Debug, Clone)]
pub struct Connections(Arc<All>);

#[derive(Debug)]
struct All {
    counts: Mutex<Counts>,
    total: usize,
    reserved: usize,
}

#[derive(Debug, Default)]
struct Counts {
    /// Sessions that have a share.
    sessions: usize,
    /// Places in use beyond the reserved ones.
    shared: usize,
}

impl Connections {
    /// As many places as the limits say.
    #[must_use]
    pub fn new(limits: &EdgeLimits) -> Self {
        Self(Arc::new(All {
            counts: Mutex::default(),
            total: limits.connections,
            reserved: limits.connections_reserved.min(limits.connections_per_session),
        }))
    }

    /// The share of one more session, of at most so many, until it is dropped.
    #[must_use]
    pub fn share(&self, at_most: usize) -> ConnectionShare {
        // One that can use no place has none reserved either.
        self.0.lock().sessions += usize::from(at_most > 0);
        ConnectionShare(Arc::new(Owned { all: Arc::clone(&self.0), at_most, used: Mutex::new(0) }))
    }
}

impl All {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One session's places. Clones are the same share.
#[derive(Debug, Clone)]
pub struct ConnectionShare(Arc<Owned>);

#[derive(Debug)]
struct Owned {
    all: Arc<All>,
    at_most: usize,
    used: Mutex<usize>,
}

impl ConnectionShare {
    /// Takes a place, if there is one.
    #[must_use]
    pub(crate) fn enter(&self) -> Option<ConnectionPlace> {
        let Owned { all, at_most, .. } = &*self.0;
        let mut used = self.0.used();
        if *used >= *at_most {
            return None;
        }
        if *used >= all.reserved {
            let mut counts = all.lock();
            if counts.shared >= all.total.saturating_sub(counts.sessions * all.reserved) {
                return None;
            }
            counts.shared += 1;
        }
        *used += 1;
        Some(ConnectionPlace(self.clone()))
    }

    /// Places in use.
    #[must_use]
    pub fn used(&self) -> usize {
        *self.0.used()
    }
}

impl Owned {
    fn used(&self) -> MutexGuard<'_, usize> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.all.lock().sessions -= usize::from(self.at_most > 0);
    }
}

/// A place in use, until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPlace(ConnectionShare);

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let owned = &*self.0.0;
        let mut used = owned.used();
        *used -= 1;
        if *used >= owned.all.reserved {
            owned.all.lock().shared -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(connections: usize, connections_reserved: usize) -> Connections {
        Connections::new(&EdgeLimits { connections, connections_reserved, ..EdgeLimits::default() })
    }

    fn fill(share: &ConnectionShare) -> Vec<ConnectionPlace> {
        std::iter::from_fn(|| share.enter()).collect()
    }

    #[test]
    fn a_greedy_session_leaves_the_others_their_reserve() {
        let all = places(20, 4);
        let (greedy, other) = (all.share(15), all.share(15));
        let held = fill(&greedy);
        assert_eq!(held.len(), 15);
        assert_eq!(fill(&other).len(), 5, "its reserve, and what is left of the shared ones");
        let third = all.share(15);
        assert_eq!(fill(&third).len(), 4, "its reserve, also when all shared places are gone");
        drop(held);
        assert_eq!(fill(&greedy).len(), 12, "its reserve, and 8 shared places for three sessions");
    }

    #[test]
    fn each_session_has_its_own_most() {
        let all = places(20, 4);
        let (one, many) = (all.share(1), all.share(100));
        assert_eq!((fill(&one).len(), fill(&one).len()), (1, 0), "the first place is free again, and is all there is");
        assert_eq!(fill(&many).len(), 16, "its reserve, and what is shared");
    }

    #[test]
    fn places_come_back_in_whatever_order_they_are_left() {
        let all = places(20, 4);
        let share = all.share(15);
        let mut held = fill(&share);
        held.swap(0, 14);
        held.truncate(7);
        assert_eq!(share.used(), 7);
        drop(held);
        assert_eq!((share.used(), all.0.lock().shared), (0, 0));
        drop(share);
        assert_eq!(all.0.lock().sessions, 0);
    }
}
