//! What a session has of what all share: names that are looked up at once, and connections.
//!
//! A lookup takes a thread until the system has an answer, also where nobody waits for it any more, and a connection a
//! descriptor: each counts for as long as it is there.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use footbridge_outbound::Lookup;
use futures::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use crate::no_connection::NoConnection;

/// Names that are looked up at once: for one session, and for all. The threads for it are shared with the rest of the
/// harness, which has twice as many.
const LOOKUPS: usize = 8;
const ALL_LOOKUPS: usize = 256;

/// Connections that are left to other sessions, whatever one may have.
const OF_OTHERS: usize = 384;

/// What all sessions share.
pub(crate) struct Shares {
    lookups: Arc<Semaphore>,
    places: Arc<Semaphore>,
    /// Connections that one session may have.
    own_places: usize,
    sessions: Mutex<HashMap<u64, Own>>,
    /// Lookups, some of which nobody waits for.
    running: TaskTracker,
}

/// What a session has by itself, for as long as anything of it is in use.
struct Own {
    lookups: Weak<Semaphore>,
    places: Weak<Semaphore>,
}

impl Shares {
    /// So many connections, of which a session may have all but those of others: no more than a quarter where there are few.
    pub(crate) fn new(connections: usize) -> Self {
        let all = connections.min(Semaphore::MAX_PERMITS);
        Self {
            lookups: Arc::new(Semaphore::new(ALL_LOOKUPS)),
            places: Arc::new(Semaphore::new(all)),
            own_places: all.div_ceil(4).max(all.saturating_sub(OF_OTHERS)),
            sessions: Mutex::default(),
            running: TaskTracker::new(),
        }
    }

    /// That of a session; of an operator where that is none.
    pub(crate) fn of(&self, session: Option<u64>) -> Share {
        let (lookups, places) = match session {
            Some(session) => self.own(session),
            None => (Arc::new(Semaphore::new(LOOKUPS)), Arc::new(Semaphore::new(self.own_places))),
        };
        Share {
            lookups: Both { own: lookups, of_all: Arc::clone(&self.lookups) },
            places: Both { own: places, of_all: Arc::clone(&self.places) },
            running: self.running.clone(),
        }
    }

    fn own(&self, session: u64) -> (Arc<Semaphore>, Arc<Semaphore>) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut lookups, mut places) = (None, None);
        if let Some(own) = sessions.get(&session) {
            (lookups, places) = (own.lookups.upgrade(), own.places.upgrade());
        }
        if lookups.is_none() || places.is_none() {
            sessions.retain(|_, own| own.lookups.strong_count() + own.places.strong_count() > 0);
        }
        let lookups = lookups.unwrap_or_else(|| Arc::new(Semaphore::new(LOOKUPS)));
        let places = places.unwrap_or_else(|| Arc::new(Semaphore::new(self.own_places)));
        sessions.insert(session, Own { lookups: Arc::downgrade(&lookups), places: Arc::downgrade(&places) });
        (lookups, places)
    }
}

/// What a session has. Clones share it.
#[derive(Clone)]
pub(crate) struct Share {
    lookups: Both,
    places: Both,
    running: TaskTracker,
}

/// Places of a session, and of all.
#[derive(Clone)]
struct Both {
    own: Arc<Semaphore>,
    of_all: Arc<Semaphore>,
}

/// A place of a session, and of all.
#[derive(Debug)]
pub(crate) struct Place {
    _own: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Share {
    /// Looks something up once there is a place. It has that to its end, whoever waits; nothing where it panicked.
    pub(crate) async fn look_up<T>(&self, looking: impl Future<Output = T> + Send + 'static) -> Option<T>
    where
        T: Send + 'static,
    {
        let Both { own, of_all } = self.lookups.clone();
        let (own, of_all) = (own.acquire_owned().await.ok()?, of_all.acquire_owned().await.ok()?);
        let looking = self.running.spawn(async move {
            let _place = Place { _own: own, _of_all: of_all };
            looking.await
        });
        looking.await.ok()
    }

    /// A place for one more connection, if there is one.
    pub(crate) fn place(&self) -> Option<Place> {
        let Both { own, of_all } = self.places.clone();
        Some(Place { _own: own.try_acquire_owned().ok()?, _of_all: of_all.try_acquire_owned().ok()? })
    }
}

/// Looks names up within the places of a session.
pub(crate) struct LookupWithin {
    pub(crate) lookup: Arc<dyn Lookup>,
    pub(crate) share: Share,
}

impl Lookup for LookupWithin {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        let (lookup, name) = (Arc::clone(&self.lookup), name.to_owned());
        Box::pin(async move {
            let found = self.share.look_up(async move { lookup.lookup(&name).await }).await;
            found.and_then(Result::ok).ok_or_else(|| io::Error::other(NoConnection::Name))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::{sync::Notify, task::yield_now};

    use super::*;

    #[tokio::test]
    async fn who_asks_and_leaves_takes_no_more_threads_than_a_session_has() {
        let shares = Shares::new(1);
        let (begun, answer) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let looking = || {
            let (begun, answer) = (Arc::clone(&begun), Arc::clone(&answer));
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                answer.notified().await;
            }
        };
        for _ in 0..5 * LOOKUPS {
            let one = shares.of(Some(1));
            tokio::select! {
                _ = one.look_up(looking()) => panic!("nobody answered"),
                () = yield_now() => {}
            }
            yield_now().await;
        }
        assert_eq!(begun.load(Ordering::SeqCst), LOOKUPS);
        let (other, theirs) = (shares.of(Some(2)), looking());
        let other = tokio::spawn(async move { other.look_up(theirs).await });
        while begun.load(Ordering::SeqCst) == LOOKUPS {
            yield_now().await;
        }
        answer.notify_waiters();
        assert!(other.await.unwrap().is_some(), "another session is not kept waiting");
        while shares.lookups.available_permits() < ALL_LOOKUPS {
            yield_now().await;
        }
    }

    #[test]
    fn a_session_has_a_quarter_of_the_connections_at_most_for_as_long_as_it_has_them() {
        let shares = Shares::new(8);
        let held: Vec<Place> = (0..2).map(|_| shares.of(Some(1)).place().unwrap()).collect();
        assert!(shares.of(Some(1)).place().is_none());
        let others: Vec<Place> =
            (2..5).flat_map(|session| [session; 2]).filter_map(|session| shares.of(Some(session)).place()).collect();
        assert_eq!((others.len(), shares.of(Some(9)).place().is_none()), (6, true), "all are taken");
        drop(held);
        assert!(shares.of(Some(1)).place().is_some());
        assert!(shares.sessions.lock().unwrap().len() <= 5);
        for (all, has) in [(1, 1), (256, 64), (515, 131), (2000, 1616)] {
            assert_eq!(Shares::new(all).of(Some(1)).places.own.available_permits(), has);
        }
    }
}
