//! Where file systems are mounted, as the kernel says in `/proc/self/mountinfo`, and so by what other paths the same
//! files show: a bind mount, or one file system that is mounted twice.
//!
//! Files that another file system makes of these (an overlay, an export over the network) are others to the kernel: they
//! are not found here. What cannot be read is an empty table.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// All mounts that this process sees, in the kernel's order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountTable(Vec<Mounted>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mounted {
    /// The file system, by its number.
    device: Vec<u8>,
    /// The folder or file of the file system that shows.
    root: PathBuf,
    /// Where it shows.
    at: PathBuf,
    /// Its type, as the kernel names it.
    kind: Vec<u8>,
}

impl MountTable {
    /// The table as it is now.
    #[must_use]
    pub fn read() -> Self {
        Self::parse(&fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    fn parse(text: &[u8]) -> Self {
        let mounted = |line: &[u8]| {
            let mut columns = line.split(|byte| *byte == b' ').skip(2);
            let (device, root, at) = (columns.next()?, columns.next()?, columns.next()?);
            // Options follow, as many as there are, and a dash.
            let kind = columns.skip_while(|column| *column != b"-").nth(1)?;
            Some(Mounted { device: device.to_owned(), root: unescaped(root), at: unescaped(at), kind: kind.to_owned() })
        };
        Self(text.split(|byte| *byte == b'\n').filter_map(mounted).collect())
    }

    /// Where other file systems are mounted below this folder.
    #[must_use]
    pub fn below(&self, folder: &Path) -> Vec<PathBuf> {
        let all = self.0.iter().map(|mounted| &mounted.at);
        all.filter(|at| *at != folder && at.starts_with(folder)).cloned().collect()
    }

    /// Where file systems are mounted whose type begins with one of these names.
    pub fn of_types(&self, names: &[&str]) -> impl Iterator<Item = &Path> {
        let is_one = |mounted: &&Mounted| names.iter().any(|name| mounted.kind.starts_with(name.as_bytes()));
        self.0.iter().filter(is_one).map(|mounted| mounted.at.as_path())
    }

    /// Where else what is at this path shows, or a part of it that is mounted by itself. The path has no links in it.
    #[must_use]
    pub fn other_places(&self, path: &Path) -> Vec<PathBuf> {
        let places = self.candidates(path).into_iter();
        let is_other = |place: &PathBuf| !place.starts_with(path);
        let shows = |(place, original): (PathBuf, PathBuf)| is_same(&place, &original).then_some(place);
        let mut found: Vec<PathBuf> = places.filter_map(shows).filter(is_other).collect();
        found.sort();
        found.dedup();
        found
    }

    /// By the table alone: where the path, or a part of it, would show, and which part that is.
    fn candidates(&self, path: &Path) -> Vec<(PathBuf, PathBuf)> {
        // Of several at one place the last covers the others.
        let above = self.0.iter().filter(|mounted| path.starts_with(&mounted.at));
        let Some(own) = above.max_by_key(|mounted| mounted.at.components().count()) else { return Vec::new() };
        let Ok(rest) = path.strip_prefix(&own.at) else { return Vec::new() };
        let inner = joined(&own.root, rest);
        let place = |other: &Mounted| match (inner.strip_prefix(&other.root), other.root.strip_prefix(&inner)) {
            (Ok(rest), _) => Some((joined(&other.at, rest), path.to_owned())),
            (_, Ok(part)) => Some((other.at.clone(), joined(path, part))),
            _ => None,
        };
        self.0.iter().filter(|other| other.device == own.device).filter_map(place).collect()
    }
}

/// Without the slash that an empty end would leave.
fn joined(path: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { path.to_owned() } else { path.join(rest) }
}

/// Whether both are the same file: another mount may cover either. Where the first cannot be looked at, nothing shows.
fn is_same(place: &Path, original: &Path) -> bool {
    match (place.symlink_metadata(), original.symlink_metadata()) {
        (Ok(place), Ok(original)) => (place.dev(), place.ino()) == (original.dev(), original.ino()),
        (found, _) => found.is_ok(),
    }
}

/// The kernel writes blanks, tabs, line breaks and backslashes as three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let digits = text.get(at + 1..at + 4).filter(|_| *byte == b'\\');
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        out.push(code.unwrap_or(*byte));
        at += if code.is_some() { 4 } else { 1 };
    }
    PathBuf::from(OsStr::from_bytes(&out))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"1 0 8:1 / / rw - ext4 a rw\n\
        2 1 8:2 /@home /home rw - btrfs b rw\n\
        3 1 8:2 / /mnt/top rw - btrfs b rw\n\
        4 1 8:2 /@home/u/.ssh/keys /srv/k rw - btrfs b rw\n\
        5 1 8:3 / /other rw - ext4 c rw\n\
        6 1 8:1 /srv/proj /mnt/p\\040j rw - ext4 a rw\n";

    fn candidates(path: &str) -> Vec<(String, String)> {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let found = MountTable::parse(TABLE).candidates(Path::new(path));
        found.into_iter().map(|(place, original)| (text(place), text(original))).collect()
    }

    #[test]
    fn files_are_found_where_they_are_mounted_again_whole_or_in_part() {
        let same = |place: &str, original: &str| (place.to_owned(), original.to_owned());
        let ssh = "/home/u/.ssh";
        let expected = [same(ssh, ssh), same("/mnt/top/@home/u/.ssh", ssh), same("/srv/k", "/home/u/.ssh/keys")];
        assert_eq!(candidates(ssh), expected);
        let inside = "/srv/proj/server.py";
        assert_eq!(candidates(inside), [same(inside, inside), same("/mnt/p j/server.py", inside)]);
        assert_eq!(candidates("/other/x"), [same("/other/x", "/other/x")]);
        let table = MountTable::parse(TABLE);
        assert_eq!(table.of_types(&["btr", "nfs"]).collect::<Vec<_>>(), ["/home", "/mnt/top", "/srv/k"].map(Path::new));
    }

    #[test]
    fn what_is_mounted_once_shows_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let below = MountTable::read().other_places(&real.join("missing"));
        assert_eq!(below, Vec::<PathBuf>::new());
        assert!(MountTable::read().below(Path::new("/")).iter().any(|path| path == Path::new("/proc")));
    }

    #[test]
    fn escapes_of_the_kernel_are_read() {
        assert_eq!(unescaped(br"/a\040b\134c\0"), PathBuf::from(r"/a b\c\0"));
    }
}
