//! vsock ports. The kernel lets a machine bind a port once, so the sessions of all guests share it.
//!
//! States of a port: absent, then bound, with a task that accepts and hands each connection to the session that claims
//! its context id. When the last claim is dropped the task takes the port out of the table and closes its socket
//! under the table's lock; a session that claims before that finds the port still bound, one that comes after binds
//! it anew.
//!
//! Failure paths: out of descriptors, accepting pauses and goes on, and so it does after any other error.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use footbridge_proto::endpoint::{Endpoint, VsockEndpoint};
use nix::{
    errno::Errno,
    sys::socket::{AddressFamily, Backlog, SockFlag, SockType, VsockAddr, bind, listen, socket},
};
use tokio_util::task::TaskTracker;
use tokio_vsock::{VsockListener, VsockStream};

use super::{
    AcceptPause, BACKLOG, BindError, Listen,
    claims::{Claim, Claims},
};
use footbridge_processes::sys;

/// What the kernel holds of one connection's unread bytes: two of the largest requests.
const WINDOW: u64 = 2 * 1024 * 1024;

/// The ports that this harness has bound. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Ports(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bound: Mutex<HashMap<u32, Bound>>,
    tasks: TaskTracker,
    accept_pause: AcceptPause,
}

impl Default for Shared {
    fn default() -> Self {
        Self { bound: Mutex::default(), tasks: TaskTracker::default(), accept_pause: AcceptPause::new("vsock") }
    }
}

#[derive(Debug)]
struct Bound {
    endpoint: VsockEndpoint,
    /// The descriptor that it was inherited as.
    inherited: Option<RawFd>,
    claims: Arc<Claims<VsockStream>>,
}

/// A session's claim on the connections of one machine to one port.
#[derive(Debug)]
pub(super) struct VsockClaim {
    endpoint: VsockEndpoint,
    claim: Claim<VsockStream>,
}

impl VsockClaim {
    pub(super) fn endpoint(&self) -> VsockEndpoint {
        self.endpoint
    }

    /// The next connection, with the context id and the port it came from.
    pub(super) async fn next(&self) -> (VsockStream, u32, u32) {
        let (stream, port) = self.claim.next().await;
        (stream, self.claim.cid(), port)
    }
}

impl Ports {
    /// Claims the connections of a machine to a port, and binds it where that is not done yet.
    pub(super) fn bind(&self, vsock: &VsockEndpoint, peer_cid: Option<u32>) -> Result<VsockClaim, BindError> {
        let endpoint = Endpoint::Vsock(*vsock);
        let cid = check_peer(&endpoint, peer_cid)?;
        let mut bound = self.0.bound();
        if let Some(there) = bound.get(&vsock.port) {
            return there.claim(*vsock, cid);
        }
        let socket = bound_socket(vsock).map_err(|(step, errno)| refused(&endpoint, step, errno))?;
        let io = |source| BindError::Io { endpoint: endpoint.clone(), source };
        self.serve(&mut bound, *vsock, socket, cid).map_err(io)
    }

    /// Takes over an inherited socket, by its number, that listens at this address already; what `listen` names it by
    /// is what it is called in errors.
    pub(super) fn adopt(
        &self,
        listen: &Listen,
        number: RawFd,
        socket: BorrowedFd<'_>,
        address: VsockAddr,
    ) -> Result<VsockClaim, BindError> {
        let endpoint = &listen.endpoint;
        let cid = check_peer(endpoint, listen.peer_cid)?;
        let io = |source| BindError::Io { endpoint: endpoint.clone(), source };
        let vsock = VsockEndpoint { cid: address.cid().into(), port: address.port() };
        let mut bound = self.0.bound();
        match bound.get(&vsock.port) {
            Some(there) if there.inherited == Some(number) => return there.claim(vsock, cid),
            Some(_) => return Err(BindError::InUse(endpoint.clone())),
            None => {}
        }
        let socket = socket.try_clone_to_owned().map_err(io)?;
        sys::set_vsock_window(&socket, WINDOW).map_err(|errno| io(errno.into()))?;
        let claim = self.serve(&mut bound, vsock, socket, cid).map_err(io)?;
        bound.entry(vsock.port).and_modify(|there| there.inherited = Some(number));
        Ok(claim)
    }

    fn serve(
        &self,
        bound: &mut HashMap<u32, Bound>,
        vsock: VsockEndpoint,
        socket: OwnedFd,
        cid: u32,
    ) -> io::Result<VsockClaim> {
        // Where this is not possible the next line would panic.
        drop(sys::watched(socket.try_clone()?)?);
        let socket = VsockListener::from(socket);
        let claims = Arc::new(Claims::default());
        let claim = claims.claim(cid).ok_or(io::ErrorKind::AlreadyExists)?;
        bound.insert(vsock.port, Bound { endpoint: vsock, inherited: None, claims: Arc::clone(&claims) });
        let port = Port { socket: Some(socket), number: vsock.port, claims, shared: Arc::clone(&self.0) };
        self.0.tasks.spawn(port.accept());
        warn_of_own(&vsock, cid);
        Ok(VsockClaim { endpoint: vsock, claim })
    }

    /// Waits until no port is bound any more.
    pub(super) async fn released(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

impl Shared {
    fn bound(&self) -> MutexGuard<'_, HashMap<u32, Bound>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bound {
    fn claim(&self, wanted: VsockEndpoint, cid: u32) -> Result<VsockClaim, BindError> {
        let endpoint = Endpoint::Vsock(wanted);
        if wanted.cid.to_listen() != self.endpoint.cid.to_listen() {
            return Err(BindError::OtherAddress { endpoint, bound: Endpoint::Vsock(self.endpoint) });
        }
        let claim = self.claims.claim(cid).ok_or(BindError::CidTaken { endpoint, cid })?;
        warn_of_own(&wanted, cid);
        Ok(VsockClaim { endpoint: wanted, claim })
    }
}

/// A bound port, in its task. Dropping it closes the socket and takes it out of the table.
struct Port {
    socket: Option<VsockListener>,
    number: u32,
    claims: Arc<Claims<VsockStream>>,
    shared: Arc<Shared>,
}

impl Port {
    async fn accept(mut self) {
        while let Some(socket) = &self.socket {
            tokio::select! {
                () = self.claims.unclaimed() => self.release_if_unclaimed(),
                accepted = socket.accept() => match accepted {
                    Ok((stream, from)) => {
                        self.shared.accept_pause.is_over();
                        self.claims.hand_over(stream, from.cid(), from.port());
                    }
                    Err(error) => self.shared.accept_pause.wait_after(error.into()).await,
                },
            }
        }
    }

    fn release_if_unclaimed(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut bound = shared.bound();
        if self.claims.is_unclaimed() {
            self.release(&mut bound);
        }
    }

    fn release(&mut self, bound: &mut HashMap<u32, Bound>) {
        if self.socket.take().is_some() {
            bound.remove(&self.number);
        }
    }
}

impl Drop for Port {
    /// For a runtime that ends with the port still claimed.
    fn drop(&mut self) {
        let shared = Arc::clone(&self.shared);
        self.release(&mut shared.bound());
    }
}

/// The context id that a session claims.
fn check_peer(endpoint: &Endpoint, peer_cid: Option<u32>) -> Result<u32, BindError> {
    match peer_cid {
        None => Err(BindError::NoPeerCid(endpoint.clone())),
        Some(cid @ (0 | u32::MAX)) => Err(BindError::NoSuchPeer { endpoint: endpoint.clone(), cid }),
        Some(cid) => Ok(cid),
    }
}

/// Says so where this machine itself may come in.
fn warn_of_own(vsock: &VsockEndpoint, cid: u32) {
    if matches!(cid, 1 | 2) {
        let endpoint = Endpoint::Vsock(*vsock);
        tracing::warn!(%endpoint, cid, "every user of this machine can connect there; only the token holds them off");
    }
}

/// What was asked of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Socket,
    Bind,
    Listen,
}

fn bound_socket(vsock: &VsockEndpoint) -> Result<OwnedFd, (Step, Errno)> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let at = |step| move |errno| (step, errno);
    let socket = socket(AddressFamily::Vsock, SockType::Stream, flags, None).map_err(at(Step::Socket))?;
    let address = VsockAddr::new(vsock.cid.to_listen(), vsock.port);
    bind(socket.as_raw_fd(), &address).map_err(at(Step::Bind))?;
    // Connections have the window of the socket that they came by.
    sys::set_vsock_window(&socket, WINDOW).map_err(at(Step::Listen))?;
    let backlog = Backlog::new(BACKLOG.cast_signed()).map_err(at(Step::Listen))?;
    listen(&socket, backlog).map_err(at(Step::Listen))?;
    Ok(socket)
}

fn refused(endpoint: &Endpoint, step: Step, errno: Errno) -> BindError {
    let next = match (step, errno) {
        (_, Errno::EADDRINUSE) => return BindError::InUse(endpoint.clone()),
        (Step::Socket, Errno::EAFNOSUPPORT | Errno::ESOCKTNOSUPPORT | Errno::EPROTONOSUPPORT) => {
            "this kernel has no vsock; load it with modprobe vhost_vsock, or listen on vsock-mux:PATH:PORT or unix:PATH"
        }
        (_, Errno::ENODEV | Errno::ENXIO) => {
            "no transport for vsock is there; load one with modprobe vhost_vsock, or listen on vsock-mux:PATH:PORT"
        }
        (Step::Socket, Errno::EPERM | Errno::EACCES) => {
            "this process may not use vsock, as is usual in containers; run it outside, or listen on unix:PATH"
        }
        (Step::Bind, Errno::EACCES | Errno::EPERM) => {
            "ports up to 1023 need CAP_NET_BIND_SERVICE; choose a higher one, as in vsock:any:7179"
        }
        (Step::Bind, Errno::EADDRNOTAVAIL) => "that context id is not this machine's; write vsock:any:PORT",
        _ => return BindError::Io { endpoint: endpoint.clone(), source: errno.into() },
    };
    BindError::Vsock { endpoint: endpoint.clone(), source: errno.into(), next }
}

#[cfg(test)]
mod tests;
