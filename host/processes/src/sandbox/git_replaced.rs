//! What of a folder of git has git show other commits, trees and files than there are: replacements (`refs/replace/`, in
//! files of their own and in `packed-refs`), other parents (`info/grafts`), and commits that have none (`shallow`).
//!
//! A command that commits may write all of them. By one that it adds `git diff` outside shows what nobody gets who clones
//! the branch. Nothing is changed here, no link is followed, and what could not be looked at is said.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use footbridge_core::digest::Digest;
use rustix::fs::{Dir, Mode, OFlags, openat};

use crate::regular_file::open_regular_in;

/// Where replacements are, from the folder of git.
const REPLACE: [&str; 2] = ["refs", "replace"];
const PACKED: &str = "packed-refs";
/// In a line of that.
const IN_PACKED: &str = " refs/replace/";
/// Files that change what a commit's parents are.
const PARENTS: [(Option<&str>, &str); 2] = [(Some("info"), "grafts"), (None, "shallow")];

/// Replacements of one folder, how deep in folders they are, and bytes of one file.
const MAX_NAMES: usize = 10_000;
const MAX_DEPTH: usize = 16;
const MAX_BYTES: u64 = 64 << 20;

/// What there is, each name from the folder of git with what it says, and whether all could be looked at: one that cannot
/// be keeps no other from being found.
pub(super) fn replaced_in(at: &impl AsFd, until: Instant) -> (BTreeMap<String, Digest>, bool) {
    let mut found = Found { all: BTreeMap::new(), until };
    let mut went = vec![found.add_loose(at)];
    for (folder, name) in PARENTS {
        went.push(found.add_parents(at, folder, name));
    }
    went.push(found.add_packed(at));
    (found.all, went.iter().all(Result::is_ok))
}

struct Found {
    all: BTreeMap<String, Digest>,
    until: Instant,
}

impl Found {
    fn add(&mut self, name: String, says: &[u8]) -> io::Result<()> {
        if self.all.len() >= MAX_NAMES || Instant::now() > self.until {
            return Err(too_much());
        }
        // What is packed comes last, and another file of its name holds.
        self.all.entry(name).or_insert_with(|| Digest::of(says));
        Ok(())
    }

    fn add_loose(&mut self, at: &impl AsFd) -> io::Result<()> {
        if let Some(refs) = folder_in(at, REPLACE[0])?
            && let Some(replace) = folder_in(&refs, REPLACE[1])?
        {
            self.add_below(&replace, &REPLACE.join("/"), MAX_DEPTH)?;
        }
        Ok(())
    }

    fn add_parents(&mut self, at: &impl AsFd, folder: Option<&str>, name: &str) -> io::Result<()> {
        let Some(folder) = folder else { return self.add_file(at, name, name.to_owned()) };
        match folder_in(at, folder)? {
            Some(inner) => self.add_file(&inner, name, format!("{folder}/{name}")),
            None => Ok(()),
        }
    }

    /// What is a link, or no file, is there as well.
    fn add_file(&mut self, at: &impl AsFd, name: &str, shown: String) -> io::Result<()> {
        let mut text = Vec::new();
        match open_regular_in(at, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => {
                if let Some(file) = found? {
                    file.take(MAX_BYTES + 1).read_to_end(&mut text)?;
                }
            }
        }
        if text.len() as u64 > MAX_BYTES {
            return Err(too_much());
        }
        self.add(shown, text.trim_ascii())
    }

    fn add_packed(&mut self, at: &impl AsFd) -> io::Result<()> {
        let file = match open_regular_in(at, PACKED) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        // A link there is git's to refuse, or is set aside.
        let Some(file) = file else { return Ok(()) };
        let (mut lines, mut line) = (BufReader::new(file.take(MAX_BYTES + 1)), Vec::new());
        let mut read = 0;
        while lines.read_until(b'\n', &mut line)? > 0 {
            read += line.len() as u64;
            if read > MAX_BYTES || Instant::now() > self.until {
                return Err(too_much());
            }
            let text = String::from_utf8_lossy(line.trim_ascii());
            if let Some((id, name)) = text.split_once(IN_PACKED) {
                self.add(format!("{}{name}", IN_PACKED.trim_start()), id.as_bytes())?;
            }
            line.clear();
        }
        Ok(())
    }

    fn add_below(&mut self, folder: &OwnedFd, shown: &str, depth: usize) -> io::Result<()> {
        let mut went = Ok(());
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == "." || name == ".." {
                continue;
            }
            if Instant::now() > self.until {
                return Err(too_much());
            }
            let below = format!("{shown}/{name}");
            let this = folder_in(folder, &name).and_then(|inner| match inner {
                Some(_) if depth == 0 => Err(too_much()),
                Some(inner) => self.add_below(&inner, &below, depth - 1),
                None => self.add_file(folder, &name, below),
            });
            went = went.and(this);
        }
        went
    }
}

/// Nothing where there is none, or something else.
fn folder_in(at: &impl AsFd, name: &str) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(at, name, flags, Mode::empty()) {
        Ok(folder) => Ok(Some(folder)),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn too_much() -> io::Error {
    io::Error::other("there is too much of it")
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use super::*;

    #[test]
    fn replacements_and_other_parents_are_found_by_what_they_say_wherever_git_keeps_them() {
        let place = tempfile::tempdir().unwrap();
        let (at, soon) = (|name: &str| place.path().join(name), Instant::now() + Duration::from_secs(60));
        let looks = || replaced_in(&File::open(place.path()).unwrap(), soon);
        let found = || {
            let (found, is_whole) = looks();
            assert!(is_whole);
            found
        };
        assert!(found().is_empty());
        for folder in ["refs/replace/deep", "refs/heads", "info"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for (name, text) in [
            ("packed-refs", "# pack-refs with: peeled\naa refs/heads/x\nbb refs/replace/11\n^cc\n"),
            ("refs/heads/main", "aa\n"),
            ("refs/replace/22", "bb\n"),
            ("refs/replace/deep/33", "bb\n"),
            ("info/grafts", "11 22\n"),
            ("info/exclude", "x\n"),
            ("shallow", "11\n"),
        ] {
            fs::write(at(name), text).unwrap();
        }
        symlink("../heads/main", at("refs/replace/44")).unwrap();
        let before = found();
        let names = ["info/grafts", "refs/replace/11", "refs/replace/22", "refs/replace/44", "refs/replace/deep/33"];
        assert_eq!(before.keys().map(String::as_str).collect::<Vec<_>>(), [&names[..], &["shallow"]].concat());
        assert_eq!(before["refs/replace/11"], before["refs/replace/22"], "packed or not");
        fs::write(at("refs/replace/22"), "dd\n").unwrap();
        assert_ne!(found()["refs/replace/22"], before["refs/replace/22"]);
        assert!(!replaced_in(&File::open(place.path()).unwrap(), Instant::now() - Duration::from_secs(1)).1);
        // What cannot be looked at keeps nothing else from being found.
        fs::create_dir_all(at(&format!("refs/replace/{}", "a/".repeat(MAX_DEPTH + 2)))).unwrap();
        let (found, is_whole) = looks();
        assert!(!is_whole && found.len() == before.len(), "{found:?}");
    }
}
