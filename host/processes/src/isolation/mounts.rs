//! What the sandbox sees of the file system: the host's, less what is hidden under empty read-only mounts.
//!
//! Every hidden thing is opened before anything is mounted and then mounted on through its descriptor, so that neither
//! links nor the order of mounts can lead elsewhere. The session's folder is opened before it is hidden, too, and
//! mounted again at its place inside the empty folder.
//!
//! The folders above a hidden one become mounts where the command could rename them; so a rename across such a folder's
//! edge is "cross-device" inside, which costs `mv` a copy.
//!
//! What this process may not reach, with its capabilities still in hand, the command may not reach either: it is
//! passed over.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::Mode;
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{AccessFlags, access};

use super::Isolation;
use crate::refusal::{StartRefusal, Step};

/// Where the empty file is made that covers hidden ones. It is a folder in the private /proc, which always has it.
const SCRATCH: &str = "/proc/sys";

/// Folders that become the sandbox's own, so that nothing of the host's is left in them to hide.
const PRIVATE: [&str; 2] = ["/proc", TERMINALS];

/// Where terminals are.
const TERMINALS: &str = "/dev/pts";

/// Something of the host, held open from before it was covered.
struct Held {
    path: PathBuf,
    fd: OwnedFd,
}

impl Held {
    /// Opens a path without links in it.
    fn open(path: PathBuf) -> nix::Result<Self> {
        let fd = open(&path, OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW, Mode::empty())?;
        Ok(Self { path, fd })
    }

    /// A path to it that works also when it is covered.
    fn through_descriptor(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_fd().as_raw_fd()))
    }
}

/// Where the path leads to; nothing if it is not there or not to be reached.
fn resolve(path: &Path) -> nix::Result<Option<PathBuf>> {
    let error = match path.canonicalize() {
        Ok(real) => return Ok(Some(real)),
        Err(error) => errno_of(&error),
    };
    match error {
        Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES | Errno::EPERM => Ok(None),
        other => Err(other),
    }
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}

fn named(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn hiding(path: &Path) -> impl FnOnce(Errno) -> StartRefusal {
    StartRefusal::at(Step::Hidden(named(path)))
}

fn showing(path: &Path) -> impl FnOnce(Errno) -> StartRefusal {
    StartRefusal::at(Step::Shown(named(path)))
}

/// Builds the view, as the first process of new namespaces.
pub(super) fn build_view(isolation: &Isolation) -> Result<(), StartRefusal> {
    nix::unistd::chdir("/").map_err(StartRefusal::at(Step::Propagation))?;
    mount_plain(None, Path::new("/"), None, MsFlags::MS_REC | MsFlags::MS_PRIVATE)
        .map_err(StartRefusal::at(Step::Propagation))?;
    let shown = Path::new(&isolation.shown);
    let real = resolve(shown).and_then(|real| real.ok_or(Errno::ENOENT)).map_err(showing(shown))?;
    let hidden = paths_to_hide(&isolation.hidden_folders, &isolation.hidden_files)?;
    pin_ancestors(&hidden)?;
    let shown = Held::open(real).map_err(showing(shown))?;
    let (folders, files): (Vec<_>, Vec<_>) = hidden.into_iter().partition(|path| path.is_dir());
    let (folders, files) = (hold(folders)?, hold(files)?);
    mount_own_kernel_views()?;
    cover_files(&files)?;
    for folder in &folders {
        mount_empty(&folder.through_descriptor()).map_err(hiding(&folder.path))?;
    }
    show_again(&shown).map_err(showing(&shown.path))?;
    for folder in folders.iter().filter(|folder| folder.path != shown.path) {
        let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | closed();
        mount_plain(None, &folder.path, None, read_only).map_err(hiding(&folder.path))?;
    }
    Ok(())
}

fn hold(paths: impl IntoIterator<Item = PathBuf>) -> Result<Vec<Held>, StartRefusal> {
    paths.into_iter().map(|path| Held::open(path.clone()).map_err(hiding(&path))).collect()
}

/// What the hidden paths lead to, without what is below others of them. A missing folder is made first.
pub(crate) fn paths_to_hide(folders: &[OsString], files: &[OsString]) -> Result<BTreeSet<PathBuf>, StartRefusal> {
    let mut all = BTreeSet::new();
    for path in folders.iter().map(Path::new) {
        make_folder(path).map_err(hiding(path))?;
        all.extend(resolve(path).map_err(hiding(path))?);
    }
    for path in files.iter().map(Path::new) {
        let real = resolve(path).map_err(hiding(path))?;
        all.extend(real.filter(|real| !PRIVATE.iter().any(|folder| real.starts_with(folder))));
    }
    let is_outermost = |path: &&PathBuf| !path.ancestors().skip(1).any(|above| all.contains(above));
    Ok(all.iter().filter(is_outermost).cloned().collect())
}

/// Makes mounts of the folders above what is hidden, where the command could otherwise rename them: it would put
/// folders of its own at the hidden paths, which the harness would open for ours after that.
fn pin_ancestors(hidden: &BTreeSet<PathBuf>) -> Result<(), StartRefusal> {
    let could_be_renamed =
        |folder: &&Path| folder.parent().is_some_and(|above| access(above, AccessFlags::W_OK).is_ok());
    let pins: BTreeSet<&Path> =
        hidden.iter().flat_map(|path| path.ancestors().skip(1)).filter(could_be_renamed).collect();
    for pin in pins {
        mount(Some(pin), pin, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>).map_err(hiding(pin))?;
    }
    Ok(())
}

/// Makes a missing folder, unless this user could not: then the command cannot make it either.
fn make_folder(path: &Path) -> nix::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Ok(()) => Ok(()),
        Err(error) => match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Ok(()),
            _ => Err(errno_of(&error)),
        },
    }
}

/// /proc shows only the sandbox's processes, /dev/pts only its terminals.
fn mount_own_kernel_views() -> Result<(), StartRefusal> {
    let nothing_special = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount_plain(Some("proc"), Path::new("/proc"), None, nothing_special).map_err(StartRefusal::at(Step::Proc))?;
    if !Path::new(TERMINALS).is_dir() {
        return Ok(());
    }
    let devices = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = Some("newinstance,ptmxmode=0666,mode=620");
    mount_plain(Some("devpts"), Path::new(TERMINALS), options, devices).map_err(StartRefusal::at(Step::Terminals))
}

/// Covers each file with an empty one, which has no other name.
fn cover_files(files: &[Held]) -> Result<(), StartRefusal> {
    let Some(first) = files.first() else { return Ok(()) };
    let scratch = Path::new(SCRATCH);
    let empty = scratch.join("empty");
    mount_empty(scratch).map_err(hiding(&first.path))?;
    let made = File::create(&empty).map_err(StartRefusal::io_at(Step::Hidden(named(&first.path))))?;
    drop(made);
    for file in files {
        bind_read_only(&empty, &file.through_descriptor(), &file.path).map_err(hiding(&file.path))?;
    }
    umount2(scratch, MntFlags::MNT_DETACH).map_err(hiding(&first.path))
}

fn show_again(shown: &Held) -> nix::Result<()> {
    // Below a hidden folder this is now an empty place; elsewhere it exists.
    DirBuilder::new().recursive(true).mode(0o755).create(&shown.path).map_err(|error| errno_of(&error))?;
    bind_read_only(&shown.through_descriptor(), &shown.path, &shown.path)
}

fn closed() -> MsFlags {
    MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC
}

fn mount_empty(target: &Path) -> nix::Result<()> {
    mount_plain(Some("tmpfs"), target, Some("mode=0755,size=64k,nr_inodes=64"), closed())
}

/// Binds `source` over `target`, which can then be reached as `path`. Flags that the source's mount has must stay:
/// the kernel refuses to lift them.
fn bind_read_only(source: &Path, target: &Path, path: &Path) -> nix::Result<()> {
    mount(Some(source), target, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)?;
    let has = statvfs(path)?.flags();
    let mut flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    let pairs = [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
    ];
    for (is, keep) in pairs {
        if has.contains(is) {
            flags |= keep;
        }
    }
    mount_plain(None, path, None, flags)
}

fn mount_plain(kind: Option<&str>, target: &Path, options: Option<&str>, flags: MsFlags) -> nix::Result<()> {
    mount(kind, target, kind, flags, options)
}
