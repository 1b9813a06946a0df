//! Unix sockets: their files, and who comes in by them.
//!
//! A socket appears with its final mode and owner and never follows a link: it is made in a closed folder of its own
//! beside its place and renamed into it. One that is already there is replaced only if nobody answers on it. At the
//! end it is removed if it is still ours.
//!
//! The folder may belong to a VMM's user, who is hostile once a guest got out: so it is opened once, and every step
//! goes by that descriptor, by names without a slash, and follows nothing. Whoever can read the folder can hold the lock
//! beside a socket; that of one in the harness's own folders is in the closed one above.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use footbridge_audit::lock_file::{LockFile, NotLocked};
use footbridge_proto::endpoint::{Endpoint, SocketPath};
use nix::{
    errno::Errno,
    fcntl::{AtFlags, OFlag, open, openat, renameat},
    libc,
    sys::{
        socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, listen, socket},
        stat::{FchmodatFlags, FileStat, Mode, fchmod, fchmodat, fstat, fstatat, lstat, mkdirat},
    },
    unistd::{Uid, UnlinkatFlags, fchownat, geteuid, unlinkat},
};
use tokio::net::{UnixListener, UnixStream};

use super::{Access, BACKLOG, BindError, FolderFault, turned_away::TurnedAway};

/// The file of a bound socket; dropping it removes the file if it is still the same one, and then its lock.
#[derive(Debug)]
pub(super) struct SocketFile {
    name: OsString,
    inode: (u64, u64),
    /// Has the folder that it is in.
    lock: SocketLock,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let there = fstatat(&self.lock.folder, &*self.name, AtFlags::AT_SYMLINK_NOFOLLOW);
        if there.is_ok_and(|meta| (meta.st_dev, meta.st_ino) == self.inode) {
            // Somebody else may have removed it just now.
            let _ = unlinkat(&self.lock.folder, &*self.name, UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// Who may come in by a Unix socket, besides this user.
#[derive(Debug)]
pub(super) struct Visitors {
    allowed: Option<BTreeSet<u32>>,
    own: u32,
    turned_away: TurnedAway,
}

impl Visitors {
    pub(super) fn new(access: &Access) -> Self {
        let turned_away = TurnedAway::default();
        Self { allowed: access.allowed_uids.clone(), own: geteuid().as_raw(), turned_away }
    }

    fn may_enter(&self, uid: u32) -> bool {
        uid == self.own || self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&uid))
    }

    /// The next connection of somebody who may come in, with their uid and pid. Others are given to `refuse`.
    pub(super) async fn next(
        &self,
        listener: &UnixListener,
        at: &Endpoint,
        refuse: impl Fn(UnixStream, u32),
    ) -> io::Result<(UnixStream, u32, Option<i32>)> {
        loop {
            let (stream, _) = listener.accept().await?;
            let credentials = stream.peer_cred()?;
            let uid = credentials.uid();
            if self.may_enter(uid) {
                return Ok((stream, uid, credentials.pid()));
            }
            if let Some(count) = self.turned_away.one_more() {
                tracing::warn!(endpoint = %at, uid, count, "connections of users who are not allowed were refused");
            }
            refuse(stream, uid);
        }
    }
}

/// Where the lock of a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockPlace {
    /// In its folder.
    Beside,
    /// In the folder above its own, which is closed to others.
    Above,
}

/// A socket that listens.
#[derive(Debug)]
pub(super) struct BoundSocket {
    pub(super) listener: UnixListener,
    pub(super) file: SocketFile,
}

/// Binds a path, which `endpoint` stands for in errors.
pub(super) fn bind_at(
    endpoint: &Endpoint,
    path: &SocketPath,
    access: &Access,
    place: LockPlace,
) -> Result<BoundSocket, BindError> {
    let io = |source: io::Error| BindError::Io { endpoint: endpoint.clone(), source };
    let at = path.as_path();
    let name = at.file_name().ok_or_else(|| io(io::ErrorKind::InvalidInput.into()))?;
    let folder = Arc::new(open_folder(endpoint, at.parent().unwrap_or(Path::new("/")), access)?);
    let there = || what_is_there(&folder, name).map_err(|errno| io(errno.into()));
    let lock_name = lock_name(at, place);
    let lock = match SocketLock::take(&folder, &lock_name) {
        Ok(lock) => lock,
        Err(NotLocked::Io(source)) => {
            let path = at.with_file_name(lock_name);
            return Err(BindError::Lock { endpoint: endpoint.clone(), path, source });
        }
        Err(NotLocked::Held(_)) => {
            return Err(match there()? {
                There::LiveSocket => BindError::InUse(endpoint.clone()),
                There::Nothing | There::DeadSocket | There::Other(_) => BindError::Locked(endpoint.clone()),
            });
        }
    };
    match there()? {
        There::Nothing | There::DeadSocket => {}
        There::LiveSocket => return Err(BindError::InUse(endpoint.clone())),
        There::Other(what) => return Err(BindError::NotASocket { path: at.to_owned(), what }),
    }
    let made = Aside::make(&folder).map_err(|errno| io(errno.into()))?;
    let (socket, inode) = made.socket(endpoint, access)?;
    renameat(&made.inner, SOCKET, &folder, name).map_err(|errno| io(errno.into()))?;
    drop(made);
    let listener = UnixListener::from_std(socket.into()).map_err(io);
    let file = SocketFile { name: name.to_owned(), inode, lock };
    Ok(BoundSocket { listener: listener?, file })
}

/// Opens a folder in which nobody but this user, root and whom `access` names can change anything. A sticky one such
/// as `/tmp` will do: others cannot remove or rename what is ours there. A link to one is followed only where it is
/// this user's or root's, as `/var/run` is.
fn open_folder(endpoint: &Endpoint, path: &Path, access: &Access) -> Result<OwnedFd, BindError> {
    let io = |errno: Errno| BindError::Io { endpoint: endpoint.clone(), source: errno.into() };
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let folder = match open(path, flags | OFlag::O_NOFOLLOW, Mode::empty()) {
        Err(Errno::ENOTDIR) => {
            let link = lstat(path).map_err(io)?;
            if ![0, geteuid().as_raw()].contains(&link.st_uid) {
                let why = FolderFault::Link(link.st_uid);
                return Err(BindError::UnsafeFolder { path: path.to_owned(), why });
            }
            open(path, flags, Mode::empty()).map_err(io)?
        }
        opened => opened.map_err(io)?,
    };
    let meta = fstat(&folder).map_err(io)?;
    let named = access.owner == Some(meta.st_uid)
        || access.allowed_uids.as_ref().is_some_and(|allowed| allowed.contains(&meta.st_uid));
    let why = if meta.st_uid != 0 && meta.st_uid != geteuid().as_raw() && !named {
        FolderFault::Strangers(meta.st_uid)
    } else if meta.st_mode & 0o022 != 0 && meta.st_mode & 0o1000 == 0 {
        FolderFault::Writable(meta.st_mode & 0o7777)
    } else {
        return Ok(folder);
    };
    Err(BindError::UnsafeFolder { path: path.to_owned(), why })
}

/// The lock of a socket, from its folder.
fn lock_name(path: &Path, place: LockPlace) -> OsString {
    let name = |path: Option<&Path>| path.and_then(Path::file_name).unwrap_or_default().to_owned();
    let mut lock = OsString::new();
    if place == LockPlace::Above {
        // Beside those of sockets in other folders there.
        lock.push("../");
        lock.push(name(path.parent()));
        lock.push(".");
    }
    lock.push(name(Some(path)));
    lock.push(".lock");
    lock
}

/// The lock of a socket, held. Its file goes away with it: whoever opened it before that and locks it then has a file
/// that nobody else comes upon, and looks again.
#[derive(Debug)]
struct SocketLock {
    folder: Arc<OwnedFd>,
    name: OsString,
    lock: LockFile,
}

/// How often a lock is looked for that somebody takes away meanwhile.
const LOOKS: u32 = 16;

impl SocketLock {
    fn take(folder: &Arc<OwnedFd>, name: &OsStr) -> Result<Self, NotLocked> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        for _ in 0..LOOKS {
            let file = openat(folder, name, flags, Mode::S_IRUSR | Mode::S_IWUSR).map_err(io::Error::from)?;
            let owner = fstat(&file).map_err(io::Error::from)?.st_uid;
            if ![0, geteuid().as_raw()].contains(&owner) {
                return Err(NotLocked::Io(io::Error::other(format!(
                    "it is user {owner}'s, who could take it away; remove it, if nothing of theirs listens there"
                ))));
            }
            let lock = LockFile::lock(file.into())?;
            let held = Self { folder: Arc::clone(folder), name: name.to_owned(), lock };
            if held.is_there() {
                return Ok(held);
            }
        }
        Err(NotLocked::Io(io::Error::other("it is made and removed all the time")))
    }

    /// Whether its name still leads to it.
    fn is_there(&self) -> bool {
        let there = fstatat(&self.folder, &*self.name, AtFlags::AT_SYMLINK_NOFOLLOW);
        let (Ok(there), Ok(own)) = (there, fstat(&*self.lock)) else { return false };
        (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)
    }
}

impl Drop for SocketLock {
    fn drop(&mut self) {
        if self.is_there() {
            // The folder's owner may just have removed it.
            let _ = unlinkat(&self.folder, &*self.name, UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// What is where a socket is to be.
enum There {
    Nothing,
    DeadSocket,
    LiveSocket,
    Other(&'static str),
}

fn what_is_there(folder: &OwnedFd, name: &OsStr) -> nix::Result<There> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let there = match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::ENOENT) => return Ok(There::Nothing),
        other => other?,
    };
    Ok(match fstat(&there)?.st_mode & libc::S_IFMT {
        libc::S_IFSOCK if is_dead(&there)? => There::DeadSocket,
        libc::S_IFSOCK => There::LiveSocket,
        libc::S_IFLNK => There::Other("a symbolic link"),
        libc::S_IFDIR => There::Other("a folder"),
        _ => There::Other("no socket"),
    })
}

/// Whether nobody answers on a socket. Only a refusal says so: a full queue, or a socket of another kind, is alive.
fn is_dead(there: &OwnedFd) -> nix::Result<bool> {
    let probe = stream_socket()?;
    match connect(probe.as_raw_fd(), &UnixAddr::new(&by_descriptor(there))?) {
        Ok(()) | Err(Errno::EAGAIN | Errno::EPROTOTYPE) => Ok(false),
        Err(Errno::ECONNREFUSED | Errno::ENOENT) => Ok(true),
        Err(errno) => Err(errno),
    }
}

fn stream_socket() -> nix::Result<OwnedFd> {
    socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)
}

/// A path to what a descriptor stands for, whatever its name is by now. It is short, too.
fn by_descriptor(descriptor: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd()).into()
}

/// What a socket is called until it has its place.
const SOCKET: &str = "s";

/// How many names are tried: each that is there was left by a process that was killed.
const NAMES: u32 = 64;

/// A folder in which nobody else can do anything, in the folder where a socket is to be. Goes away when dropped.
struct Aside<'f> {
    folder: &'f OwnedFd,
    name: String,
    inner: OwnedFd,
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        // Both fail where all went well, or where the folder's owner took it away.
        let _ = unlinkat(&self.inner, SOCKET, UnlinkatFlags::NoRemoveDir);
        let _ = unlinkat(self.folder, self.name.as_str(), UnlinkatFlags::RemoveDir);
    }
}

impl<'f> Aside<'f> {
    fn make(folder: &'f OwnedFd) -> nix::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut tries = NAMES;
        let name = loop {
            let name = format!(".fb{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            match mkdirat(folder, name.as_str(), Mode::S_IRWXU) {
                Ok(()) => break name,
                Err(Errno::EEXIST) if tries > 0 => tries -= 1,
                Err(errno) => return Err(errno),
            }
        };
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let inner = openat(folder, name.as_str(), flags, Mode::empty())?;
        let aside = Self { folder, name, inner };
        // Whoever owns the outer folder may have put another in its place.
        let meta = fstat(&aside.inner)?;
        if meta.st_uid != geteuid().as_raw() || meta.st_mode & 0o077 != 0 {
            return Err(Errno::EPERM);
        }
        Ok(aside)
    }

    /// A socket that listens, with its mode and owner; and which file it is.
    fn socket(&self, endpoint: &Endpoint, access: &Access) -> Result<(OwnedFd, (u64, u64)), BindError> {
        let io = |errno: Errno| BindError::Io { endpoint: endpoint.clone(), source: errno.into() };
        let mode = Mode::from_bits_truncate(access.mode);
        let (socket, meta) = self.bound(mode).map_err(io)?;
        if let Some(owner) = access.owner.filter(|owner| *owner != meta.st_uid) {
            fchownat(&self.inner, SOCKET, Some(Uid::from_raw(owner)), None, AtFlags::AT_SYMLINK_NOFOLLOW)
                .map_err(|errno| BindError::Owner { endpoint: endpoint.clone(), owner, source: errno.into() })?;
        }
        Ok((socket, (meta.st_dev, meta.st_ino)))
    }

    fn bound(&self, mode: Mode) -> nix::Result<(OwnedFd, FileStat)> {
        let socket = stream_socket()?;
        fchmod(&socket, mode)?;
        bind(socket.as_raw_fd(), &UnixAddr::new(&by_descriptor(&self.inner).join(SOCKET))?)?;
        // The file's mode is the socket's less the umask.
        fchmodat(self.inner.as_fd(), SOCKET, mode, FchmodatFlags::FollowSymlink)?;
        listen(&socket, Backlog::new(BACKLOG.cast_signed())?)?;
        let meta = fstatat(&self.inner, SOCKET, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        Ok((socket, meta))
    }
}
