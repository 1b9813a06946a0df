//! Where a result is to be written: one file, or a folder for several.
//!
//! Whether that can be done is found out before the call, and nothing is there after a call that failed that was not
//! there before.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::output::{BEFORE, NotWritten, OutFile};

/// A destination as typed.
#[derive(Debug, PartialEq, Eq)]
pub enum Destination {
    /// `--out FILE`.
    File(PathBuf),
    /// `--out-dir DIR`.
    Folder(PathBuf),
}

/// A destination that could be written when it was tried.
#[derive(Debug)]
pub enum Prepared {
    /// One file.
    File(OutFile),
    /// A folder, which may not be there yet.
    Folder(PathBuf),
}

impl From<OutFile> for Prepared {
    fn from(file: OutFile) -> Self {
        Self::File(file)
    }
}

impl Destination {
    /// Tries it.
    ///
    /// # Errors
    /// [`NotWritten::File`].
    pub fn prepare(&self) -> Result<Prepared, NotWritten> {
        match self {
            Self::File(path) => OutFile::prepare(path).map(Prepared::File),
            Self::Folder(path) => match try_folder(path) {
                Ok(()) => Ok(Prepared::Folder(path.clone())),
                Err(source) => Err(NotWritten::File { path: path.clone(), source, then: BEFORE }),
            },
        }
    }
}

fn try_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Ok(()) => fs::remove_dir(path),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            // Of a file it says that it is none.
            fs::read_dir(path)?;
            try_to_write_in(path)
        }
        Err(e) => Err(e),
    }
}

fn try_to_write_in(folder: &Path) -> io::Result<()> {
    let probe = folder.join(format!(".tool-cli-{}.tmp", std::process::id()));
    fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe))
}
