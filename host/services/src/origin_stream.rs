//! A connection to an origin. It has one of the places that there are for all of them, and one of its session, so that none
//! takes the descriptors of the others. It reads no more than the answers of its requests account for: interim answers,
//! frames of HTTP/2 for requests that nobody waits for, and all else that an origin can send without end, end with the
//! connection. And it waits no longer for an origin that takes nothing than for one that says nothing: whoever waits for
//! either may have its answer already, and be gone.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, BytesMut};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};
use tokio_util::io::poll_read_buf;

use crate::shares::Place;

/// How many bytes of a request an origin may take to say one that there is room for more.
const SENT_FOR_ONE: u64 = 8;

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

    /// Something of an answer came.
    pub(crate) fn answers(&self) {
        self.0.came.store(0, Ordering::Relaxed);
    }

    /// It is no more a connection of answers.
    pub(crate) fn ends(&self) {
        self.0.limit.store(u64::MAX, Ordering::Relaxed);
    }

    /// What is sent has answers of its own: that there is room for more.
    fn sends(&self, bytes: usize) {
        let answered = bytes as u64 / SENT_FOR_ONE;
        // Always something.
        let _before =
            self.0.came.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |came| Some(came.saturating_sub(answered)));
    }

    fn count(&self, bytes: usize) -> io::Result<()> {
        let came = self.0.came.fetch_add(bytes as u64, Ordering::Relaxed).saturating_add(bytes as u64);
        if came > self.0.limit.load(Ordering::Relaxed) {
            return Err(io::Error::other("the origin sends on and on, and nothing of an answer"));
        }
        Ok(())
    }
}

/// How much is read at once of an origin that sends on and on, bytes. TLS asks for 4 KiB at a time, and each time that
/// something is taken the kernel tells the origin that there is room again, which costs more than the bytes.
const AHEAD: usize = 64 * 1024;
/// After so many reads in a row that brought as much as was asked for, it is taken to do that.
const FULL_READS: u8 = 8;

/// What was read of an origin beyond what was asked for. Nothing is held of one that is silent.
#[derive(Debug, Default)]
struct ReadAhead {
    bytes: BytesMut,
    full_reads: u8,
}

impl ReadAhead {
    fn poll_read(
        &mut self,
        mut inner: Pin<&mut TcpStream>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let asked = buffer.remaining();
        if self.bytes.is_empty() && (self.full_reads < FULL_READS || asked >= AHEAD) {
            if self.bytes.capacity() > 0 {
                self.bytes = BytesMut::new();
            }
            let before = buffer.filled().len();
            ready!(inner.poll_read(cx, buffer))?;
            let is_full = buffer.filled().len() - before == asked;
            self.full_reads = if is_full { self.full_reads.saturating_add(1) } else { 0 };
            return Poll::Ready(Ok(()));
        }
        if self.bytes.is_empty() {
            self.bytes.reserve(AHEAD);
            let Poll::Ready(read) = poll_read_buf(inner.as_mut(), cx, &mut self.bytes) else {
                self.bytes = BytesMut::new();
                return Poll::Pending;
            };
            if read? < AHEAD / 8 {
                self.full_reads = 0;
            }
        }
        let now = self.bytes.len().min(asked);
        buffer.put_slice(&self.bytes[..now]);
        self.bytes.advance(now);
        Poll::Ready(Ok(()))
    }
}

/// A connection to an origin.
#[derive(Debug)]
pub(crate) struct OriginStream {
    inner: TcpStream,
    ahead: ReadAhead,
    meter: Meter,
    /// How long its other end may take nothing.
    silence: Duration,
    /// When that is over, while it takes nothing.
    stalls: Option<Pin<Box<Sleep>>>,
    _place: Place,
}

impl OriginStream {
    pub(crate) fn new(inner: TcpStream, meter: Meter, silence: Duration, place: Place) -> Self {
        Self { inner, ahead: ReadAhead::default(), meter, silence, stalls: None, _place: place }
    }

    /// What became of a write.
    fn wrote(&mut self, written: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            self.stalls = None;
            return Poll::Ready(written.inspect(|bytes| self.meter.sends(*bytes)));
        }
        let stalls = self.stalls.get_or_insert_with(|| Box::pin(sleep(self.silence)));
        ready!(stalls.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the origin takes nothing")))
    }

    /// The same, to carry whatever comes.
    pub(crate) fn unmetered(self) -> Self {
        self.meter.ends();
        self
    }
}

impl Connection for OriginStream {
    fn connected(&self) -> Connected {
        // Each answer gets a copy of what is put in here: of the addresses nobody asks.
        Connected::new().extra(self.meter.clone())
    }
}

impl AsyncRead for OriginStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(this.ahead.poll_read(Pin::new(&mut this.inner), cx, buffer))?;
        Poll::Ready(this.meter.count(buffer.filled().len() - before))
    }
}

impl AsyncWrite for OriginStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write(cx, bytes);
        this.wrote(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write_vectored(cx, parts);
        this.wrote(written, cx)
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

/// What ends when it is told to, whatever the other end has not read yet: nobody waits for that.
#[derive(Debug)]
pub(crate) struct EndsAtOnce<S>(pub(crate) S);

impl<S: Connection> Connection for EndsAtOnce<S> {
    fn connected(&self) -> Connected {
        self.0.connected()
    }
}

impl<S: Read + Unpin> Read for EndsAtOnce<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, buffer)
    }
}

impl<S: Write + Unpin> Write for EndsAtOnce<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // It says so as far as there is room for it.
        let _said = Pin::new(&mut self.get_mut().0).poll_shutdown(cx);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn both_ends(meter: Meter) -> (OriginStream, TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let inner = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (theirs, _) = listener.accept().await.unwrap();
        let place = crate::shares::Shares::new(1).of(None).place().unwrap();
        (OriginStream::new(inner, meter, Duration::from_secs(300), place), theirs)
    }

    #[tokio::test]
    async fn what_an_origin_sends_on_and_on_is_read_ahead_and_nothing_is_held_once_it_is_silent() {
        let sent: Vec<u8> = (0..1 << 20).map(|at: u32| at.to_le_bytes()[(at % 3) as usize]).collect();
        let (mut stream, mut theirs) = both_ends(Meter::new(u64::MAX)).await;
        let (came, theirs) = tokio::join!(
            async {
                let (mut came, mut ahead, mut part) = (Vec::new(), 0, [0; 4096]);
                while came.len() < sent.len() {
                    let read = stream.read(&mut part).await.unwrap();
                    came.extend_from_slice(&part[..read]);
                    ahead = ahead.max(stream.ahead.bytes.len());
                }
                assert!(ahead > part.len(), "{ahead}");
                came
            },
            async {
                theirs.write_all(&sent).await.unwrap();
                theirs
            }
        );
        assert!(came == sent);
        let mut part = [0; 4096];
        assert!(stream.read(&mut part).now_or_never().is_none());
        assert_eq!((stream.ahead.bytes.len(), stream.ahead.bytes.capacity()), (0, 0));
        drop(theirs);
        assert_eq!(stream.read(&mut part).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn what_is_read_ahead_counts_when_it_is_taken() {
        let (mut stream, mut theirs) = both_ends(Meter::new(48 * 1024)).await;
        theirs.write_all(&[7; 256 * 1024]).await.unwrap();
        let (mut came, mut part) = (0, [0; 4096]);
        let refused = loop {
            match stream.read(&mut part).await {
                Ok(read) => came += read,
                Err(error) => break error,
            }
        };
        assert!(
            refused.to_string().contains("on and on") && came <= 48 * 1024 && came > 40 * 1024,
            "{came}: {refused}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_origin_that_takes_nothing_is_not_waited_for_for_ever() {
        let silence = Duration::from_secs(300);
        let (mut stream, theirs) = both_ends(Meter::new(1)).await;
        let start = tokio::time::Instant::now();
        let stalled = loop {
            match stream.write(&[0; 1 << 16]).await {
                Ok(_) => assert!(start.elapsed() < silence),
                Err(error) => break error,
            }
        };
        assert_eq!((stalled.kind(), start.elapsed() >= silence), (io::ErrorKind::TimedOut, true));
        drop(theirs);
    }

    #[test]
    fn what_comes_counts_since_anything_of_an_answer_did_and_less_where_much_is_sent() {
        let meter = Meter::new(100);
        assert!(meter.count(60).is_ok() && meter.count(41).is_err());
        meter.answers();
        assert!(meter.count(100).is_ok());
        meter.sends(800);
        assert!(meter.count(100).is_ok() && meter.count(1).is_err());
        meter.ends();
        assert!(meter.count(1000).is_ok());
    }
}
