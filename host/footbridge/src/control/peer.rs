//! Who may use a control socket: a process of our own user, in our own user, pid and network namespaces, that did not
//! come of this harness.
//!
//! A guest of the same user can reach the socket from namespaces of its own where its file is not hidden; the kernel
//! says where it is. A process id alone proves nothing, since it may be used again: what is read about it counts only
//! if the process itself, held by a descriptor, had not ended afterwards.
//!
//! MCP servers run as our user in our namespaces, and so does a command without a sandbox: they would answer their own
//! approvals. They are told by their parents: all that a harness starts, and its orphans, stay below a keeper of it.

use std::{fmt, fs, io, os::unix::fs::MetadataExt};

use nix::{
    errno::Errno,
    sys::socket::{getsockopt, sockopt},
    unistd::Pid,
};
use tokio::net::UnixStream;

use footbridge_calls::operator::Operator;
use footbridge_processes::{
    keeper::children_of,
    process::{ProcessHandle, came_of},
};

/// The namespaces that have to be the same.
const NAMESPACES: [&str; 3] = ["user", "pid", "net"];

/// Where this process is.
#[derive(Debug, Clone)]
pub(super) struct OwnProcess {
    uid: u32,
    pid: i32,
    namespaces: [(u64, u64); 3],
}

/// Who was let in, as the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ControlPeer {
    uid: u32,
    pid: i32,
}

impl ControlPeer {
    /// Who it is to what it asks for.
    pub(crate) fn operator(&self) -> Operator {
        Operator::UnixPeer { uid: self.uid, pid: self.pid }
    }
}

/// Why a peer is not let in.
#[derive(Debug)]
pub(super) enum RefusedPeer {
    /// It is another user's process.
    User(u32),
    /// It is in another namespace of this kind.
    Elsewhere { pid: i32, namespace: &'static str },
    /// This harness started it, or something that it started did.
    Ours { pid: i32 },
    /// The kernel does not tell enough about it, or it has ended.
    Unknown(io::Error),
}

impl fmt::Display for RefusedPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(uid) => write!(f, "it is a process of user {uid}"),
            Self::Elsewhere { pid, namespace } => write!(f, "process {pid} is in another {namespace} namespace"),
            Self::Ours { pid } => write!(f, "process {pid} was started from within this harness"),
            Self::Unknown(error) => write!(f, "where it is cannot be told: {error}"),
        }
    }
}

impl From<io::Error> for RefusedPeer {
    fn from(error: io::Error) -> Self {
        Self::Unknown(error)
    }
}

impl From<Errno> for RefusedPeer {
    fn from(errno: Errno) -> Self {
        Self::Unknown(errno.into())
    }
}

impl OwnProcess {
    /// Of this process.
    pub(super) fn find() -> io::Result<Self> {
        let (uid, pid) = (nix::unistd::geteuid().as_raw(), nix::unistd::getpid().as_raw());
        Ok(Self { uid, pid, namespaces: namespaces("self")? })
    }

    /// This process and its children: where /proc hides what may not be looked into (hidepid), keepers do not show.
    fn family(&self) -> Vec<i32> {
        let children = children_of(Pid::this()).into_iter().map(Pid::as_raw);
        std::iter::once(self.pid).chain(children).collect()
    }

    /// Checks the process that made a connection.
    pub(super) fn check(&self, stream: &UnixStream) -> Result<ControlPeer, RefusedPeer> {
        let credentials = getsockopt(stream, sockopt::PeerCredentials)?;
        if credentials.uid() != self.uid {
            return Err(RefusedPeer::User(credentials.uid()));
        }
        let pid = credentials.pid();
        let gone = || io::Error::other("the process has ended or is not visible here");
        let process = holder(stream, pid)?.ok_or_else(gone)?;
        let theirs = namespaces(&pid.to_string())?;
        let is_ours = came_of(pid, &self.family())?;
        if process.has_ended()? {
            return Err(gone().into());
        }
        let different = NAMESPACES.iter().zip(self.namespaces.iter().zip(&theirs)).find(|(_, (a, b))| a != b);
        match different {
            Some((namespace, _)) => Err(RefusedPeer::Elsewhere { pid, namespace }),
            None if is_ours => Err(RefusedPeer::Ours { pid }),
            None => Ok(ControlPeer { uid: self.uid, pid }),
        }
    }
}

/// A handle on the process that connected. Before Linux 6.5 the kernel gives none, and the one of its id is taken:
/// that is another only if it ended and its id was used again since it connected, a moment ago.
fn holder(stream: &UnixStream, pid: i32) -> Result<Option<ProcessHandle>, RefusedPeer> {
    if pid <= 0 {
        return Ok(None);
    }
    match getsockopt(stream, sockopt::PeerPidfd) {
        Ok(descriptor) => Ok(Some(ProcessHandle::from_pidfd(descriptor))),
        Err(Errno::ENOPROTOOPT) => Ok(ProcessHandle::open(pid)?),
        Err(errno) => Err(errno.into()),
    }
}

fn namespaces(process: &str) -> io::Result<[(u64, u64); 3]> {
    let mut found = [(0, 0); 3];
    for (slot, name) in found.iter_mut().zip(NAMESPACES) {
        let meta = fs::metadata(format!("/proc/{process}/ns/{name}"))?;
        *slot = (meta.dev(), meta.ino());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn this_very_process_is_let_in_and_a_child_or_another_namespace_or_user_is_not() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let home = OwnProcess::find().unwrap();
        assert_eq!(home.check(&ours).unwrap(), ControlPeer { uid: home.uid, pid: home.pid });
        for (at, name) in NAMESPACES.iter().enumerate() {
            let mut other = home.clone();
            other.namespaces[at].1 += 1;
            assert!(other.check(&ours).unwrap_err().to_string().contains(&format!("another {name} namespace")));
        }
        // To whoever started this process it is one of their own.
        let parent = OwnProcess { pid: nix::unistd::getppid().as_raw(), ..home.clone() };
        assert!(matches!(parent.check(&ours).unwrap_err(), RefusedPeer::Ours { pid } if pid == home.pid));
        let other = OwnProcess { uid: home.uid + 1, ..home };
        assert!(matches!(other.check(&ours).unwrap_err(), RefusedPeer::User(_)));
    }
}
