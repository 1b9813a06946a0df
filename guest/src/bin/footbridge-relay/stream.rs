//! The kinds of stream that the relay joins, behind one face.
//!
//! What a kind of stream cannot take is a property of it: the most bytes of one write, and whether one direction can
//! end alone. Through a VMM it cannot: most close the whole connection, and an answer on its way is lost.

use std::{
    fs::File,
    io,
    net::{Ipv6Addr, SocketAddr},
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use footbridge_proto::endpoint::{Endpoint, TcpHost};
use nix::{
    fcntl::{SpliceFFlags, splice},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket,
};
use tokio::{
    io::Interest,
    net::{TcpStream, UnixStream},
};

use crate::{mux, orphans::Orphans, vsock};

/// A connected stream.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// An AF_VSOCK socket, held as what it behaves like.
    Vsock(UnixStream),
    /// A Unix socket of a VMM, past the handshake.
    VsockMux(UnixStream),
}

impl Stream {
    /// Connects once.
    pub(crate) async fn connect(to: &Endpoint) -> io::Result<Self> {
        match to {
            Endpoint::Unix(path) => UnixStream::connect(path.as_path()).await.map(Self::Unix),
            Endpoint::Tcp(tcp) => {
                let first = TcpStream::connect(tcp.primary()).await;
                let stream = match (first, tcp.host) {
                    (Err(_), TcpHost::Localhost) => {
                        TcpStream::connect(SocketAddr::from((Ipv6Addr::LOCALHOST, tcp.port))).await?
                    }
                    (first, _) => first?,
                };
                Ok(Self::tcp(stream))
            }
            Endpoint::Vsock(to) => vsock::open(*to).await.map(Self::Vsock),
            Endpoint::VsockMux(to) => mux::open(to).await.map(Self::VsockMux),
            // Refused on the command line.
            Endpoint::Fd(_) | Endpoint::Systemd(_) | Endpoint::Stdio | Endpoint::Exec(_) => {
                Err(io::ErrorKind::Unsupported.into())
            }
        }
    }

    /// Small writes leave at once; a stream that cannot do that is only slower.
    pub(crate) fn tcp(stream: TcpStream) -> Self {
        let _ = stream.set_nodelay(true);
        Self::Tcp(stream)
    }

    /// Most bytes of one write.
    pub(crate) fn max_write(&self) -> usize {
        match self {
            Self::Tcp(_) | Self::Unix(_) | Self::VsockMux(_) => usize::MAX,
            Self::Vsock(_) => vsock::MAX_WRITE,
        }
    }

    pub(crate) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.readable().await,
            Self::Unix(stream) | Self::Vsock(stream) | Self::VsockMux(stream) => stream.readable().await,
        }
    }

    /// Whether the peer is gone, though it may not have been read to its end: it was reset, or nobody holds its socket
    /// any more. One that only said all that it had to say is still there.
    pub(crate) fn is_gone(&self, orphans: &Orphans) -> bool {
        let fd = match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) | Self::Vsock(stream) | Self::VsockMux(stream) => stream.as_fd(),
        };
        let mut polled = [PollFd::new(fd, PollFlags::empty())];
        let broken = PollFlags::POLLERR | PollFlags::POLLHUP;
        if poll(&mut polled, PollTimeout::ZERO).is_ok() && polled[0].revents().is_some_and(|r| r.intersects(broken)) {
            return true;
        }
        match self {
            Self::Tcp(stream) => match (stream.peer_addr(), stream.local_addr()) {
                (Ok(peer), Ok(local)) => orphans.has(peer, local),
                _ => true,
            },
            Self::Unix(_) | Self::Vsock(_) | Self::VsockMux(_) => false,
        }
    }

    pub(crate) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.writable().await,
            Self::Unix(stream) | Self::Vsock(stream) | Self::VsockMux(stream) => stream.writable().await,
        }
    }

    /// Reads what is there; a stream that is not connected any more has ended.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self {
            Self::Tcp(stream) => stream.try_read(buffer),
            Self::Unix(stream) | Self::Vsock(stream) | Self::VsockMux(stream) => stream.try_read(buffer),
        };
        or_ended(read)
    }

    /// Writes what fits, in writes of at most [`Self::max_write`] bytes, and says how much that was.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            let end = bytes.len().min(done.saturating_add(self.max_write()));
            let wrote = match self {
                Self::Tcp(stream) => stream.try_write(&bytes[done..end]),
                Self::Unix(stream) | Self::Vsock(stream) | Self::VsockMux(stream) => {
                    stream.try_write(&bytes[done..end])
                }
            };
            match wrote {
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    /// Moves what is there into a pipe by reference, at most `most` bytes.
    pub(crate) fn try_splice_to(&self, pipe: &OwnedFd, most: usize) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => or_ended(stream.try_io(Interest::READABLE, || moved(stream, pipe, most))),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Moves what fits out of a pipe by reference, at most `most` bytes.
    pub(crate) fn try_splice_from(&self, pipe: &File, most: usize) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.try_io(Interest::WRITABLE, || moved(pipe, stream, most)),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes all of it.
    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        loop {
            bytes = &bytes[self.try_write(bytes)?..];
            if bytes.is_empty() {
                return Ok(());
            }
            self.writable().await?;
        }
    }

    /// Tells the peer that nothing more comes, where that leaves the other direction alone. A peer that is gone
    /// already knows.
    pub(crate) fn shut_write(&self) {
        let fd = match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
            Self::Vsock(_) | Self::VsockMux(_) => return,
        };
        let _ = socket::shutdown(fd, socket::Shutdown::Write);
    }
}

fn moved(from: impl AsFd, to: impl AsFd, most: usize) -> io::Result<usize> {
    Ok(splice(from, None, to, None, most, SpliceFFlags::SPLICE_F_MOVE | SpliceFFlags::SPLICE_F_NONBLOCK)?)
}

/// A stream that is not connected any more has ended.
fn or_ended(read: io::Result<usize>) -> io::Result<usize> {
    match read {
        Err(e) if e.kind() == io::ErrorKind::NotConnected => Ok(0),
        read => read,
    }
}
