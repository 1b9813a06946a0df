//! Which addresses an MCP server over HTTP, or a webhook, may have.
//!
//! Plain HTTP goes to loopback only. A name may not lead to a private address unless the operator allowed it; an
//! address written out in the URL is what the operator meant. The check is made where names are resolved for the
//! connection itself, so that a name that answers differently a moment later gains nothing.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    task::{Context, Poll},
};

use footbridge_core::hosts::{is_localhost, is_loopback, is_public};
use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;
use url::Url;

/// Why a URL is refused before anything is sent.
#[derive(Debug, thiserror::Error)]
pub enum BadAddress {
    /// Unencrypted to another machine.
    #[error("plain http: is allowed to a loopback address only; use https:")]
    PlainHttp,
    /// Something else than HTTP.
    #[error("the URL's scheme is {0:?}; use https:, or http: to a loopback address")]
    Scheme(String),
    /// Credentials would show in logs.
    #[error("the URL holds a user name or a password; put them into a header")]
    Credentials,
    /// A header cannot be sent.
    #[error("the header {0:?} has a value that no header may have, or is one that is set here")]
    Header(String),
    /// It is a URL, but none that HTTP can ask for.
    #[error("the URL cannot be asked for over HTTP: {0}")]
    Uri(#[source] http::uri::InvalidUri),
    /// Nothing to check certificates with.
    #[error("TLS cannot be spoken: {0}")]
    Tls(#[from] rustls::Error),
}

/// Checks a URL, and says whether it leads to this machine.
pub(super) fn check(url: &Url) -> Result<bool, BadAddress> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(BadAddress::Credentials);
    }
    let local = url.host_str().is_some_and(is_loopback);
    match url.scheme() {
        "https" => Ok(local),
        "http" if local => Ok(true),
        "http" => Err(BadAddress::PlainHttp),
        other => Err(BadAddress::Scheme(other.to_owned())),
    }
}

/// Resolves names, and leaves out the addresses that this server's name may not lead to.
#[derive(Debug, Clone)]
pub(super) struct Guarded {
    /// The server's name; other names are those of proxies, which the operator chose.
    host: Arc<str>,
    allow_private: bool,
}

impl Service<Name> for Guarded {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let name = name.as_str().to_ascii_lowercase();
        let rule = match () {
            () if is_localhost(&name) => Rule::LoopbackOnly,
            () if *name != *self.host || self.allow_private => Rule::Any,
            () => Rule::PublicOnly,
        };
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> = found.into_iter().filter(|addr| rule.allows(addr.ip())).collect();
            if allowed.is_empty() {
                let why = "the name leads to a private address; set allow_private if that is meant";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            Ok(allowed.into_iter())
        })
    }
}

/// A resolver for the client.
pub(super) fn resolver(host: &str, allow_private: bool) -> Guarded {
    Guarded { host: host.to_ascii_lowercase().into(), allow_private }
}

#[derive(Debug, Clone, Copy)]
enum Rule {
    Any,
    LoopbackOnly,
    PublicOnly,
}

impl Rule {
    fn allows(self, ip: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::LoopbackOnly => ip.is_loopback(),
            Self::PublicOnly => is_public(ip),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_goes_to_loopback_only() {
        for (url, local) in [
            ("http://127.0.0.1:3000/mcp", Some(true)),
            ("http://[::1]:3000/mcp", Some(true)),
            ("http://localhost/mcp", Some(true)),
            ("http://a.localhost/mcp", Some(true)),
            ("https://example.com/mcp", Some(false)),
            ("http://example.com/mcp", None),
            ("http://10.0.0.1/mcp", None),
            ("http://localhost.example.com/mcp", None),
            ("ftp://127.0.0.1/", None),
            ("https://user:secret@example.com/", None),
        ] {
            assert_eq!(check(&Url::parse(url).unwrap()).ok(), local, "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_to_loopback_is_refused_when_it_is_resolved() {
        let resolve = |host: &str, name: &str| resolver(host, false).call(name.parse().unwrap());
        assert!(resolve("localhost", "localhost").await.is_ok());
        // A numeric name resolves without any network.
        assert!(resolve("127.0.0.1", "127.0.0.1").await.is_err());
        assert!(resolver("127.0.0.1", true).call("127.0.0.1".parse().unwrap()).await.is_ok());
    }
}
