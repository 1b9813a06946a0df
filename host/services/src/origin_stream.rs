//! A connection to an origin. It has one of the places that there are for all of them, so that no session takes the
//! descriptors of the others; and it reads no more than the answers of its requests account for: interim answers, frames of
//! HTTP/2 for requests that nobody waits for, and all else that an origin can send without end, end with the connection.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use http::Extensions;
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::OwnedSemaphorePermit,
};

/// Counts what came over a connection since anything of an answer did. Clones are of the same connection.
#[derive(Debug, Clone)]
pub(crate) struct Meter(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    came: AtomicU64,
    /// How much may come, bytes.
    limit: AtomicU64,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Self {
        Self(Arc::new(Counts { came: AtomicU64::new(0), limit: AtomicU64::new(limit) }))
    }

    /// That of the connection of an answer, whose head came.
    pub(crate) fn of(answer: &Extensions) -> Option<Self> {
        let meter = answer.get::<Self>().cloned();
        meter.iter().for_each(Self::answers);
        meter
    }

    /// Something of an answer came.
    pub(crate) fn answers(&self) {
        self.0.came.store(0, Ordering::Relaxed);
    }

    /// It is no more a connection of answers.
    pub(crate) fn ends(&self) {
        self.0.limit.store(u64::MAX, Ordering::Relaxed);
    }

    fn count(&self, bytes: usize) -> io::Result<()> {
        let came = self.0.came.fetch_add(bytes as u64, Ordering::Relaxed).saturating_add(bytes as u64);
        if came > self.0.limit.load(Ordering::Relaxed) {
            return Err(io::Error::other("the origin sends on and on, and nothing of an answer"));
        }
        Ok(())
    }
}

/// A connection to an origin.
#[derive(Debug)]
pub(crate) struct OriginStream {
    inner: TcpStream,
    meter: Meter,
    _place: OwnedSemaphorePermit,
}

impl OriginStream {
    pub(crate) fn new(inner: TcpStream, meter: Meter, place: OwnedSemaphorePermit) -> Self {
        Self { inner, meter, _place: place }
    }

    /// The same, to carry whatever comes.
    pub(crate) fn unmetered(self) -> Self {
        self.meter.ends();
        self
    }
}

impl Connection for OriginStream {
    fn connected(&self) -> Connected {
        self.inner.connected().extra(self.meter.clone())
    }
}

impl AsyncRead for OriginStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(cx, buffer))?;
        Poll::Ready(this.meter.count(buffer.filled().len() - before))
    }
}

impl AsyncWrite for OriginStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}
