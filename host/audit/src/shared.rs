//! One chain that several processes write to, a moment each: that of one-shot calls.
//!
//! A write is a turn: the lock is taken, the end of the chain is read, the lines go behind it and are synced, and the
//! lock is free. Nobody holds it while a call runs. Half a line at the end is what a process left that was killed while
//! it wrote: nothing was done on the strength of it, so the next turn cuts it off. A turn that cannot be had in time
//! fails like a full disk does.
//!
//! The chain is the newest folder `one-shot-TIME-RANDOM` of the audit folder, and the lock `one-shot.lock` beside it. A
//! folder of another name, or with a chain of another name in it, was moved or copied there, and stays as it is.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, BufReader, Read as _},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::Utc;
use nix::{
    errno::Errno,
    libc::{O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK},
};
use serde::Deserialize;

use crate::{
    AuditSettings,
    journal::{ChainEnd, Journal, JournalError, allocate, begin, file_name},
    lock_file::LockFile,
    private_folder::make_private,
    to_sync::{Synced, ToSync},
};
use footbridge_core::digest::Digest;

/// What the name of such a chain, and of its folder, starts with.
pub(crate) const PREFIX: &str = "one-shot-";
/// The lock, in the audit folder.
const LOCK: &str = "one-shot.lock";
/// How long, and how often, the lock is tried. Whoever has it syncs once.
const TURN_TIME: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);
/// How much of a file's end is read first, and at most, bytes. Lines are far shorter.
const TAIL: u64 = 16 * 1024;
const MAX_TAIL: u64 = 4 << 20;

/// A journal that others write to as well.
#[derive(Debug)]
pub struct SharedJournal {
    lock: PathBuf,
    folder: PathBuf,
    chain: String,
    full: u64,
    sync: bool,
    turn: Option<Turn>,
    /// What was written and not synced, and could not be cut off again. Until it is, or somebody wrote behind it, nothing
    /// more is written.
    torn: Option<Torn>,
    /// What was written to last, where that is not synced.
    unsynced: Option<File>,
    /// Whether all of that is on the disk.
    synced: Synced,
}

/// The file that is written to, for as long as nobody else may.
#[derive(Debug)]
struct Turn {
    file: File,
    number: u32,
    length: u64,
    _lock: LockFile,
}

/// Bytes at the end of a file that are in no record as far as their writer knows.
#[derive(Debug)]
struct Torn {
    number: u32,
    start: u64,
    bytes: Vec<u8>,
}

impl SharedJournal {
    /// Opens the chain of one-shot calls below `audit`, which is begun where there is none.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn open(audit: &Path, settings: &AuditSettings) -> Result<Self, JournalError> {
        make_private(audit)?;
        let (lock, io) = (audit.join(LOCK), |source| JournalError::Io { path: audit.to_owned(), source });
        let _alone = LockFile::take_in_time(&lock, TURN_TIME, PAUSE)
            .map_err(|source| JournalError::Io { path: lock.clone(), source })?;
        let chain = match newest(audit).map_err(io)? {
            Some(chain) => chain,
            None => {
                let random = footbridge_core::random::random_text::<6>()?;
                format!("{PREFIX}{}-{random}", Utc::now().format("%Y%m%dT%H%M%SZ"))
            }
        };
        let folder = audit.join(&chain);
        make_private(&folder)?;
        File::open(audit).and_then(|f| f.sync_all()).map_err(io)?;
        Ok(Self {
            lock,
            folder,
            chain,
            full: settings.file_bytes as u64,
            sync: settings.sync,
            turn: None,
            torn: None,
            unsynced: None,
            synced: Synced::default(),
        })
    }

    /// The folder of its files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, number: u32) -> PathBuf {
        self.folder.join(file_name(number))
    }

    /// Opens a file of the chain, cuts off what a process that was killed left of a line, and gives its last line.
    fn file(&mut self, number: u32) -> io::Result<(File, u64, Option<Vec<u8>>)> {
        let path = self.path(number);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC).open(&path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(unusable(&path, "is no file"));
        }
        let length = self.mended(number, &file, meta.len())?;
        let Some((whole, line)) = last_line(&file, length)? else {
            return Err(unusable(&path, "ends with a line that is too long to be a record"));
        };
        if whole < length {
            tracing::warn!(path = %path.display(), "half a line of the record was cut off: whoever wrote it was killed");
            file.set_len(whole)?;
        }
        Ok((file, whole, line))
    }

    /// Cuts off what is torn of this file, where that is all that stands there, and gives how long it is then.
    fn mended(&mut self, number: u32, file: &File, length: u64) -> io::Result<u64> {
        let Some(Torn { start, bytes, .. }) = self.torn.as_ref().filter(|torn| torn.number == number) else {
            return Ok(length);
        };
        let mut rest = vec![0; bytes.len()];
        let left = length.checked_sub(*start).and_then(|left| rest.get_mut(..usize::try_from(left).ok()?));
        let Some(left) = left.filter(|left| !left.is_empty()) else { return Ok(length) };
        file.read_exact_at(left, *start)?;
        if !bytes.starts_with(left) {
            return Ok(length);
        }
        file.set_len(*start)?;
        let start = *start;
        self.torn = None;
        Ok(start)
    }
}

impl Journal for SharedJournal {
    fn take_turn(&mut self) -> io::Result<Option<ChainEnd>> {
        self.turn = None;
        let lock = LockFile::take_in_time(&self.lock, TURN_TIME, PAUSE)?;
        let number = match newest_file(&self.folder)? {
            Some(number) => number,
            None => {
                begin(&self.path(1))?;
                1
            }
        };
        let (file, length, mut line) = self.file(number)?;
        let begun = (number > 1 && line.is_none()).then(|| file_name(number));
        if begun.is_some() {
            // Begun by somebody who wrote nothing to it.
            line = self.file(number - 1)?.2;
        }
        let end = match line {
            Some(line) => ChainEnd {
                seq: seq_of(&line).ok_or_else(|| unusable(&self.path(number), "ends with what is no record"))?,
                hash: Some(Digest::of(&line)),
                begun,
            },
            None => ChainEnd::default(),
        };
        self.turn = Some(Turn { file, number, length, _lock: lock });
        Ok(Some(end))
    }

    fn turn_time(&self) -> Duration {
        TURN_TIME
    }

    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        let Some(turn) = &self.turn else { return Ok(()) };
        match allocate(&turn.file, turn.length + bytes) {
            Ok(()) | Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(()),
            Err(errno) => {
                self.turn = None;
                Err(errno.into())
            }
        }
    }

    fn commit(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.turn.is_none() {
            self.take_turn()?;
        }
        let Some(turn) = self.turn.take() else { return Err(io::ErrorKind::WouldBlock.into()) };
        let written = turn.file.write_all_at(bytes, turn.length);
        let written = written.and_then(|()| if self.sync { turn.file.sync_data() } else { Ok(()) });
        self.torn = None;
        if written.is_err()
            && let Err(error) = turn.file.set_len(turn.length)
        {
            tracing::warn!(%error, folder = %self.folder.display(), "a record is torn; the next write mends it first");
            self.torn = Some(Torn { number: turn.number, start: turn.length, bytes: bytes.to_owned() });
        }
        self.unsynced = (!self.sync).then_some(turn.file);
        written
    }

    fn to_sync(&mut self) -> io::Result<Option<ToSync>> {
        Ok(self.unsynced.take().map(|file| ToSync::new(file, &self.synced)))
    }

    fn chain(&self) -> Option<String> {
        Some(self.chain.clone())
    }

    fn next_file(&mut self, _bytes: u64) -> io::Result<Option<String>> {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.length >= self.full) else { return Ok(None) };
        let name = file_name(turn.number + 1);
        if !self.sync {
            // Heads in the next one say what is in this one, too.
            self.synced.sync_full(&turn.file)?;
        }
        let file = begin(&self.folder.join(&name))?;
        (turn.file, turn.number, turn.length) = (file, turn.number + 1, 0);
        Ok(Some(name))
    }
}

/// The newest chain of one-shot calls.
fn newest(audit: &Path) -> io::Result<Option<String>> {
    let mut found = None;
    for entry in fs::read_dir(audit)? {
        let entry = entry?;
        if entry.file_type()?.is_dir()
            && let Ok(name) = entry.file_name().into_string()
            && is_of_ours(&name)
            && found.as_ref().is_none_or(|found| *found < name)
            && begins_as(&entry.path().join(file_name(1)), &name)
        {
            found = Some(name);
        }
    }
    Ok(found)
}

/// What comes behind the start of a chain's name: when it began, and a random text.
const TIME: &str = "YYYYMMDDTHHMMSSZ";
const RANDOM: usize = 8;

fn is_of_ours(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).and_then(|rest| rest.split_at_checked(TIME.len()));
    rest.is_some_and(|(time, random)| time.ends_with('Z') && random.len() == 1 + RANDOM && random.starts_with('-'))
}

/// Whether the chain in a file has this name. One that says nothing, or what cannot be read, is not of another name: to
/// begin anew behind it would hide that.
fn begins_as(first_file: &Path, name: &str) -> bool {
    #[derive(Deserialize)]
    struct First {
        genesis: String,
    }
    let mut line = Vec::new();
    let read = File::open(first_file).and_then(|file| BufReader::new(file.take(TAIL)).read_until(b'\n', &mut line));
    let first = read.ok().and_then(|_| serde_json::from_slice::<First>(&line).ok());
    first.is_none_or(|first| first.genesis == name)
}

/// The number of a chain's last file.
fn newest_file(folder: &Path) -> io::Result<Option<u32>> {
    let mut found = None;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".jsonl")?.parse::<u32>().ok());
        found = found.max(number.filter(|number| file_name(*number).as_str() == name));
    }
    Ok(found)
}

/// Where the last whole line of a file ends, and that line without its line break, if there is one. None where it is
/// longer than any record.
fn last_line(file: &File, length: u64) -> io::Result<Option<(u64, Option<Vec<u8>>)>> {
    let mut size = TAIL;
    loop {
        let start = length.saturating_sub(size);
        let mut tail = vec![0; usize::try_from(length - start).unwrap_or_default()];
        file.read_exact_at(&mut tail, start)?;
        let end = tail.iter().rposition(|byte| *byte == b'\n');
        let before = end.and_then(|end| tail[..end].iter().rposition(|byte| *byte == b'\n'));
        match (end, before) {
            (None, _) if start == 0 => return Ok(Some((0, None))),
            (Some(end), before) if start == 0 || before.is_some() => {
                let line = tail[before.map_or(0, |before| before + 1)..end].to_vec();
                return Ok(Some((start + end as u64 + 1, Some(line))));
            }
            _ if size >= MAX_TAIL => return Ok(None),
            _ => size *= 4,
        }
    }
}

fn seq_of(line: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Numbered {
        seq: u64,
    }
    serde_json::from_slice(line).ok().map(|Numbered { seq }| seq)
}

fn unusable(path: &Path, why: &str) -> io::Error {
    let path = path.display();
    io::Error::other(format!(
        "{path} {why}: \"footbridge audit verify\" says more; to go on with a new chain, move its folder away"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(folder: &Path) -> SharedJournal {
        SharedJournal::open(&folder.join("audit"), &AuditSettings::default()).unwrap()
    }

    #[test]
    fn what_could_not_be_synced_nor_cut_off_is_cut_off_before_it_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = journal(folder.path());
        let [first, torn, again] = [&b"{\"seq\":1}\n"[..], b"{\"seq\":2}\n", b"{\"seq\":2,\"again\":1}\n"];
        journal.commit(first).unwrap();
        // As where a sync fails and the file cannot be cut.
        journal.commit(torn).unwrap();
        journal.torn = Some(Torn { number: 1, start: first.len() as u64, bytes: torn.to_owned() });
        let chain_end = journal.take_turn().unwrap().unwrap();
        assert_eq!((chain_end.seq, chain_end.hash), (1, Some(Digest::of(first.trim_ascii_end()))));
        journal.commit(again).unwrap();
        assert_eq!(fs::read(journal.path(1)).unwrap(), [first, again].concat());
        assert!(journal.torn.is_none());
    }

    #[test]
    fn what_others_wrote_behind_it_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [mut journal, mut other] = [journal(folder.path()), journal(folder.path())];
        let [torn, behind] = [&b"{\"seq\":1}\n"[..], b"{\"seq\":2}\n"];
        journal.commit(torn).unwrap();
        journal.torn = Some(Torn { number: 1, start: 0, bytes: torn.to_owned() });
        other.commit(behind).unwrap();
        assert_eq!(journal.take_turn().unwrap().unwrap().seq, 2);
        assert_eq!(fs::read(journal.path(1)).unwrap(), [torn, behind].concat());
        drop(journal.turn.take());
        // And what they wrote in its place, also where it is no longer.
        journal.torn = Some(Torn { number: 1, start: 0, bytes: [b"{\"seq\":7}\n".as_slice(), torn, behind].concat() });
        assert_eq!(journal.take_turn().unwrap().unwrap().seq, 2);
        assert_eq!(fs::read(journal.path(1)).unwrap(), [torn, behind].concat());
    }
}
