//! What there is on this machine that a view has to know of: bound sockets, and in folders of work what others than the
//! command run or obey.
//!
//! What cannot be read is passed over where it only adds to a list: the kernel's own files are always there.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use super::places::{GUARDED, GUARDED_IN_GIT};

/// Folders of git in one of git that are looked at: submodules can have submodules.
const DEPTH: usize = 4;

/// Bytes of git's settings that are read.
const MOST: u64 = 4 << 20;

/// The socket files of this network namespace at which somebody listens now.
pub fn bound_sockets() -> Vec<PathBuf> {
    let text = fs::read("/proc/net/unix").unwrap_or_default();
    let is_socket = |path: &PathBuf| fs::metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    text.split(|byte| *byte == b'\n').skip(1).filter_map(bound_path).filter(is_socket).collect()
}

/// The path in a line of `/proc/net/unix`: what follows the seventh column, if it is one.
fn bound_path(line: &[u8]) -> Option<PathBuf> {
    let mut rest = line;
    for _ in 0..7 {
        let start = rest.iter().position(|byte| *byte != b' ')?;
        let end = rest[start..].iter().position(|byte| *byte == b' ')?;
        rest = &rest[start + end..];
    }
    let path = Path::new(OsStr::from_bytes(rest.strip_prefix(b" ")?));
    path.is_absolute().then(|| path.to_owned())
}

/// All names in this folder that others run or obey, whether they are there or not.
pub fn guarded(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = GUARDED.iter().map(|name| folder.join(name)).collect();
    let git = folder.join(".git");
    if git.is_dir() {
        all.extend(guarded_in_git(&git, folder, DEPTH));
    } else {
        all.push(git);
    }
    if is_git(folder) {
        all.extend(guarded_in_git(folder, folder, DEPTH));
    }
    all
}

fn is_git(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir()
}

/// Those of a folder of git, of the work trees and submodules that it holds, and what its settings lead to.
fn guarded_in_git(git: &Path, tree: &Path, depth: usize) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = GUARDED_IN_GIT.iter().map(|name| git.join(name)).collect();
    all.extend(named_by_settings(git, tree));
    if depth > 0 {
        for inner in
            git_folders_below(&git.join("modules"), depth).into_iter().chain(folders_in(&git.join("worktrees")))
        {
            all.extend(guarded_in_git(&inner, tree, depth - 1));
        }
    }
    all
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir() && !path.is_symlink()).collect()
}

/// A submodule's name may have slashes, so its folder of git may be deeper.
fn git_folders_below(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let deeper = |inner: PathBuf| match (is_git(&inner), depth) {
        (true, _) => vec![inner],
        (false, 0) => Vec::new(),
        (false, depth) => git_folders_below(&inner, depth - 1),
    };
    folders_in(folder).into_iter().flat_map(deeper).collect()
}

/// Files and folders that git's settings name as hooks or as more settings, within the work tree.
fn named_by_settings(git: &Path, tree: &Path) -> Vec<PathBuf> {
    let text = settings(&git.join("config")).unwrap_or_default();
    let named = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let value = value.trim().trim_matches('"');
        match key.trim().to_ascii_lowercase().as_str() {
            "hookspath" => Some(tree.join(value)),
            "path" => Some(git.join(value)),
            _ => None,
        }
    };
    let tree = tree.canonicalize().unwrap_or_else(|_| tree.to_owned());
    let real = |path: PathBuf| path.canonicalize().ok();
    text.lines().filter_map(named).filter_map(real).filter(|path| *path != tree && path.starts_with(&tree)).collect()
}

/// The text of a regular file: an earlier command may have left a pipe in its place, for which one would wait.
fn settings(path: &Path) -> Option<String> {
    let file = File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path).ok()?;
    let is_file = file.metadata().ok()?.is_file();
    let mut bytes = Vec::new();
    file.take(if is_file { MOST } else { 0 }).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_path_is_what_follows_the_seventh_column() {
        let line = b"0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/a b/s";
        assert_eq!(bound_path(line), Some(PathBuf::from("/run/a b/s")));
        assert_eq!(bound_path(b"0: 2 0 1 1 1 12345 @/tmp/.X11-unix/X0"), None);
        assert_eq!(bound_path(b"0: 2 0 1 1 1 12345"), None);
    }

    #[test]
    fn a_socket_that_is_bound_is_found_and_one_that_is_left_behind_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (bound, left) = (folder.path().join("bound"), folder.path().join("left"));
        let _listener = std::os::unix::net::UnixListener::bind(&bound).unwrap();
        drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
        let found = bound_sockets();
        assert!(found.contains(&bound) && !found.contains(&left));
    }

    #[test]
    fn hooks_are_found_in_submodules_and_where_settings_name_them() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().canonicalize().unwrap();
        let module = tree.join(".git/modules/deep/one");
        fs::create_dir_all(module.join("objects")).unwrap();
        fs::create_dir_all(tree.join("my-hooks")).unwrap();
        fs::write(module.join("HEAD"), "").unwrap();
        fs::write(tree.join(".git/config"), "[core]\n\thooksPath = my-hooks\n[include]\n\tpath = ../shared\n").unwrap();
        fs::write(tree.join("shared"), "").unwrap();
        let found = guarded(&tree);
        for path in [".git/config", ".git/hooks", ".git/modules/deep/one/hooks", "my-hooks", "shared", ".vscode"] {
            assert!(found.contains(&tree.join(path)), "{path}");
        }
        assert!(!found.contains(&tree.join(".git")));
    }

    #[test]
    fn a_pipe_in_place_of_git_s_settings_holds_nothing_up() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().canonicalize().unwrap().join(".git");
        fs::create_dir(&git).unwrap();
        nix::unistd::mkfifo(&git.join("config"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(guarded(folder.path()).iter().any(|path| path.ends_with(".git/config")));
    }
}
