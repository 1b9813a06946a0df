//! Folders that only this user can enter: where records, sockets and the store are.

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

/// A folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It cannot be made.
    #[error("cannot make the folder {}: {source}", path.display())]
    Make {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It leads elsewhere, where others may decide what is there.
    #[error("{} is a link, and must be a folder itself: name the folder that it leads to, or put one in its place", .0.display())]
    Link(PathBuf),
    /// It is not this user's alone.
    #[error("{} must be a folder of this user that nobody else can write to: move it away, or fix its owner and mode", .0.display())]
    Unsafe(PathBuf),
}

/// Makes a folder that only this user can enter, or checks that it is one.
///
/// # Errors
/// [`FolderError`].
pub fn make_private(path: &Path) -> Result<(), FolderError> {
    let make = |source| FolderError::Make { path: path.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(make)?;
    let meta = path.symlink_metadata().map_err(make)?;
    if meta.is_symlink() {
        return Err(FolderError::Link(path.to_owned()));
    }
    let ours = meta.is_dir() && meta.uid() == nix::unistd::geteuid().as_raw() && meta.mode() & 0o022 == 0;
    if ours { Ok(()) } else { Err(FolderError::Unsafe(path.to_owned())) }
}
