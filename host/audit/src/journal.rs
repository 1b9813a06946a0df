//! Where records go: a folder per run of the harness, with a file that only grows, and the next one when it is full.
//!
//! A commit is all or nothing: after an error the file is cut back to what it held before, so that the next commit
//! never lands behind half a line. What was appended and not yet synced stays in memory until it is: after a failed
//! sync the kernel may have dropped it, so it is written once more. A full file is left as it is; where no next one can
//! be begun, it grows on.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use chrono::Utc;
use nix::{
    errno::Errno,
    fcntl::{FallocateFlags, fallocate},
    libc::{O_NOFOLLOW, O_NONBLOCK},
    sys::resource::{Resource, getrlimit},
};
use rustix::fs::{AtFlags, StatxFlags, statx};

use super::{
    head::KeyError,
    settings::AuditSettings,
    to_sync::{Synced, ToSync},
};
use crate::private_folder::{FolderError, make_private};
use footbridge_core::digest::Digest;

/// Room that is reserved at a time beyond what is needed, bytes: reserving for every call would cost a third of a sync.
const RESERVE_STEP: u64 = 256 * 1024;

/// How long a name is taken to lead where it led, where a write takes less than to look.
const PLACE_TIME: Duration = Duration::from_millis(50);

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

    /// Writes bytes so that the end of this process cannot lose them, or leaves everything as it was. They are durable
    /// with the next commit or [`sync`](Self::sync). A place that knows no difference commits.
    ///
    /// # Errors
    /// Whatever the file system says.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.commit(bytes)
    }

    /// Makes durable what was appended.
    ///
    /// # Errors
    /// Whatever the file system says. Nothing that was appended is lost then; it is for the next try.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Where what was written is not durable yet: the file to sync, which may take long and is for another thread. None
    /// where commits sync.
    ///
    /// # Errors
    /// When there is no handle of it to be had.
    fn to_sync(&mut self) -> io::Result<Option<ToSync>> {
        Ok(None)
    }

    /// Gives back the room that was made and is not needed any more, at the end.
    fn give_back_room(&mut self) {}

    /// Leaves nothing behind where not one record could be written: a chain without a line is only in the way.
    fn abandon(&mut self) {}

    /// Whether a write ends in memory, and waits for no disk and for nobody else: then whoever records something may
    /// write it, which is sooner done than handing it to a thread.
    fn is_quick(&self) -> bool {
        false
    }

    /// Where others write to the same chain: waits for its turn, which the next write ends, and says where the chain ends
    /// by now. None where nobody else does.
    ///
    /// # Errors
    /// When no turn is to be had in time, or the end cannot be read.
    fn take_turn(&mut self) -> io::Result<Option<ChainEnd>> {
        Ok(None)
    }

    /// How long that may take, at most.
    fn turn_time(&self) -> Duration {
        Duration::ZERO
    }

    /// The name of the chain that is kept here, where the place has one.
    fn chain(&self) -> Option<String> {
        None
    }

    /// Where the file is full: begins the next one, with room for `bytes`, and gives its name. Everything from then on
    /// goes there.
    ///
    /// # Errors
    /// When there is no next file; everything goes on where it was.
    fn next_file(&mut self, _bytes: u64) -> io::Result<Option<String>> {
        Ok(None)
    }
}

/// Where a chain ends that others write to as well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChainEnd {
    /// The number of its last line; 0 before the first.
    pub seq: u64,
    /// The digest of that line.
    pub hash: Option<Digest>,
    /// A file that was begun and says nothing yet.
    pub begun: Option<String>,
}

/// A journal in a file.
#[derive(Debug)]
pub struct FileJournal {
    file: File,
    /// Its device and number there.
    identity: (u64, u64),
    path: PathBuf,
    chain: String,
    /// Which file of the chain it is, from 1.
    number: u32,
    /// Where a file is full, bytes.
    full: u64,
    sync: bool,
    /// Whether all of what it said is on the disk, where nothing is kept to be written once more.
    synced: Synced,
    durable: u64,
    /// What comes behind that and is written, but not yet synced.
    appended: Vec<u8>,
    /// What the file holds behind the durable part may be something else.
    torn: bool,
    /// When the name was last found to lead to the file.
    looked: Instant,
    /// Up to where the file system has set room aside.
    reserved: u64,
    can_reserve: bool,
}

/// Why the record cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
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
    Randomness(#[from] footbridge_core::random::NoRandomness),
    /// There is no key to sign with.
    #[error("cannot open the record: {0}")]
    Key(#[from] KeyError),
}

impl FileJournal {
    /// Opens a new file for one run of the harness, in a folder of its own below `audit`: synced, and full at 64 MiB.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn create(audit: &Path) -> Result<Self, JournalError> {
        let chain = format!("{}-{}", Utc::now().format("%Y%m%dT%H%M%SZ"), footbridge_core::random::random_text::<6>()?);
        let folder = audit.join(&chain);
        for folder in [audit, &folder] {
            make_private(folder)?;
        }
        let path = folder.join(file_name(1));
        let io = |source| JournalError::Io { path: path.clone(), source };
        let file = begin(&path).map_err(io)?;
        File::open(audit).and_then(|f| f.sync_all()).map_err(io)?;
        let full = AuditSettings::default().file_bytes as u64;
        Self::at_the_start(file, path.clone(), chain, full).map_err(io)
    }

    fn at_the_start(file: File, path: PathBuf, chain: String, full: u64) -> io::Result<Self> {
        let identity = file.metadata().map(|ours| (ours.dev(), ours.ino()))?;
        let (number, durable, reserved, appended, looked) = (1, 0, 0, Vec::new(), Instant::now());
        let (sync, torn, can_reserve, synced) = (true, false, true, Synced::default());
        Ok(Self {
            file,
            identity,
            path,
            chain,
            number,
            full,
            sync,
            synced,
            durable,
            appended,
            torn,
            looked,
            reserved,
            can_reserve,
        })
    }

    /// As the settings say: whether it syncs, and where a file is full.
    #[must_use]
    pub fn with(self, settings: &AuditSettings) -> Self {
        Self { full: settings.file_bytes as u64, sync: settings.sync, ..self }
    }

    /// Where it writes.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The name of a chain's file with this number.
pub(super) fn file_name(number: u32) -> String {
    format!("{number:06}.jsonl")
}

/// Makes a file that must not be there yet, and makes its name durable.
pub(super) fn begin(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    File::open(path.parent().unwrap_or(path))?.sync_all()?;
    Ok(file)
}

/// Has the disk keep room for a file of this length, as far as this process may write one: the kernel looks at that limit
/// only where it is written.
pub(super) fn allocate(file: &File, length: u64) -> Result<(), Errno> {
    if getrlimit(Resource::RLIMIT_FSIZE)?.0 < length {
        return Err(Errno::EFBIG);
    }
    let end = i64::try_from(length).map_err(|_| Errno::EFBIG)?;
    fallocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, end)
}

impl FileJournal {
    fn allocate(&mut self, length: u64) -> Result<(), Errno> {
        allocate(&self.file, length)?;
        self.reserved = length;
        Ok(())
    }

    /// Where the next bytes go.
    fn end(&self) -> u64 {
        self.durable + self.appended.len() as u64
    }

    /// Cuts off what is behind the end. What was reserved beyond it goes too.
    fn cut_back(&mut self) -> io::Result<()> {
        self.reserved = 0;
        self.file.set_len(self.end())
    }

    /// Cuts off what is behind the end, and sets the room beyond it aside again: outcomes of calls that run have it. Where
    /// that fails, the next reservation tells.
    fn mend(&mut self) -> io::Result<()> {
        let reserved = self.reserved;
        self.cut_back()?;
        if reserved > self.end() {
            let _less_room = self.allocate(reserved);
        }
        Ok(())
    }

    /// Whether the name still leads to this file: what is written to one that nobody finds any more is no record. Where
    /// nothing is synced, a file that was removed or cut shows at once, and one that was moved a moment later.
    fn check_place(&mut self) -> io::Result<()> {
        if !self.sync && self.looked.elapsed() < PLACE_TIME && self.has_name_and_all() {
            return Ok(());
        }
        self.check_name()
    }

    fn check_name(&mut self) -> io::Result<()> {
        let is_ours = |there: &Metadata| (there.dev(), there.ino()) == self.identity;
        let is_whole = |there: &Metadata| self.torn || there.len() >= self.end();
        if self.path.symlink_metadata().is_ok_and(|there| is_ours(&there) && is_whole(&there)) {
            self.looked = Instant::now();
            return Ok(());
        }
        Err(io::Error::other(format!(
            "{} was removed, replaced or cut while the record was being written: put it back, or start again for a new chain, \
             and find out who did it",
            self.path.display()
        )))
    }

    /// Whether the file has a name and all that was written to it. Its times are not asked for: whoever saw them has the
    /// next write set them anew, which costs as much as the write.
    fn has_name_and_all(&self) -> bool {
        let asked = StatxFlags::NLINK | StatxFlags::SIZE;
        let found = statx(&self.file, c"", AtFlags::EMPTY_PATH, asked);
        found.is_ok_and(|found| found.stx_nlink > 0 && (self.torn || found.stx_size >= self.end()))
    }

    /// Writes bytes at the end, and makes sure that what is before them is what it should be.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.check_place()?;
        if self.torn {
            self.mend()?;
            self.file.write_all_at(&self.appended, self.durable)?;
            self.torn = false;
        }
        self.file.write_all_at(bytes, self.end()).inspect_err(|_| self.tear())
    }

    fn tear(&mut self) {
        self.torn = true;
        if let Err(error) = self.mend() {
            tracing::warn!(%error, path = %self.path.display(), "a record is torn; the next write mends it first");
        }
    }
}

impl Journal for FileJournal {
    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        let needed = self.end() + bytes;
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
        self.put(bytes)?;
        if self.sync {
            self.file.sync_data().inspect_err(|_| self.tear())?;
        }
        self.durable = self.end() + bytes.len() as u64;
        self.appended.clear();
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.sync {
            return self.commit(bytes);
        }
        self.put(bytes)?;
        self.appended.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.appended.is_empty() { Ok(()) } else { self.commit(&[]) }
    }

    fn to_sync(&mut self) -> io::Result<Option<ToSync>> {
        if self.sync {
            return Ok(None);
        }
        Ok(Some(ToSync::new(self.file.try_clone()?, &self.synced)))
    }

    fn give_back_room(&mut self) {
        // Where the file is not what it should be, or not ours, it stays as it is.
        if self.reserved > self.end() && !self.torn && self.check_place().is_ok() {
            // It costs room alone.
            let _kept = self.cut_back();
        }
    }

    fn abandon(&mut self) {
        // Where it is not empty, or another one by now, it stays.
        if self.end() == 0 && self.check_name().is_ok() && self.cut_back().is_ok() {
            let folder = self.path.parent().unwrap_or(Path::new("/"));
            let _stays = fs::remove_file(&self.path).and_then(|()| fs::remove_dir(folder));
        }
    }

    fn is_quick(&self) -> bool {
        !self.sync
    }

    fn chain(&self) -> Option<String> {
        Some(self.chain.clone())
    }

    fn next_file(&mut self, bytes: u64) -> io::Result<Option<String>> {
        if self.end() < self.full || self.torn {
            return Ok(None);
        }
        self.sync()?;
        if !self.sync {
            // Heads in the next one say what is in this one, too; what there is to write is what came since the last.
            self.synced.sync_full(&self.file)?;
        }
        // Nobody looks at this one any more.
        self.check_name()?;
        let name = file_name(self.number + 1);
        let path = self.path.with_file_name(&name);
        let file = match begin(&path) {
            // Begun before, and then there was no room: nothing was ever written to it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                OpenOptions::new().write(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(&path)?
            }
            begun => begun?,
        };
        let mut next = Self {
            number: self.number + 1,
            sync: self.sync,
            synced: self.synced.clone(),
            can_reserve: self.can_reserve,
            ..Self::at_the_start(file, path, self.chain.clone(), self.full)?
        };
        next.reserve(bytes)?;
        self.give_back_room();
        *self = next;
        Ok(Some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_that_is_set_aside_outlives_a_write_that_failed() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = FileJournal::create(&folder.path().join("audit")).unwrap();
        journal.reserve(1 << 20).unwrap();
        journal.commit(b"whole\n").unwrap();
        assert!(journal.can_reserve, "the file system of temporary files sets room aside");
        let room = |journal: &FileJournal| journal.file.metadata().unwrap().blocks() * 512;
        let before = room(&journal);
        assert!(before >= 1 << 20, "{before}");
        journal.file.write_all_at(b"ha", journal.end()).unwrap();
        journal.tear();
        assert_eq!((room(&journal), journal.file.metadata().unwrap().len()), (before, 6));
        journal.commit(b"again\n").unwrap();
        assert_eq!((room(&journal), fs::read(journal.path()).unwrap()), (before, b"whole\nagain\n".to_vec()));
    }
}
