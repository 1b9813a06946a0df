//! Where guests come in: a Unix socket, or TCP on loopback.
//!
//! A Unix socket appears with its final mode and never follows a link: it is made under another name in the same
//! folder and renamed into place. One that is already there is replaced only if nobody answers on it. At the end it
//! is removed if it is still ours.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io,
    os::fd::OwnedFd,
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll},
};

use footbridge_proto::endpoint::{Endpoint, SocketPath, TcpEndpoint};
use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream},
};

use crate::auth::Peer;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Why nothing can listen there.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Somebody answers on that socket.
    #[error("{0} is in use: another process answers there; stop it, or choose another path")]
    InUse(Endpoint),
    /// There is something else at that path.
    #[error("{} exists and is {what}: it is left as it is; remove it, or choose another path", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// Its folder is not there, or others could change it.
    #[error("the folder {} must be this user's (or root's) and not writable by others", .0.display())]
    UnsafeFolder(PathBuf),
    /// More than this machine could come in.
    #[error("{0} can be reached from other machines: choose a loopback address, as in tcp:127.0.0.1:{port}", port = .0.port)]
    NotLoopback(TcpEndpoint),
    /// The system refuses.
    #[error("cannot listen on {endpoint}: {source}")]
    Io {
        /// Where.
        endpoint: Endpoint,
        /// Why.
        source: io::Error,
    },
}

/// A bound listener.
#[derive(Debug)]
pub enum Listener {
    /// A Unix socket and its file.
    Unix(UnixListener, SocketFile),
    /// TCP on loopback.
    Tcp(TcpListener),
}

/// The file of a bound Unix socket; dropping it removes the file if it is still the same one.
///
/// The lock beside it stays: removing it would let two later processes each hold "the" lock.
#[derive(Debug)]
pub struct SocketFile {
    path: SocketPath,
    inode: (u64, u64),
    _lock: Flock<File>,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let path = self.path.as_path();
        if path.symlink_metadata().is_ok_and(|meta| (meta.dev(), meta.ino()) == self.inode) {
            // Somebody else may have removed it just now.
            let _ = fs::remove_file(path);
        }
    }
}

/// Why nothing was accepted.
#[derive(Debug)]
pub enum AcceptError {
    /// That connection is gone; the next may come.
    Passing(io::Error),
    /// Out of descriptors or memory: wait before the next.
    Exhausted(io::Error),
}

impl From<io::Error> for AcceptError {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM) => Self::Exhausted(error),
            _ => Self::Passing(error),
        }
    }
}

impl Listener {
    /// Binds an endpoint. A Unix socket gets this mode.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind(endpoint: &Endpoint, mode: u32) -> Result<Self, BindError> {
        match endpoint {
            Endpoint::Tcp(tcp) if !tcp.is_loopback() => Err(BindError::NotLoopback(tcp.clone())),
            Endpoint::Tcp(tcp) => bind_tcp(tcp).map(Self::Tcp).map_err(|source| match source.kind() {
                io::ErrorKind::AddrInUse => BindError::InUse(endpoint.clone()),
                _ => BindError::Io { endpoint: endpoint.clone(), source },
            }),
            Endpoint::Unix(path) => bind_unix(path, mode),
            other => Err(BindError::Io { endpoint: other.clone(), source: io::ErrorKind::Unsupported.into() }),
        }
    }

    /// Where it listens; with the port that the system chose.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn endpoint(&self) -> io::Result<Endpoint> {
        match self {
            Self::Unix(_, file) => Ok(Endpoint::Unix(file.path.clone())),
            Self::Tcp(listener) => {
                let address = listener.local_addr()?;
                let host = footbridge_proto::endpoint::TcpHost::Ip(address.ip());
                Ok(Endpoint::Tcp(TcpEndpoint { host, port: address.port() }))
            }
        }
    }

    /// The next connection, and who is at its other end.
    ///
    /// # Errors
    /// [`AcceptError`]; the listener goes on.
    pub async fn accept(&self) -> Result<(Stream, Peer), AcceptError> {
        match self {
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                let credentials = stream.peer_cred()?;
                Ok((Stream::Unix(stream), Peer::Unix { uid: credentials.uid(), pid: credentials.pid() }))
            }
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Stream::Tcp(stream), Peer::Tcp(address)))
            }
        }
    }
}

fn bind_tcp(tcp: &TcpEndpoint) -> io::Result<TcpListener> {
    let address = tcp.primary();
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn lock_path(path: &Path) -> PathBuf {
    path.with_added_extension("lock")
}

fn bind_unix(path: &SocketPath, mode: u32) -> Result<Listener, BindError> {
    let endpoint = Endpoint::Unix(path.clone());
    let io = |source| BindError::Io { endpoint: endpoint.clone(), source };
    let at = path.as_path();
    let folder = at.parent().unwrap_or(Path::new("/"));
    check_folder(folder).map_err(io)?.ok_or_else(|| BindError::UnsafeFolder(folder.to_owned()))?;
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_CLOEXEC | nix::libc::O_NONBLOCK)
        .open(lock_path(at))
        .map_err(io)?;
    let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock).map_err(|_| BindError::InUse(endpoint.clone()))?;
    if let Ok(meta) = at.symlink_metadata() {
        let what = match meta.file_type() {
            kind if kind.is_socket() => None,
            kind if kind.is_symlink() => Some("a symbolic link"),
            kind if kind.is_dir() => Some("a folder"),
            _ => Some("no socket"),
        };
        if let Some(what) = what {
            return Err(BindError::NotASocket { path: at.to_owned(), what });
        }
        if !is_dead(at).map_err(io)? {
            return Err(BindError::InUse(endpoint));
        }
    }
    let (listener, inode) = bind_aside(at, mode).map_err(io)?;
    Ok(Listener::Unix(listener, SocketFile { path: path.clone(), inode, _lock: lock }))
}

/// Whether nobody answers on a socket. Only a refusal says so: a full queue, or a socket of another kind, is alive.
fn is_dead(at: &Path) -> io::Result<bool> {
    let address = nix::sys::socket::UnixAddr::new(at)?;
    let socket = stream_socket()?;
    match nix::sys::socket::connect(std::os::fd::AsRawFd::as_raw_fd(&socket), &address) {
        Ok(()) | Err(Errno::EAGAIN | Errno::EPROTOTYPE) => Ok(false),
        Err(Errno::ECONNREFUSED | Errno::ENOENT) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

fn stream_socket() -> nix::Result<OwnedFd> {
    nix::sys::socket::socket(
        nix::sys::socket::AddressFamily::Unix,
        nix::sys::socket::SockType::Stream,
        nix::sys::socket::SockFlag::SOCK_CLOEXEC | nix::sys::socket::SockFlag::SOCK_NONBLOCK,
        None,
    )
}

/// Makes the socket under another name, gives it its mode, and renames it into place.
fn bind_aside(at: &Path, mode: u32) -> io::Result<(UnixListener, (u64, u64))> {
    let aside = at.with_file_name(format!(".fb{}", std::process::id()));
    // Left by a process with our id that is gone: our lock says that nobody is using it.
    let _ = fs::remove_file(&aside);
    let socket = stream_socket()?;
    nix::sys::stat::fchmod(&socket, nix::sys::stat::Mode::from_bits_truncate(mode))?;
    let address = nix::sys::socket::UnixAddr::new(&aside)?;
    nix::sys::socket::bind(std::os::fd::AsRawFd::as_raw_fd(&socket), &address)?;
    let prepared = (|| {
        fs::set_permissions(&aside, Permissions::from_mode(mode))?;
        nix::sys::socket::listen(&socket, nix::sys::socket::Backlog::new(BACKLOG.cast_signed())?)?;
        let meta = aside.symlink_metadata()?;
        fs::rename(&aside, at)?;
        Ok::<_, io::Error>((meta.dev(), meta.ino()))
    })();
    match prepared {
        Ok(inode) => Ok((UnixListener::from_std(socket.into())?, inode)),
        Err(error) => {
            let _ = fs::remove_file(&aside);
            Err(error)
        }
    }
}

/// Whether nobody but this user and root can change what is in a folder. A sticky folder such as `/tmp` will do:
/// others cannot remove or rename what is ours there.
fn check_folder(folder: &Path) -> io::Result<Option<()>> {
    let meta = folder.metadata()?;
    let trusted = meta.uid() == 0 || meta.uid() == nix::unistd::geteuid().as_raw();
    let closed = meta.mode() & 0o022 == 0 || meta.mode() & 0o1000 != 0;
    Ok((meta.is_dir() && trusted && closed).then_some(()))
}

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// Over a Unix socket.
    Unix(UnixStream),
    /// Over TCP.
    Tcp(TcpStream),
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
