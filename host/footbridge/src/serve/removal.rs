//! Removing a folder that somebody hostile may have filled, and may still be filling.
//!
//! However deep it is, it takes a fixed number of descriptors and no stack: folders are flattened, what is in one moves
//! up beside it, and then it is empty. Nothing is followed: every step goes by an open descriptor of a folder.

use std::{
    ffi::OsString,
    fs, io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, OFlag, open, openat, renameat},
    sys::stat::{Mode, fchmod},
    unistd::{UnlinkatFlags, unlinkat},
};

/// Entries that are removed before it is given up: whoever fills it faster than it is emptied would keep us for ever.
const MOST: usize = 1_000_000;

/// Removes a folder and all that is in it.
///
/// # Errors
/// When something in it cannot be removed, or there is no end of it. What is left stays.
pub(super) fn clear(path: &Path) -> io::Result<()> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let top = match open(path, flags, Mode::empty()) {
        Ok(top) => top,
        Err(Errno::ENOTDIR | Errno::ELOOP) => return fs::remove_file(path),
        Err(errno) => return Err(errno.into()),
    };
    let (mut removed, mut moved) = (0_usize, 0_usize);
    loop {
        let names = names(&top)?;
        if names.is_empty() {
            break;
        }
        for name in names {
            removed += 1;
            if removed > MOST {
                return Err(io::Error::other("there is no end of what is in it"));
            }
            match unlinkat(&top, name.as_os_str(), UnlinkatFlags::NoRemoveDir) {
                Ok(()) => continue,
                Err(Errno::EISDIR | Errno::EPERM) => {}
                Err(errno) => return Err(errno.into()),
            }
            let inner = openat(&top, name.as_os_str(), flags, Mode::empty())?;
            // Its owner may have taken the right to change it away.
            fchmod(&inner, Mode::S_IRWXU)?;
            for below in self::names(&inner)? {
                loop {
                    moved += 1;
                    let free = format!("{moved}.moved");
                    match renameat(&inner, below.as_os_str(), &top, free.as_str()) {
                        Ok(()) => break,
                        // Somebody has thought of that name too.
                        Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::EISDIR | Errno::ENOTDIR) if moved < MOST => {}
                        Err(errno) => return Err(errno.into()),
                    }
                }
            }
            match unlinkat(&top, name.as_os_str(), UnlinkatFlags::RemoveDir) {
                // Something came meanwhile: the next round takes it.
                Ok(()) | Err(Errno::ENOTEMPTY | Errno::EEXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    Ok(unlinkat(AT_FDCWD, path, UnlinkatFlags::RemoveDir)?)
}

/// What is in an open folder.
fn names(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    let entries = fs::read_dir(format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd()))?;
    entries.take(10_000).map(|entry| entry.map(|entry| entry.file_name())).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn thirty_thousand_folders_deep_is_no_trouble() {
        let base = tempfile::tempdir().unwrap();
        let top = base.path().join("top");
        fs::create_dir(&top).unwrap();
        let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut at = open(&top, flags, Mode::empty()).unwrap();
        for _ in 0..30_000 {
            nix::sys::stat::mkdirat(&at, "d", Mode::S_IRWXU).unwrap();
            at = openat(&at, "d", flags, Mode::empty()).unwrap();
        }
        drop(at);
        clear(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn nothing_is_followed_and_folders_without_rights_go_too() {
        let base = tempfile::tempdir().unwrap();
        let (top, kept) = (base.path().join("top"), base.path().join("kept"));
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "x").unwrap();
        symlink(&kept, top.join("a/link")).unwrap();
        symlink(&kept, top.join("link")).unwrap();
        fs::write(top.join("a/b/1.moved"), "x").unwrap();
        clear(&top).unwrap();
        assert!(!top.exists() && kept.join("file").exists());
        let link = base.path().join("link");
        symlink(&kept, &link).unwrap();
        clear(&link).unwrap();
        assert!(kept.join("file").exists() && link.symlink_metadata().is_err());
    }
}
