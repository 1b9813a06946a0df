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
use tokio::net::TcpStream;
use tower_service::Service;

use crate::{resolver::CheckedResolver, tcp::tcp, tls::tls};

/// How long what was sent may stay without a sign that it arrived.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

type BoxError = Box<dyn Error + Send + Sync>;
/// A connection to a server, or through a proxy that may be spoken to over TLS itself.
type Carried = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Makes connections for one address.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    inner: HttpsConnector<Routed>,
    time: Duration,
}

impl Connector {
    /// Connections within this time, TLS and all. With `checks`, certificates are checked as the machine does; with
    /// `proxied`, by a proxy where the environment names one, whose own name may lead to a private address.
    pub(crate) fn new(
        resolver: CheckedResolver,
        checks: bool,
        proxied: bool,
        time: Duration,
    ) -> Result<Self, rustls::Error> {
        let connecting = |resolver| {
            let mut tcp = tcp(resolver, time);
            tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
            tcp
        };
        let mut config = tls(&[], checks)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        let of_proxy = CheckedResolver { allow_private: true, ..resolver.clone() };
        let to_proxy = HttpsConnector::from((connecting(of_proxy), Arc::clone(&config)));
        let direct = connecting(resolver);
        let proxies = proxied.then(|| Arc::new(Matcher::from_env()));
        Ok(Self { inner: HttpsConnector::from((Routed { direct, to_proxy, proxies }, config)), time })
    }
}

/// A stream that is read once a turn: whoever counts what comes before an answer gets a turn in between.
#[derive(Debug)]
pub(crate) struct InTurns<S> {
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
            tokio::select! {
                // An address that is silent to the end says less.
                biased;
                () = tokio::time::sleep(time) => Err(format!("there was no connection within {time:?}").into()),
                stream = connecting => Ok(InTurns { stream: stream?, has_read: false }),
            }
        })
    }
}

/// Leads to where a URL points, or to a proxy.
#[derive(Debug, Clone)]
struct Routed {
    direct: HttpConnector<CheckedResolver>,
    to_proxy: HttpsConnector<HttpConnector<CheckedResolver>>,
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
