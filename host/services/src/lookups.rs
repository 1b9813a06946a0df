//! Resolving names, within the places of a session, and leaving out what they may not lead to.

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

use crate::{no_connection::NoConnection, shares::Share};

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

/// Resolves the name of one service, and leaves out what it may not lead to.
#[derive(Clone)]
pub(crate) struct Resolver {
    pub(crate) lookup: Arc<dyn Lookup>,
    pub(crate) share: Share,
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

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let Self { lookup, share, allow_private } = self.clone();
        Box::pin(async move {
            let name = name.as_str().to_ascii_lowercase();
            let asked = name.clone();
            let found = share.look_up(async move { lookup.lookup(&asked).await }).await;
            let found = found.and_then(Result::ok).unwrap_or_default();
            if found.is_empty() {
                return Err(io::Error::other(NoConnection::Name));
            }
            let may = |address: &SocketAddr| {
                if is_localhost(&name) { address.ip().is_loopback() } else { allow_private || is_public(address.ip()) }
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

    use super::*;
    use crate::shares::Shares;

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
        let mut resolver = Resolver { lookup, share: Shares::new(1).of(Some(1)), allow_private: false };
        assert_eq!(resolved(&mut resolver, "a.test").await, Ok(vec!["1.1.1.1".to_owned()]));
        assert_eq!(resolved(&mut resolver, "a.test").await, Err(NoConnection::Private));
        assert_eq!(resolved(&mut resolver, "a.test").await, Err(NoConnection::Private));
        resolver.allow_private = true;
        assert!(resolved(&mut resolver, "a.test").await.is_ok());
        assert_eq!(resolved(&mut resolver, "localhost").await, Err(NoConnection::Private));
    }
}
