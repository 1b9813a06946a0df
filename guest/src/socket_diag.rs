//! One TCP socket of this network namespace, asked of the kernel by its addresses (`NETLINK_SOCK_DIAG`, sock_diag(7)).
//! The lists in `/proc` have all sockets of the machine, and reading them costs as much as there are.
//!
//! The kernel looks a socket up as it does for a segment that arrives: a connection first, then what listens there.
//! Where it cannot say (no such module, another kind of kernel) that is an error, and the lists are read instead.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsRawFd as _, OwnedFd},
};

use nix::sys::{
    socket::{
        AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, setsockopt, socket,
        sockopt::ReceiveTimeout,
    },
    time::TimeVal,
};

/// `SOCK_DIAG_BY_FAMILY`, and what the kernel answers that finds none.
const BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
/// `NLM_F_REQUEST`, and `IPPROTO_TCP`.
const REQUEST: u16 = 1;
const TCP: u8 = 6;
const ENOENT: i32 = 2;

/// Lengths of a message's head and of a request, and where an answer has its state, user and inode.
const HEAD: usize = 16;
const LENGTH: usize = HEAD + 56;
const STATE: usize = HEAD + 1;
const UID: usize = HEAD + 64;
const INODE: usize = HEAD + 68;

/// What the kernel says of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundSocket {
    /// As in `tcp_states.h`.
    pub(crate) state: u8,
    /// Whose it is, as users are called in this user namespace.
    pub(crate) uid: u32,
    /// 0 where no process holds it.
    pub(crate) inode: u32,
}

/// What the kernel is asked by.
pub(crate) struct SocketDiag(OwnedFd);

impl SocketDiag {
    /// # Errors
    /// What socket(2) says.
    pub(crate) fn open() -> io::Result<Self> {
        let (kind, flags) = (SockType::Datagram, SockFlag::SOCK_CLOEXEC);
        let fd = socket(AddressFamily::Netlink, kind, flags, SockProtocol::NetlinkSockDiag)?;
        // The kernel answers while it is asked; whatever does not must not hold a call up.
        setsockopt(&fd, ReceiveTimeout, &TimeVal::new(1, 0))?;
        Ok(Self(fd))
    }

    /// The socket with this address that is connected to that peer, or what listens there where there is none.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub(crate) fn find(&self, local: SocketAddr, remote: SocketAddr) -> io::Result<Option<FoundSocket>> {
        sendto(self.0.as_raw_fd(), &request(local, remote), &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        let mut answer = [0; 512];
        let length = recv(self.0.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        read(&answer[..length])
    }
}

fn request(local: SocketAddr, remote: SocketAddr) -> [u8; LENGTH] {
    let mut out = Vec::with_capacity(LENGTH);
    out.extend((LENGTH as u32).to_ne_bytes());
    out.extend(BY_FAMILY.to_ne_bytes());
    out.extend(REQUEST.to_ne_bytes());
    // Sequence and port: one request at a time on a socket of its own.
    out.extend([0; 8]);
    let family = if local.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    out.extend([family as u8, TCP, 0, 0]);
    // All states.
    out.extend(u32::MAX.to_ne_bytes());
    out.extend(local.port().to_be_bytes());
    out.extend(remote.port().to_be_bytes());
    out.extend(words(local.ip()));
    out.extend(words(remote.ip()));
    // Any interface, and no cookie.
    out.extend(0_u32.to_ne_bytes());
    out.extend(u64::MAX.to_ne_bytes());
    let mut request = [0; LENGTH];
    request.copy_from_slice(&out);
    request
}

fn words(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let mut words = [0; 16];
            words[..4].copy_from_slice(&ip.octets());
            words
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

fn read(answer: &[u8]) -> io::Result<Option<FoundSocket>> {
    let bad = || io::Error::from(io::ErrorKind::InvalidData);
    let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let kind = answer.get(4..6).and_then(|kind| kind.try_into().ok()).map(u16::from_ne_bytes).ok_or_else(bad)?;
    match kind {
        BY_FAMILY => {
            let state = *answer.get(STATE).ok_or_else(bad)?;
            let (uid, inode) = (word(UID).ok_or_else(bad)?, word(INODE).ok_or_else(bad)?);
            Ok(Some(FoundSocket { state, uid, inode }))
        }
        ERROR => match word(HEAD).ok_or_else(bad)?.cast_signed().wrapping_neg() {
            ENOENT => Ok(None),
            errno => Err(io::Error::from_raw_os_error(errno)),
        },
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_and_what_listens_are_found_and_nothing_else() {
        let diag = SocketDiag::open().unwrap();
        for at in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(at) else { continue };
            let address = listener.local_addr().unwrap();
            let client = TcpStream::connect(address).unwrap();
            let local = client.local_addr().unwrap();
            let (accepted, _) = listener.accept().unwrap();
            let me = nix::unistd::geteuid().as_raw();
            for (one, other) in [(local, address), (address, local)] {
                let found = diag.find(one, other).unwrap().unwrap();
                assert_eq!((found.state, found.uid), (1, me));
                assert_ne!(found.inode, 0);
            }
            let nobody = SocketAddr::new(address.ip(), 0);
            assert_eq!(diag.find(address, nobody).unwrap().map(|found| (found.state, found.uid)), Some((10, me)));
            drop((accepted, listener, client));
            assert_eq!(diag.find(address, nobody).unwrap(), None);
        }
    }

    #[test]
    fn an_answer_that_is_none_is_an_error() {
        for bad in [&[][..], &[0; 8], &[0; 200]] {
            assert!(read(bad).is_err());
        }
    }
}
