//! A connection to the bridge: made before a deadline, and from then on nothing of it is waited for.
//!
//! The clock is monotonic. A deadline that passed is an [`io::ErrorKind::TimedOut`] error, whichever call noticed.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use footbridge_proto::endpoint::SocketPath;
use nix::sys::{
    socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, setsockopt, socket, sockopt},
    time::{TimeVal, TimeValLike},
};

use crate::{settings::BridgeAddress, sockets};

/// A connection that does not wait.
pub(crate) enum Wire {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Wire {
    /// Connects, in the time that is left until then.
    pub(crate) fn connect(target: &BridgeAddress, deadline: Instant) -> io::Result<Self> {
        match target {
            BridgeAddress::Tcp { host, port } => {
                let stream = connect_tcp(host, *port, deadline)?;
                stream.set_nonblocking(true)?;
                Ok(Self::Tcp(stream))
            }
            BridgeAddress::Unix(path) => {
                let stream = connect_unix(path, deadline)?;
                stream.set_nonblocking(true)?;
                Ok(Self::Unix(stream))
            }
        }
    }

    /// The user who has the far end, where the kernel can tell that it is none to trust.
    pub(crate) fn stranger(&self) -> Option<u32> {
        match self {
            Self::Tcp(stream) => sockets::stranger_at(stream.local_addr().ok()?, stream.peer_addr().ok()?),
            // Who may make a file in its folder decides about that one.
            Self::Unix(_) => None,
        }
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

/// What is left until the deadline; zero would mean "for ever" to a socket.
fn remaining(deadline: Instant) -> io::Result<Duration> {
    match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

fn connect_tcp(host: &str, port: u16, deadline: Instant) -> io::Result<TcpStream> {
    let mut first = None;
    for address in addresses(host, port)? {
        match TcpStream::connect_timeout(&address, remaining(deadline)?) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(e) => first = first.or(Some(e)),
        }
    }
    Err(first.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()))
}

/// `localhost` is not looked up: an image may have no hosts file.
fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()]);
    }
    (host, port).to_socket_addrs().map(Iterator::collect)
}

/// A send timeout also ends a connect that waits for room in the listener's backlog, unix(7).
fn connect_unix(path: &SocketPath, deadline: Instant) -> io::Result<UnixStream> {
    let fd = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    let left = i64::try_from(remaining(deadline)?.as_micros()).unwrap_or(i64::MAX).max(1);
    setsockopt(&fd, sockopt::SendTimeout, &TimeVal::microseconds(left))?;
    let stream = UnixStream::from(fd);
    match connect(std::os::fd::AsRawFd::as_raw_fd(&stream), &UnixAddr::new(path.as_path())?) {
        Ok(()) => Ok(stream),
        Err(nix::Error::EAGAIN) => Err(io::ErrorKind::TimedOut.into()),
        Err(e) => Err(e.into()),
    }
}
