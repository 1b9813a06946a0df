//! The folder of one run: its socket, and the programs that its command finds first on its PATH.
//!
//! Below the runtime folder, which only this user can enter: `run-XXXX/lock`, held while the run lives,
//! `run-XXXX/empty`, an empty file, `run-XXXX/layer/`, an empty folder, `run-XXXX/s.footbridge.sock.lock`,
//! held as long as the socket is bound, and `run-XXXX/s/`, which the sandbox sees.
//! `run-XXXX` is closed to others (0700), and `s` can be entered by all (0711): a container whose users are remapped
//! sees `s` alone, and as a stranger.
//! Folders of runs that were killed are removed by the next one: their lock is free, and so is that of the folder itself,
//! which is held as long. What removes old files from `/tmp` may take the file.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use footbridge_proto::endpoint::{EndpointError, SocketPath};

use footbridge_audit::{
    lock_file::LockFile,
    private_folder::{FolderError, make_private},
};
use footbridge_core::random::{NoRandomness, random_text};
use footbridge_processes::remove_tree::remove_tree;

/// What every folder of a run starts with.
const PREFIX: &str = "run-";

/// How the sandbox gets at the guest's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tools<'a> {
    /// By a link to `tool-cli`, where there is no sandbox.
    Link(&'a Path),
    /// By mounting both programs on empty files: where they are on the host may be hidden.
    Mounts,
}

/// The folder of one run. Dropping it removes it.
#[derive(Debug)]
pub(super) struct RunFolder {
    path: PathBuf,
    _locks: [LockFile; 2],
}

/// The folder cannot be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunFolderError {
    /// The runtime folder cannot be used.
    #[error(transparent)]
    Runtime(#[from] FolderError),
    /// The socket's path does not fit.
    #[error("{0}; FOOTBRIDGE_RUNTIME names another runtime folder")]
    Path(#[from] EndpointError),
    /// The system has no random bytes.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// The file system refuses.
    #[error("cannot make {}: {source}", path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl RunFolder {
    /// Makes the folder of a new run, with places for the guest's programs.
    pub(super) fn create(runtime: &Path, tools: Tools<'_>) -> Result<Self, RunFolderError> {
        make_private(runtime)?;
        // Sandboxes know it by where it is, not by links to it.
        let real = runtime.canonicalize().map_err(|source| RunFolderError::Io { path: runtime.to_owned(), source })?;
        let runtime = real.as_path();
        // Held until this run's own lock is: a folder without one would look dead to another run.
        let _one_at_a_time = wait_for_lock(runtime)?;
        let path = runtime.join(format!("{PREFIX}{}", random_text::<6>()?));
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| RunFolderError::Io { path, source }
        };
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(io(&path))?;
        let locks = locks(&path).map_err(io(&path))?;
        let folder = Self { path, _locks: locks };
        for inner in [folder.shown(), folder.bin()] {
            DirBuilder::new().mode(0o700).create(&inner).map_err(io(&inner))?;
            // Whatever the umask is.
            fs::set_permissions(&inner, fs::Permissions::from_mode(0o711)).map_err(io(&inner))?;
        }
        let place = |name| folder.bin().join(name);
        match tools {
            Tools::Link(tool_cli) => symlink(tool_cli, place("tool-cli")).map_err(io(&place("tool-cli")))?,
            Tools::Mounts => {
                for file in [place("tool-cli"), place("footbridge-relay"), folder.empty()] {
                    File::create_new(&file).map_err(io(&file))?;
                }
                DirBuilder::new().mode(0o700).create(folder.layer()).map_err(io(&folder.layer()))?;
            }
        }
        sweep(runtime);
        Ok(folder)
    }

    /// The whole of it, which the sandbox does not see.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A name that no other run has.
    pub(super) fn unique(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!("footbridge-{name}")
    }

    /// An empty file, if the guest's programs are mounted.
    pub(super) fn empty(&self) -> PathBuf {
        self.path.join("empty")
    }

    /// An empty folder, if the guest's programs are mounted: where a layer can be laid.
    pub(super) fn layer(&self) -> PathBuf {
        self.path.join("layer")
    }

    /// What the sandbox sees.
    pub(super) fn shown(&self) -> PathBuf {
        self.path.join("s")
    }

    /// What goes first on the PATH.
    pub(super) fn bin(&self) -> PathBuf {
        self.shown().join("bin")
    }

    /// Where the session listens.
    pub(super) fn socket(&self) -> Result<SocketPath, RunFolderError> {
        Ok(SocketPath::new(self.shown().join("footbridge.sock"))?)
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // What cannot be removed now is swept up by the next run.
        let _ = remove_tree(&self.path);
    }
}

/// Of the folder itself, and of a file in it.
fn locks(folder: &Path) -> io::Result<[LockFile; 2]> {
    let own = LockFile::lock(File::open(folder)?)?;
    Ok([own, LockFile::take(&folder.join("lock"))?])
}

/// The lock of the runtime folder, which every run holds for a moment at its start.
fn wait_for_lock(runtime: &Path) -> Result<LockFile, RunFolderError> {
    let path = runtime.join("lock");
    LockFile::wait_for(&path).map_err(|source| RunFolderError::Io { path, source })
}

/// Removes the folders of runs that ended without doing so.
fn sweep(runtime: &Path) {
    let Ok(entries) = fs::read_dir(runtime) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let folder = entry.path();
        if let Ok(_dead) = locks(&folder) {
            let _ = remove_tree(&folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: Tools<'static> = Tools::Mounts;

    #[test]
    fn a_dead_runs_folder_is_swept_up_and_a_living_ones_stays() {
        let runtime = tempfile::tempdir().unwrap();
        let living = RunFolder::create(runtime.path(), TOOLS).unwrap();
        let dead = runtime.path().join("run-dead");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("lock"), "").unwrap();
        fs::remove_file(living.path().join("lock")).unwrap();
        let other = RunFolder::create(runtime.path(), TOOLS).unwrap();
        assert!(!dead.exists() && living.bin().join("tool-cli").exists());
        let path = other.shown();
        drop(other);
        assert!(!path.exists() && living.shown().exists());
    }

    #[test]
    fn a_stranger_could_use_what_is_shown_but_cannot_come_near_it_outside() {
        let runtime = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(runtime.path(), Tools::Link(Path::new("/bin/true"))).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!([mode(&folder.path), mode(&folder.shown()), mode(&folder.bin())], [0o700, 0o711, 0o711]);
        assert_eq!(fs::read_link(folder.bin().join("tool-cli")).unwrap(), Path::new("/bin/true"));
    }

    #[test]
    fn runs_that_start_at_once_do_not_sweep_each_other_up() {
        let runtime = tempfile::tempdir().unwrap();
        let start = || {
            for _ in 0..50 {
                RunFolder::create(runtime.path(), TOOLS).unwrap();
            }
        };
        std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(start))));
    }

    #[test]
    fn a_runtime_folder_that_is_too_deep_is_named() {
        let runtime = tempfile::tempdir().unwrap();
        let deep = runtime.path().join("x".repeat(100));
        let folder = RunFolder::create(&deep, TOOLS).unwrap();
        let error = folder.socket().unwrap_err().to_string();
        assert!(error.contains("at most 107") && error.contains("FOOTBRIDGE_RUNTIME"), "{error}");
    }
}
