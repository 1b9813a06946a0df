//! Files whose names others may have written, opened to be read: regular ones alone.
//!
//! Opening does something by itself to all others: a writer that waits at a pipe goes on, a device does what its driver
//! does, a terminal becomes the process's own. So what is there is held first, looked at, and only then opened, as what was
//! looked at.
//!
//! Failure: the kernel's reason, or that it is no regular file.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open, openat};

/// Opens a regular file, by whatever links, and says what the kernel says of it.
///
/// # Errors
/// Also where it is anything else.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    let held = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    opened(held)?.ok_or_else(|| io::Error::other("it is no regular file"))
}

/// Opens a regular file in this folder; nothing where it is anything else, as a link.
pub(crate) fn open_regular_in(folder: &impl AsFd, name: &str) -> io::Result<Option<File>> {
    let held = openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    Ok(opened(held)?.map(|(file, _)| file))
}

fn opened(held: OwnedFd) -> io::Result<Option<(File, Metadata)>> {
    let held = File::from(held);
    let meta = held.metadata()?;
    if !meta.is_file() {
        return Ok(None);
    }
    let by_number = format!("/proc/self/fd/{}", held.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(Some((File::from(open(by_number, flags, Mode::empty())?), meta)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use super::*;

    #[test]
    fn nobody_who_waits_at_a_pipe_hears_of_it() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::write(at("file"), "text").unwrap();
        symlink("file", at("link")).unwrap();
        let pipe = at("pipe");
        let writer = std::thread::spawn(move || File::options().write(true).open(pipe));
        for _ in 0..20 {
            assert!(open_regular(&at("pipe")).unwrap_err().to_string().contains("no regular file"));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!writer.is_finished(), "its open was answered");
        assert!(open_regular(Path::new("/dev/null")).is_err() && open_regular(place.path()).is_err());
        let folder = File::open(place.path()).unwrap();
        let is_there = |name: &str| open_regular_in(&folder, name).unwrap().is_some();
        assert_eq!(["pipe", "link", "file"].map(is_there), [false, false, true]);
        assert!(!writer.is_finished() && open_regular_in(&folder, "none").is_err());
        let mut text = String::new();
        open_regular(&at("link")).unwrap().0.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        File::open(at("pipe")).unwrap();
        writer.join().unwrap().unwrap();
    }
}
