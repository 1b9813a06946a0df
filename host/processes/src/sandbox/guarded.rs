//! What in a folder of work is run or obeyed by others than the command: editors, agents, shells, hooks and git, in that
//! folder and in those below it that people open by themselves, repositories above all.
//!
//! Those are looked for so deep and no deeper, and so many: what was left out is told. What cannot be read is passed over.

use std::collections::VecDeque;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

use super::git_settings::{GitSettings, leads_to, of_user};
use super::places::{BEGUN_IN_GIT, GUARDED, GUARDED_IN_GIT, OF_EDITORS, is_built_or_fetched};

/// Folders of git in one of git that are looked at: submodules can have submodules.
const DEPTH: usize = 4;
/// How far down other repositories are looked for.
const NESTED_DEPTH: usize = 4;
/// Folders that are looked through for them.
const MAX_LOOKED: usize = 4_096;
/// Folders that are guarded so: each is several mounts.
const MAX_NESTED: usize = 100;

/// What is run or obeyed by others in a folder.
#[derive(Debug, Default)]
pub struct Guarded {
    /// All such names in it, whether they are there or not; and those in folders below it.
    pub paths: Vec<PathBuf>,
    /// Files there by which git goes on with what was begun, whether they are there or not.
    pub begun: Vec<PathBuf>,
    /// Whether there are more folders below it than were looked at.
    pub is_cut: bool,
}

impl Guarded {
    fn add(&mut self, other: Self) {
        self.paths.extend(other.paths);
        self.begun.extend(other.begun);
        self.is_cut |= other.is_cut;
    }
}

/// All names in this folder and below it that others run or obey.
pub fn guarded(folder: &Path) -> Guarded {
    let mut all = guarded_in(folder);
    all.paths.extend(of_users_git().into_iter().filter(|path| !holds(path, folder)));
    let (mut ahead, mut looked, mut nested) = (VecDeque::from([(folder.to_owned(), 0)]), 0, 0);
    while let Some((at, depth)) = ahead.pop_front() {
        let (inner, closed) = listed(&at);
        all.paths.extend(closed);
        for inner in inner {
            if inner.file_name().is_some_and(is_built_or_fetched) {
                continue;
            }
            let found = nested_in(&inner);
            let has_some = !found.paths.is_empty();
            if looked == MAX_LOOKED || (nested == MAX_NESTED && has_some) {
                all.is_cut = true;
                return all;
            }
            looked += 1;
            nested += usize::from(has_some);
            all.add(found);
            if depth + 1 < NESTED_DEPTH {
                ahead.push_back((inner, depth + 1));
            }
        }
    }
    all
}

/// Those in a folder that may be opened by itself: all of a repository, and what editors keep elsewhere.
fn nested_in(folder: &Path) -> Guarded {
    if folder.join(".git").symlink_metadata().is_ok() || is_git(folder) {
        return guarded_in(folder);
    }
    let of_editors = OF_EDITORS.iter().map(|name| folder.join(name));
    Guarded { paths: of_editors.filter(|path| path.symlink_metadata().is_ok()).collect(), ..Guarded::default() }
}

/// All names in this folder that others run or obey, whether they are there or not.
fn guarded_in(folder: &Path) -> Guarded {
    let paths = GUARDED.iter().map(|name| folder.join(name)).collect();
    let mut all = Guarded { paths, ..Guarded::default() };
    let git = folder.join(".git");
    if git.is_dir() {
        all.add(guarded_in_git(&git, folder, DEPTH));
    } else {
        // A file that names the folder of git, which may be anywhere.
        if let Some(git) = leads_to(&git).filter(|git| is_git_of_tree(git)) {
            let main = common(&git).unwrap_or_else(|| git.clone());
            all.add(guarded_in_git(&git, folder, 0));
            all.add(guarded_in_git(&main, folder, 0));
        }
        all.paths.push(git);
    }
    if is_git(folder) {
        let tree = work_tree(folder).unwrap_or_else(|| folder.to_owned());
        all.add(guarded_in_git(folder, &tree, DEPTH));
    }
    all
}

fn is_git(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir()
}

/// That of a work tree of its own has the objects of another.
fn is_git_of_tree(folder: &Path) -> bool {
    is_git(folder) || common(folder).is_some_and(|main| is_git(&main))
}

/// The folder of git that this one, of a work tree, is a part of.
fn common(git: &Path) -> Option<PathBuf> {
    leads_to(&git.join("commondir"))
}

/// The work tree of a folder of git, where that says it.
fn work_tree(git: &Path) -> Option<PathBuf> {
    let of_settings = || Some(git.join(GitSettings::read([git.join("config")]).work_tree?));
    let of_work_tree = || Some(leads_to(&git.join("gitdir"))?.parent()?.to_owned());
    let of_folder = || git.parent().filter(|_| git.ends_with(".git")).map(Path::to_owned);
    of_work_tree().or_else(of_settings).or_else(of_folder)
}

/// Those of a folder of git, of the work trees and submodules that it holds, and what its settings lead to.
fn guarded_in_git(git: &Path, tree: &Path, depth: usize) -> Guarded {
    let [paths, begun] =
        [&GUARDED_IN_GIT[..], &BEGUN_IN_GIT].map(|names| names.iter().map(|name| git.join(name)).collect());
    let mut all = Guarded { paths, begun, is_cut: false };
    let mut files: Vec<PathBuf> = ["config", "config.worktree"].iter().map(|name| git.join(name)).collect();
    files.extend(common(git).map(|main| main.join("config")));
    files.extend(of_user());
    let settings = GitSettings::read(files);
    let (work_trees, of_trees) = listed(&git.join("worktrees"));
    all.paths.extend(of_trees);
    let trees = work_trees.iter().filter_map(|inner| work_tree(inner)).chain([tree.to_owned()]);
    let hooks = trees.flat_map(|tree| settings.hooks.iter().map(move |hooks| tree.join(hooks)));
    // What holds all of a work tree cannot be kept from whoever works in it.
    all.paths.extend(settings.includes.iter().cloned().chain(hooks).filter(|path| !holds(path, tree)));
    if depth > 0 {
        let (modules, of_modules) = git_folders_below(&git.join("modules"), depth);
        all.paths.extend(of_modules);
        for inner in modules.iter().chain(&work_trees) {
            let its = work_tree(inner).unwrap_or_else(|| tree.to_owned());
            all.add(guarded_in_git(inner, &its, depth - 1));
        }
    }
    all
}

/// Git's settings of this user and what they lead to, wherever git is started: by links, that may be anywhere.
fn of_users_git() -> Vec<PathBuf> {
    let own = of_user();
    let GitSettings { includes, hooks, .. } = GitSettings::read(own.clone());
    let hooks = hooks.into_iter().filter(|hooks| hooks.is_absolute());
    own.into_iter().chain(includes).chain(hooks).collect()
}

fn holds(path: &Path, tree: &Path) -> bool {
    match (path.canonicalize(), tree.canonicalize()) {
        (Ok(path), Ok(tree)) => tree.starts_with(path),
        _ => false,
    }
}

/// Folders in this one; and itself where they cannot be looked at: whoever takes the right to look away keeps nothing
/// from being guarded by that.
fn listed(folder: &Path) -> (Vec<PathBuf>, Option<PathBuf>) {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => (Vec::new(), Some(folder.to_owned())),
        Ok(_) if access(folder, AccessFlags::X_OK) == Err(Errno::EACCES) => (Vec::new(), Some(folder.to_owned())),
        entries => {
            let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
            let entries = entries.into_iter().flatten().flatten();
            (entries.filter(is_folder).map(|entry| entry.path()).collect(), None)
        }
    }
}

/// A submodule's name may have slashes, so its folder of git may be deeper; and what cannot be looked through.
fn git_folders_below(folder: &Path, depth: usize) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (inner, closed) = listed(folder);
    let (mut found, mut closed) = (Vec::new(), Vec::from_iter(closed));
    for inner in inner {
        if is_git(&inner) {
            found.push(inner);
        } else if depth > 0 {
            let (deeper, unread) = git_folders_below(&inner, depth - 1);
            found.extend(deeper);
            closed.extend(unread);
        }
    }
    (found, closed)
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
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let found: Vec<PathBuf> = guarded(&tree).paths.into_iter().map(real).collect();
        for path in [".git/config", ".git/hooks", ".git/modules/deep/one/hooks", "my-hooks", "shared", ".vscode"] {
            assert!(found.contains(&tree.join(path)), "{path}");
        }
        assert!(!found.contains(&tree.join(".git")));
    }

    #[test]
    fn hooks_and_settings_are_found_from_each_work_tree_and_through_all_that_settings_include() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().canonicalize().unwrap();
        let writes = |name: &str, text: &str| {
            fs::create_dir_all(tree.join(name).parent().unwrap()).unwrap();
            fs::write(tree.join(name), text).unwrap();
        };
        // A work tree of its own, a submodule, and one whose folder of git is elsewhere.
        for git in [".git", ".git/modules/mod", "apart"] {
            writes(&format!("{git}/HEAD"), "");
            fs::create_dir_all(tree.join(git).join("objects")).unwrap();
        }
        writes(".git/config", "[core]hooksPath=tools/hk\n[include]path = ../conf/a");
        writes(".git/config.worktree", "[core]\nhooksPath = only\n");
        writes("conf/a", "[include]\npath = b\n");
        writes(".git/worktrees/wt/gitdir", &format!("{}\n", tree.join("wt/.git").display()));
        writes(".git/worktrees/wt/commondir", "../..\n");
        writes(".git/modules/mod/config", "[core]\nworktree = ../../../mod\nhooksPath = hk\n");
        writes("sep/.git", "gitdir: ../apart\n");
        writes("apart/config", "[core]hooksPath = mine\n[include]path = ../shared\n");
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        for name in ["conf/b", "shared"] {
            writes(name, "");
        }
        let found: Vec<PathBuf> = guarded(&tree).paths.iter().map(real).collect();
        for path in
            ["tools/hk", "wt/tools/hk", "only", "conf/a", "conf/b", "sep/mine", "shared", "apart/config", "apart/hooks"]
        {
            assert!(found.contains(&tree.join(path)), "{path}");
        }
        fs::create_dir_all(tree.join("mod/hk")).unwrap();
        let found: Vec<PathBuf> = guarded(&tree).paths.iter().map(real).collect();
        assert!(found.contains(&tree.join("mod/hk")));
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
