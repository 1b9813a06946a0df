//! Why nothing can listen somewhere, or nothing was accepted. Each text names the thing, the cause and the next step.

use std::{fmt, io, path::PathBuf, time::Duration};

use footbridge_proto::endpoint::{Endpoint, TcpEndpoint};
use nix::errno::Errno;

/// Why nothing can listen there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Somebody answers on that socket.
    #[error("{0} is in use: another process answers there; stop it, or choose another address")]
    InUse(Endpoint),
    /// Nobody answers, but somebody has its lock.
    #[error(
        "{0} is not free: nobody answers there, but another process has its lock (.lock, beside it or above its folder): one \
         that is about to listen, or a guest that sees that file; end it (fuser names it), or choose another address"
    )]
    Locked(Endpoint),
    /// Its lock is not to be had.
    #[error("cannot listen on {endpoint}: cannot open its lock {}: {source}; this user has to be able to write it", path.display())]
    Lock {
        /// Where.
        endpoint: Endpoint,
        /// The lock.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is something else at that path.
    #[error("{} exists and is {what}: it is left as it is; remove it, or choose another path", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// Others could change what is in its folder.
    #[error("the folder {} {why}", path.display())]
    UnsafeFolder {
        /// The folder.
        path: PathBuf,
        /// Who could.
        why: FolderFault,
    },
    /// The socket's file cannot be given away.
    #[error(
        "cannot give {endpoint} to uid {owner}: {source}; only root may: run as root, or leave the owner out and let them in by mode"
    )]
    Owner {
        /// Where.
        endpoint: Endpoint,
        /// Who was to have it.
        owner: u32,
        /// Why not.
        source: io::Error,
    },
    /// More than this machine could come in.
    #[error("{0} can be reached from other machines: choose a loopback address, as in tcp:127.0.0.1:{port}", port = .0.port)]
    NotLoopback(TcpEndpoint),
    /// Nothing ever listens on an address of this kind.
    #[error("{endpoint} is nothing to listen on: {why}")]
    NoListening {
        /// Where.
        endpoint: Endpoint,
        /// Why, and what to take.
        why: &'static str,
    },
    /// A vsock port without the machine that may use it.
    #[error(
        "every virtual machine here could connect to {0}: name the one that may with --peer-cid CID, its guest context id"
    )]
    NoPeerCid(Endpoint),
    /// A context id that no peer has.
    #[error(
        "{endpoint}: no machine that connects has the context id {cid}; name the guest's with --peer-cid CID, a number above 2"
    )]
    NoSuchPeer {
        /// Where.
        endpoint: Endpoint,
        /// The number.
        cid: u32,
    },
    /// Two sessions for one machine on one port.
    #[error(
        "a session for --peer-cid {cid} is already on {endpoint}: end that session, or choose another port or context id"
    )]
    CidTaken {
        /// Where.
        endpoint: Endpoint,
        /// The context id.
        cid: u32,
    },
    /// One port, bound under two addresses.
    #[error("{endpoint}: other sessions already have this port as {bound}; write the same address for all of them")]
    OtherAddress {
        /// What was asked for.
        endpoint: Endpoint,
        /// What is bound.
        bound: Endpoint,
    },
    /// The kernel refuses a vsock port.
    #[error("cannot listen on {endpoint}: {source}: {next}")]
    Vsock {
        /// Where.
        endpoint: Endpoint,
        /// What the kernel says.
        source: io::Error,
        /// What it means, and what to do.
        next: &'static str,
    },
    /// A descriptor that is no use.
    #[error("{endpoint} cannot be used: {why}")]
    Inherited {
        /// Which.
        endpoint: Endpoint,
        /// Why, and what to do.
        why: &'static str,
    },
    /// The system refuses.
    #[error("cannot listen on {endpoint}: {source}")]
    Io {
        /// Where.
        endpoint: Endpoint,
        /// Why.
        source: io::Error,
    },
}

/// Who else could change what is in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderFault {
    /// It belongs to this user, who is neither us, root, nor named.
    Strangers(u32),
    /// Its mode lets others write.
    Writable(u32),
    /// It is a link of this user, who is neither us nor root.
    Link(u32),
}

impl fmt::Display for FolderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Strangers(uid) => write!(
                f,
                "belongs to uid {uid}, who could put another socket there: choose one of this user's or root's, or, where that is the user of the VMM or the guest, say so with --allow-uid {uid}"
            ),
            Self::Link(uid) => {
                write!(f, "is a link of uid {uid}, who could lead it elsewhere: name the folder that it leads to")
            }
            Self::Writable(mode) => {
                write!(f, "must be not writable by others and has mode {mode:04o}: chmod go-w it, or choose another")
            }
        }
    }
}

/// Why nothing was accepted.
#[derive(Debug)]
pub enum AcceptError {
    /// That connection is gone; the next may come after a moment.
    Passing(io::Error),
    /// Out of descriptors or memory: wait before the next.
    Exhausted(io::Error),
}

impl AcceptError {
    /// How long to wait before the next is accepted: what fails may go on failing, and must not take a processor.
    #[must_use]
    pub fn pause(&self) -> Duration {
        match self {
            Self::Passing(_) => Duration::from_millis(10),
            Self::Exhausted(_) => Duration::from_millis(100),
        }
    }
}

impl From<io::Error> for AcceptError {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM) => Self::Exhausted(error),
            _ => Self::Passing(error),
        }
    }
}
