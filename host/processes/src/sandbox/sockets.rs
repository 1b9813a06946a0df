//! Socket files of this machine that a command could connect to, by whatever name they are found: the kernel's list knows
//! only the name that one was bound by, which may be relative or gone, and only those of this network namespace.
//!
//! So folders are looked through, too, nearest first and so far: what is further down, or in a file system that may not
//! answer, is not found.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::libc::{EACCES, ECONNREFUSED, ELOOP, ENOENT, ENOTDIR};

use crate::mount_table::MountTable;

use super::places::{KERNEL, PRIVATE, SOCKETS};

/// Folders that are looked through in one that is named.
const MAX_FOLDERS: usize = 8_192;
/// And in all others together.
const MAX_OTHERS: usize = 4_096;
/// How long those others may take: a start waits for it.
const OTHERS_TIME: Duration = Duration::from_secs(1);
/// Sockets that are covered, each by a mount.
const MAX_FOUND: usize = 1_000;

/// Where packages put their files, and no program its sockets.
const PACKAGED: [&str; 10] = [
    "/boot",
    "/gnu/store",
    "/nix/store",
    "/snap",
    "/usr/bin",
    "/usr/include",
    "/usr/lib",
    "/usr/sbin",
    "/usr/share",
    "/usr/src",
];
/// Beginnings of names of file systems that may not answer, or that have no sockets.
const PASSED_OVER: [&str; 11] =
    ["9p", "afs", "autofs", "ceph", "cifs", "fuse", "iso9660", "nfs", "smb", "squashfs", "virtiofs"];
/// What a path of a socket may have, with the zero at its end.
const MAX_PATH: usize = 108;

/// What of the host's files the command finds, as far as sockets go.
#[derive(Debug, Clone, Copy)]
pub struct Reach<'a> {
    /// Folders that show as they are, whatever is above them.
    pub named: &'a [PathBuf],
    /// The home folder, if it shows by a layer: no socket in that leads anywhere.
    pub layered: Option<&'a Path>,
}

/// The sockets that somebody has bound, which the command could connect to.
#[must_use]
pub fn in_reach(reach: Reach<'_>) -> Vec<PathBuf> {
    let mut all: BTreeSet<PathBuf> = bound().into_iter().collect();
    all.extend(below(reach.named));
    let mounts = MountTable::read();
    let skipped: BTreeSet<&Path> = mounts.of_types(&PASSED_OVER).collect();
    let is_elsewhere = |path: &Path| {
        let fixed = KERNEL.iter().chain(&PRIVATE).chain(&SOCKETS).chain(&PACKAGED);
        skipped.contains(path)
            || fixed.into_iter().any(|name| path == Path::new(name))
            || reach.layered == Some(path)
            || reach.named.iter().any(|named| named == path)
    };
    // A layer is over one file system.
    let inside = reach.layered.into_iter().flat_map(|home| mounts.below(home)).filter(|at| !is_elsewhere(at));
    let roots = [PathBuf::from("/")].into_iter().chain(inside);
    let until = Instant::now() + OTHERS_TIME;
    all.extend(walk(roots.collect(), MAX_OTHERS, Some(until), &is_elsewhere));
    all.into_iter().take(MAX_FOUND).collect()
}

/// The sockets below these folders that somebody has bound.
#[must_use]
pub fn below(folders: &[PathBuf]) -> Vec<PathBuf> {
    let one = |folder: &PathBuf| walk([folder.clone()].into(), MAX_FOLDERS, None, &|_| false);
    folders.iter().flat_map(one).collect()
}

/// Looks through folders, nearest first.
fn walk(
    mut ahead: VecDeque<PathBuf>,
    most: usize,
    until: Option<Instant>,
    is_elsewhere: &dyn Fn(&Path) -> bool,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut seen = ahead.len();
    while let Some(folder) = ahead.pop_front().filter(|_| until.is_none_or(|until| Instant::now() < until)) {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_socket() && is_bound(&entry.path()) {
                found.push(entry.path());
            } else if kind.is_dir() && seen < most && !is_elsewhere(&entry.path()) {
                seen += 1;
                ahead.push_back(entry.path());
            }
        }
    }
    found
}

/// Whether a program has this socket and this user could connect to it. Nobody hears of the question: the kernel looks for
/// the socket before it says that a datagram is not what it takes, and tells of no connection where it is.
fn is_bound(path: &Path) -> bool {
    match connect(path) {
        Ok(()) => true,
        Err(error) => !matches!(error.raw_os_error(), Some(ECONNREFUSED | ENOENT | ENOTDIR | EACCES | ELOOP)),
    }
}

fn connect(path: &Path) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    if path.as_os_str().len() < MAX_PATH {
        return socket.connect(path);
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let folder = File::open(folder)?;
    socket.connect(Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

/// The socket files of this network namespace at which somebody listens now, by the names that they were bound by.
fn bound() -> Vec<PathBuf> {
    let text = fs::read("/proc/net/unix").unwrap_or_default();
    let is_socket = |path: &PathBuf| fs::metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    text.split(|byte| *byte == b'\n').skip(1).filter_map(bound_path).filter(is_socket).collect()
}

/// The path in a line of `/proc/net/unix`: what follows the seventh column, if it is one.
fn bound_path(line: &[u8]) -> Option<PathBuf> {
    let mut rest = line;
    for _ in 0..7 {
        let start = rest.iter().position(|byte| *byte != b' ')?;
        let end = rest[start..].iter().position(|byte| *byte == b' ')?;
        rest = &rest[start + end..];
    }
    let path = Path::new(OsStr::from_bytes(rest.strip_prefix(b" ")?));
    path.is_absolute().then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_bound_path_is_what_follows_the_seventh_column() {
        let line = b"0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/a b/s";
        assert_eq!(bound_path(line), Some(PathBuf::from("/run/a b/s")));
        assert_eq!(bound_path(b"0: 2 0 1 1 1 12345 @/tmp/.X11-unix/X0"), None);
        assert_eq!(bound_path(b"0: 2 0 1 1 1 12345"), None);
    }

    #[test]
    fn a_socket_that_is_bound_is_found_by_any_name_and_one_that_is_left_behind_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let deep = at(&format!("{0}/{0}", "deep".repeat(20)));
        fs::create_dir_all(&deep).unwrap();
        let listener = UnixListener::bind(at("bound")).unwrap();
        let _datagrams = UnixDatagram::bind(at("datagrams")).unwrap();
        let _others = ["renamed", "deeper"].map(|name| UnixListener::bind(at(name)).unwrap());
        fs::rename(at("renamed"), at("another")).unwrap();
        fs::rename(at("deeper"), deep.join("s")).unwrap();
        fs::hard_link(at("bound"), at("second")).unwrap();
        drop(UnixListener::bind(at("left")).unwrap());
        fs::write(at("file"), "").unwrap();
        let mut found = below(&[folder.path().to_owned()]);
        found.sort();
        let mut all = vec![at("another"), at("bound"), at("datagrams"), deep.join("s"), at("second")];
        all.sort();
        assert_eq!(found, all);
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "it was not connected to");
        let reach = Reach { named: &[folder.path().to_owned()], layered: None };
        let found = in_reach(reach);
        assert!(all.iter().all(|path| found.contains(path)) && !found.contains(&at("left")));
    }

    #[test]
    fn what_is_looked_through_has_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let _listeners: Vec<_> =
            ["a", "b", "c"].map(|name| UnixListener::bind(folder.path().join(name).join("s")).unwrap()).into();
        let roots = || [folder.path().to_owned()].into();
        assert_eq!(walk(roots(), 3, None, &|_| false).len(), 2);
        assert_eq!(walk(roots(), 9, None, &|path| path.ends_with("b")).len(), 2);
        assert_eq!(walk(roots(), 9, Some(Instant::now()), &|_| false).len(), 0);
    }
}
