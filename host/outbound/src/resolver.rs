//! Resolving names, and leaving out what they may not lead to. The check is made where names are resolved for the
//! connection itself, so that a name that answers differently a moment later gains nothing.

use std::{
    fmt, io,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
};

use footbridge_core::hosts::{is_localhost, is_public};
use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

/// Looks names up.
pub trait Lookup: Send + Sync + 'static {
    /// The addresses of a name, one at least.
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// As the system does.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
    }
}

/// A name leads to nothing else than private addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name leads to a private address; set allow_private if that is meant")]
pub struct OnlyPrivate;

/// Resolves names for connections. What means this machine leads to it and nowhere else.
#[derive(Clone)]
pub struct CheckedResolver {
    /// How names are looked up.
    pub lookup: Arc<dyn Lookup>,
    /// Whether they may lead to private addresses: the operator says so, or they are of a proxy that the operator chose.
    pub allow_private: bool,
}

impl fmt::Debug for CheckedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedResolver").field("allow_private", &self.allow_private).finish_non_exhaustive()
    }
}

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let Self { lookup, allow_private } = self.clone();
        Box::pin(async move {
            let name = name.as_str().to_ascii_lowercase();
            let may = |address: &SocketAddr| {
                if is_localhost(&name) { address.ip().is_loopback() } else { allow_private || is_public(address.ip()) }
            };
            let allowed: Vec<SocketAddr> = lookup.lookup(&name).await?.into_iter().filter(may).collect();
            if allowed.is_empty() {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, OnlyPrivate));
            }
            Ok(allowed.into_iter())
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Answers one address after the other.
    pub(crate) struct Changing(pub(crate) Vec<&'static str>, pub(crate) AtomicUsize);

    impl Lookup for Changing {
        fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
            let at = self.1.fetch_add(1, Ordering::SeqCst).min(self.0.len() - 1);
            Box::pin(
                async move { Ok(self.0[at].split(' ').map(|ip| SocketAddr::new(ip.parse().unwrap(), 0)).collect()) },
            )
        }
    }

    async fn resolved(resolver: &mut CheckedResolver, name: &str) -> Option<Vec<String>> {
        match resolver.call(name.parse().unwrap()).await {
            Ok(found) => Some(found.map(|address| address.ip().to_string()).collect()),
            Err(error) => {
                assert!(error.get_ref().is_some_and(|why| why.is::<OnlyPrivate>()), "{error}");
                None
            }
        }
    }

    #[tokio::test]
    async fn a_name_that_turns_private_is_refused_and_a_private_one_among_others_is_left_out() {
        let lookup = Arc::new(Changing(vec!["1.1.1.1 10.0.0.1", "127.0.0.1", "169.254.169.254"], AtomicUsize::new(0)));
        let mut resolver = CheckedResolver { lookup, allow_private: false };
        assert_eq!(resolved(&mut resolver, "a.test").await, Some(vec!["1.1.1.1".to_owned()]));
        assert_eq!(resolved(&mut resolver, "a.test").await, None);
        assert_eq!(resolved(&mut resolver, "a.test").await, None);
        resolver.allow_private = true;
        assert!(resolved(&mut resolver, "a.test").await.is_some());
        assert_eq!(resolved(&mut resolver, "localhost").await, None);
        assert_eq!(resolved(&mut resolver, "A.LocalHost").await, None);
    }

    #[tokio::test]
    async fn what_the_system_knows_of_this_machine_is_it() {
        let mut resolver = CheckedResolver { lookup: Arc::new(SystemLookup), allow_private: false };
        assert!(resolved(&mut resolver, "localhost").await.is_some());
        // A numeric name is looked up without any network.
        assert_eq!(resolved(&mut resolver, "127.0.0.1").await, None);
    }
}
