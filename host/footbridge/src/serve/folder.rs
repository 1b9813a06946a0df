//! The folder of a session that has a socket of its own.
//!
//! `<runtime>/sessions/<name>/` is for this user alone; `s/` in it can be entered by others (0711), since a container's
//! remapped user has to, and is what a container mounts. It stays the same folder as long as the session lives, through
//! restarts of the daemon: a mounted folder that is made again is another one.
//!
//! The session's token is in it too, in a file that is replaced as a whole when there is another: a sandbox that reads
//! it there (`TOOL_CLI_TOKEN_FILE`) has the new one at once. What a guest makes of the folder, where it is mounted to be
//! written, is its own loss: nothing in it is followed, and what is read from it counts only by the token's digest.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, OpenOptions, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use footbridge_proto::{
    endpoint::{Endpoint, EndpointError, SocketPath},
    token::Token,
};
use nix::libc;
use tempfile::NamedTempFile;

use footbridge_audit::private_folder::{FolderError, make_private};
use footbridge_core::{digest::Digest, names::SessionName, random::random_text};
use footbridge_edge::listener::Access;
use footbridge_processes::remove_tree::remove_tree;

use crate::control::wire::TOKEN_FILE;

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

/// What of a session's own folder a sandbox mounts.
pub(super) fn mounted(runtime: &Path, name: &SessionName) -> PathBuf {
    all(runtime).join(name.to_string()).join("s")
}

/// The socket in it.
pub(super) fn socket(runtime: &Path, name: &SessionName) -> Result<SocketPath, EndpointError> {
    SocketPath::new(mounted(runtime, name).join("footbridge.sock"))
}

fn token_file(runtime: &Path, name: &SessionName) -> PathBuf {
    mounted(runtime, name).join(TOKEN_FILE)
}

/// A token that is written and not yet in its place.
#[derive(Debug)]
pub(super) struct NewToken {
    file: NamedTempFile,
    runtime: PathBuf,
    target: PathBuf,
}

/// Writes a session's token beside its folder, for whoever may use its socket.
pub(super) fn write_token(runtime: &Path, name: &SessionName, token: &Token, access: &Access) -> io::Result<NewToken> {
    let target = token_file(runtime, name);
    // Where the folder that a guest sees is gone, it has no place.
    fs::symlink_metadata(mounted(runtime, name))?;
    let mut file = NamedTempFile::new_in(all(runtime).join(name.to_string()))?;
    file.write_all(format!("{}\n", token.expose()).as_bytes())?;
    if access.owner.is_some() {
        fchown(file.as_file(), access.owner, None)?;
    }
    file.as_file().set_permissions(Permissions::from_mode(0o400 | (access.mode & 0o444)))?;
    Ok(NewToken { file, runtime: runtime.to_owned(), target })
}

impl NewToken {
    /// Puts it into the folder, in the place of the one before.
    pub(super) fn put(self) -> io::Result<()> {
        let Self { file, runtime, target } = self;
        let Err(failed) = file.persist(&target) else { return Ok(()) };
        // A guest that writes the folder may have made one of this name.
        if failed.error.kind() != io::ErrorKind::IsADirectory {
            return Err(failed.error);
        }
        put_aside(&runtime, &target);
        failed.file.persist(&target).map(drop).map_err(|failed| failed.error)
    }
}

/// The token in a session's folder, if it is the one of this digest.
pub(super) fn token(runtime: &Path, name: &SessionName, digest: Digest) -> Option<Token> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    let mut text = String::new();
    options.open(token_file(runtime, name)).ok()?.take(256).read_to_string(&mut text).ok()?;
    Token::parse(text.trim_end()).ok().filter(|token| Digest::of(token.expose()) == digest)
}

/// Whether this is the socket in the session's own folder.
pub(super) fn is_of(runtime: &Path, name: &SessionName, endpoint: &Endpoint) -> bool {
    matches!(endpoint, Endpoint::Unix(path) if path.as_path().parent() == Some(&mounted(runtime, name)))
}

/// Makes the folder, or checks the one that is there, and gives the path of the socket in it.
pub(super) fn make(runtime: &Path, name: &SessionName) -> Result<SocketPath, SessionFolderError> {
    let outer = all(runtime).join(name.to_string());
    for folder in [runtime, &all(runtime), &outer] {
        make_private(folder)?;
    }
    let inner = mounted(runtime, name);
    open_to_pass(&inner).map_err(|source| SessionFolderError::Io { path: inner.clone(), source })?;
    Ok(socket(runtime, name)?)
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
        if let Err(error) = remove_tree(&entry.path())
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
    fn its_token_is_replaced_whatever_a_guest_put_there_and_counts_by_its_digest() {
        let (runtime, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let name: SessionName = "one".parse().unwrap();
        let file = make(runtime.path(), &name).unwrap().as_path().with_file_name("token");
        let (link, kept) = (|| std::os::unix::fs::symlink(elsewhere.path().join("kept"), &file).unwrap(), "kept");
        fs::write(elsewhere.path().join(kept), kept).unwrap();
        let folder = || fs::create_dir_all(file.join("full")).unwrap();
        let pipe = || nix::unistd::mkfifo(&file, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        let nothing = || {};
        let before: [&dyn Fn(); 4] = [&nothing, &link, &folder, &pipe];
        for (at, (before, mode)) in before.into_iter().zip([0o600, 0o660, 0o666, 0o622]).enumerate() {
            let own = Token::parse(&format!("fbt_{at}")).unwrap();
            let digest = Digest::of(own.expose());
            before();
            assert_eq!(token(runtime.path(), &name, digest), None);
            let written = write_token(runtime.path(), &name, &own, &Access { mode, ..Access::default() }).unwrap();
            written.put().unwrap();
            assert_eq!(token(runtime.path(), &name, digest), Some(own));
            assert_eq!(token(runtime.path(), &name, Digest::of("other")), None);
            assert_eq!(file.metadata().unwrap().mode() & 0o777, [0o400, 0o440, 0o444, 0o400][at]);
            fs::remove_file(&file).unwrap();
        }
        assert_eq!(fs::read_to_string(elsewhere.path().join(kept)).unwrap(), kept);
        sweep(runtime.path());
        let names =
            |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        assert_eq!((names(&all(runtime.path())), names(file.parent().unwrap())), (vec!["one".into()], Vec::new()));
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
