//! The file of all heads beside the chains: one line a head, added to by every harness, and taken out of by a person.
//!
//! Whoever writes has it locked. What is taken out makes a new file, so that it is whole at every moment; who waited for
//! the lock meanwhile looks whether the file is still the one that has the name.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use serde::Deserialize;

use super::{
    head::{HEADS, SignedHead},
    heads::{HeadSink, NotKept, lines_of},
    lock_file::LockFile,
    private_folder::replace_private,
};

/// How long, and how often, the lock is tried.
const LOCK_TIME: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The file.
pub(super) struct HeadFile {
    pub(super) path: PathBuf,
}

impl HeadSink for HeadFile {
    fn keep<'a>(&'a mut self, heads: &'a [SignedHead]) -> BoxFuture<'a, Result<(), NotKept>> {
        Box::pin(async { self.append(heads) })
    }
}

impl HeadFile {
    fn append(&self, heads: &[SignedHead]) -> Result<(), NotKept> {
        // Several harnesses write to it; none does for long.
        let mut file = lock(&self.path, true)?;
        let mut text = lines_of(heads)?;
        if !ends_whole(&mut file)? {
            text.insert(0, '\n');
        }
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        Ok(())
    }
}

/// Opens the file and locks it, once it is the one that has its name.
fn lock(path: &Path, create: bool) -> io::Result<LockFile> {
    let until = Instant::now() + LOCK_TIME;
    loop {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(create).mode(0o600).custom_flags(O_NOFOLLOW | O_NONBLOCK);
        let left = until.saturating_duration_since(Instant::now());
        let file = LockFile::lock_in_time(options.open(path)?, left, LOCK_PAUSE)?;
        let (ours, named) = (file.metadata()?, path.symlink_metadata());
        if named.is_ok_and(|named| (named.dev(), named.ino()) == (ours.dev(), ours.ino())) {
            return Ok(file);
        }
    }
}

/// Whether there is no half line at the end, as a crash leaves it.
fn ends_whole(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Takes the heads of these chains out of the file in an audit folder, and says of which there were any. Lines that are
/// no heads stay.
///
/// # Errors
/// When it cannot be locked, read or replaced. Then it is as it was.
pub fn forget_heads(audit: &Path, chains: &BTreeSet<String>) -> io::Result<BTreeSet<String>> {
    #[derive(Deserialize)]
    struct Of {
        chain: String,
    }
    let path = audit.join(HEADS);
    let locked = match lock(&path, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        locked => locked?,
    };
    let of = |line: &[u8]| serde_json::from_slice::<Of>(line).ok().map(|of| of.chain);
    let (mut forgotten, mut kept, mut line) = (BTreeSet::new(), Vec::new(), Vec::new());
    let mut lines = BufReader::new(&*locked);
    while lines.read_until(b'\n', &mut line)? > 0 {
        match of(&line).filter(|chain| chains.contains(chain)) {
            Some(chain) => drop(forgotten.insert(chain)),
            None => kept.extend_from_slice(&line),
        }
        line.clear();
    }
    if !forgotten.is_empty() {
        replace_private(&path, |file| {
            file.write_all(&kept)?;
            file.sync_all()
        })?;
        File::open(audit)?.sync_all()?;
    }
    Ok(forgotten)
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    fn head(chain: &str, seq: u64) -> SignedHead {
        let text = String::new;
        SignedHead { chain: chain.into(), seq, hash: text(), time: text(), key: text(), signature: text() }
    }

    #[test]
    fn heads_of_a_chain_are_taken_out_and_all_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(HEADS);
        let chains = BTreeSet::from(["a".to_owned()]);
        assert!(forget_heads(folder.path(), &chains).unwrap().is_empty());
        assert!(!path.exists());
        let file = HeadFile { path: path.clone() };
        file.append(&[head("a", 1), head("b", 1), head("a", 2)]).unwrap();
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"half").unwrap();
        assert_eq!(forget_heads(folder.path(), &chains).unwrap(), chains);
        file.append(&[head("a", 3)]).unwrap();
        let lines = format!("{}{{\"half\n{}", lines_of(&[head("b", 1)]).unwrap(), lines_of(&[head("a", 3)]).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), lines);
    }

    #[test]
    fn who_adds_heads_meanwhile_loses_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(HEADS);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let file = HeadFile { path: path.clone() };
                    (0..50).for_each(|seq| file.append(&[head("kept", seq), head("gone", seq)]).unwrap());
                });
            }
            scope.spawn(|| {
                let gone = BTreeSet::from(["gone".to_owned()]);
                (0..50).for_each(|_| drop(forget_heads(folder.path(), &gone).unwrap()));
            });
        });
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().filter(|line| line.contains("kept")).count(), 100, "{text}");
    }
}
