//! Clients of this machine that are gone though not all that they sent was read.
//!
//! While the harness takes nothing, the end of a client stays behind what it sent before, and none of it is read. The
//! kernel knows: no process holds such a client's socket. It is asked at most once in a while, for all connections.
//! Clients that merely sent all that they have to send are not among them.

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    net::SocketAddr,
    time::Duration,
};

use footbridge_guest::sockets;
use tokio::time::Instant;

/// How long what the kernel said is good for.
const FRESH: Duration = Duration::from_millis(900);

/// What the kernel said last: client's and relay's address of each.
#[derive(Default)]
pub(crate) struct Orphans {
    known: RefCell<HashSet<(SocketAddr, SocketAddr)>>,
    asked: Cell<Option<Instant>>,
}

impl Orphans {
    /// Whether the socket with this address and this peer is held by nobody.
    pub(crate) fn has(&self, client: SocketAddr, relay: SocketAddr) -> bool {
        let now = Instant::now();
        if self.asked.get().is_none_or(|asked| now - asked > FRESH) {
            self.asked.set(Some(now));
            let of_relay = |socket: &sockets::TcpSocket| socket.remote.port() == relay.port();
            let orphans = sockets::all().filter(|socket| of_relay(socket) && socket.is_orphan());
            *self.known.borrow_mut() = orphans.map(|socket| (socket.local, socket.remote)).collect();
        }
        self.known.borrow().contains(&(sockets::canonical(client), sockets::canonical(relay)))
    }
}
