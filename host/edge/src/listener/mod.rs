//! Where guests come in: a Unix socket, vsock, TCP on loopback, or a socket that was inherited.
//!
//! | endpoint | what is bound | who is at the other end |
//! |---|---|---|
//! | `unix:PATH` | a socket file (`unix`) | a process of this machine, by its uid |
//! | `vsock-mux:PATH:PORT` | the socket file `PATH_PORT` | a VMM, for its guest |
//! | `vsock:CID:PORT` | a port, shared by the sessions of all guests (`vsock`, `claims`) | a virtual machine, by its CID |
//! | `tcp:ADDRESS:PORT` | a port of loopback (`tcp`) | somebody of this network namespace |
//! | `fd:N`, `sd:NAME` | nothing: the socket listens already (`inherited`) | as its kind says |
//!
//! A connection that may not come in is closed before anything is read from it, counted, and logged now and then; of a
//! user who may not, whoever accepts is given it, to say so.

mod accept_pause;
mod claims;
mod error;
mod inherited;
mod stream;
mod tcp;
mod turned_away;
mod unix;
mod vsock;

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use footbridge_proto::endpoint::{Endpoint, SocketPath};
use tokio::net::UnixListener;

pub use accept_pause::AcceptPause;
pub use error::{AcceptError, BindError, FolderFault};
use footbridge_calls::auth::Peer;
use inherited::Loan;
pub use inherited::{address_of, note as note_inherited};
pub(crate) use stream::Abort;
pub use stream::{AcceptedStream, SmallWrites};
use tcp::{TcpEntrance, bind_tcp};
use unix::{BoundSocket, LockPlace, SocketFile, Visitors};
use vsock::{Ports, VsockClaim};

/// Connections that may wait to be accepted. VMMs that carry vsock over Unix sockets freeze their guest when a queue
/// is full.
const BACKLOG: u32 = 1024;

/// How often, and after which pauses, a port is asked for that is in use: a process that this one starts has all that
/// was open here until it is another program, a port that was just closed among it.
const IN_USE: (u32, Duration) = (8, Duration::from_millis(5));

/// Where to listen, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Where.
    pub endpoint: Endpoint,
    /// Who may use a socket's file. Other kinds of endpoints have none.
    pub access: Access,
    /// The guest that may come in over vsock, by its context id; a vsock port needs one, other kinds of endpoints do
    /// not look at it.
    ///
    /// 1 and 2 are this machine itself: every local user, and every container that may use vsock, can then connect,
    /// and only the token holds them off.
    pub peer_cid: Option<u32>,
}

impl Listen {
    /// There, for this user alone.
    #[must_use]
    pub fn at(endpoint: Endpoint) -> Self {
        Self { endpoint, access: Access::default(), peer_cid: None }
    }
}

/// Who may use a socket's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The file's mode.
    pub mode: u32,
    /// The file's owner, where it is not to be this user; only root can give files away.
    pub owner: Option<u32>,
    /// Users who may come in besides this one, by their uid on the host; without it, whomever the file system lets
    /// in. It takes away and never gives: mode and owner must let them in too. A folder that belongs to one of them
    /// may hold the socket.
    pub allowed_uids: Option<BTreeSet<u32>>,
}

impl Default for Access {
    fn default() -> Self {
        Self { mode: 0o600, owner: None, allowed_uids: None }
    }
}

/// What binds; one for all sessions of a harness, since they share vsock ports. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Listeners {
    ports: Ports,
    /// The harness's own folder, if sockets may be in it.
    own: Option<PathBuf>,
}

impl Listeners {
    /// The same, for a harness whose own folder this is, which is closed to all others. Guests see the folders of sockets
    /// that are two steps down in it or more, but not what is above those: that is where their locks are then, since
    /// whoever can read a lock can hold it.
    #[must_use]
    pub fn with_own_folder(mut self, own: PathBuf) -> Self {
        self.own = Some(own);
        self
    }

    /// Where the lock of this socket is.
    fn place_of_lock(&self, path: &SocketPath) -> LockPlace {
        let above = path.as_path().parent().and_then(Path::parent);
        let is_own = above.zip(self.own.as_ref()).is_some_and(|(above, own)| above.starts_with(own));
        if is_own { LockPlace::Above } else { LockPlace::Beside }
    }

    /// Binds an endpoint; call it within a runtime. A port may have been given back just now: one that is in use is asked
    /// for again, which holds the thread for some milliseconds.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind(&self, listen: &Listen) -> Result<Listener, BindError> {
        while_in_use(|| self.bind_once(listen))
    }

    /// As [`Self::bind`], at once: for those who come back later.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind_once(&self, listen: &Listen) -> Result<Listener, BindError> {
        let Listen { endpoint, access, peer_cid } = listen;
        let no_listening = |why| Err(BindError::NoListening { endpoint: endpoint.clone(), why });
        let (entrance, hold) = match endpoint {
            Endpoint::Unix(path) => {
                let file = unix::bind_at(endpoint, path, access, self.place_of_lock(path))?;
                Entrance::unix(endpoint, file, access, false)
            }
            Endpoint::VsockMux(mux) => {
                let file = unix::bind_at(endpoint, mux.listening(), access, self.place_of_lock(mux.listening()))?;
                Entrance::unix(endpoint, file, access, true)
            }
            Endpoint::Tcp(tcp) if !tcp.is_loopback() => return Err(BindError::NotLoopback(tcp.clone())),
            Endpoint::Tcp(tcp) => {
                bind_tcp(tcp).map(Entrance::Tcp).map(Hold::nothing).map_err(|source| match source.kind() {
                    io::ErrorKind::AddrInUse => BindError::InUse(endpoint.clone()),
                    _ => BindError::Io { endpoint: endpoint.clone(), source },
                })?
            }
            Endpoint::Vsock(vsock) => Hold::nothing(Entrance::Vsock(self.ports.bind(vsock, *peer_cid)?)),
            Endpoint::Fd(_) | Endpoint::Systemd(_) => inherited::adopt(listen, &self.ports)?,
            Endpoint::Stdio => {
                return no_listening("it is one connection and no listener; listen on unix:/PATH and relay to that");
            }
            Endpoint::Exec(_) => {
                return no_listening("a command is something to connect to; listen on unix:/PATH");
            }
        };
        Ok(Listener { entrance, _hold: hold })
    }

    /// Whether connections there come from virtual machines by their context id, so that each needs a `peer_cid`.
    #[must_use]
    pub fn needs_peer_cid(endpoint: &Endpoint) -> bool {
        matches!(endpoint, Endpoint::Vsock(_)) || inherited::is_vsock(endpoint)
    }

    /// Waits until no vsock port is bound any more. Drop their listeners first.
    pub async fn released(&self) {
        self.ports.released().await;
    }
}

/// A bound listener.
#[derive(Debug)]
pub struct Listener {
    entrance: Entrance,
    _hold: Hold,
}

#[derive(Debug)]
enum Entrance {
    Unix(UnixEntrance),
    Tcp(TcpEntrance),
    Vsock(VsockClaim),
}

#[derive(Debug)]
struct UnixEntrance {
    listener: UnixListener,
    endpoint: Endpoint,
    visitors: Visitors,
    /// Whether those who connect are VMMs.
    multiplexed: bool,
}

/// What a listener gives back when it is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "what is in it is there to be dropped")]
enum Hold {
    Nothing,
    File(SocketFile),
    /// Of a socket that was inherited: its file is not ours.
    Loan(Loan),
}

impl Hold {
    fn nothing(entrance: Entrance) -> (Entrance, Self) {
        (entrance, Self::Nothing)
    }
}

impl Entrance {
    fn unix(endpoint: &Endpoint, bound: BoundSocket, access: &Access, multiplexed: bool) -> (Self, Hold) {
        let BoundSocket { listener, file } = bound;
        let (endpoint, visitors) = (endpoint.clone(), Visitors::new(access));
        (Self::Unix(UnixEntrance { listener, endpoint, visitors, multiplexed }), Hold::File(file))
    }
}

impl Listener {
    /// Where it listens; with the port that the system chose.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn endpoint(&self) -> io::Result<Endpoint> {
        match &self.entrance {
            Entrance::Unix(unix) => Ok(unix.endpoint.clone()),
            Entrance::Tcp(tcp) => tcp.endpoint().map(Endpoint::Tcp),
            Entrance::Vsock(claim) => Ok(Endpoint::Vsock(claim.endpoint())),
        }
    }

    /// The next connection of somebody who may come in, and who that is. Dropping the future loses no connection. Those of
    /// users who may not are given to `refuse`, each with the user.
    ///
    /// # Errors
    /// [`AcceptError`]; the listener goes on.
    pub async fn accept(&self, refuse: impl Fn(AcceptedStream, u32)) -> Result<(AcceptedStream, Peer), AcceptError> {
        match &self.entrance {
            Entrance::Unix(unix) => {
                let refuse = |stream, uid| refuse(AcceptedStream::Unix(stream), uid);
                let next = unix.visitors.next(&unix.listener, &unix.endpoint, refuse);
                let (stream, uid, pid) = next.await?;
                let peer = if unix.multiplexed { Peer::Vmm { uid, pid } } else { Peer::Unix { uid, pid } };
                Ok((AcceptedStream::Unix(stream), peer))
            }
            Entrance::Tcp(tcp) => {
                let (stream, address) = tcp.accept().await?;
                stream.set_nodelay(true)?;
                Ok((AcceptedStream::Tcp(stream), Peer::Tcp(address)))
            }
            Entrance::Vsock(claim) => {
                let (stream, cid, port) = claim.next().await;
                Ok((AcceptedStream::Vsock(SmallWrites::new(stream)), Peer::Vsock { cid, port }))
            }
        }
    }
}

/// Tries again where a port is in use, within [`IN_USE`].
fn while_in_use<T>(bind: impl Fn() -> Result<T, BindError>) -> Result<T, BindError> {
    let (times, pause) = IN_USE;
    for _ in 1..times {
        match bind() {
            Err(BindError::InUse(Endpoint::Tcp(_) | Endpoint::Vsock(_))) => thread::sleep(pause),
            bound => return bound,
        }
    }
    bind()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_port_in_use_is_asked_for_again_and_nothing_else_is() {
        let asked = Cell::new(0);
        let nth = |free: u32, endpoint: &str| {
            asked.set(0);
            let endpoint: Endpoint = endpoint.parse().unwrap();
            let bind = || {
                asked.set(asked.get() + 1);
                if asked.get() == free { Ok(()) } else { Err(BindError::InUse(endpoint.clone())) }
            };
            (while_in_use(bind).is_ok(), asked.get())
        };
        let (times, _) = IN_USE;
        for port in ["tcp:127.0.0.1:7179", "vsock:any:7179"] {
            assert_eq!((nth(3, port), nth(times, port), nth(0, port)), ((true, 3), (true, times), (false, times)));
        }
        for other in ["unix:/a/b", "fd:3"] {
            assert_eq!(nth(2, other), (false, 1), "{other}");
        }
    }
}
