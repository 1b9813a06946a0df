//! Socket files of this machine that a command could connect to, by whatever name they are found: the kernel's list knows
//! only the name that one was bound by, which may be relative or gone, and only those of this network namespace.
//!
//! So folders are looked through, too, in so many turns: each gets as many as its neighbours, and in one turn no more than
//! so much is read of it, so that one that is full, of others or of anything else, leaves them their share. What is further
//! down or further on, or in a file system that may not answer, is not found.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ffi::{CStr, OsStr};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt as _};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::libc::{EACCES, ECONNREFUSED, ELOOP, ENOENT, ENOTDIR};
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, RawDir, SeekFrom, accessat, open, seek, statat};

use crate::mount_table::MountTable;

use super::files::MAX_COVERED;
use super::places::{KERNEL, PRIVATE, SOCKETS, is_built_or_fetched};

/// Turns at the folders in one that is named.
const MAX_FOLDERS: usize = 8_192;
/// Those of them at what was built or fetched: the first of it, from the top.
const MAX_BUILT: usize = 512;
/// And at all others together.
const MAX_OTHERS: usize = 4_096;
/// Entries that are read of a folder in one turn: of most, all.
const ENTRIES: usize = 1_024;
/// Bytes of entries that the kernel gives at a time.
const BUFFER: usize = 32 * 1024;
/// How long those others may take: a start waits for it.
const OTHERS_TIME: Duration = Duration::from_secs(1);
/// Sockets that are looked for in one folder: one more than are covered, so that it is seen to have too many.
const MAX_IN_ONE: usize = MAX_COVERED + 1;

/// Closed folders below one that is named: an earlier command may have left very many.
const MAX_CLOSED: usize = 100;

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

/// What was found in folders.
#[derive(Debug, Default)]
pub struct FoundSockets {
    /// The sockets that somebody has bound.
    pub sockets: BTreeSet<PathBuf>,
    /// Folders below those that were named which this user may not list or not search, but could open for itself.
    pub closed: Vec<PathBuf>,
    /// Folders that were named and hold more than is looked through, or very many that are closed.
    pub cut: Vec<PathBuf>,
}

/// The sockets that somebody has bound, which the command could connect to.
#[must_use]
pub fn in_reach(reach: Reach<'_>) -> FoundSockets {
    let mut all = below(reach.named);
    all.sockets.extend(bound());
    let mounts = MountTable::read();
    let fixed = KERNEL.iter().chain(&PRIVATE).chain(&SOCKETS).chain(&PACKAGED).map(Path::new);
    let named = reach.layered.into_iter().chain(reach.named.iter().map(PathBuf::as_path));
    let elsewhere: HashSet<&Path> = mounts.of_types(&PASSED_OVER).chain(fixed).chain(named).collect();
    let is_elsewhere = |path: &Path| elsewhere.contains(path);
    // A layer is over one file system.
    let inside = reach.layered.into_iter().flat_map(|home| mounts.below(home)).filter(|at| !is_elsewhere(at));
    let roots = [PathBuf::from("/")].into_iter().chain(inside);
    let mut walk = Walk::new([MAX_OTHERS, ENTRIES], Some(Instant::now() + OTHERS_TIME), &is_elsewhere);
    walk.through(roots);
    all.sockets.extend(walk.found);
    all
}

/// The sockets that somebody has bound and that show where these files and folders are mounted.
#[must_use]
pub fn within(sources: &[PathBuf]) -> FoundSockets {
    let is_packaged = |path: &Path| PACKAGED.iter().any(|place| path.starts_with(place));
    let looked_at: Vec<PathBuf> = sources.iter().filter(|source| !is_packaged(source)).cloned().collect();
    let mut all = below_but_for(&looked_at, &is_packaged);
    let is_within = |path: &PathBuf| sources.iter().any(|source| path.starts_with(source));
    let themselves = sources.iter().filter(|source| is_socket(source) && is_bound(source)).cloned();
    all.sockets.extend(themselves.chain(bound().into_iter().filter(is_within)));
    all
}

/// The sockets below these folders that somebody has bound.
#[must_use]
pub fn below(folders: &[PathBuf]) -> FoundSockets {
    below_but_for(folders, &|_| false)
}

fn below_but_for(folders: &[PathBuf], is_elsewhere: &dyn Fn(&Path) -> bool) -> FoundSockets {
    let mut all = FoundSockets::default();
    for folder in folders {
        let mut walk = Walk::new([MAX_FOLDERS, ENTRIES], None, is_elsewhere);
        walk.through([folder.clone()]);
        let mut closed = walk.closed.into_iter().filter(|path| is_own(path));
        all.closed.extend(closed.by_ref().take(MAX_CLOSED));
        let is_cut = walk.is_cut || closed.next().is_some();
        all.cut.extend(is_cut.then(|| folder.clone()));
        all.sockets.extend(walk.found);
    }
    all
}

/// Looks through folders.
struct Walk<'a> {
    /// Turns in all.
    most: usize,
    /// Entries in one turn.
    entries: usize,
    until: Option<Instant>,
    is_elsewhere: &'a dyn Fn(&Path) -> bool,
    turns: usize,
    found: Vec<PathBuf>,
    /// Folders that may not be listed or not searched.
    closed: Vec<PathBuf>,
    /// Whether there is more than was looked through, but for what was built or fetched.
    is_cut: bool,
    /// That comes last; none where it is its turn.
    later: Option<VecDeque<Ahead>>,
}

/// A folder that is to be looked through: what of it was not read yet, and, by turns with that, what is in it.
struct Ahead {
    path: PathBuf,
    /// Where it is read from, as the kernel counts; none where it was read to its end.
    unread: Option<u64>,
    /// Whether its last turn was at itself.
    was_read: bool,
    /// Sockets in it that were found.
    sockets: usize,
    inner: VecDeque<Ahead>,
}

impl Ahead {
    fn new(path: PathBuf) -> Self {
        Self { path, unread: Some(0), was_read: false, sockets: 0, inner: VecDeque::new() }
    }

    fn is_done(&self) -> bool {
        self.unread.is_none() && self.inner.is_empty()
    }

    /// Whether its turn is at itself, and from where it is read then.
    fn take_turn(&mut self) -> Option<u64> {
        let is_inners = self.was_read && !self.inner.is_empty();
        self.was_read = !is_inners && self.unread.is_some();
        if self.was_read { self.unread.take() } else { None }
    }
}

impl<'a> Walk<'a> {
    fn new([most, entries]: [usize; 2], until: Option<Instant>, is_elsewhere: &'a dyn Fn(&Path) -> bool) -> Self {
        let later = Some(VecDeque::new());
        Self {
            most,
            entries,
            until,
            is_elsewhere,
            turns: 0,
            found: Vec::new(),
            closed: Vec::new(),
            is_cut: false,
            later,
        }
    }

    fn through(&mut self, roots: impl IntoIterator<Item = PathBuf>) {
        let mut ahead = roots.into_iter().map(Ahead::new).collect();
        self.is_cut = !self.all(&mut ahead);
        let mut later = self.later.take().unwrap_or_default();
        self.most = self.most.min(self.turns + MAX_BUILT);
        self.all(&mut later);
    }

    /// Whether there were not too many.
    fn all(&mut self, ahead: &mut VecDeque<Ahead>) -> bool {
        while !ahead.is_empty() {
            if self.turns == self.most || self.until.is_some_and(|until| Instant::now() >= until) {
                return false;
            }
            self.turn(ahead);
        }
        true
    }

    /// One turn, of the first in the row, which is the last then.
    fn turn(&mut self, ahead: &mut VecDeque<Ahead>) {
        let Some(mut folder) = ahead.pop_front() else { return };
        match folder.take_turn() {
            Some(from) => {
                self.turns += 1;
                folder.unread = match self.read(&mut folder, from) {
                    Ok(unread) => unread,
                    // What cannot be read holds nothing that could be found.
                    Err(error) => {
                        self.closed.extend((error.raw_os_error() == Some(EACCES)).then(|| folder.path.clone()));
                        None
                    }
                };
            }
            None => self.turn(&mut folder.inner),
        }
        if !folder.is_done() {
            ahead.push_back(folder);
        }
    }

    /// Reads on in a folder, and gives where there is more of it.
    fn read(&mut self, folder: &mut Ahead, from: u64) -> io::Result<Option<u64>> {
        let opened = open(&folder.path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        accessat(&opened, c".", Access::EXEC_OK, AtFlags::empty())?;
        if from != 0 {
            seek(&opened, SeekFrom::Start(from))?;
        }
        let mut buffer = Vec::with_capacity(BUFFER);
        let mut entries = RawDir::new(&opened, buffer.spare_capacity_mut());
        let mut next = from;
        for _ in 0..self.entries {
            let Some(entry) = entries.next().transpose()? else { return Ok(None) };
            next = entry.next_entry_cookie();
            let name = entry.file_name();
            let kind = match entry.file_type() {
                FileType::Unknown => kind_of(&opened, name),
                kind => kind,
            };
            self.take(folder, OsStr::from_bytes(name.to_bytes()), kind);
        }
        Ok(Some(next))
    }

    /// Takes what is bound, and the folders, no more of them than could be looked through.
    fn take(&mut self, folder: &mut Ahead, name: &OsStr, kind: FileType) {
        let path = || folder.path.join(name);
        if kind == FileType::Socket && folder.sockets < MAX_IN_ONE && is_bound(&path()) {
            self.found.push(path());
            folder.sockets += 1;
        } else if kind == FileType::Directory && folder.inner.len() < self.most && name != "." && name != ".." {
            let path = path();
            match &mut self.later {
                _ if (self.is_elsewhere)(&path) => {}
                Some(later) if is_built_or_fetched(name) => later.push_back(Ahead::new(path)),
                _ => folder.inner.push_back(Ahead::new(path)),
            }
        }
    }
}

/// Where the file system does not say with the entry what it is.
fn kind_of(folder: &OwnedFd, name: &CStr) -> FileType {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    found.map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode))
}

/// Whether a program has this socket and this user could connect to it. Nobody hears of the question: the kernel looks for
/// the socket before it says that a datagram is not what it takes, and tells of no connection where it is.
fn is_bound(path: &Path) -> bool {
    match connect(path) {
        Ok(()) => true,
        Err(error) => !matches!(error.raw_os_error(), Some(ECONNREFUSED | ENOENT | ENOTDIR | EACCES | ELOOP)),
    }
}

fn is_own(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.uid() == nix::unistd::geteuid().as_raw())
}

fn connect(path: &Path) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    if path.as_os_str().len() < MAX_PATH {
        return socket.connect(path);
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let folder = open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    socket.connect(Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

/// The socket files of this network namespace at which somebody listens now, by the names that they were bound by.
fn bound() -> Vec<PathBuf> {
    let text = fs::read("/proc/net/unix").unwrap_or_default();
    text.split(|byte| *byte == b'\n').skip(1).filter_map(bound_path).filter(|path| is_socket(path)).collect()
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
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
        let found = Vec::from_iter(below(&[folder.path().to_owned()]).sockets);
        let mut all = vec![at("another"), at("bound"), at("datagrams"), deep.join("s"), at("second")];
        all.sort();
        assert_eq!(found, all);
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "it was not connected to");
        let reach = Reach { named: &[folder.path().to_owned()], layered: None };
        let found = in_reach(reach).sockets;
        assert!(all.iter().all(|path| found.contains(path)) && !found.contains(&at("left")));
        let by_itself = within(&["another", "file", "left", "none"].map(at)).sockets;
        assert_eq!(Vec::from_iter(by_itself), [at("another")]);
        assert!(within(&[folder.path().to_owned()]).sockets.into_iter().eq(all));
    }

    #[test]
    fn what_was_built_or_fetched_is_looked_through_last_and_is_not_missed_where_there_is_too_much_of_it() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["node_modules/a", "node_modules/b", "of/people"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let _listeners: Vec<_> = ["node_modules/a/s", "of/people/s"]
            .map(|name| UnixListener::bind(folder.path().join(name)).unwrap())
            .into();
        let walked = |most: usize| {
            let nowhere = |_: &Path| false;
            let mut walk = Walk::new([most, 9], None, &nowhere);
            walk.through([folder.path().to_owned()]);
            (walk.found.len(), walk.is_cut)
        };
        assert_eq!([2, 3, 6].map(walked), [(0, true), (1, false), (2, false)]);
    }

    #[test]
    fn what_is_looked_through_has_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let _listeners: Vec<_> =
            ["a", "b", "c"].map(|name| UnixListener::bind(folder.path().join(name).join("s")).unwrap()).into();
        let walk = |most, until, is_elsewhere: &dyn Fn(&Path) -> bool| {
            let mut walk = Walk::new([most, 9], until, is_elsewhere);
            walk.through([folder.path().to_owned()]);
            (walk.found.len(), walk.is_cut)
        };
        assert_eq!(walk(3, None, &|_| false), (2, true));
        assert_eq!(walk(4, None, &|_| false), (3, false));
        assert_eq!(walk(9, None, &|path| path.ends_with("b")), (2, false));
        assert_eq!(walk(9, Some(Instant::now()), &|_| false), (0, true));
    }

    #[test]
    fn a_folder_that_is_full_of_others_leaves_its_neighbours_their_share() {
        let folder = tempfile::tempdir().unwrap();
        (0..40).for_each(|number| fs::create_dir_all(folder.path().join(format!("full/{number}/{number}"))).unwrap());
        let deep = folder.path().join("other/a/b/c");
        fs::create_dir_all(&deep).unwrap();
        let _listener = UnixListener::bind(deep.join("s")).unwrap();
        let mut walk = Walk::new([12, 100], None, &|_| false);
        walk.through([folder.path().to_owned()]);
        assert_eq!(walk.found, [deep.join("s")]);
        assert!(walk.is_cut);
    }

    #[test]
    fn a_folder_that_is_full_of_anything_is_read_by_turns_with_its_neighbours_and_with_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["full/in", "other/a/b/c"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        (0..600).for_each(|number| drop(fs::write(at(&format!("full/{number}")), "")));
        let (near, _far) = (at("other/a/b/c/s"), at("full/in/s"));
        let _listener = UnixListener::bind(&near).unwrap();
        let walked = |most: usize| {
            let nowhere = |_: &Path| false;
            let mut walk = Walk::new([most, 10], None, &nowhere);
            walk.through([folder.path().to_owned()]);
            (walk.found.len(), walk.is_cut, walk.turns)
        };
        // Itself, and then by turns four in the one and as many in the other.
        assert_eq!(walked(9), (1, true, 9));
        let _inside = ["full/s", "full/in/s"].map(|name| UnixListener::bind(at(name)).unwrap());
        // Itself, five in the one, 61 in the other, one in its inner one.
        let (found, is_cut, turns) = walked(100);
        assert!(found == 3 && !is_cut && turns < 75, "{found} {is_cut} {turns}");
    }
}
