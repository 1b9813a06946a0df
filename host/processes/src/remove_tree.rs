//! Removing a folder that others filled: nothing that is in it makes that take more than a little stack and a few descriptors.
//!
//! Folders may be nested deeper than a path is long, than a stack is deep and than a process has descriptors. So nothing goes
//! down: what is in a folder of the top one and is a folder with something in it is moved to the top, and emptied there in its
//! turn. All of it is reached by descriptors, and no link is followed.
//!
//! Failure: what cannot be removed stays, and all else goes; the first error is given. Whoever fills it faster than it is emptied
//! keeps nobody for ever: it is given up after a while.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
    path::Path,
};

use footbridge_core::random::random_text;
use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, fchmod, fstat, openat, renameat, unlinkat},
    io::Errno,
    path::Arg,
};

/// How often it is looked through again as long as something goes: others may still write there, and where a folder cannot
/// take more, what is in it has to go before more can be moved there.
const ROUNDS: usize = 64;
/// Entries that are looked at before it is given up.
const MOST: u64 = 1_000_000;

/// What a folder is opened with.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes a folder of this user with all that is in it, or a link in its place. Folders that are closed are opened first.
///
/// # Errors
/// When something of it stays, with the first reason.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    remove_up_to(MOST, path)
}

/// The same, looking at so many entries at most.
fn remove_up_to(most: u64, path: &Path) -> io::Result<()> {
    let top = match open_folder(CWD, path) {
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(unlinkat(CWD, path, AtFlags::empty())?),
        top => top?,
    };
    // No name that somebody could have taken.
    let prefix = format!(".{}.", random_text::<12>().map_err(io::Error::other)?);
    let mut tree = Tree { top, prefix, most, looked: 0, moved: 0, emptied: 0, removed: 0, failed: None };
    for _ in 0..ROUNDS {
        tree.look_through();
        if tree.is_endless() {
            return Err(io::Error::other("there is no end of what is in it"));
        }
        match unlinkat(CWD, path, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) if tree.removed > 0 => {}
            Ok(()) => return Ok(()),
            Err(error) => return Err(tree.failed.unwrap_or(error).into()),
        }
    }
    Err(tree.failed.unwrap_or(Errno::NOTEMPTY).into())
}

/// A tree on its way out.
struct Tree {
    top: OwnedFd,
    prefix: String,
    /// How many entries are looked at, and how many were.
    most: u64,
    looked: u64,
    /// How many folders were moved to the top, and how many of these have had their turn.
    moved: u64,
    emptied: u64,
    /// How much went in this round, and what did not first.
    removed: u64,
    failed: Option<Errno>,
}

impl Tree {
    fn look_through(&mut self) {
        (self.removed, self.failed) = (0, None);
        let opened = openat(&self.top, c".", FOLDER, Mode::empty()).and_then(Dir::new);
        let Some(mut entries) = self.noting(opened) else { return };
        while let Some((name, kind)) = self.next(&mut entries) {
            let Some(top) = self.noting(entries.fd()) else { return };
            if self.remove(top, &name, kind) == Removal::HoldsMore {
                self.empty(&name);
            }
            // At once, so that the top one holds few.
            while self.emptied < self.moved && !self.is_endless() {
                let name = self.name_of(self.emptied);
                self.emptied += 1;
                self.empty(&name);
            }
        }
    }

    /// Empties a folder of the top one, and removes it.
    fn empty(&mut self, name: &CStr) {
        let opened = open_folder(&self.top, name).and_then(Dir::new);
        let Some(mut entries) = self.noting(opened) else { return };
        while let Some((inner, kind)) = self.next(&mut entries) {
            let Some(from) = self.noting(entries.fd()) else { return };
            if self.remove(from, &inner, kind) == Removal::HoldsMore {
                self.take_up(from, &inner);
            }
        }
        drop(entries);
        let removed = unlinkat(&self.top, name, AtFlags::REMOVEDIR);
        self.removed += u64::from(self.noting(removed).is_some());
    }

    /// Moves a folder to the top.
    fn take_up(&mut self, from: BorrowedFd<'_>, name: &CStr) {
        let to = self.name_of(self.moved);
        let rename = || renameat(from, name, &self.top, &to);
        let moved = match rename() {
            // It changes which folder it is in, so it has to be open itself.
            Err(Errno::ACCESS) => open_up(from, name).and_then(|()| rename()),
            moved => moved,
        };
        self.moved += u64::from(self.noting(moved).is_some());
    }

    /// Removes what is no folder, or an empty one.
    fn remove(&mut self, at: BorrowedFd<'_>, name: &CStr, kind: FileType) -> Removal {
        let mut removed = Err(Errno::ISDIR);
        // What a file system does not say is found out.
        if kind != FileType::Directory {
            removed = unlinkat(at, name, AtFlags::empty());
        }
        if removed == Err(Errno::ISDIR) {
            removed = unlinkat(at, name, AtFlags::REMOVEDIR);
        }
        if let Err(Errno::NOTEMPTY | Errno::EXIST) = removed {
            return Removal::HoldsMore;
        }
        self.removed += u64::from(self.noting(removed).is_some());
        Removal::Done
    }

    fn name_of(&self, number: u64) -> CString {
        // Neither has a zero in it.
        CString::new(format!("{}{number}", self.prefix)).unwrap_or_default()
    }

    fn next(&mut self, entries: &mut Dir) -> Option<(CString, FileType)> {
        while !self.is_endless() {
            self.looked += 1;
            let entry = entries.read()?;
            let entry = self.noting(entry)?;
            if entry.file_name() != c"." && entry.file_name() != c".." {
                return Some((entry.file_name().to_owned(), entry.file_type()));
            }
        }
        None
    }

    fn is_endless(&self) -> bool {
        self.looked > self.most
    }

    /// What there is, if it did not fail. What is gone by now is no failure.
    fn noting<T>(&mut self, done: rustix::io::Result<T>) -> Option<T> {
        match done {
            Ok(value) => Some(value),
            Err(Errno::NOENT) => None,
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }
}

/// What came of removing a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Removal {
    /// It is gone, or why not is noted.
    Done,
    /// It is a folder that is not empty.
    HoldsMore,
}

/// Opens a folder to empty it.
fn open_folder(at: impl AsFd, name: impl Arg + Copy) -> rustix::io::Result<OwnedFd> {
    let open = || openat(&at, name, FOLDER, Mode::empty());
    let folder = match open() {
        Err(Errno::ACCESS) => open_up(&at, name).and_then(|()| open())?,
        folder => folder?,
    };
    if fstat(&folder)?.st_mode & 0o700 != 0o700 {
        // Where it is another user's, removing fails and says so.
        let _not_ours = fchmod(&folder, Mode::RWXU);
    }
    Ok(folder)
}

/// Gives a folder back the rights that its owner took from it. Not by its name, in whose place there could be a link by now.
fn open_up(at: impl AsFd, name: impl Arg) -> rustix::io::Result<()> {
    let held = openat(at, name, FOLDER | OFlags::PATH, Mode::empty())?;
    chmodat(CWD, format!("/proc/self/fd/{}", held.as_raw_fd()), Mode::RWXU, AtFlags::empty())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt as _, symlink},
        process::Command,
        thread,
    };

    use rustix::fs::mkdirat;

    use super::*;

    /// Set in the process of a test that may open few files.
    const FEW: &str = "FOOTBRIDGE_TEST_OF_FEW_FILES";

    /// Folders in folders, and files in some.
    pub(crate) fn deep(top: &Path, levels: u32) {
        fs::create_dir(top).unwrap();
        let mut at = openat(CWD, top, FOLDER, Mode::empty()).unwrap();
        for level in 0..levels {
            mkdirat(&at, c"d", Mode::RWXU).unwrap();
            if level % 100 == 0 {
                openat(&at, c"file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
                mkdirat(&at, c"e", Mode::RWXU).unwrap();
            }
            at = openat(&at, c"d", FOLDER, Mode::empty()).unwrap();
        }
    }

    /// Goes on with the test that calls this, in this folder, in another process: the limits of this one are others' too.
    pub(crate) fn with_few_files(folder: &Path, test: impl FnOnce(&Path)) {
        if let Some(folder) = std::env::var_os(FEW) {
            return test(Path::new(&folder));
        }
        let name = thread::current().name().unwrap().to_owned();
        let mut child = Command::new("/bin/sh");
        child.args(["-c", "ulimit -n 20 && exec \"$0\" --exact \"$1\" --test-threads 2"]);
        let output = child.arg(std::env::current_exe().unwrap()).arg(name).env(FEW, folder).output().unwrap();
        // What is left would keep this folder, and with it the test's own, from being removed.
        let left: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        left.iter().for_each(|path| remove_tree(path).unwrap());
        assert!(output.status.success() && left.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    }

    #[test]
    fn a_deep_tree_is_removed_with_a_small_stack_and_few_descriptors() {
        let folder = tempfile::tempdir().unwrap();
        with_few_files(folder.path(), |folder| {
            let top = folder.join("top");
            deep(&top, 6000);
            let remove = move || remove_tree(&top);
            thread::Builder::new().stack_size(64 << 10).spawn(remove).unwrap().join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_wide_tree_of_all_kinds_is_removed_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (top, other) = (folder.path().join("top"), folder.path().join("other"));
        fs::create_dir_all(other.join("inner")).unwrap();
        for name in 0..50 {
            fs::create_dir_all(top.join(format!("{name}/a/b/c"))).unwrap();
            fs::write(top.join(format!("{name}/a/file")), "").unwrap();
            symlink(&other, top.join(format!("{name}/a/b/link"))).unwrap();
            symlink("nowhere", top.join(format!("{name}/link"))).unwrap();
        }
        symlink(&other, top.join("link")).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists() && other.join("inner").exists());
        symlink(&other, &top).unwrap();
        remove_tree(&top).unwrap();
        assert!(top.symlink_metadata().is_err() && other.join("inner").exists());
        assert_eq!(remove_tree(&top).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_has_no_end_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("top");
        (0..50).for_each(|name| fs::create_dir_all(top.join(format!("{name}/a/b"))).unwrap());
        let error = remove_up_to(100, &top).unwrap_err();
        assert!(error.to_string().contains("no end") && top.exists(), "{error}");
        remove_tree(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn what_was_closed_is_opened_first() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("top");
        fs::create_dir_all(top.join("one/two/three/four")).unwrap();
        for (name, mode) in [("one/two/three", 0), ("one/two", 0o500), ("one", 0o300), ("", 0)] {
            fs::set_permissions(top.join(name), Permissions::from_mode(mode)).unwrap();
        }
        remove_tree(&top).unwrap();
        assert!(!top.exists());
    }
}
