//! Sockets that this process was started with: `fd:N` by their number, `sd:NAME` by the name that systemd gives them.
//!
//! Both must listen already. Only numbers that were open when the process began count: any other number may be a
//! descriptor of somebody else in this process. Each serves one session at a time, a vsock port one for each guest;
//! what a session gets is a copy, so the next one can have the socket after it. Until then, connections wait in it.
//! systemd's variables are taken out of the environment at the start, so no child finds them.

use std::{
    collections::BTreeSet,
    io,
    net::{SocketAddr, TcpListener},
    os::{
        fd::{BorrowedFd, OwnedFd, RawFd},
        unix::net::UnixListener,
    },
    sync::{Mutex, OnceLock, PoisonError},
};

use footbridge_proto::endpoint::{Endpoint, SocketPath, VsockCid, VsockEndpoint};
use nix::sys::socket::{
    AddressFamily, SockType, SockaddrIn, SockaddrIn6, SockaddrLike, SockaddrStorage, VsockAddr, getsockname,
    getsockopt, sockopt,
};

use super::{BindError, Entrance, Hold, Listen, UnixEntrance, Visitors, tcp::TcpEntrance, vsock::Ports};
use footbridge_processes::sys;

/// The sockets that systemd passed on to this process, with their names, as in sd_listen_fds_with_names(3).
static PASSED: OnceLock<Vec<(RawFd, String)>> = OnceLock::new();

/// Notes what this process was started with; before it opens anything or has a second thread.
pub fn note() {
    sys::note_inherited_sockets();
    PASSED.get_or_init(|| {
        // What is meant for others or makes no sense is nothing.
        let passed = sd_notify::listen_fds_with_names().map(Vec::from_iter).unwrap_or_default();
        // By our own means: the crate's are unsafe, do not look for threads, and leave LISTEN_PIDFDID of systemd 257.
        for name in ["LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
            let _read_before = sys::take_variable(name);
        }
        passed
    });
}

/// The number of the socket with this name.
fn number_of(name: &str, passed: &[(RawFd, String)]) -> Result<RawFd, &'static str> {
    if passed.is_empty() {
        return Err("systemd passed no sockets to this process; start it from a .socket unit");
    }
    let mut numbers = passed.iter().filter(|(_, has)| has == name).map(|(number, _)| *number);
    match (numbers.next(), numbers.next()) {
        (Some(number), None) => Ok(number),
        (Some(_), Some(_)) => Err("several sockets have that name; give each unit its own FileDescriptorName="),
        (None, _) => Err("systemd passed no socket of that name; set FileDescriptorName= in its .socket unit"),
    }
}

/// What kind of socket it is.
#[derive(Debug)]
enum Kind {
    /// With its path, where it can be written as an endpoint.
    Unix(Option<SocketPath>),
    Tcp(SocketAddr),
    Vsock(VsockAddr),
}

/// The sockets that sessions have.
static LENT: Mutex<BTreeSet<RawFd>> = Mutex::new(BTreeSet::new());

/// A session's hold of an inherited socket. Dropping it lets the next one have it.
#[derive(Debug)]
pub(super) struct Loan(RawFd);

impl Loan {
    fn take(number: RawFd) -> Option<Self> {
        LENT.lock().unwrap_or_else(PoisonError::into_inner).insert(number).then(|| Self(number))
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        LENT.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// The socket that `fd:` or `sd:` names.
fn find(endpoint: &Endpoint) -> Result<(RawFd, BorrowedFd<'static>, Kind), &'static str> {
    let number = match endpoint {
        Endpoint::Systemd(name) => number_of(name, PASSED.get().map_or(&[], Vec::as_slice))?,
        Endpoint::Fd(number) => RawFd::try_from(*number).map_err(|_| "no descriptor has so high a number")?,
        _ => return Err("it names no inherited socket"),
    };
    let socket = sys::inherited_socket(number)
        .ok_or("this process was not started with a socket of that number; numbers start at 3")?;
    Ok((number, socket, kind_of(socket)?))
}

/// Whether `fd:` or `sd:` names a vsock port, on which each guest is a session's.
pub(super) fn is_vsock(endpoint: &Endpoint) -> bool {
    matches!(find(endpoint), Ok((_, _, Kind::Vsock(_))))
}

/// Where clients connect: of an inherited socket to its own address, as far as one can be written.
#[must_use]
pub fn address_of(endpoint: &Endpoint) -> Endpoint {
    let own = match find(endpoint) {
        Ok((_, _, Kind::Unix(path))) => path.map(Endpoint::Unix),
        Ok((_, _, Kind::Tcp(address))) => format!("tcp:{address}").parse().ok(),
        Ok((_, _, Kind::Vsock(address))) => {
            Some(Endpoint::Vsock(VsockEndpoint { cid: VsockCid::Any, port: address.port() }))
        }
        Err(_) => None,
    };
    own.unwrap_or_else(|| endpoint.clone())
}

/// Takes over the socket that `fd:` or `sd:` names, for one session.
pub(super) fn adopt(listen: &Listen, ports: &Ports) -> Result<(Entrance, Hold), BindError> {
    let endpoint = &listen.endpoint;
    let unfit = |why| BindError::Inherited { endpoint: endpoint.clone(), why };
    let io = |source| BindError::Io { endpoint: endpoint.clone(), source };
    let (number, socket, kind) = find(endpoint).map_err(unfit)?;
    if let Kind::Vsock(address) = kind {
        return ports.adopt(listen, number, socket, address).map(Entrance::Vsock).map(Hold::nothing);
    }
    let loan = Loan::take(number).ok_or_else(|| BindError::InUse(endpoint.clone()))?;
    let socket = socket.try_clone_to_owned().map_err(io)?;
    let adopted = match kind {
        Kind::Unix(path) => adopt_unix(listen, path, socket),
        _ => adopt_tcp(socket),
    };
    Ok((adopted.map_err(io)?, Hold::Loan(loan)))
}

fn adopt_unix(listen: &Listen, path: Option<SocketPath>, socket: OwnedFd) -> io::Result<Entrance> {
    let socket = UnixListener::from(socket);
    socket.set_nonblocking(true)?;
    let listener = tokio::net::UnixListener::from_std(socket)?;
    let endpoint = path.map_or_else(|| listen.endpoint.clone(), Endpoint::Unix);
    let visitors = Visitors::new(&listen.access);
    Ok(Entrance::Unix(UnixEntrance { listener, endpoint, visitors, multiplexed: false }))
}

fn adopt_tcp(socket: OwnedFd) -> io::Result<Entrance> {
    let socket = TcpListener::from(socket);
    socket.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(socket).and_then(TcpEntrance::adopted).map(Entrance::Tcp)
}

/// What a socket is, if it is one that sessions can be served on.
fn kind_of(socket: BorrowedFd<'_>) -> Result<Kind, &'static str> {
    let listens = getsockopt(&socket, sockopt::AcceptConn).unwrap_or(false);
    if !listens || getsockopt(&socket, sockopt::SockType) != Ok(SockType::Stream) {
        return Err("it is no stream socket that listens; whoever starts this process has to call listen on it");
    }
    let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
    let address: SockaddrStorage = getsockname(fd).map_err(|_| "the system does not say where it listens")?;
    let loopback = |ip: SocketAddr| {
        let why = "other machines can reach it; have it listen on loopback, as in ListenStream=127.0.0.1:7179";
        if ip.ip().is_loopback() { Ok(Kind::Tcp(ip)) } else { Err(why) }
    };
    match address.family() {
        Some(AddressFamily::Unix) => match address.as_unix_addr().and_then(|unix| unix.path()) {
            Some(path) => Ok(Kind::Unix(SocketPath::new(path).ok())),
            None => Err("abstract sockets have no permissions; have it listen at a path"),
        },
        Some(AddressFamily::Inet) => loopback(SocketAddr::V4(
            address.as_sockaddr_in().copied().map(SockaddrIn::into).ok_or("it has no address")?,
        )),
        Some(AddressFamily::Inet6) => loopback(SocketAddr::V6(
            address.as_sockaddr_in6().copied().map(SockaddrIn6::into).ok_or("it has no address")?,
        )),
        Some(AddressFamily::Vsock) => address.as_vsock_addr().copied().map(Kind::Vsock).ok_or("it has no address"),
        _ => Err("it is neither a Unix socket nor TCP nor vsock"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_its_number() {
        let three = [(3, "web"), (4, "footbridge"), (5, "web")].map(|(number, name)| (number, name.to_owned()));
        assert_eq!(number_of("footbridge", &three), Ok(4));
        assert!(number_of("web", &three).unwrap_err().contains("several"));
        assert!(number_of("other", &three).unwrap_err().contains("no socket of that name"));
    }
}
