//! Folders that only this user can enter, where records, sockets and the store are, and files for this user alone.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use footbridge_core::random::random_text;

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

/// Puts a file for this user alone in the place of one that may be there. It is written beside it first: whoever reads
/// sees all of the one or all of the other. What outlives a crash of the machine is for `write` to sync.
///
/// # Errors
/// When it cannot be written or put there; then what was there is as it was.
pub fn replace_private(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let aside = path.with_file_name(format!(".{}.new", random_text::<12>().map_err(io::Error::other)?));
    let put = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        write(&mut file)?;
        fs::rename(&aside, path)
    };
    put().inspect_err(|_| {
        // What is left of it is in nobody's way.
        let _ = fs::remove_file(&aside);
    })
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_file_takes_the_place_of_another_or_leaves_it_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "before").unwrap();
        let failed = replace_private(&path, |file| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        replace_private(&path, |file| file.write_all(b"after")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
