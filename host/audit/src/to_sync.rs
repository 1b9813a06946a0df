//! A file of the record that is not synced as it is written, and whether that went well so far.
//!
//! The kernel says once that something could not be written, to whoever syncs first, and takes the next sync for one that
//! went well. So whoever syncs a file, its writer or the thread that hands heads on, does so one after the other, and what
//! failed for one has failed for all.

use std::{
    fs::File,
    io,
    sync::{Arc, Mutex, PoisonError},
};

/// What is known of the files of a chain. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Synced(Arc<Mutex<IsLost>>);

/// A part could not be written to the disk, and nothing is kept to write it once more.
type IsLost = bool;

impl Synced {
    /// Syncs a file that is full, unless a part was lost before: that is known, and keeps no next one from being begun.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub(super) fn sync_full(&self, file: &File) -> io::Result<()> {
        let is_lost = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_lost { Ok(()) } else { self.sync(file) }
    }

    /// Syncs a file.
    ///
    /// # Errors
    /// Whatever the file system says; and each time once it said so.
    pub(super) fn sync(&self, file: &File) -> io::Result<()> {
        let mut is_lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_lost {
            return Err(io::Error::other("a part of it could not be written to the disk, and may be lost"));
        }
        file.sync_data().inspect_err(|_| *is_lost = true)
    }
}

/// A file to sync, which may take long and is for another thread.
#[derive(Debug)]
pub struct ToSync {
    file: File,
    synced: Synced,
}

impl ToSync {
    pub(super) fn new(file: File, synced: &Synced) -> Self {
        Self { file, synced: synced.clone() }
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.synced.sync(&self.file)
    }

    #[cfg(test)]
    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn what_failed_for_one_has_failed_for_all() {
        let synced = Synced::default();
        let (one, other) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let waits = ToSync::new(one, &synced);
        waits.sync().unwrap();
        // Of a pipe there is nothing to sync.
        let pipe: File = OwnedFd::from(io::pipe().unwrap().0).into();
        assert!(synced.sync(&pipe).is_err());
        assert!(waits.sync().is_err() && synced.sync(&other).is_err());
        assert!(synced.sync_full(&pipe).is_ok(), "the next file is begun all the same");
    }
}
