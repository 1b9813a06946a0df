//! From a peer and a header to a principal: who is asking. The only place that makes a [`Principal`].

use std::{fmt, net::SocketAddr, sync::Arc};

use crate::{
    operator::Operator,
    session::{Session, SessionControl, Shown},
};

/// Who is at the other end of a connection, as far as the kernel says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// A process of this machine, over a Unix socket.
    Unix {
        /// Its user, as the host knows it.
        uid: u32,
        /// Its process, where the kernel says.
        pid: Option<i32>,
    },
    /// The process that runs a virtual machine, over a Unix socket that carries the guest's vsock. All processes of
    /// the guest show as this one.
    Vmm {
        /// Its user, as the host knows it.
        uid: u32,
        /// Its process, where the kernel says.
        pid: Option<i32>,
    },
    /// A virtual machine, over vsock. The kernel vouches for the context id.
    Vsock {
        /// The machine's context id; 1 and 2 are this machine itself.
        cid: u32,
        /// The port it came from.
        port: u32,
    },
    /// Somebody over TCP.
    Tcp(SocketAddr),
    /// Nobody at a connection: an operator, through the harness itself.
    Operator(Operator),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix { uid, pid: Some(pid) } => write!(f, "unix:uid={uid},pid={pid}"),
            Self::Unix { uid, pid: None } => write!(f, "unix:uid={uid}"),
            Self::Vmm { uid, pid: Some(pid) } => write!(f, "vmm:uid={uid},pid={pid}"),
            Self::Vmm { uid, pid: None } => write!(f, "vmm:uid={uid}"),
            Self::Vsock { cid, port } => write!(f, "vsock:cid={cid},port={port}"),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
            Self::Operator(Operator::UnixPeer { uid, pid }) => write!(f, "operator:uid={uid},pid={pid}"),
            Self::Operator(Operator::ThisProcess { uid }) => write!(f, "operator:uid={uid}"),
        }
    }
}

/// A session whose token was shown, on a listener of that session; or an operator's own.
#[derive(Debug, Clone)]
pub struct Principal {
    session: Arc<Session>,
    peer: Arc<str>,
    shown: Shown,
}

impl Principal {
    /// The session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether the session is still open, and for the token that was shown.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.session.still_opens(self.shown)
    }

    /// Who is at the other end, as the [`Peer`] shows.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.peer
    }
}

/// An operator in a session that was made for them. No token is shown: only the table of sessions has the proof.
pub(crate) fn operator(control: &SessionControl, operator: &Operator) -> Principal {
    let (session, peer) = (Arc::clone(control.session()), Peer::Operator(operator.clone()).to_string().into());
    Principal { session, peer, shown: control.shown() }
}

/// The token is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the token of this listener's session")]
pub struct Unauthorized;

/// Checks the token that was shown on a listener of `session`, by whom the text of a [`Peer`] says.
///
/// # Errors
/// [`Unauthorized`] where it is another, or the session has ended.
pub fn authenticate(session: &Arc<Session>, peer: &Arc<str>, token: &[u8]) -> Result<Principal, Unauthorized> {
    let shown = session.opens_with(token).ok_or(Unauthorized)?;
    Ok(Principal { session: Arc::clone(session), peer: Arc::clone(peer), shown })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::session::{LifeControl, tests::made_for};
    use footbridge_core::{gate::Policy, limits::CallLimits};

    pub(crate) fn principal() -> Principal {
        principal_under(Policy::open())
    }

    pub(crate) fn principal_under(policy: Arc<Policy>) -> Principal {
        let control = made_for(&["web"], "test", "fbt_right", CallLimits::default(), &LifeControl::new(None));
        control.set_policy(policy);
        let session = Arc::clone(control.session());
        let shown = session.opens_with(b"fbt_right").unwrap();
        Principal { session, peer: Peer::Unix { uid: 7, pid: Some(9) }.to_string().into(), shown }
    }
}
