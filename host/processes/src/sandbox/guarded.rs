//! What in a folder of work is run or obeyed by others than the command: editors, agents, shells, hooks and git, in that
//! folder and in those below it that people open by themselves, repositories above all.
//!
//! Those are looked for so deep and no deeper, and so many: what was left out is told. What cannot be read is passed over.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use super::places::{GUARDED, GUARDED_IN_GIT, OF_EDITORS};

/// Folders of git in one of git that are looked at: submodules can have submodules.
const DEPTH: usize = 4;
/// Bytes of git's settings that are read.
const MAX_SETTINGS: u64 = 4 << 20;
/// How far down other repositories are looked for.
const NESTED_DEPTH: usize = 4;
/// Folders that are looked through for them.
const MAX_LOOKED: usize = 4_096;
/// Folders that are guarded so: each is several mounts.
const MAX_NESTED: usize = 100;
/// Folders that hold what was built or fetched.
const NOT_OF_PEOPLE: [&str; 7] = [".cache", ".git", ".venv", "__pycache__", "node_modules", "target", "venv"];

/// What is run or obeyed by others in a folder.
#[derive(Debug, Default)]
pub struct Guarded {
    /// All such names in it, whether they are there or not; and those in folders below it.
    pub paths: Vec<PathBuf>,
    /// Whether there are more folders below it than were looked at.
    pub is_cut: bool,
}

/// All names in this folder and below it that others run or obey.
pub fn guarded(folder: &Path) -> Guarded {
    let mut all = Guarded { paths: guarded_in(folder), is_cut: false };
    let (mut ahead, mut looked, mut nested) = (VecDeque::from([(folder.to_owned(), 0)]), 0, 0);
    while let Some((at, depth)) = ahead.pop_front() {
        for inner in folders_in(&at) {
            if inner.file_name().is_some_and(|name| NOT_OF_PEOPLE.iter().any(|not| name == *not)) {
                continue;
            }
            let found = nested_in(&inner);
            if looked == MAX_LOOKED || (nested == MAX_NESTED && !found.is_empty()) {
                all.is_cut = true;
                return all;
            }
            looked += 1;
            nested += usize::from(!found.is_empty());
            all.paths.extend(found);
            if depth + 1 < NESTED_DEPTH {
                ahead.push_back((inner, depth + 1));
            }
        }
    }
    all
}

/// Those in a folder that may be opened by itself: all of a repository, and what editors keep elsewhere.
fn nested_in(folder: &Path) -> Vec<PathBuf> {
    if folder.join(".git").symlink_metadata().is_ok() || is_git(folder) {
        return guarded_in(folder);
    }
    OF_EDITORS.iter().map(|name| folder.join(name)).filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// All names in this folder that others run or obey, whether they are there or not.
fn guarded_in(folder: &Path) -> Vec<PathBuf> {
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
    file.take(if is_file { MAX_SETTINGS } else { 0 }).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let found = guarded(&tree).paths;
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
        assert!(guarded(folder.path()).paths.iter().any(|path| path.ends_with(".git/config")));
    }

    #[test]
    fn repositories_and_settings_of_editors_further_down_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().canonicalize().unwrap();
        for name in ["one/.git", "a/b/two/.git", "a/b/two/.claude", "part/.vscode", "part/.husky", "plain"] {
            fs::create_dir_all(tree.join(name)).unwrap();
        }
        for name in ["node_modules/x/.git", "a/b/c/d/e/.git"] {
            fs::create_dir_all(tree.join(name)).unwrap();
        }
        fs::create_dir(tree.join("linked")).unwrap();
        fs::write(tree.join("linked/.git"), "gitdir: ../one/.git/worktrees/linked\n").unwrap();
        let found = guarded(&tree);
        assert!(!found.is_cut);
        for path in
            ["one/.git/config", "one/.envrc", "a/b/two/.git/hooks", "a/b/two/.claude", "part/.vscode", "linked/.git"]
        {
            assert!(found.paths.contains(&tree.join(path)), "{path}");
        }
        for path in ["part/.husky", "plain/.vscode", "node_modules/x/.git/config", "a/b/c/d/e/.git/config"] {
            assert!(!found.paths.contains(&tree.join(path)), "{path}");
        }
        (0..=MAX_NESTED).for_each(|number| fs::create_dir_all(tree.join(format!("many/{number}/.git"))).unwrap());
        assert!(guarded(&tree).is_cut);
    }
}
