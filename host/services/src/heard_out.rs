//! A connection to an origin that may answer, and close right behind that, while more of the request is on its way: what is
//! written then fails, often before the answer was read, and hyper would take that for the end of both.
//!
//! States: whole, then broken, where a write failed because the other end is gone: nothing more is written, and what came
//! before is read on; then over, once that is read to its end, or nobody read for as long as an origin may be silent: only
//! now whoever writes hears why. A connection of HTTP/2 is left as it is, since the requests that share it are to hear at
//! once that it is over.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::time::{Instant, Sleep, sleep};

/// How much is read at once of what came before a connection broke, bytes.
const PIECE: usize = 4 * 1024;

/// A connection that is read to its end, whatever becomes of what is written.
#[derive(Debug)]
pub(crate) struct HeardOut<S> {
    inner: S,
    /// How long nobody may read what came; none where it is not waited for.
    patience: Option<Duration>,
    broken: Option<Broken>,
}

/// What is known once a write failed.
#[derive(Debug)]
struct Broken {
    why: io::ErrorKind,
    patience: Duration,
    /// When whoever writes hears of it.
    heard: Pin<Box<Sleep>>,
}

impl<S: Connection> HeardOut<S> {
    pub(crate) fn new(inner: S, patience: Duration) -> Self {
        let patience = (!inner.connected().is_negotiated_h2()).then_some(patience);
        Self { inner, patience, broken: None }
    }
}

impl<S: Unpin> HeardOut<S> {
    fn write<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Some(broken) = &mut self.broken {
            return broken.poll_over(cx).map(Err);
        }
        let written = write(Pin::new(&mut self.inner), cx);
        match (written, self.patience) {
            (Poll::Ready(Err(error)), Some(patience)) if is_gone(&error) => {
                self.broken.insert(Broken::new(error.kind(), patience)).poll_over(cx).map(Err)
            }
            (written, _) => written,
        }
    }
}

/// Whether the other end takes nothing more since it is gone.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

impl Broken {
    fn new(why: io::ErrorKind, patience: Duration) -> Self {
        Self { why, patience, heard: Box::pin(sleep(patience)) }
    }

    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        ready!(self.heard.as_mut().poll(cx));
        Poll::Ready(self.why.into())
    }

    /// Somebody read, to the end or less.
    fn was_read(&mut self, to_its_end: bool) {
        let wait = if to_its_end { Duration::ZERO } else { self.patience };
        self.heard.as_mut().reset(Instant::now() + wait);
    }
}

impl<S: Connection> Connection for HeardOut<S> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

impl<S: Read + Unpin> Read for HeardOut<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, mut buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let inner = Pin::new(&mut this.inner);
        let Some(broken) = &mut this.broken else { return inner.poll_read(cx, buffer) };
        // A cursor does not say how much was put in.
        let mut space = [0; PIECE];
        let room = buffer.remaining().min(PIECE);
        let mut came = ReadBuf::new(space.get_mut(..room).unwrap_or_default());
        let read = ready!(inner.poll_read(cx, came.unfilled()));
        broken.was_read(read.is_err() || came.filled().is_empty());
        buffer.put_slice(came.filled());
        Poll::Ready(read)
    }
}

impl<S: Write + Unpin> Write for HeardOut<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().write(cx, |inner, cx| inner.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().write(cx, |inner, cx| inner.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().write(cx, |inner, cx| inner.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{Request, Uri};
    use http_body_util::{BodyExt as _, Full};
    use hyper_util::client::legacy::Client;

    use super::*;
    use crate::connection_task::ConnectionTasks;

    /// An origin that takes so much, answers, and is gone; its answer is there once a write failed.
    #[derive(Debug, Clone)]
    struct Origin {
        takes: usize,
        says: &'static [u8],
        is_shared: bool,
    }

    impl Connection for Origin {
        fn connected(&self) -> Connected {
            let connected = Connected::new();
            if self.is_shared { connected.negotiated_h2() } else { connected }
        }
    }

    impl Read for Origin {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, mut buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
            let this = self.get_mut();
            if this.takes > 0 {
                return Poll::Pending;
            }
            let (now, later) = this.says.split_at(this.says.len().min(buffer.remaining()).min(20));
            buffer.put_slice(now);
            this.says = later;
            Poll::Ready(Ok(()))
        }
    }

    impl Write for Origin {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let this = self.get_mut();
            if this.takes == 0 {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            let taken = bytes.len().min(this.takes);
            this.takes -= taken;
            if this.takes == 0 {
                cx.waker().wake_by_ref();
            }
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl tower_service::Service<Uri> for Origin {
        type Response = HeardOut<Self>;
        type Error = io::Error;
        type Future = std::future::Ready<io::Result<HeardOut<Self>>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Uri) -> Self::Future {
            std::future::ready(Ok(HeardOut::new(self.clone(), Duration::from_secs(300))))
        }
    }

    /// What is answered to 1 MiB, of which 4 KiB are taken; none where there is no answer.
    async fn answered(says: &'static [u8]) -> Option<(u16, Option<Bytes>)> {
        let origin = Origin { takes: 4096, says, is_shared: false };
        let client = Client::builder(ConnectionTasks::default()).build(origin);
        let body = Full::new(Bytes::from_static(&[b'y'; 1 << 20]));
        let asked = client.request(Request::post("http://a.test/").body(body).unwrap());
        let answer = asked.await.ok()?;
        Some((answer.status().as_u16(), answer.into_body().collect().await.ok().map(|body| body.to_bytes())))
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_came_before_the_end_is_heard_out_and_no_end_is_taken_for_one() {
        let start = Instant::now();
        for (says, expected) in [
            (&b"HTTP/1.1 401 No\r\ncontent-length: 4\r\n\r\nmuch"[..], Some((401, Some("much")))),
            (b"HTTP/1.1 401 No\r\nconnection: close\r\n\r\nto the end", Some((401, Some("to the end")))),
            (b"HTTP/1.1 401 No\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", Some((401, Some("no")))),
            (b"HTTP/1.1 401 No\r\ncontent-length: 10\r\n\r\nhalf", Some((401, None))),
            (b"HTTP/1.1 401", None),
            (b"", None),
        ] {
            let expected = expected.map(|(status, body)| (status, body.map(|text: &str| Bytes::from(text))));
            assert_eq!(answered(says).await, expected, "{}", String::from_utf8_lossy(says));
        }
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_writes_hears_of_it_in_the_end() {
        let start = Instant::now();
        for (is_shared, waits) in [(true, 0), (false, 300)] {
            let origin = Origin { takes: 0, says: b"unread", is_shared };
            let mut stream = HeardOut::new(origin, Duration::from_secs(300));
            let writes = std::future::poll_fn(|cx| Pin::new(&mut stream).poll_write(cx, b"y"));
            let failed = writes.await.unwrap_err();
            assert_eq!((failed.kind(), start.elapsed().as_secs()), (io::ErrorKind::BrokenPipe, waits));
        }
    }
}
