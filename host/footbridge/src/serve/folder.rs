//! The folder of a session that has a socket of its own.
//!
//! `<runtime>/sessions/<name>/` is for this user alone; `s/` in it can be entered by others (0711), since a container's
//! remapped user has to, and is what a container mounts. It stays the same folder as long as the session lives, through
//! restarts of the daemon: a mounted folder that is made again is another one.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use footbridge_proto::endpoint::{Endpoint, EndpointError, SocketPath};

use footbridge_audit::private_folder::{FolderError, make_private};
use footbridge_core::{names::SessionName, random::random_text};

use super::removal;

/// The folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionFolderError {
    /// One of the outer ones.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The socket's path does not fit.
    #[error("{0}; FOOTBRIDGE_RUNTIME names another runtime folder")]
    Path(#[from] EndpointError),
    /// It cannot be made.
    #[error("cannot make the folder {}: {source}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn all(runtime: &Path) -> PathBuf {
    runtime.join("sessions")
}

fn socket(runtime: &Path, name: &SessionName) -> PathBuf {
    all(runtime).join(name.to_string()).join("s").join("footbridge.sock")
}

/// Whether this is the socket in the session's own folder.
pub(super) fn is_of(runtime: &Path, name: &SessionName, endpoint: &Endpoint) -> bool {
    matches!(endpoint, Endpoint::Unix(path) if path.as_path() == socket(runtime, name))
}

/// Makes the folder, or checks the one that is there, and gives the path of the socket in it.
pub(super) fn make(runtime: &Path, name: &SessionName) -> Result<SocketPath, SessionFolderError> {
    let outer = all(runtime).join(name.to_string());
    for folder in [runtime, &all(runtime), &outer] {
        make_private(folder)?;
    }
    let inner = outer.join("s");
    open_to_pass(&inner).map_err(|source| SessionFolderError::Io { path: inner.clone(), source })?;
    Ok(SocketPath::new(socket(runtime, name))?)
}

/// Makes a folder that others can pass through and nobody else can change.
fn open_to_pass(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o711).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let meta = path.symlink_metadata()?;
    if !meta.is_dir() || meta.uid() != nix::unistd::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "something else is there: remove it"));
    }
    // The umask took the rights of others away.
    fs::set_permissions(path, Permissions::from_mode(0o711))
}

/// What the folders of sessions that ended are called until they are removed.
const GONE: &str = ".gone-";

/// Puts the folder of a session that ended aside, if it had one; [`sweep`] removes it.
pub(super) fn remove(runtime: &Path, name: &SessionName) {
    put_aside(runtime, &all(runtime).join(name.to_string()));
}

/// Puts the folders aside of sessions that are no more: a daemon was killed before it could.
pub(super) fn remove_others(runtime: &Path, living: &BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(all(runtime)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !name.to_str().is_some_and(|name| living.contains(name) || name.starts_with(GONE)) {
            put_aside(runtime, &entry.path());
        }
    }
}

fn put_aside(runtime: &Path, path: &Path) {
    let aside = random_text::<9>().map_err(io::Error::other).map(|random| all(runtime).join(format!("{GONE}{random}")));
    match aside.and_then(|aside| fs::rename(path, aside)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "the folder of a session that ended cannot be put aside");
        }
        _ => {}
    }
}

/// Removes what was put aside. It may take long: a guest may have filled its folder.
pub(super) fn sweep(runtime: &Path) {
    let Ok(entries) = fs::read_dir(all(runtime)) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(GONE)) {
        if let Err(error) = removal::clear(&entry.path())
            && error.kind() != io::ErrorKind::NotFound
        {
            let path = entry.path();
            tracing::warn!(path = %path.display(), %error, "the folder of a session that ended cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_the_same_until_its_session_ends() {
        let runtime = tempfile::tempdir().unwrap();
        let name: SessionName = "one".parse().unwrap();
        let socket = make(runtime.path(), &name).unwrap();
        let inner = socket.as_path().parent().unwrap();
        let seen = inner.metadata().unwrap();
        assert_eq!(seen.mode() & 0o777, 0o711);
        assert_eq!(inner.parent().unwrap().metadata().unwrap().mode() & 0o777, 0o700);
        assert_eq!(make(runtime.path(), &name).unwrap(), socket);
        assert_eq!(inner.metadata().unwrap().ino(), seen.ino());
        remove_others(runtime.path(), &["one".to_owned()].into());
        assert!(inner.exists());
        remove_others(runtime.path(), &BTreeSet::new());
        sweep(runtime.path());
        assert!(!inner.exists());
        remove(runtime.path(), &name);
    }

    #[test]
    fn a_link_in_its_place_is_left_alone() {
        let (runtime, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let name: SessionName = "one".parse().unwrap();
        let socket = make(runtime.path(), &name).unwrap();
        let inner = socket.as_path().parent().unwrap();
        fs::remove_dir(inner).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), inner).unwrap();
        assert!(make(runtime.path(), &name).unwrap_err().to_string().contains("something else is there"));
        fs::write(elsewhere.path().join("kept"), "").unwrap();
        remove(runtime.path(), &name);
        assert!(elsewhere.path().join("kept").exists() && !inner.exists());
    }
}
