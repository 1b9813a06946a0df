//! A connection, of whatever kind.
//!
//! The one peculiarity is vsock's: one write carries at most [`VSOCK_WRITE`] bytes. Kernels from 6.17, and some stable
//! ones, cut a larger one into descriptors that several VMMs lose or stall on.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};
use tokio_vsock::VsockStream;

/// Most bytes that one write to vsock carries.
pub(crate) const VSOCK_WRITE: usize = 28 * 1024;

/// A connection.
#[derive(Debug)]
pub enum AcceptedStream {
    /// Over a Unix socket.
    Unix(UnixStream),
    /// Over TCP.
    Tcp(TcpStream),
    /// Over vsock.
    Vsock(SmallWrites<VsockStream>),
}

/// Does as one method of whichever stream it is does.
macro_rules! each {
    ($stream:expr, $method:ident($($argument:expr),*)) => {
        match $stream.get_mut() {
            AcceptedStream::Unix(stream) => Pin::new(stream).$method($($argument),*),
            AcceptedStream::Tcp(stream) => Pin::new(stream).$method($($argument),*),
            AcceptedStream::Vsock(stream) => Pin::new(stream).$method($($argument),*),
        }
    };
}

/// A connection that may be able to end so that nobody takes it for the end of what was sent.
pub(crate) trait Abort {
    /// Whether it is.
    fn can_abort(&self) -> bool;
    /// Has it end like that when it is dropped, if it can.
    fn abort(&self);
}

impl Abort for AcceptedStream {
    fn can_abort(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    fn abort(&self) {
        if let Self::Tcp(stream) = self {
            // One that is gone has been reset already.
            let _gone = stream.set_zero_linger();
        }
    }
}

impl AsyncRead for AcceptedStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, poll_read(cx, buffer))
    }
}

impl AsyncWrite for AcceptedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, poll_shutdown(cx))
    }
}

/// A stream whose writes carry at most [`VSOCK_WRITE`] bytes each, and as many of several slices as fit: what belongs
/// together goes in one packet, since kernels give up on a connection with too many small ones.
#[derive(Debug)]
pub struct SmallWrites<S>(S);

impl<S> SmallWrites<S> {
    /// Over this stream.
    pub fn new(stream: S) -> Self {
        Self(stream)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for SmallWrites<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SmallWrites<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, first(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut filled = slices.iter().filter(|slice| !slice.is_empty()).peekable();
        let Some(lone) = filled.next() else { return Pin::new(&mut self.0).poll_write(cx, &[]) };
        if lone.len() >= VSOCK_WRITE || filled.peek().is_none() {
            return Pin::new(&mut self.0).poll_write(cx, first(lone));
        }
        let mut together = first(lone).to_vec();
        for slice in filled {
            let room = VSOCK_WRITE - together.len();
            together.extend_from_slice(slice.get(..room).unwrap_or(slice));
        }
        Pin::new(&mut self.0).poll_write(cx, &together)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// As much of the front as one write carries.
fn first(bytes: &[u8]) -> &[u8] {
    bytes.get(..VSOCK_WRITE).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// Notes each write; takes at most `takes` bytes of it.
    #[derive(Debug)]
    struct Noted {
        writes: Vec<Vec<u8>>,
        takes: usize,
    }

    impl AsyncWrite for Noted {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.writes.push(bytes.to_vec());
            Poll::Ready(Ok(bytes.len().min(self.takes)))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn noted() -> SmallWrites<Noted> {
        SmallWrites::new(Noted { writes: Vec::new(), takes: usize::MAX })
    }

    fn sizes(stream: &SmallWrites<Noted>) -> Vec<usize> {
        stream.0.writes.iter().map(Vec::len).collect()
    }

    #[tokio::test]
    async fn a_large_write_becomes_several() {
        let mut stream = noted();
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
        stream.write_all(&bytes).await.unwrap();
        assert_eq!(sizes(&stream), [28_672, 28_672, 28_672, 13_984]);
        assert_eq!(stream.0.writes.concat(), bytes);
    }

    #[tokio::test]
    async fn several_slices_go_together_as_far_as_they_fit() {
        let mut stream = noted();
        let (head, body, end) = (vec![1; 100], vec![2; 60_000], vec![3; 5]);
        let mut slices = [IoSlice::new(&[]), IoSlice::new(&head), IoSlice::new(&body), IoSlice::new(&end)];
        let mut rest = &mut slices[..];
        let mut total = 0;
        while total < 60_105 {
            let written = stream.write_vectored(rest).await.unwrap();
            total += written;
            IoSlice::advance_slices(&mut rest, written);
        }
        assert_eq!(sizes(&stream), [28_672, 28_672, 2_761]);
        assert_eq!(stream.0.writes.concat(), [head, body, end].concat());
    }

    #[tokio::test]
    async fn nothing_is_lost_where_the_kernel_takes_less() {
        let mut stream = SmallWrites::new(Noted { writes: Vec::new(), takes: 10 });
        let slices = [IoSlice::new(&[1; 7]), IoSlice::new(&[2; 7])];
        assert_eq!(stream.write_vectored(&slices).await.unwrap(), 10);
        assert_eq!(stream.write_vectored(&[IoSlice::new(&[]), IoSlice::new(&[])]).await.unwrap(), 0);
    }
}
