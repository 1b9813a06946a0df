//! Where records go: a file that only grows, one per run of the harness.
//!
//! A commit is all or nothing: after an error the file is cut back to what was durable before, so that the next
//! commit never lands behind half a line.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::config::folders::{FolderError, make_private};
use chrono::Utc;
use nix::{
    errno::Errno,
    fcntl::{FallocateFlags, fallocate},
};

/// Room that is reserved at a time beyond what is needed, bytes: reserving for every call would cost a third of a sync.
const RESERVE_STEP: u64 = 64 * 1024;

/// A place that keeps bytes durably, in order.
pub trait Journal: Send {
    /// Makes room for what will still be written, besides `bytes` that come now.
    ///
    /// # Errors
    /// When there is no room.
    fn reserve(&mut self, bytes: u64) -> io::Result<()>;

    /// Writes bytes and makes them durable, or leaves everything as it was.
    ///
    /// # Errors
    /// Whatever the file system says.
    fn commit(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// A journal in a file.
#[derive(Debug)]
pub struct FileJournal {
    file: File,
    path: PathBuf,
    durable: u64,
    /// Something may be left behind what is durable.
    torn: bool,
    /// Up to where the file system has set room aside.
    reserved: u64,
    can_reserve: bool,
}

/// Why the record cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A folder that cannot be made, or that others could write to.
    #[error("cannot open the record: {0}")]
    Folder(#[from] FolderError),
    /// The file system refuses.
    #[error("cannot open the record in {}: {source}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No random name.
    #[error(transparent)]
    Randomness(#[from] crate::session::NoRandomness),
}

impl FileJournal {
    /// Opens a new file for one run of the harness, in a folder of its own below `audit`.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn create(audit: &Path) -> Result<Self, OpenError> {
        let name = format!("{}-{}", Utc::now().format("%Y%m%dT%H%M%SZ"), crate::session::random_text::<6>()?);
        let folder = audit.join(name);
        for folder in [audit, &folder] {
            make_private(folder)?;
        }
        let path = folder.join("000001.jsonl");
        let io = |source| OpenError::Io { path: path.clone(), source };
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(io)?;
        for folder in [audit, &folder] {
            File::open(folder).and_then(|f| f.sync_all()).map_err(io)?;
        }
        Ok(Self { file, path, durable: 0, reserved: 0, torn: false, can_reserve: true })
    }

    /// Where it writes.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl FileJournal {
    fn allocate(&mut self, length: u64) -> Result<(), Errno> {
        let end = i64::try_from(length).map_err(|_| Errno::EFBIG)?;
        fallocate(&self.file, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, end)?;
        self.reserved = length;
        Ok(())
    }

    /// Cuts the file back to what is durable. What was reserved beyond it goes too.
    fn cut_back(&mut self) -> io::Result<()> {
        self.reserved = 0;
        self.file.set_len(self.durable)
    }
}

impl Journal for FileJournal {
    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        let needed = self.durable + bytes;
        if !self.can_reserve || needed <= self.reserved {
            return Ok(());
        }
        // Where a whole step does not fit any more, what is needed may.
        match self.allocate(needed + RESERVE_STEP).or_else(|_| self.allocate(needed)) {
            Ok(()) => Ok(()),
            Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => {
                tracing::warn!(path = %self.path.display(), "this file system cannot reserve room for outcomes");
                self.can_reserve = false;
                Ok(())
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn commit(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.torn {
            self.cut_back()?;
            self.torn = false;
        }
        let written = self.file.write_all_at(bytes, self.durable).and_then(|()| self.file.flush());
        match written.and_then(|()| self.file.sync_data()) {
            Ok(()) => {
                self.durable += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                // If this fails too, the next commit tries it first: a shorter one would not cover what is left.
                self.torn = self.cut_back().is_err();
                Err(error)
            }
        }
    }
}
