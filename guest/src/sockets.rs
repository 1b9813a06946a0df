//! TCP sockets of this network namespace, as the kernel lists them (`/proc/net/tcp` and `tcp6`, proc(5)): whose a
//! listener is, and which sockets nobody holds any more. Of one connection the kernel is asked directly where it can say
//! (`socket_diag`), since the lists are as long as the machine has sockets.
//!
//! Where the kernel tells nothing (no `/proc`, another namespace, another machine) there is no row, and nothing is said
//! about the socket. Users show as they are called in the reader's user namespace; one that has no number there shows
//! as the overflow user, and then nothing is known of it either.

use std::{
    fs::{self, File},
    io::{self, BufRead as _, BufReader},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use crate::socket_diag::SocketDiag;

/// States of `tcp_states.h`.
const ESTABLISHED: u8 = 1;
const TIME_WAIT: u8 = 6;
const LISTEN: u8 = 10;

/// The process that is the relay in the sandboxes of `run` and in containers.
const FIRST_PROCESS: u32 = 1;

/// One socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSocket {
    /// Its own address.
    pub local: SocketAddr,
    /// Its peer's.
    pub remote: SocketAddr,
    state: u8,
    uid: u32,
    inode: u64,
}

impl TcpSocket {
    /// Whether no process holds it any more: the kernel only delivers what was sent.
    #[must_use]
    pub fn is_orphan(&self) -> bool {
        self.inode == 0 && ![LISTEN, TIME_WAIT].contains(&self.state)
    }

    /// One line of the list.
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
        let state = u8::from_str_radix(fields.next()?, 16).ok()?;
        let uid = fields.nth(3)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        Some(Self { local, remote, state, uid, inode })
    }
}

/// All that the kernel lists now, read line by line: a machine may have very many.
pub fn all() -> impl Iterator<Item = TcpSocket> {
    let lists = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(|path| File::open(path).ok());
    let lines = lists.flat_map(|list| BufReader::new(list).lines().map_while(Result::ok).skip(1));
    lines.filter_map(|line| TcpSocket::read(&line))
}

/// The user who has the far end of a connection within this machine, where that is a stranger: neither root, this
/// process's user, nor that of the first process, which is the relay in a sandbox.
#[must_use]
pub fn stranger_at(local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let (local, remote) = (canonical(local), canonical(remote));
    if !remote.ip().is_loopback() {
        return None;
    }
    let known = [Some(0), Some(nix::unistd::geteuid().as_raw()), user_of(FIRST_PROCESS)];
    let unmapped = overflow_user();
    let is_stranger = |uid: &u32| !known.contains(&Some(*uid)) && Some(*uid) != unmapped;
    match users_at(local, remote) {
        Ok(users) => users.into_iter().flatten().find(is_stranger),
        // The kernel says it in its lists alone.
        Err(_) => all().filter(|socket| is_far_end(socket, local, remote)).map(|socket| socket.uid).find(is_stranger),
    }
}

/// The users who listen where a connection went to, and who accepted it, as far as there are any.
fn users_at(local: SocketAddr, remote: SocketAddr) -> io::Result<[Option<u32>; 2]> {
    let diag = SocketDiag::open()?;
    // A kernel that does not find the near end, which is there, knows nothing of the far one either.
    diag.find(local, remote)?.ok_or(io::ErrorKind::NotFound)?;
    let nobody = SocketAddr::new(local.ip(), 0);
    let listening = diag.find(remote, nobody)?.filter(|found| found.state == LISTEN);
    let accepted = diag.find(remote, local)?.filter(|found| found.state == ESTABLISHED && found.inode != 0);
    Ok([listening, accepted].map(|found| found.map(|found| found.uid)))
}

/// Whether a socket listens where a connection went to, or is the accepted end of it: the listener may be closed again.
fn is_far_end(socket: &TcpSocket, local: SocketAddr, remote: SocketAddr) -> bool {
    let wildcard = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    match socket.state {
        LISTEN => {
            socket.local.port() == remote.port()
                && (socket.local.ip() == remote.ip() || wildcard.contains(&socket.local.ip()))
        }
        ESTABLISHED => socket.inode != 0 && socket.local == remote && socket.remote == local,
        _ => false,
    }
}

/// The user of a process.
fn user_of(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The number for users that have none in this user namespace; none where all have one.
fn overflow_user() -> Option<u32> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let overflow: u32 =
        read("/proc/sys/kernel/overflowuid").and_then(|text| text.trim().parse().ok()).unwrap_or(65_534);
    let map = read("/proc/self/uid_map")?;
    let has = |line: &str| {
        let numbers: Vec<u64> = line.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect();
        matches!(numbers[..], [inside, _, count] if (inside..inside + count).contains(&u64::from(overflow)))
    };
    (!map.lines().any(has)).then_some(overflow)
}

/// An address as the kernel writes it: each 32 bits in the machine's order, in hexadecimal, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    let ip: IpAddr = match ip.len() {
        8 => word(0)?.into(),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            <[u8; 16]>::try_from(words.concat()).ok()?.into()
        }
        _ => return None,
    };
    Some(canonical(SocketAddr::new(ip, port)))
}

/// The same address, not as IPv6 has those of IPv4.
#[must_use]
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn own(local: SocketAddr, remote: Option<SocketAddr>) -> Option<TcpSocket> {
        all().find(|socket| socket.local == local && remote.is_none_or(|remote| socket.remote == remote))
    }

    #[test]
    fn sockets_of_both_families_are_listed_with_their_user() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(at) else { continue };
            let address = listener.local_addr().unwrap();
            let found = own(address, None).unwrap();
            assert_eq!((found.state, found.uid), (LISTEN, nix::unistd::geteuid().as_raw()));
            assert!(!found.is_orphan());
            let client = TcpStream::connect(address).unwrap();
            let local = client.local_addr().unwrap();
            assert_eq!(own(local, Some(address)).map(|socket| socket.state), Some(ESTABLISHED));
            assert_eq!(stranger_at(local, address), None);
            let me = Some(nix::unistd::geteuid().as_raw());
            assert_eq!(users_at(local, address).unwrap(), [me, None], "nobody accepted it yet");
            let (_accepted, _) = listener.accept().unwrap();
            assert_eq!(users_at(local, address).unwrap(), [me, me]);
        }
    }

    #[test]
    fn a_line_that_is_none_is_passed_over() {
        let line = "   0: 0100007F:1C0B 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 23 1 0";
        let read = TcpSocket::read(line).unwrap();
        assert_eq!((read.local.port(), read.uid, read.inode), (7179, 1000, 23));
        for line in ["", "  sl  local_address", "0: 01:1 0:0 0A", &line.replace("0100007F", "0100007")] {
            assert_eq!(TcpSocket::read(line), None, "{line}");
        }
    }
}
