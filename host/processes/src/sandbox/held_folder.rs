//! A folder that a command may write, held by a descriptor from before the command starts: somebody may rename it
//! meanwhile, or put another at its path, and what the command left is in the one that is held.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, fstat, open, openat};

/// A folder, or a single file.
#[derive(Debug)]
pub struct HeldFolder {
    path: PathBuf,
    held: OwnedFd,
}

impl HeldFolder {
    /// Holds what is at this path, which has no links in it.
    ///
    /// # Errors
    /// When it is not there any more.
    pub fn hold(path: &Path) -> io::Result<Self> {
        let held = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path: path.to_owned(), held })
    }

    /// Holds what this path leads to, by whatever links, and says where that is, without any.
    ///
    /// # Errors
    /// When there is nothing, or it is moved meanwhile.
    pub fn hold_by(path: &Path) -> io::Result<Self> {
        let held = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd())).read_link()?;
        let found = Self { path, held };
        if found.is_at(&found.path) { Ok(found) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Which file it is, as `DEVICE:INODE`, in every view of the same file system.
    ///
    /// # Errors
    /// What fstat(2) says.
    pub fn numbers(&self) -> io::Result<String> {
        let held = fstat(&self.held)?;
        Ok(format!("{}:{}", held.st_dev, held.st_ino))
    }

    /// Where it was.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is; nothing where it is removed, or out of what this process sees.
    #[must_use]
    pub fn now(&self) -> Option<PathBuf> {
        if self.is_at(&self.path) {
            return Some(self.path.clone());
        }
        let now = PathBuf::from(format!("/proc/self/fd/{}", self.held.as_raw_fd())).read_link().ok()?;
        Some(now).filter(|now| self.is_at(now))
    }

    /// Whether this path leads to it.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        let Ok(held) = fstat(&self.held) else { return false };
        path.symlink_metadata().is_ok_and(|meta| (meta.dev(), meta.ino()) == (held.st_dev, held.st_ino))
    }

    /// The folder at a path below it, which may have no links in it, as where other things are: it need not be listed.
    pub(super) fn folder_below(&self, below: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = openat(&self.held, ".", flags, Mode::empty())?;
        for part in below.components() {
            let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
            at = openat(&at, name, flags, Mode::empty())?;
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_is_found_where_it_was_moved_to_and_not_what_is_in_its_place() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(at("one/in")).unwrap();
        let held = HeldFolder::hold(&at("one")).unwrap();
        assert_eq!(held.now(), Some(at("one")));
        fs::rename(at("one"), at("two")).unwrap();
        assert_eq!(held.now(), Some(at("two")));
        fs::create_dir(at("one")).unwrap();
        symlink("in", at("two/link")).unwrap();
        assert_eq!((held.now(), held.path()), (Some(at("two")), &*at("one")));
        assert!(held.folder_below(Path::new("in")).is_ok() && held.folder_below(Path::new("")).is_ok());
        for below in ["link", "../one", "/", "missing"] {
            assert!(held.folder_below(Path::new(below)).is_err(), "{below}");
        }
        let by_link = HeldFolder::hold_by(&at("two/link")).unwrap();
        assert_eq!(by_link.path(), at("two/in"));
        let meta = fs::metadata(at("two/in")).unwrap();
        assert_eq!(by_link.numbers().unwrap(), format!("{}:{}", meta.dev(), meta.ino()));
        fs::remove_dir_all(at("two")).unwrap();
        assert_eq!(held.now(), None);
        assert!(HeldFolder::hold_by(&at("two")).is_err());
    }
}
