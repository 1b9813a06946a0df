//! Files and folders that are held open, so that no link and no mount over them leads elsewhere.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

use crate::refusal::{StartRefusal, Step};

/// A file or folder, held open.
pub(super) struct Held {
    pub(super) fd: OwnedFd,
}

impl Held {
    /// A path to it that works also when it is covered.
    pub(super) fn through_descriptor(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_fd().as_raw_fd()))
    }
}

/// Opens a path without links in it.
pub(super) fn open(path: &Path) -> Result<Held, StartRefusal> {
    try_open(path).map_err(StartRefusal::at(of(path)))
}

/// As [`open`], with the kernel's reason alone.
pub(super) fn try_open(path: &Path) -> nix::Result<Held> {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    Ok(Held { fd: openat2(AT_FDCWD, path, how)? })
}

/// Opens a link itself; there is none on the way to it.
pub(super) fn open_link(path: &Path) -> Result<Held, StartRefusal> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    Ok(Held { fd: openat2(AT_FDCWD, path, how).map_err(StartRefusal::at(of(path)))? })
}

/// The step that a path is about.
pub(super) fn of(path: &Path) -> Step {
    Step::File(path.to_string_lossy().into_owned())
}
