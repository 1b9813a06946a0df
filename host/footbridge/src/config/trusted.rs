//! Files of working folders that the operator has looked at and trusts, by their content: where one says something else
//! later it is not trusted any more, and the difference can be shown.
//!
//! A file each in the state folder, which no guest sees: what they say may hold secrets in the clear. One that is
//! missing means that nothing was trusted; one that cannot be read or understood is an error, never a trusted file.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use footbridge_audit::private_folder::{FolderError, make_private, replace_private};
use footbridge_core::digest::Digest;
use serde::{Deserialize, Serialize};

use super::{
    bounded::bounded,
    trust::{self, Untrusted},
};

/// More than a servers file may have, written as JSON.
const MAX_ENTRY: u64 = 64 << 20;

/// Why it cannot be told whether a file is trusted, or that it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    /// The folder is not this user's alone.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// An entry is not this user's alone.
    #[error("what is trusted is kept in {}: {why}", path.display())]
    NotOurs {
        /// The entry.
        path: PathBuf,
        /// Who else could have written it.
        why: Untrusted,
    },
    /// An entry cannot be read, written or removed.
    #[error("what is trusted is kept in {}, which cannot be used: {source}; if it is broken, remove it and trust the \
             file again", path.display())]
    Entry {
        /// The entry.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The files that are trusted, kept below a state folder.
#[derive(Debug, Clone)]
pub(crate) struct TrustedFiles {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct TrustedFile {
    path: PathBuf,
    text: String,
}

impl TrustedFiles {
    /// Those of this state folder.
    #[must_use]
    pub(crate) fn of(state: &Path) -> Self {
        Self { folder: state.join("trusted") }
    }

    /// What a file said when it was trusted; nothing if it never was. The path has no links in it.
    ///
    /// # Errors
    /// [`TrustError`].
    pub(crate) fn text(&self, path: &Path) -> Result<Option<String>, TrustError> {
        let entry = self.entry(path);
        if fs::symlink_metadata(&entry).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        let file = Self::read(&entry)?;
        // Two paths with one digest do not occur; an entry that was moved does.
        Ok((file.path == path).then_some(file.text))
    }

    fn read(entry: &Path) -> Result<TrustedFile, TrustError> {
        let failed = |source| TrustError::Entry { path: entry.to_owned(), source };
        let real = trust::check(entry).map_err(|why| TrustError::NotOurs { path: entry.to_owned(), why })?;
        let (text, _) = bounded(&real, MAX_ENTRY).map_err(failed)?;
        serde_json::from_str(&text)
            .map_err(|error| failed(io::Error::other(format!("line {} is not as it was written", error.line()))))
    }

    /// Trusts a file as long as it says this.
    ///
    /// # Errors
    /// [`TrustError`].
    pub(crate) fn trust(&self, path: &Path, text: &str) -> Result<(), TrustError> {
        make_private(&self.folder)?;
        let entry = self.entry(path);
        let failed = |source| TrustError::Entry { path: entry.clone(), source };
        let written = TrustedFile { path: path.to_owned(), text: text.to_owned() };
        let written = serde_json::to_string(&written).map_err(|error| failed(error.into()))?;
        replace_private(&entry, |file| {
            file.write_all(written.as_bytes())?;
            file.sync_all()
        })
        .map_err(failed)
    }

    /// Trusts a file no more; says whether it did.
    ///
    /// # Errors
    /// [`TrustError`].
    pub(crate) fn forget(&self, path: &Path) -> Result<bool, TrustError> {
        let entry = self.entry(path);
        match fs::remove_file(&entry) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(TrustError::Entry { path: entry, source }),
        }
    }

    /// All of them, in order; what is no entry of ours is passed over.
    ///
    /// # Errors
    /// [`TrustError`].
    pub(crate) fn all(&self) -> Result<Vec<PathBuf>, TrustError> {
        let failed = |source| TrustError::Entry { path: self.folder.clone(), source };
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries.collect::<io::Result<Vec<_>>>().map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        let mut all = Vec::new();
        for entry in entries.iter().map(fs::DirEntry::path).filter(|path| path.extension().is_some_and(|e| e == "json"))
        {
            all.push(Self::read(&entry)?.path);
        }
        all.retain(|path| self.entry(path).exists());
        all.sort();
        Ok(all)
    }

    fn entry(&self, path: &Path) -> PathBuf {
        self.folder.join(format!("{}.json", Digest::of(path.as_os_str().as_encoded_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_trusted_by_what_it_says_and_until_it_is_forgotten() {
        let state = tempfile::tempdir().unwrap();
        let trusted = TrustedFiles::of(&state.path().join("state"));
        let (a, b) = (Path::new("/w/a/.mcp.json"), Path::new("/w/b/.mcp.json"));
        assert_eq!(trusted.text(a).unwrap(), None);
        trusted.trust(a, "one\n").unwrap();
        trusted.trust(a, "two\n").unwrap();
        assert_eq!((trusted.text(a).unwrap().as_deref(), trusted.text(b).unwrap()), (Some("two\n"), None));
        assert_eq!(trusted.all().unwrap(), [a]);
        let folder = state.path().join("state/trusted");
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");
        assert_eq!((trusted.forget(a).unwrap(), trusted.forget(a).unwrap()), (true, false));
        assert_eq!(trusted.text(a).unwrap(), None);
    }

    #[test]
    fn what_is_broken_or_of_others_is_an_error_and_trusts_nothing() {
        let state = tempfile::tempdir().unwrap();
        let trusted = TrustedFiles::of(state.path());
        let path = Path::new("/w/.mcp.json");
        trusted.trust(path, "one").unwrap();
        let entry = trusted.entry(path);
        fs::set_permissions(&entry, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(matches!(trusted.text(path), Err(TrustError::NotOurs { .. })));
        fs::set_permissions(&entry, PermissionsExt::from_mode(0o600)).unwrap();
        fs::rename(&entry, trusted.entry(Path::new("/w/other"))).unwrap();
        assert_eq!(trusted.text(Path::new("/w/other")).unwrap(), None, "it is about another file");
        fs::write(&entry, "{\"path\": ").unwrap();
        let said = trusted.text(path).unwrap_err().to_string();
        assert!(said.contains("remove it and trust the file again"), "{said}");
    }
}
