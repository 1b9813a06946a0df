//! Connections of the HTTP client: where a URL leads, over TLS or a proxy, and in time.
//!
//! HTTP/1.1 alone is offered: one connection then carries one request, so that what a server sends too much of ends that
//! one. Proxies are for `https:` to other machines, as `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` name them; they are
//! asked for a tunnel, so that they see names and no more.

use std::{
    error::Error,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{FutureExt as _, TryFutureExt as _, future::BoxFuture};
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::{
        legacy::connect::{Connected, Connection, HttpConnector, proxy::Tunnel},
        proxy::matcher::Matcher,
    },
    rt::TokioIo,
};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;
use tower_service::Service;

use super::address::Guarded;

/// How long nothing may come before it is asked whether the other side is still there, and between two such questions.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How often it is asked.
const KEEPALIVE_TRIES: u32 = 3;
/// How long what was sent may stay without a sign that it arrived.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

type BoxError = Box<dyn Error + Send + Sync>;
/// A connection to a server, or through a proxy that may be spoken to over TLS itself.
type Carried = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Makes connections for one address.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    inner: HttpsConnector<Routed>,
    time: Duration,
}

impl Connector {
    /// Connections within this time, TLS and all. With `tls`, certificates are checked as the machine does; with
    /// `proxied`, by a proxy where the environment names one.
    pub(super) fn new(resolver: Guarded, tls: bool, proxied: bool, time: Duration) -> Result<Self, rustls::Error> {
        let mut direct = HttpConnector::new_with_resolver(resolver);
        // What comes to TLS besides is up to the layer around it.
        direct.enforce_http(false);
        direct.set_nodelay(true);
        direct.set_keepalive(Some(KEEPALIVE));
        direct.set_keepalive_interval(Some(KEEPALIVE));
        direct.set_keepalive_retries(Some(KEEPALIVE_TRIES));
        direct.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        let config = Arc::new(tls_config(tls)?);
        let to_proxy = HttpsConnector::from((direct.clone(), Arc::clone(&config)));
        let proxies = proxied.then(|| Arc::new(Matcher::from_env()));
        Ok(Self { inner: HttpsConnector::from((Routed { direct, to_proxy, proxies }, config)), time })
    }
}

/// TLS by ring. Without a server to check, without the machine's certificates: they take a while to read.
fn tls_config(checks: bool) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder =
        if checks { builder.with_platform_verifier()? } else { builder.with_root_certificates(RootCertStore::empty()) };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// A stream that is read once a turn: whoever counts what comes before an answer gets a turn in between.
#[derive(Debug)]
pub(super) struct InTurns<S> {
    stream: S,
    has_read: bool,
}

impl<S: Read + Unpin> Read for InTurns<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.has_read) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        self.has_read = read.is_ready();
        read
    }
}

impl<S: Write + Unpin> Write for InTurns<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, from)
    }
}

impl<S: Connection> Connection for InTurns<S> {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl Service<Uri> for Connector {
    type Response = InTurns<MaybeHttpsStream<Carried>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (connecting, time) = (self.inner.call(to), self.time);
        Box::pin(async move {
            let late = || BoxError::from(format!("there was no connection within {time:?}"));
            let stream = tokio::time::timeout(time, connecting).await.unwrap_or_else(|_| Err(late()))?;
            Ok(InTurns { stream, has_read: false })
        })
    }
}

/// Leads to where a URL points, or to a proxy.
#[derive(Debug, Clone)]
struct Routed {
    direct: HttpConnector<Guarded>,
    to_proxy: HttpsConnector<HttpConnector<Guarded>>,
    proxies: Option<Arc<Matcher>>,
}

impl Service<Uri> for Routed {
    type Response = Carried;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Carried, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        ready!(self.direct.poll_ready(cx))?;
        self.to_proxy.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Some(proxy) = self.proxies.as_ref().and_then(|proxies| proxies.intercept(&to)) else {
            return self.direct.call(to).map_ok(MaybeHttpsStream::Http).err_into().boxed();
        };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.to_proxy.clone());
        if let Some(login) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(login.clone());
        }
        tunnel.call(to).err_into().boxed()
    }
}
