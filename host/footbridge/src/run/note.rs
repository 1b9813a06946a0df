//! What a run notes of itself: which folders its command can write, for whoever looks at what that left where it cannot do so
//! itself.
//!
//! A file below the state folder, `runs/XXXX`, on disk before the command starts: a reset of the machine takes what is in the
//! runtime folder. It is locked as long as the run lives, or anything of its command, whose keeper holds the same lock. Whoever
//! gets the lock is the one to look.
//!
//! It was last changed, as the file says, when the command had not started yet by the clocks of what that can write.
//! Names, each ended by a zero, and a zero at the end. What lacks that was not written whole: its command never started.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::{
            ffi::OsStrExt as _,
            fs::{MetadataExt as _, OpenOptionsExt as _},
        },
    },
    path::{Path, PathBuf},
    time::SystemTime,
};

use footbridge_audit::{
    lock_file::{LockFile, NotLocked},
    private_folder::{FolderError, make_private},
};
use footbridge_core::random::{NoRandomness, random_text};
use footbridge_processes::threads::file_limit;
use nix::libc::O_NOFOLLOW;

use super::told::names_of;
use crate::{composition::SEE_TO_THE_PLACE, report};

/// What was noted cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoteError {
    /// The folder of all notes cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The system has no random bytes.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// The file system refuses.
    #[error(
        "cannot write {}, which names for the next run what this command can write, in case that this one is killed: \
         {source}; {}",
        path.display(),
        file_limit(source).unwrap_or(SEE_TO_THE_PLACE)
    )]
    Io {
        /// The note.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The note of this run. It stays unless it is removed.
#[derive(Debug)]
pub(super) struct Note {
    path: PathBuf,
    writes: Vec<PathBuf>,
    lock: Option<LockFile>,
}

impl Note {
    /// Writes it below this state folder, for what is changed from then on. Nothing where there is nothing to look at.
    pub(super) fn write(state: &Path, writes: &[PathBuf], since: SystemTime) -> Result<Option<Self>, NoteError> {
        if writes.is_empty() {
            return Ok(None);
        }
        let folder = folder(state);
        make_private(&folder)?;
        loop {
            let path = folder.join(random_text::<12>()?);
            let written = Self::write_at(&path, writes, since);
            if let Some(lock) = written.map_err(|source| NoteError::Io { path: path.clone(), source })? {
                return Ok(Some(Self { path, writes: writes.to_owned(), lock: Some(lock) }));
            }
        }
    }

    /// Nothing where another run took it for a dead one's before it was locked.
    fn write_at(path: &Path, writes: &[PathBuf], since: SystemTime) -> io::Result<Option<LockFile>> {
        let mut file = match LockFile::take(path) {
            Err(NotLocked::Held(_)) => return Ok(None),
            taken => taken?,
        };
        if file.metadata()?.nlink() == 0 {
            return Ok(None);
        }
        let mut noted: Vec<u8> = writes.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
        noted.push(0);
        file.write_all(&noted)?;
        file.set_modified(since)?;
        file.sync_all()?;
        File::open(path.parent().unwrap_or(path))?.sync_all()?;
        Ok(Some(file))
    }

    /// For the keeper: as long as this is open anywhere, nobody else looks.
    pub(super) fn duplicate(&self) -> io::Result<Option<OwnedFd>> {
        self.lock.as_ref().map(|lock| Ok(lock.try_clone()?.into())).transpose()
    }

    /// What the command can write, as it is told of.
    pub(super) fn names(&self) -> String {
        names_of(&self.writes)
    }

    /// They were looked at.
    pub(super) fn forget(self) {
        // Where that fails, the next run says once too often that nobody did.
        let _what_was_noted_may_stay = fs::remove_file(&self.path);
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // Its end is to be that of whoever holds it last: letting go of it here would be for all.
        std::mem::forget(self.lock.take());
    }
}

/// The note of a run that has ended without looking, locked.
#[derive(Debug)]
pub(super) struct Left {
    path: PathBuf,
    _lock: LockFile,
    pub(super) writes: Vec<PathBuf>,
    pub(super) since: SystemTime,
}

impl Left {
    /// All of them. Says which cannot be read.
    pub(super) fn all(state: &Path) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(folder(state)) else { return Vec::new() };
        let read = |path: PathBuf| {
            Self::read(&path).unwrap_or_else(|error| {
                report::note(&format!(
                    "footbridge: an earlier run did not look at what its command left, and what that could write cannot be \
                     read: {}: {error}; the next run tries again",
                    path.display()
                ));
                None
            })
        };
        entries.flatten().filter_map(|entry| read(entry.path())).collect()
    }

    /// Nothing where its run lives, or where there is nothing to look at.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let opened = File::options().read(true).write(true).custom_flags(O_NOFOLLOW).open(path);
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut lock = match LockFile::lock(file) {
            Err(NotLocked::Held(_)) => return Ok(None),
            locked => locked?,
        };
        let meta = lock.metadata()?;
        let mut noted = Vec::new();
        lock.read_to_end(&mut noted)?;
        // Another run looked meanwhile, or this one was not written whole.
        let Some(names) = noted.strip_suffix(b"\0\0").filter(|_| meta.nlink() > 0) else {
            let _it_may_be_gone = fs::remove_file(path);
            return Ok(None);
        };
        let writes = names.split(|byte| *byte == 0).map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
        Ok(Some(Self { path: path.to_owned(), _lock: lock, writes, since: meta.modified()? }))
    }

    /// It was looked at.
    pub(super) fn forget(self) {
        // What cannot be removed now is told by the next run once more.
        let _ = fs::remove_file(&self.path);
    }
}

fn folder(state: &Path) -> PathBuf {
    state.join("runs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes() -> Vec<PathBuf> {
        ["/a/b", "/c\nd"].map(PathBuf::from).to_vec()
    }

    fn since() -> SystemTime {
        SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(1_234_567)
    }

    fn let_go(mut note: Note) {
        drop(note.lock.take());
    }

    #[test]
    fn what_a_run_noted_is_for_the_next_one_until_it_is_told() {
        let state = tempfile::tempdir().unwrap();
        assert!(Left::all(state.path()).is_empty() && Note::write(state.path(), &[], since()).unwrap().is_none());
        let note = Note::write(state.path(), &writes(), since()).unwrap().unwrap();
        assert!(Left::all(state.path()).is_empty(), "it lives");
        let_go(note);
        let left = Left::all(state.path());
        assert!(left.len() == 1 && left[0].writes == writes() && left[0].since == since());
        assert!(Left::all(state.path()).is_empty(), "another run looks at it");
        drop(left);
        let left = Left::all(state.path());
        assert_eq!(left.len(), 1, "that one was killed, too");
        left.into_iter().for_each(Left::forget);
        assert_eq!(fs::read_dir(folder(state.path())).unwrap().count(), 0);
    }

    #[test]
    fn what_was_looked_at_is_forgotten() {
        let state = tempfile::tempdir().unwrap();
        Note::write(state.path(), &writes(), since()).unwrap().unwrap().forget();
        assert_eq!(fs::read_dir(folder(state.path())).unwrap().count(), 0);
    }

    #[test]
    fn one_that_is_dropped_is_nobody_elses_as_long_as_it_is_open_somewhere() {
        let state = tempfile::tempdir().unwrap();
        let note = Note::write(state.path(), &writes(), since()).unwrap().unwrap();
        let keepers = note.duplicate().unwrap().unwrap();
        drop(note);
        assert!(Left::all(state.path()).is_empty());
        drop(keepers);
    }

    #[test]
    fn one_that_was_not_written_whole_goes_away() {
        let state = tempfile::tempdir().unwrap();
        make_private(&folder(state.path())).unwrap();
        for (name, text) in [("one", ""), ("two", "/a/b\0/c")] {
            fs::write(folder(state.path()).join(name), text).unwrap();
        }
        assert!(Left::all(state.path()).is_empty());
        assert_eq!(fs::read_dir(folder(state.path())).unwrap().count(), 0);
    }
}
