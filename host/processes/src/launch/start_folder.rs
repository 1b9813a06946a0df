//! Where a program starts that names no folder: in an empty one of its own, which goes with it.
//!
//! Whatever is in the folder that a program starts in can become code of it: a module beside it, a package, a settings
//! file. So that folder is nobody's, and new at each start: what a guest has one server write there, no later one finds.
//!
//! Below the given place: `XXXX`, one for each process that starts programs, locked while that lives, and in it one
//! for each program. Those of processes that were killed are removed by the next one: their lock is free.
//!
//! What a program left may take long to remove. So that has a thread of its own, one for a process, and nothing waits for it
//! but the end of the process, for a while.
//!
//! Failure: a folder that cannot be made ends the start. Without a place the folder is `/`, where only root writes.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
    time::Duration,
};

use footbridge_audit::lock_file::{LockFile, NotLocked};
use footbridge_core::random::random_text;

use crate::{priority::give_way, remove_tree::remove_tree};

/// How long the end of a process waits for its folder to go.
const LAST: Duration = Duration::from_secs(10);
/// Folders that wait to be removed.
const WAITING: usize = 1_024;

/// Makes a folder for each program that starts. Clones share one place.
#[derive(Debug, Clone, Default)]
pub struct StartFolders(Option<Arc<Place>>);

#[derive(Debug)]
struct Place {
    base: PathBuf,
    ours: Mutex<Option<OurFolder>>,
    made: AtomicU64,
}

/// The folder of this process. Dropping it removes it.
#[derive(Debug)]
struct OurFolder {
    path: PathBuf,
    _lock: Arc<LockFile>,
    remover: Option<Remover>,
}

/// A thread that removes folders, giving way to others: those that it is told of, and in the end the one of the process.
#[derive(Debug)]
struct Remover {
    folders: SyncSender<PathBuf>,
    /// Nothing comes; it ends with the thread.
    is_done: Receiver<()>,
}

/// The folder of one program. Dropping it has it removed.
#[derive(Debug)]
pub struct StartFolder {
    path: PathBuf,
    /// Removed after the folder, if it was the last.
    place: Option<Arc<Place>>,
}

impl StartFolders {
    /// Below this folder, which is made when the first program starts.
    #[must_use]
    pub fn below(base: impl Into<PathBuf>) -> Self {
        Self(Some(Arc::new(Place { base: base.into(), ours: Mutex::default(), made: AtomicU64::new(0) })))
    }

    /// A new one.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make(&self) -> io::Result<StartFolder> {
        let Some(place) = &self.0 else { return Ok(StartFolder { path: PathBuf::from("/"), place: None }) };
        let path = place.make().map_err(|error| {
            let what = format!("cannot make a folder in {} to start it in: {error}", place.base.display());
            io::Error::new(error.kind(), what)
        })?;
        Ok(StartFolder { path, place: Some(Arc::clone(place)) })
    }
}

impl StartFolder {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for StartFolder {
    fn drop(&mut self) {
        if let Some(place) = &self.place
            && let Some(ours) = &mut *place.ours.lock().unwrap_or_else(PoisonError::into_inner)
        {
            // What a process that is still ending writes into it is removed with the whole.
            ours.remove(std::mem::take(&mut self.path));
        }
    }
}

impl Drop for OurFolder {
    fn drop(&mut self) {
        if let Some(Remover { folders, is_done }) = self.remover.take() {
            drop(folders);
            // What is not gone by then, or cannot be removed, is removed by the next process.
            let _gone_or_late = is_done.recv_timeout(LAST);
        }
    }
}

impl Place {
    fn make(&self) -> io::Result<PathBuf> {
        let mut ours = self.ours.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = match &mut *ours {
            Some(ours) => ours,
            None => ours.insert(OurFolder::below(&self.base)?),
        };
        let path = ours.path.join(self.made.fetch_add(1, Ordering::Relaxed).to_string());
        private_folder(&path)?;
        Ok(path)
    }
}

impl OurFolder {
    fn below(base: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(base)?;
        let meta = base.symlink_metadata()?;
        if !meta.is_dir() || meta.uid() != nix::unistd::geteuid().as_raw() || meta.mode() & 0o022 != 0 {
            return Err(io::Error::other("it must be a folder of this user that nobody else can write to"));
        }
        let (path, lock) = loop {
            let path = base.join(random_text::<6>().map_err(io::Error::other)?);
            private_folder(&path)?;
            // Until it is locked another process may take it for a dead one's.
            match lock(&path) {
                Ok(lock) if path.is_dir() => break (path, lock),
                Ok(_) | Err(NotLocked::Held(_)) => {}
                Err(NotLocked::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err(NotLocked::Io(error)) => {
                    let _stays = fs::remove_dir(&path);
                    return Err(error);
                }
            }
        };
        let lock = Arc::new(lock);
        let remover = Remover::start(base.to_owned(), path.clone(), Arc::clone(&lock));
        Ok(Self { path, _lock: lock, remover: remover.ok() })
    }

    /// Has a folder removed. Where there is no thread for it, or too many wait, it goes with the whole.
    fn remove(&self, folder: PathBuf) {
        let _left = self.remover.as_ref().map(|remover| remover.folders.try_send(folder));
    }
}

impl Remover {
    /// Begins with what dead processes left in `base`, and ends with the folder of this one.
    fn start(base: PathBuf, ours: PathBuf, lock: Arc<LockFile>) -> io::Result<Self> {
        let (folders, to_remove) = mpsc::sync_channel::<PathBuf>(WAITING);
        let (done, is_done) = mpsc::sync_channel::<()>(0);
        let removing = move || {
            let (_until_it_is_gone, _done) = (lock, done);
            give_way();
            sweep(&base);
            // What stays of one is removed with the whole, or by the next process.
            to_remove.into_iter().for_each(|folder| drop(remove_tree(&folder)));
            drop(remove_tree(&ours));
        };
        thread::Builder::new().name("remove".to_owned()).spawn(removing)?;
        Ok(Self { folders, is_done })
    }
}

fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn lock(folder: &Path) -> Result<LockFile, NotLocked> {
    LockFile::lock(File::open(folder)?)
}

/// Removes what processes left that ended without doing so.
fn sweep(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        // Held while it is removed: whoever has just made it is kept from taking it for good.
        if let Ok(_dead) = lock(&path) {
            let _ = remove_tree(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::remove_tree::tests::{deep, with_few_files};

    fn wait_until_gone(folder: &Path) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while folder.exists() {
            assert!(Instant::now() < deadline, "{} is still there", folder.display());
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn names(base: &Path) -> Vec<PathBuf> {
        fs::read_dir(base).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn each_program_has_an_empty_folder_of_its_own_that_goes_with_it() {
        let state = tempfile::tempdir().unwrap();
        let base = state.path().join("programs");
        let folders = StartFolders::below(&base);
        assert!(!base.exists(), "nothing is made before a program starts");
        let (one, other) = (folders.make().unwrap(), folders.make().unwrap());
        assert_ne!(one.path(), other.path());
        for folder in [one.path(), other.path()] {
            assert_eq!(names(folder), Vec::<PathBuf>::new());
            assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
        }
        fs::write(one.path().join("json.py"), "").unwrap();
        let gone = one.path().to_owned();
        drop(one);
        wait_until_gone(&gone);
        assert!(other.path().exists());
        drop((other, folders));
        assert_eq!(names(&base), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_dead_process_s_folders_are_swept_up_and_a_living_one_s_stay() {
        let base = tempfile::tempdir().unwrap();
        let living = StartFolders::below(base.path());
        let folder = living.make().unwrap();
        fs::create_dir_all(base.path().join("dead/0")).unwrap();
        let _other = StartFolders::below(base.path()).make().unwrap();
        wait_until_gone(&base.path().join("dead"));
        assert!(folder.path().exists());
    }

    #[test]
    fn deep_folders_of_programs_keep_none_from_being_removed() {
        let base = tempfile::tempdir().unwrap();
        with_few_files(base.path(), |base| {
            fs::create_dir_all(base.join("dead/0")).unwrap();
            deep(&base.join("dead/0/d"), 300);
            let folders = StartFolders::below(base);
            let folder = folders.make().unwrap();
            deep(&folder.path().join("d"), 300);
            let gone = folder.path().to_owned();
            drop(folder);
            wait_until_gone(&gone);
            drop(folders);
            assert_eq!(names(base), Vec::<PathBuf>::new());
        });
    }

    #[test]
    fn processes_that_start_at_once_do_not_sweep_each_other_up() {
        let base = tempfile::tempdir().unwrap();
        let start = || (0..50).for_each(|_| assert!(StartFolders::below(base.path()).make().unwrap().path().is_dir()));
        std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(start))));
    }

    #[test]
    fn a_place_that_others_can_write_to_is_refused_by_name() {
        let base = tempfile::tempdir().unwrap();
        fs::set_permissions(base.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let error = StartFolders::below(base.path()).make().unwrap_err().to_string();
        assert!(error.contains(base.path().to_str().unwrap()) && error.contains("nobody else"), "{error}");
        assert_eq!(StartFolders::default().make().unwrap().path(), Path::new("/"));
    }
}
