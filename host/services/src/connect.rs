//! Where connections to a service may lead: names are resolved here, and what they lead to is looked at before it is
//! dialled. A name that answers differently a moment later gains nothing, since the addresses that were looked at are
//! those that are dialled. Where the operator names a proxy, that alone is dialled.

use std::{
    error::Error,
    fmt, io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use footbridge_core::public_address::is_public;
use futures::{TryFutureExt as _, future::BoxFuture};
use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns::Name, proxy::Tunnel},
    rt::TokioIo,
};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::{net::TcpStream, time::timeout};
use tower_service::Service;

use crate::spec::{ServiceSpec, is_localhost};

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

/// Why there is no connection; what a guest may know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoConnection {
    /// Its name leads nowhere.
    #[error("its name cannot be resolved")]
    Name,
    /// Its name leads to a private address alone.
    #[error("its name leads to a private address; the operator can set allow_private if that is meant")]
    Private,
    /// It took too long.
    #[error("connecting to it took too long")]
    TooSlow,
    /// Who answered could not prove that it is the service.
    #[error("its certificate is not valid")]
    Certificate,
    /// It is of an authority that is not trusted.
    #[error("its certificate is of an authority that is not trusted here; the operator can name that with ca_file")]
    UnknownAuthority,
    /// It is an authority's, where a server's is needed.
    #[error("its certificate is an authority's own (CA:TRUE), which is none of a server")]
    OfAuthority,
    /// It was or will be valid.
    #[error("its certificate has expired, or is not valid yet")]
    Expired,
    /// It is another server's.
    #[error("its certificate is for another name")]
    OtherName,
    /// It speaks no TLS.
    #[error("it does not speak TLS; the operator can write http:// for an address of this machine if that is meant")]
    NoTls,
    /// It did not agree to TLS.
    #[error("it refused the TLS handshake")]
    Handshake,
    /// The proxy in front of it did not let it through.
    #[error("the proxy in front of it refused, or does not answer")]
    Proxy,
    /// Nobody answered there.
    #[error("it does not take connections")]
    Refused,
}

impl NoConnection {
    /// What an error of connecting comes from.
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(one) = cause {
            if let Some(known) = one.downcast_ref::<Self>() {
                return *known;
            }
            if let Some(error) = one.downcast_ref::<rustls::Error>() {
                return Self::of_tls(error);
            }
            // An error of the system may hold another one that is not its source.
            let inner = one.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            cause = match inner {
                Some(inner) => Some(inner as &(dyn Error + 'static)),
                None => one.source(),
            };
        }
        Self::Refused
    }

    fn of_tls(error: &rustls::Error) -> Self {
        use rustls::{CertificateError as Bad, Error};
        match error {
            // A signature that does not fit is that of another authority of the same name.
            Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => Self::UnknownAuthority,
            Error::InvalidCertificate(
                Bad::Expired | Bad::ExpiredContext { .. } | Bad::NotValidYet | Bad::NotValidYetContext { .. },
            ) => Self::Expired,
            Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => Self::OtherName,
            // The verifier has no other word for it.
            Error::InvalidCertificate(Bad::Other(other)) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                Self::OfAuthority
            }
            Error::InvalidMessage(_) => Self::NoTls,
            Error::AlertReceived(_) => Self::Handshake,
            _ => Self::Certificate,
        }
    }
}

/// Resolves the name of one service, and leaves out what it may not lead to.
#[derive(Clone)]
pub(crate) struct Resolver {
    pub(crate) lookup: Arc<dyn Lookup>,
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
            let found = resolver.lookup.lookup(&name).await.unwrap_or_default();
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

/// Connects to one service: resolved, checked, dialled and, but for loopback, encrypted within a time.
#[derive(Clone)]
pub(crate) struct Connector {
    inner: HttpsConnector<Way>,
    time: Duration,
}

/// What is spoken over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocols {
    /// HTTP/2 where the origin offers it.
    All,
    /// HTTP/1.1 alone.
    Http1,
}

impl Connector {
    /// For a service.
    ///
    /// # Errors
    /// Where the certificates of the machine cannot be read.
    pub(crate) fn new(
        spec: &ServiceSpec,
        lookup: Arc<dyn Lookup>,
        time: Duration,
        protocols: Protocols,
    ) -> Result<Self, rustls::Error> {
        let way = Way::to(spec, lookup, time);
        let https = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls(spec)?).https_or_http();
        let https = https.enable_http1();
        let inner = match protocols {
            Protocols::All => https.enable_http2().wrap_connector(way),
            Protocols::Http1 => https.wrap_connector(way),
        };
        Ok(Self { inner, time })
    }
}

/// When an idle connection is asked whether its other end is there, how often, and how many times in vain.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const ASKED_AGAIN: Duration = Duration::from_secs(10);
const ASKED: u32 = 3;

/// The way to one origin, or to the hosts of tunnels.
#[derive(Clone)]
pub(crate) enum Way {
    /// It is dialled.
    Direct(HttpConnector<Resolver>),
    /// A proxy is dialled, and asked for it.
    Proxy(Tunnel<HttpConnector<Resolver>>),
}

impl Way {
    pub(crate) fn to(spec: &ServiceSpec, lookup: Arc<dyn Lookup>, time: Duration) -> Self {
        let Some(proxy) = &spec.proxy else {
            return Self::Direct(tcp(Resolver { lookup, allow_private: spec.allow_private }, time));
        };
        let tunnel = Tunnel::new(proxy.address.clone(), tcp(Resolver { lookup, allow_private: true }, time));
        Self::Proxy(match &proxy.credential {
            Some(credential) => tunnel.with_auth(credential.clone()),
            None => tunnel,
        })
    }
}

impl Service<Uri> for Way {
    type Response = TokioIo<TcpStream>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        match self {
            Self::Direct(tcp) => tcp.poll_ready(cx).map_err(Into::into),
            Self::Proxy(tunnel) => tunnel.poll_ready(cx).map_err(Into::into),
        }
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        match self {
            Self::Direct(tcp) => Box::pin(tcp.call(address).map_err(Into::into)),
            Self::Proxy(tunnel) => Box::pin(tunnel.call(address).map_err(|error| {
                tracing::debug!(%error, "a proxy");
                NoConnection::Proxy.into()
            })),
        }
    }
}

/// Connections of TCP, which are noticed to be gone where nobody says so.
fn tcp(resolver: Resolver, time: Duration) -> HttpConnector<Resolver> {
    let mut tcp = HttpConnector::new_with_resolver(resolver);
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(time));
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE));
    tcp.set_keepalive_interval(Some(ASKED_AGAIN));
    tcp.set_keepalive_retries(Some(ASKED));
    tcp
}

/// A connection to a host and port, whose address was looked at.
pub(crate) async fn connected(mut way: Way, authority: &str, time: Duration) -> Result<TcpStream, NoConnection> {
    let address = format!("http://{authority}").parse().map_err(|_| NoConnection::Name)?;
    let connected = timeout(time, way.call(address)).await.map_err(|_| NoConnection::TooSlow)?;
    Ok(connected.map_err(|error| NoConnection::of(&*error))?.into_inner())
}

/// What is trusted: one's own authority where one is named, and else the system's.
fn tls(spec: &ServiceSpec) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = match (spec.authorities.is_empty(), spec.origin.is_tls) {
        (true, true) => builder.with_platform_verifier()?,
        // Those of the machine take a while to read.
        (true, false) => builder.with_root_certificates(RootCertStore::empty()),
        (false, _) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(spec.authorities.iter().cloned());
            builder.with_root_certificates(roots)
        }
    };
    Ok(builder.with_no_client_auth())
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let connecting = timeout(self.time, self.inner.call(address));
        Box::pin(async move { connecting.await.unwrap_or_else(|_| Err(NoConnection::TooSlow.into())) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

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

    #[test]
    fn why_tls_is_not_agreed_on_is_told_apart() {
        use rustls::{AlertDescription, CertificateError as Bad, Error, InvalidMessage, OtherError};
        let of_authority = Bad::Other(OtherError(Arc::new(io::Error::other("CaUsedAsEndEntity"))));
        for (error, why) in [
            (Error::InvalidCertificate(Bad::UnknownIssuer), NoConnection::UnknownAuthority),
            (Error::InvalidCertificate(Bad::Expired), NoConnection::Expired),
            (Error::InvalidCertificate(Bad::NotValidYet), NoConnection::Expired),
            (Error::InvalidCertificate(Bad::NotValidForName), NoConnection::OtherName),
            (Error::InvalidCertificate(of_authority), NoConnection::OfAuthority),
            (Error::InvalidCertificate(Bad::BadEncoding), NoConnection::Certificate),
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), NoConnection::NoTls),
            (Error::AlertReceived(AlertDescription::HandshakeFailure), NoConnection::Handshake),
        ] {
            assert_eq!(NoConnection::of(&io::Error::other(error)), why);
        }
    }

    #[tokio::test]
    async fn a_name_that_turns_private_is_refused_and_a_private_one_among_others_is_left_out() {
        let lookup = Arc::new(Changing(vec!["1.1.1.1 10.0.0.1", "127.0.0.1", "169.254.169.254"], AtomicUsize::new(0)));
        let mut resolver = Resolver { lookup, allow_private: false };
        assert_eq!(resolved(&mut resolver, "a.test").await, Ok(vec!["1.1.1.1".to_owned()]));
        assert_eq!(resolved(&mut resolver, "a.test").await, Err(NoConnection::Private));
        assert_eq!(resolved(&mut resolver, "a.test").await, Err(NoConnection::Private));
        resolver.allow_private = true;
        assert!(resolved(&mut resolver, "a.test").await.is_ok());
        assert_eq!(resolved(&mut resolver, "localhost").await, Err(NoConnection::Private));
    }
}
