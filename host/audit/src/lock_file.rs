//! Files that are locked while something lives or is written: opened without following a link, for this user alone.
//!
//! A lock ends with its [`LockFile`], and with the process, however that ends.

use std::{
    fs::{File, OpenOptions},
    io,
    ops::{Deref, DerefMut},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
    libc::{O_CLOEXEC, O_NOFOLLOW},
};

/// A file, locked.
#[derive(Debug)]
pub struct LockFile(Flock<File>);

/// Why a file is not locked.
#[derive(Debug, thiserror::Error)]
pub enum NotLocked {
    /// Somebody else has it locked: the file, to look into.
    #[error("another process has it locked")]
    Held(File),
    /// The file system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<NotLocked> for io::Error {
    fn from(error: NotLocked) -> Self {
        match error {
            NotLocked::Held(_) => Errno::EWOULDBLOCK.into(),
            NotLocked::Io(error) => error,
        }
    }
}

impl LockFile {
    /// Opens a file, made where it is missing, and locks it, if nobody else has.
    ///
    /// # Errors
    /// [`NotLocked`].
    pub fn take(path: &Path) -> Result<Self, NotLocked> {
        Self::lock(open(path)?)
    }

    /// As [`Self::take`], and tries for so long, with pauses like this.
    ///
    /// # Errors
    /// When it cannot be opened or locked, or somebody else has it all that time.
    pub fn take_in_time(path: &Path, time: Duration, pause: Duration) -> io::Result<Self> {
        Self::lock_in_time(open(path)?, time, pause)
    }

    /// As [`Self::take`], and waits for as long as somebody else has it.
    ///
    /// # Errors
    /// When it cannot be opened or locked.
    pub fn wait_for(path: &Path) -> io::Result<Self> {
        Flock::lock(open(path)?, FlockArg::LockExclusive).map(Self).map_err(|(_, errno)| errno.into())
    }

    /// Locks an open file, if nobody else has.
    ///
    /// # Errors
    /// [`NotLocked`].
    pub fn lock(file: File) -> Result<Self, NotLocked> {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(locked) => Ok(Self(locked)),
            Err((file, Errno::EWOULDBLOCK)) => Err(NotLocked::Held(file)),
            Err((_, errno)) => Err(NotLocked::Io(errno.into())),
        }
    }

    /// Locks an open file, and tries for so long, with pauses like this.
    ///
    /// # Errors
    /// When it cannot be locked, or somebody else has it all that time.
    pub fn lock_in_time(mut file: File, time: Duration, pause: Duration) -> io::Result<Self> {
        let since = Instant::now();
        loop {
            match Self::lock(file) {
                Ok(locked) => return Ok(locked),
                Err(NotLocked::Held(back)) => file = back,
                Err(NotLocked::Io(error)) => return Err(error),
            }
            if since.elapsed() >= time {
                break;
            }
            thread::sleep(pause);
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "another process keeps it locked"))
    }
}

impl Deref for LockFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for LockFile {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(O_NOFOLLOW | O_CLOEXEC);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_refused_until_the_first_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = LockFile::take(&path).unwrap();
        assert!(matches!(LockFile::take(&path).unwrap_err(), NotLocked::Held(_)));
        let error = LockFile::take_in_time(&path, Duration::from_millis(2), Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(first);
        LockFile::wait_for(&path).unwrap();
    }
}
