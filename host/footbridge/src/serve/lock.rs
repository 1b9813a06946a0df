//! One daemon a state folder, and a folder of sockets: a lock on a file in the first and on the second itself, held as long as
//! the process lives. Files in the second may be taken by what removes old ones from `/tmp`.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use footbridge_audit::lock_file::{LockFile, NotLocked};

/// The lock's name in the state folder.
const FILE: &str = "serve.lock";

/// The lock, held.
#[derive(Debug)]
pub(super) struct StateLock {
    _file: LockFile,
}

/// The lock is not to be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum LockError {
    /// Another daemon has it.
    #[error(
        "another footbridge serve{} already serves {}: stop it, or name another folder with FOOTBRIDGE_STATE",
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default(),
        folder.display()
    )]
    Held {
        /// The state folder.
        folder: PathBuf,
        /// Who, where that can be read.
        pid: Option<u32>,
    },
    /// Another daemon has its sockets there.
    #[error(
        "another footbridge serve has its sockets in {}: stop it, or name another folder with FOOTBRIDGE_RUNTIME",
        .0.display()
    )]
    Sockets(PathBuf),
    /// The file system refuses.
    #[error("cannot lock {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl StateLock {
    /// Takes the lock of a state folder and writes this process's id into it.
    pub(super) fn take(folder: &Path) -> Result<Self, LockError> {
        let path = folder.join(FILE);
        let io = |source| LockError::Io { path: path.clone(), source };
        match LockFile::take(&path) {
            Ok(mut file) => {
                let pid = format!("{}\n", std::process::id());
                file.set_len(0).and_then(|()| file.write_all(pid.as_bytes())).map_err(io)?;
                Ok(Self { _file: file })
            }
            Err(NotLocked::Held(file)) => Err(LockError::Held { folder: folder.to_owned(), pid: holder(file) }),
            Err(NotLocked::Io(source)) => Err(io(source)),
        }
    }
}

/// Takes the lock of a folder of sockets.
pub(super) fn of_sockets(folder: &Path) -> Result<LockFile, LockError> {
    let io = |source| LockError::Io { path: folder.to_owned(), source };
    LockFile::lock(File::open(folder).map_err(io)?).map_err(|error| match error {
        NotLocked::Held(_) => LockError::Sockets(folder.to_owned()),
        NotLocked::Io(source) => io(source),
    })
}

fn holder(file: File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_refused_and_told_who_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = StateLock::take(folder.path()).unwrap();
        let text = StateLock::take(folder.path()).unwrap_err().to_string();
        assert!(
            text.contains(&format!("process {}", std::process::id())) && text.contains("FOOTBRIDGE_STATE"),
            "{text}"
        );
        drop(first);
        StateLock::take(folder.path()).unwrap();
    }

    #[test]
    fn a_folder_of_sockets_is_of_one_whatever_becomes_of_the_files_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = of_sockets(folder.path()).unwrap();
        let text = of_sockets(folder.path()).unwrap_err().to_string();
        assert!(text.contains("has its sockets in") && text.contains("FOOTBRIDGE_RUNTIME"), "{text}");
        drop(first);
        of_sockets(folder.path()).unwrap();
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(folder.path().join("target"), folder.path().join(FILE)).unwrap();
        assert!(matches!(StateLock::take(folder.path()).unwrap_err(), LockError::Io { .. }));
        assert!(!folder.path().join("target").exists());
    }
}
