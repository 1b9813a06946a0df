//! A connection to the bridge whose every read and write ends at one deadline, which a stream of events puts off with
//! every byte that arrives.
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

use crate::{http::Connection, settings::BridgeAddress, sockets};

/// A connection and its deadline.
pub(crate) struct Wire {
    stream: Stream,
    deadline: Instant,
    /// How long it may be silent, once that is what counts.
    silence: Option<Duration>,
    timeout: Duration,
}

/// A connection without a deadline.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// From now on nothing is waited for.
    pub(crate) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(true),
            Self::Unix(stream) => stream.set_nonblocking(true),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
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

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Wire {
    /// Connects, and has this much time for all that follows.
    pub(crate) fn connect(target: &BridgeAddress, timeout: Duration) -> io::Result<Self> {
        let deadline = Instant::now() + timeout;
        let stream = match target {
            BridgeAddress::Tcp { host, port } => Stream::Tcp(connect_tcp(host, *port, deadline)?),
            BridgeAddress::Unix(path) => Stream::Unix(connect_unix(path, deadline)?),
        };
        Ok(Self { stream, deadline, silence: None, timeout })
    }

    /// The connection itself, for whoever waits in another way.
    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }

    /// The user who has the far end, where the kernel can tell that it is none to trust.
    pub(crate) fn stranger(&self) -> Option<u32> {
        match &self.stream {
            Stream::Tcp(stream) => sockets::stranger_at(stream.local_addr().ok()?, stream.peer_addr().ok()?),
            // Who may make a file in its folder decides about that one.
            Stream::Unix(_) => None,
        }
    }

    /// Whether time was measured by silence at last.
    pub(crate) fn measures_silence(&self) -> bool {
        self.silence.is_some()
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = Some(remaining(self.deadline)?);
            let done = match &mut self.stream {
                Stream::Tcp(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(buffer)),
                Stream::Unix(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(buffer)),
            };
            match done {
                Err(e) if again(&e) => {}
                done => {
                    if let (Ok(1..), Some(silence)) = (&done, self.silence) {
                        self.deadline = Instant::now() + silence;
                    }
                    return done;
                }
            }
        }
    }
}

impl Connection for Wire {
    fn measure_silence(&mut self) {
        self.silence = Some(self.timeout);
        self.deadline = Instant::now() + self.timeout;
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let left = Some(remaining(self.deadline)?);
            let done = match &mut self.stream {
                Stream::Tcp(stream) => stream.set_write_timeout(left).and_then(|()| stream.write(bytes)),
                Stream::Unix(stream) => stream.set_write_timeout(left).and_then(|()| stream.write(bytes)),
            };
            match done {
                Err(e) if again(&e) => {}
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether to look at the clock and try again: a socket timeout shows as `WouldBlock`.
fn again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
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
