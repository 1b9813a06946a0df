//! Where a program starts that names no folder: in an empty one of its own, which goes with it.
//!
//! Whatever is in the folder that a program starts in can become code of it: a module beside it, a package, a settings
//! file. So that folder is nobody's, and new at each start: what a guest has one server write there, no later one finds.
//!
//! Below the given place: `XXXX`, one for each process that starts programs, locked while that lives, and in it one
//! for each program. Those of processes that were killed are removed by the next one: their lock is free.
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
    },
};

use footbridge_audit::lock_file::LockFile;
use footbridge_core::random::random_text;

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
    _lock: LockFile,
}

/// The folder of one program. Dropping it removes it.
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
        if self.place.is_some() {
            // What a process that is still ending writes into it is removed with the whole.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

impl Drop for OurFolder {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next process.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Place {
    fn make(&self) -> io::Result<PathBuf> {
        let mut ours = self.ours.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = match &*ours {
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
        sweep(base);
        loop {
            let path = base.join(random_text::<6>().map_err(io::Error::other)?);
            private_folder(&path)?;
            // Until it is locked another process may take it for a dead one's.
            if let Ok(lock) = lock(&path)
                && path.is_dir()
            {
                return Ok(Self { path, _lock: lock });
            }
        }
    }
}

fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn lock(folder: &Path) -> io::Result<LockFile> {
    Ok(LockFile::lock(File::open(folder)?)?)
}

/// Removes what processes left that ended without doing so.
fn sweep(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        // Held while it is removed: whoever has just made it is kept from taking it for good.
        if let Ok(_dead) = lock(&path) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(!gone.exists() && other.path().exists());
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
        assert!(!base.path().join("dead").exists() && folder.path().exists());
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
