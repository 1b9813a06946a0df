//! Places for connections: so many in all, so many a session, and a few that each session always has.
//!
//! A session fills its reserved places first and then takes from what all share. What is shared shrinks as sessions
//! come, so no session can be locked out by the others; with very many sessions the reserved places alone may be more
//! than the total, and then they are what counts.
//!
//! Each connection is a descriptor, and a session has some besides. So sessions and connections are admitted against
//! those that there are for them: what is left for others (the record, servers, operators) is never taken.
//!
//! Whoever gives memory back asks here when a wave of connections is over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use footbridge_core::limits::EdgeLimits;
use tokio::sync::Notify;

/// So many connections at a time are a wave.
const WAVE: usize = 16;

/// All places of one harness.
#[derive(Debug, Clone)]
pub struct Connections(Arc<All>);

#[derive(Debug)]
struct All {
    counts: Mutex<Counts>,
    total: usize,
    reserved: usize,
    /// Descriptors for sessions and their connections.
    descriptors: usize,
    ebbed: Notify,
}

#[derive(Debug, Default)]
struct Counts {
    /// Connections that are open.
    open: usize,
    /// The most that were open since the last wave was over.
    most: usize,
    /// Sessions that have a share.
    sessions: usize,
    /// Descriptors that these have besides connections.
    taken: usize,
    /// Places in use beyond the reserved ones.
    shared: usize,
}

impl Connections {
    /// As many places as the limits say, and as there are descriptors for sessions and connections.
    #[must_use]
    pub fn new(limits: &EdgeLimits, descriptors: usize) -> Self {
        Self(Arc::new(All {
            descriptors,
            counts: Mutex::default(),
            total: limits.connections,
            reserved: limits.connections_reserved.min(limits.connections_per_session),
            ebbed: Notify::new(),
        }))
    }

    /// Waits until a wave of connections is over: most of them are gone.
    pub async fn ebbed(&self) {
        self.0.ebbed.notified().await;
    }

    /// The share of one more session, of at most so many, until it is dropped; the session has this many descriptors
    /// besides.
    ///
    /// # Errors
    /// [`NoDescriptors`] when it could not have its reserved places.
    pub fn share(&self, at_most: usize, descriptors: usize) -> Result<ConnectionShare, NoDescriptors> {
        let all = &self.0;
        let mut counts = all.lock();
        let needed = counts.taken + descriptors + (counts.sessions + 1) * all.reserved;
        if needed > all.descriptors {
            return Err(NoDescriptors(counts.sessions));
        }
        counts.sessions += 1;
        counts.taken += descriptors;
        drop(counts);
        let owned = Owned { all: Arc::clone(all), at_most, descriptors, used: Mutex::new(0) };
        Ok(ConnectionShare(Arc::new(owned)))
    }

    /// The share of a session that nobody connects to.
    #[must_use]
    pub fn no_places(&self) -> ConnectionShare {
        ConnectionShare(Arc::new(Owned { all: Arc::clone(&self.0), at_most: 0, descriptors: 0, used: Mutex::new(0) }))
    }
}

/// There are too few descriptors for one more session than these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this process may not open enough files for more than {0} sessions: revoke some, or raise its limit (ulimit -n, or \
     LimitNOFILE= of its unit) and start it again"
)]
pub struct NoDescriptors(usize);

impl All {
    /// Places beyond the reserved ones.
    fn for_all(&self, counts: &Counts) -> usize {
        let total = self.total.min(self.descriptors.saturating_sub(counts.taken));
        total.saturating_sub(counts.sessions * self.reserved)
    }

    fn opened(&self) {
        let mut counts = self.lock();
        counts.open += 1;
        counts.most = counts.most.max(counts.open);
    }

    fn closed(&self) {
        let mut counts = self.lock();
        counts.open -= 1;
        if counts.most >= WAVE && counts.open <= counts.most / 4 {
            counts.most = counts.open;
            self.ebbed.notify_one();
        }
    }

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
    descriptors: usize,
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
            if counts.shared >= all.for_all(&counts) {
                return None;
            }
            counts.shared += 1;
        }
        *used += 1;
        all.opened();
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
        let mut counts = self.all.lock();
        // One that nobody connects to was not counted.
        counts.sessions -= usize::from(self.at_most > 0);
        counts.taken -= self.descriptors;
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
        owned.all.closed();
        if *used >= owned.all.reserved {
            owned.all.lock().shared -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(connections: usize, connections_reserved: usize) -> Connections {
        Connections::new(&EdgeLimits { connections, connections_reserved, ..EdgeLimits::default() }, 10_000)
    }

    fn fill(share: &ConnectionShare) -> Vec<ConnectionPlace> {
        std::iter::from_fn(|| share.enter()).collect()
    }

    #[test]
    fn a_greedy_session_leaves_the_others_their_reserve() {
        let all = places(20, 4);
        let (greedy, other) = (all.share(15, 1).unwrap(), all.share(15, 1).unwrap());
        let held = fill(&greedy);
        assert_eq!(held.len(), 15);
        assert_eq!(fill(&other).len(), 5, "its reserve, and what is left of the shared ones");
        let third = all.share(15, 1).unwrap();
        assert_eq!(fill(&third).len(), 4, "its reserve, also when all shared places are gone");
        drop(held);
        assert_eq!(fill(&greedy).len(), 12, "its reserve, and 8 shared places for three sessions");
    }

    #[test]
    fn each_session_has_its_own_most() {
        let all = places(20, 4);
        let (one, many) = (all.share(1, 1).unwrap(), all.share(100, 1).unwrap());
        assert_eq!((fill(&one).len(), fill(&one).len()), (1, 0), "the first place is free again, and is all there is");
        assert_eq!(fill(&many).len(), 16, "its reserve, and what is shared");
    }

    #[test]
    fn places_come_back_in_whatever_order_they_are_left() {
        let all = places(20, 4);
        let share = all.share(15, 1).unwrap();
        let mut held = fill(&share);
        held.swap(0, 14);
        held.truncate(7);
        assert_eq!(share.used(), 7);
        drop(held);
        assert_eq!((share.used(), all.0.lock().shared), (0, 0));
        drop(share);
        assert_eq!(all.0.lock().sessions, 0);
    }

    #[test]
    fn sessions_and_connections_leave_descriptors_to_others() {
        let limits = EdgeLimits { connections: 1000, connections_reserved: 4, ..EdgeLimits::default() };
        let all = Connections::new(&limits, 30);
        let first = all.share(100, 3).unwrap();
        assert_eq!(fill(&first).len(), 27, "all but its own");
        let (held, second) = (fill(&first), all.share(100, 3).unwrap());
        assert_eq!((held.len(), fill(&second).len()), (27, 4), "what was taken before is not taken back");
        drop(held);
        assert_eq!(fill(&first).len(), 20, "24 less the reserve of the second");
        let more: Vec<_> = std::iter::from_fn(|| all.share(100, 3).ok()).collect();
        assert_eq!(more.len(), 2, "7 each");
        assert_eq!(all.share(100, 3).unwrap_err(), NoDescriptors(4));
        drop(more);
        assert!(all.share(100, 3).is_ok());
    }
}
