//! Tunnels: bytes to a host that the operator allows, encrypted from end to end, without a credential of the host's.
//!
//! What goes through begins with a TLS ClientHello that names the host that was allowed: so a tunnel to one name is none
//! to another behind the same address. It does not keep an allowed host from being a way out.
//!
//! States: connected, nothing was sent; greeted; passing, where either side may end its own half first; over. Each end is
//! an outcome: both sides ended (`ok`), the greeting was another (`refused`), silence, a broken connection, or the
//! session's end (`unknown`).

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use footbridge_audit::ExchangeRecord;
use footbridge_calls::{
    cause::Cause,
    provider::{NotSent, Outcome, Outgoing},
    request::OutgoingRequest,
    service::{Forward, HeldBody, OpenExchange},
    session::Spending,
};
use footbridge_core::{
    budget::Share,
    digest::Digest,
    limits::{Limits, ServiceLimits},
    service::ServiceRules,
};
use futures::future::BoxFuture;
use rustls::server::Acceptor;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf, copy_bidirectional},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

use crate::{
    connect::{NoConnection, Resolver, connected},
    services::Services,
};

/// Most bytes of a ClientHello: what rustls takes.
const GREETING: usize = 64 * 1024;
/// Parts of the time of silence in which it is looked whether anything moved.
const LOOKS: u32 = 4;

/// Opens tunnels, where [`Services`] itself carries requests.
#[derive(Clone)]
pub struct Tunnels(pub Services);

/// A tunnel to a host, that nothing went through yet.
#[derive(Debug)]
pub struct Tunnel {
    stream: TcpStream,
    host: String,
    limits: ServiceLimits,
    since: Instant,
    spending: Option<Spending>,
}

/// Why a tunnel ended before both sides were done.
#[derive(Debug, thiserror::Error)]
enum TunnelEnd {
    #[error("what came first was no TLS")]
    NoTls,
    #[error("the server name of its TLS was {0:?}")]
    OtherName(String),
    #[error("nothing passed for {0:?}")]
    Silent(Duration),
    #[error("over the session's budget (budget.tunnel_bytes)")]
    Spent,
    #[error("a connection broke: {0}")]
    Broken(#[from] io::Error),
    #[error("its session, or the harness, ended")]
    Ended,
}

impl Forward for Tunnels {
    type Parcel = ();
    type Answer = Tunnel;

    fn rules(&self, service: &str) -> Option<Arc<ServiceRules>> {
        self.0.rules(service)
    }

    fn hold<'a>(&'a self, _: &'a mut (), _: &'a Share, _: usize) -> BoxFuture<'a, Result<HeldBody, Cause>> {
        let nothing = HeldBody { digest: Digest::of(""), bytes: 0, head: String::new(), tail: String::new() };
        Box::pin(std::future::ready(Ok(nothing)))
    }

    fn send(&self, outgoing: Outgoing, (): ()) -> BoxFuture<'_, Result<Tunnel, Outcome>> {
        Box::pin(async move {
            let gone = Outcome::not_offered(outgoing.server());
            let Some(resolver) = self.0.resolver(outgoing.server().as_str()) else { return Err(gone) };
            let limits: Arc<Limits> = outgoing.limits();
            let spending = outgoing.spending().cloned();
            let (_, request) = outgoing.into_parts();
            let OutgoingRequest::Service(call) = request else { return Err(gone) };
            let authority = call.path().as_written().trim_start_matches('/').to_owned();
            let tunnel = opened(resolver, &authority, &limits.services).await;
            tunnel.map(|tunnel| Tunnel { spending, ..tunnel }).map_err(|why| {
                tracing::warn!(%authority, %why, "no tunnel");
                Outcome::NotSent(NotSent::Unavailable(format!(
                    "\"{authority}\" cannot be reached: {why}. Nothing was sent"
                )))
            })
        })
    }
}

async fn opened(resolver: Resolver, authority: &str, limits: &ServiceLimits) -> Result<Tunnel, NoConnection> {
    let since = Instant::now();
    let stream = connected(resolver, authority, limits.connect_time).await?;
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host).to_owned();
    Ok(Tunnel { stream, host, limits: limits.clone(), since, spending: None })
}

impl Tunnel {
    /// Carries what comes and goes until both sides are done, or `over` is, and records what became of it.
    pub async fn carry<C>(mut self, client: C, exchange: OpenExchange, over: impl Future<Output = ()>)
    where
        C: AsyncRead + AsyncWrite + Unpin,
    {
        let first_byte_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (sent, received) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let silence = self.limits.silence_time;
        let mut client = Counted {
            inner: client,
            read: Arc::clone(&sent),
            written: Arc::clone(&received),
            spending: self.spending.clone(),
            is_spent: false,
        };
        let ended = tokio::select! {
            ended = self.pass(&mut client) => ended,
            why = silent(&sent, &received, silence) => Err(why),
            () = over => Err(TunnelEnd::Ended),
        };
        let ended = if client.is_spent { Err(TunnelEnd::Spent) } else { ended };
        let (word, detail) = match ended {
            Err(why @ TunnelEnd::Spent) => ("budget_spent", Some(why.to_string())),
            Ok(()) => ("ok", None),
            Err(why @ (TunnelEnd::NoTls | TunnelEnd::OtherName(_))) => ("refused", Some(why.to_string())),
            Err(why) => ("unknown", Some(why.to_string())),
        };
        let (sent, received) = (sent.load(Ordering::Relaxed), received.load(Ordering::Relaxed));
        let passed = ExchangeRecord { status: 200, sent, received, first_byte_ms, ..ExchangeRecord::default() };
        exchange.close(word, detail, passed);
    }

    async fn pass<C: AsyncRead + AsyncWrite + Unpin>(&mut self, client: &mut C) -> Result<(), TunnelEnd> {
        let greeting = timeout(self.limits.connect_time, greeting(client, &self.host)).await;
        let greeting = greeting.map_err(|_| TunnelEnd::Silent(self.limits.connect_time))??;
        self.stream.write_all(&greeting).await?;
        copy_bidirectional(client, &mut self.stream).await?;
        Ok(())
    }
}

/// What a client says first, where that is a ClientHello with this name.
async fn greeting<C: AsyncRead + Unpin>(client: &mut C, host: &str) -> Result<Vec<u8>, TunnelEnd> {
    let (mut said, mut chunk) = (Vec::new(), [0; 4096]);
    let mut acceptor = Acceptor::default();
    while said.len() < GREETING {
        let count = client.read(&mut chunk).await?;
        let mut new = chunk.get(..count).filter(|new| !new.is_empty()).ok_or(TunnelEnd::NoTls)?;
        said.extend_from_slice(new);
        while !new.is_empty() {
            acceptor.read_tls(&mut new).map_err(|_| TunnelEnd::NoTls)?;
            let Some(accepted) = acceptor.accept().map_err(|_| TunnelEnd::NoTls)? else { continue };
            let name = accepted.client_hello().server_name().unwrap_or_default().to_ascii_lowercase();
            // An address has no server name (RFC 6066).
            let is_meant = name == host || (name.is_empty() && host.parse::<std::net::IpAddr>().is_ok());
            return if is_meant { Ok(said) } else { Err(TunnelEnd::OtherName(name)) };
        }
    }
    Err(TunnelEnd::NoTls)
}

/// Ends once nothing has moved for so long.
async fn silent(sent: &AtomicU64, received: &AtomicU64, silence: Duration) -> TunnelEnd {
    let moved = || (sent.load(Ordering::Relaxed), received.load(Ordering::Relaxed));
    let (mut before, mut quiet) = (moved(), 0);
    while quiet < LOOKS {
        sleep(silence / LOOKS).await;
        let now = moved();
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
    }
    TunnelEnd::Silent(silence)
}

/// A client's connection, and what was read of it and written to it.
struct Counted<C> {
    inner: C,
    read: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
    spending: Option<Spending>,
    /// Whether what passed is more than a budget has.
    is_spent: bool,
}

impl<C> Counted<C> {
    fn spend(&mut self, bytes: usize) -> io::Result<()> {
        let counted = self.spending.as_ref().map_or(Ok(()), |spending| spending.bytes(bytes));
        self.is_spent |= counted.is_err();
        counted.map_err(|_| io::Error::other("over the session's budget"))
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Counted<C> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let done = ready!(Pin::new(&mut this.inner).poll_read(cx, buffer));
        let count = buffer.filled().len() - before;
        this.read.fetch_add(count as u64, Ordering::Relaxed);
        Poll::Ready(done.and_then(|()| this.spend(count)))
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Counted<C> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(Pin::new(&mut this.inner).poll_write(cx, bytes))?;
        this.written.fetch_add(count as u64, Ordering::Relaxed);
        this.spend(count)?;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    /// A ClientHello of rustls for this name.
    fn hello(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
        let mut client = rustls::ClientConnection::new(Arc::new(config), name.to_owned().try_into().unwrap()).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    async fn greeted(said: &[u8], host: &str) -> Result<Vec<u8>, String> {
        let (mut client, mut ours) = duplex(1 << 20);
        client.write_all(said).await.unwrap();
        drop(client);
        greeting(&mut ours, host).await.map_err(|why| why.to_string())
    }

    #[tokio::test]
    async fn only_tls_for_the_host_that_was_allowed_goes_on_and_whole() {
        let own = hello("a.test");
        assert_eq!(greeted(&own, "a.test").await.unwrap(), own);
        let longer = [&own[..], b"early"].concat();
        assert_eq!(greeted(&longer, "a.test").await.unwrap(), longer);
        assert!(greeted(&own, "b.test").await.unwrap_err().contains("a.test"));
        assert!(greeted(&hello("127.0.0.1"), "127.0.0.1").await.is_ok());
        assert!(greeted(&hello("127.0.0.1"), "a.test").await.is_err());
        for said in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"SSH-2.0-x\r\n", b"", &own[..own.len() / 2], &[0x16; 70_000]] {
            assert_eq!(greeted(said, "a.test").await.unwrap_err(), "what came first was no TLS");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_counted_from_the_last_byte() {
        let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
        let (start, silence) = (Instant::now(), Duration::from_secs(40));
        let talks = async {
            for _ in 0..10 {
                sleep(Duration::from_secs(15)).await;
                received.fetch_add(1, Ordering::Relaxed);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = silent(&sent, &received, silence) => {}
            () = talks => {}
        }
        assert!((190..=210).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    }
}
