//! Resolving names, each of which takes a thread until the system has an answer, also where nobody waits for it any more:
//! a session has so many at once, and all of them fewer than there are threads.

use std::{
    collections::HashMap,
    fmt, io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll},
};

use footbridge_core::public_address::is_public;
use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tower_service::Service;

use crate::{no_connection::NoConnection, spec::is_localhost};

/// Names that are resolved at once: for one session, and for all. The threads for it are shared with the rest of the
/// harness, which has twice as many.
const OF_SESSION: usize = 8;
const OF_ALL: usize = 256;

/// Resolves names.
pub trait Lookup: Send + Sync + 'static {
    /// The addresses of a name.
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// As the system resolves them.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
    }
}

/// The lookups of a harness.
pub(crate) struct Lookups {
    lookup: Arc<dyn Lookup>,
    all: Arc<Semaphore>,
    of_sessions: Mutex<HashMap<u64, Weak<Semaphore>>>,
    /// Those that run, some of which nobody waits for.
    running: TaskTracker,
}

impl Lookups {
    pub(crate) fn new(lookup: Arc<dyn Lookup>) -> Self {
        Self {
            lookup,
            all: Arc::new(Semaphore::new(OF_ALL)),
            of_sessions: Mutex::default(),
            running: TaskTracker::new(),
        }
    }

    /// Those of one session; of an operator where that is none.
    pub(crate) fn of(&self, session: Option<u64>) -> SessionLookups {
        let new = || Arc::new(Semaphore::new(OF_SESSION));
        let own = session.map_or_else(new, |session| {
            let mut all = self.of_sessions.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(own) = all.get(&session).and_then(Weak::upgrade) {
                return own;
            }
            all.retain(|_, own| own.strong_count() > 0);
            let own = new();
            all.insert(session, Arc::downgrade(&own));
            own
        });
        let (lookup, all) = (Arc::clone(&self.lookup), Arc::clone(&self.all));
        SessionLookups { lookup, own, all, running: self.running.clone() }
    }
}

/// The lookups of a session. Clones share its places.
#[derive(Clone)]
pub(crate) struct SessionLookups {
    lookup: Arc<dyn Lookup>,
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
    running: TaskTracker,
}

impl SessionLookups {
    async fn lookup(&self, name: String) -> Vec<SocketAddr> {
        let places = (Arc::clone(&self.own).acquire_owned().await, Arc::clone(&self.all).acquire_owned().await);
        let lookup = Arc::clone(&self.lookup);
        // It has its thread to its end, whoever waits.
        let looking = self.running.spawn(async move {
            let found = lookup.lookup(&name).await;
            drop(places);
            found
        });
        looking.await.ok().and_then(Result::ok).unwrap_or_default()
    }
}

/// Resolves the name of one service, and leaves out what it may not lead to.
#[derive(Clone)]
pub(crate) struct Resolver {
    pub(crate) lookups: SessionLookups,
    pub(crate) allow_private: bool,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("allow_private", &self.allow_private).finish_non_exhaustive()
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = self.clone();
        Box::pin(async move {
            let name = name.as_str().to_ascii_lowercase();
            let found = resolver.lookups.lookup(name.clone()).await;
            if found.is_empty() {
                return Err(io::Error::other(NoConnection::Name));
            }
            let may = |address: &SocketAddr| {
                if is_localhost(&name) {
                    address.ip().is_loopback()
                } else {
                    resolver.allow_private || is_public(address.ip())
                }
            };
            let allowed: Vec<SocketAddr> = found.into_iter().filter(may).collect();
            if allowed.is_empty() {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, NoConnection::Private));
            }
            Ok(allowed.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    /// Answers one address after the other.
    struct Changing(Vec<&'static str>, AtomicUsize);

    impl Lookup for Changing {
        fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
            let at = self.1.fetch_add(1, Ordering::SeqCst).min(self.0.len() - 1);
            Box::pin(
                async move { Ok(self.0[at].split(' ').map(|ip| SocketAddr::new(ip.parse().unwrap(), 0)).collect()) },
            )
        }
    }

    async fn resolved(resolver: &mut Resolver, name: &str) -> Result<Vec<String>, NoConnection> {
        let found = resolver.call(name.parse().unwrap()).await;
        found.map(|found| found.map(|address| address.ip().to_string()).collect()).map_err(|e| NoConnection::of(&e))
    }

    #[tokio::test]
    async fn a_name_that_turns_private_is_refused_and_a_private_one_among_others_is_left_out() {
        let lookup = Arc::new(Changing(vec!["1.1.1.1 10.0.0.1", "127.0.0.1", "169.254.169.254"], AtomicUsize::new(0)));
        let mut resolver = Resolver { lookups: Lookups::new(lookup).of(Some(1)), allow_private: false };
        assert_eq!(resolved(&mut resolver, "a.test").await, Ok(vec!["1.1.1.1".to_owned()]));
        assert_eq!(resolved(&mut resolver, "a.test").await, Err(NoConnection::Private));
        assert_eq!(resolved(&mut resolver, "a.test").await, Err(NoConnection::Private));
        resolver.allow_private = true;
        assert!(resolved(&mut resolver, "a.test").await.is_ok());
        assert_eq!(resolved(&mut resolver, "localhost").await, Err(NoConnection::Private));
    }

    /// Answers when it is told to, and counts who waits.
    #[derive(Default)]
    struct Slow(AtomicUsize, Notify);

    impl Lookup for Slow {
        fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                self.1.notified().await;
                Ok(vec![SocketAddr::new([1, 1, 1, 1].into(), 0)])
            })
        }
    }

    #[tokio::test]
    async fn who_asks_and_leaves_takes_no_more_threads_than_a_session_has() {
        let slow = Arc::new(Slow::default());
        let lookups = Lookups::new(Arc::clone(&slow) as Arc<dyn Lookup>);
        for _ in 0..5 * OF_SESSION {
            let one = lookups.of(Some(1));
            tokio::select! {
                _ = one.lookup("a.test".to_owned()) => panic!("nobody answered"),
                () = tokio::task::yield_now() => {}
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(slow.0.load(Ordering::SeqCst), OF_SESSION);
        let other = lookups.of(Some(2));
        let other = tokio::spawn(async move { other.lookup("a.test".to_owned()).await });
        while slow.0.load(Ordering::SeqCst) == OF_SESSION {
            tokio::task::yield_now().await;
        }
        slow.1.notify_waiters();
        assert_eq!(other.await.unwrap().len(), 1, "another session is not kept waiting");
        while lookups.all.available_permits() < OF_ALL {
            tokio::task::yield_now().await;
        }
    }
}
