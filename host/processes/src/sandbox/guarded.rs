//! What in a folder of work is run or obeyed by others than the command: editors, agents, shells, hooks and git, in that
//! folder and in those below it that people open by themselves, repositories above all.
//!
//! Those are looked for so deep and no deeper, and so many: what was left out is told. What cannot be read is passed over.
//! An earlier command may have filled the folder, so all that is looked at has a limit, and so has the time for it: a path of
//! links to deep folders takes a second to follow.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::iter::once;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

use super::git_settings::{GitSettings, leads_to, of_user};
use super::places::{
    BEGUN_IN_GIT, GUARDED, GUARDED_IN_GIT, INSTRUCTIONS, OF_EDITORS, OTHER_REPOSITORIES, is_built_or_fetched,
    is_project,
};

/// Folders of git in one of git that are looked at: submodules can have submodules.
const DEPTH: usize = 4;
/// How far down other repositories are looked for, and links in what is guarded.
const NESTED_DEPTH: usize = 4;
/// Folders that are looked through for them.
const MAX_LOOKED: usize = 4_096;
/// Folders that are guarded so: each is several mounts.
const MAX_NESTED: usize = 100;
/// Names in all: each is looked up several times.
const MAX_NAMES: usize = 50_000;
/// Entries in guarded folders that are looked at, and those of one of them.
const MAX_ENTRIES: usize = 50_000;
const MAX_IN_FOLDER: usize = 1_000;
/// Links in guarded folders that are followed: each is a mount, and so is what it leads to.
const MAX_LINKS: usize = 2_000;
/// Files that editors open as a project: each is a mount.
const MAX_PROJECTS: usize = 100;
/// Bytes of git's settings that are read.
const MAX_SETTINGS: u64 = 64 << 20;
/// How long is looked at most.
const LIMIT: Duration = Duration::from_secs(10);

/// What is run or obeyed by others in a folder.
#[derive(Debug, Default)]
pub struct Guarded {
    /// All such names in it, whether they are there or not; those in folders below it, and links in such folders.
    pub paths: Vec<PathBuf>,
    /// Files there by which git goes on with what was begun, and instructions to agents, whether they are there or not.
    pub begun: Vec<PathBuf>,
    /// Files among them that have other names, too (hard links).
    pub linked: Vec<PathBuf>,
    /// Whether there is more than was looked at.
    pub is_cut: bool,
}

/// A folder of git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitFolder {
    /// Where it is.
    pub folder: PathBuf,
    /// Where its files are checked out, where that is known.
    pub tree: Option<PathBuf>,
}

/// Folders of git in this folder and below it, as far as they are looked for, and those that they lead to.
#[must_use]
pub fn git_folders(folder: &Path) -> Vec<GitFolder> {
    Search::through(folder).gits
}

/// All names in this folder and below it that others run or obey.
pub fn guarded(folder: &Path) -> Guarded {
    let mut search = Search::through(folder);
    once_each(&mut search.found.paths);
    once_each(&mut search.found.begun);
    search.add_inner(folder);
    once_each(&mut search.found.paths);
    search.found
}

/// Several work trees lead to the same.
fn once_each(paths: &mut Vec<PathBuf>) {
    let mut seen = HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
}

/// What settings of git lead to, from wherever git is started.
struct Obeyed {
    includes: Vec<PathBuf>,
    hooks: Vec<PathBuf>,
    words: Vec<PathBuf>,
}

impl Obeyed {
    /// By a repository's settings and those of its user.
    fn of(settings: GitSettings, users: &GitSettings) -> Self {
        let together = |own: Vec<PathBuf>, users: &[PathBuf]| {
            let mut all = own;
            all.extend_from_slice(users);
            once_each(&mut all);
            all
        };
        let (hooks, words) = (together(settings.hooks, &users.hooks), together(settings.words, &users.words));
        Self { includes: settings.includes, hooks, words }
    }
}

/// What was found, and how much more is looked at.
struct Search {
    found: Guarded,
    gits: Vec<GitFolder>,
    /// Git's settings of this user.
    users: GitSettings,
    names_left: usize,
    settings_left: u64,
    entries_left: usize,
    links_left: usize,
    projects_left: usize,
    /// What the folder itself obeys, before anything that a command could make more of.
    own: HashSet<PathBuf>,
    /// Folders of hooks among what was found: a script in one is the first that is run.
    hooks: Vec<PathBuf>,
    until: Instant,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            found: Guarded::default(),
            gits: Vec::new(),
            users: GitSettings::default(),
            names_left: MAX_NAMES,
            settings_left: MAX_SETTINGS,
            entries_left: MAX_ENTRIES,
            links_left: MAX_LINKS,
            projects_left: MAX_PROJECTS,
            own: HashSet::new(),
            hooks: Vec::new(),
            until: Instant::now() + LIMIT,
        }
    }
}

impl Search {
    fn through(folder: &Path) -> Self {
        let mut search = Self::default();
        search.add_users_git(folder);
        search.add_all_in(folder);
        search.is_own();
        search.add_nested(folder);
        search
    }

    fn add(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.add_if(paths, |_| true);
    }

    fn add_if(&mut self, paths: impl IntoIterator<Item = PathBuf>, is_one: impl Fn(&Path) -> bool) {
        for path in paths {
            if self.has_no_more() {
                return;
            }
            self.names_left -= 1;
            if is_one(&path) {
                self.found.paths.push(path);
            }
        }
    }

    /// Whether no more names are looked at, which is noted.
    fn has_no_more(&mut self) -> bool {
        self.found.is_cut |= self.names_left == 0;
        self.names_left == 0 || self.is_late()
    }

    /// Whether its time is over, which is noted.
    fn is_late(&mut self) -> bool {
        let is_late = Instant::now() > self.until;
        self.found.is_cut |= is_late;
        is_late
    }

    fn settings(&mut self, files: Vec<PathBuf>) -> GitSettings {
        let settings = GitSettings::read(files, &mut self.settings_left);
        self.found.is_cut |= settings.is_cut;
        settings
    }

    /// Git's settings of this user and what they lead to, wherever git is started: by links, that may be anywhere.
    fn add_users_git(&mut self, folder: &Path) {
        self.users = self.settings(of_user());
        let hooks = self.users.hooks.iter().filter(|hooks| hooks.is_absolute());
        let led_to: Vec<PathBuf> = self.users.includes.iter().chain(hooks).cloned().collect();
        self.add_if(of_user().into_iter().chain(led_to), |path| !holds(path, folder));
    }

    /// Those in folders below this one that people open by themselves.
    fn add_nested(&mut self, folder: &Path) {
        let (mut ahead, mut looked, mut nested) = (VecDeque::from([(folder.to_owned(), 0)]), 0, 0);
        while let Some((at, depth)) = ahead.pop_front() {
            let (inner, closed) = listed(&at);
            self.add(closed);
            for inner in inner {
                if inner.file_name().is_some_and(is_built_or_fetched) {
                    continue;
                }
                let has_some = has_some(&inner);
                if looked == MAX_LOOKED || (nested == MAX_NESTED && has_some) || self.has_no_more() {
                    self.found.is_cut = true;
                    return;
                }
                looked += 1;
                if has_some {
                    nested += 1;
                    self.add_some(&inner);
                }
                if depth + 1 < NESTED_DEPTH {
                    ahead.push_back((inner, depth + 1));
                }
            }
        }
    }

    /// Those in a folder that may be opened by itself: all of a repository, and what editors keep elsewhere.
    fn add_some(&mut self, folder: &Path) {
        if is_repository(folder) {
            self.add_all_in(folder);
        } else {
            self.add(of_editors(folder));
        }
    }

    /// All names in this folder that others run or obey, whether they are there or not.
    fn add_all_in(&mut self, folder: &Path) {
        self.add(GUARDED.iter().map(|name| folder.join(name)));
        self.found.begun.extend(INSTRUCTIONS.iter().map(|name| folder.join(name)));
        // A file that names the repository of a work tree, with its settings.
        let jj = folder.join(".jj/repo");
        self.add_if([jj], |jj| !jj.is_dir());
        let git = folder.join(".git");
        if git.is_dir() {
            self.add_git(&git, folder, DEPTH);
        } else {
            // A file that names the folder of git, which may be anywhere.
            if let Some(git) = leads_to(&git).filter(|git| is_git(git)) {
                self.add_git(&git, folder, 0);
            }
            self.add([git]);
        }
        if is_git(folder) {
            let tree = self.work_tree(folder).unwrap_or_else(|| folder.to_owned());
            self.add_git(folder, &tree, DEPTH);
        }
        self.add_projects(folder);
    }

    /// Files there that editors open as a project.
    fn add_projects(&mut self, folder: &Path) {
        for (number, entry) in fs::read_dir(folder).into_iter().flatten().flatten().enumerate() {
            if number % 100 == 0 && self.is_late() {
                return;
            }
            let path = entry.path();
            if !is_project(&path) {
                continue;
            }
            if self.projects_left == 0 {
                self.found.is_cut = true;
                return;
            }
            self.projects_left -= 1;
            self.found.paths.push(path);
        }
    }

    /// Those of a folder of git, of the work trees and submodules that it holds, and what its settings lead to.
    fn add_git(&mut self, git: &Path, tree: &Path, depth: usize) {
        if self.has_no_more() {
            return;
        }
        let main = common(git);
        for folder in once(git).chain(main.as_deref()) {
            self.add(GUARDED_IN_GIT.iter().map(|name| folder.join(name)));
            self.found.begun.extend(BEGUN_IN_GIT.iter().map(|name| folder.join(name)));
        }
        self.gits.push(GitFolder { folder: git.to_owned(), tree: Some(tree.to_owned()) });
        if let Some(main) = &main {
            let tree = self.work_tree(main);
            self.gits.push(GitFolder { folder: main.clone(), tree });
        }
        let main = main.unwrap_or_else(|| git.to_owned());
        let settings = self.settings(vec![main.join("config"), git.join("config"), git.join("config.worktree")]);
        // First by the tree that is worked in: of others a command may have made as many as it likes.
        let obeyed = Obeyed::of(settings, &self.users);
        self.add_obeyed(&obeyed, tree, tree);
        self.is_own();
        let (work_trees, of_trees) = listed(&main.join("worktrees"));
        self.add(of_trees);
        let mut trees = Vec::new();
        for inner in &work_trees {
            if self.has_no_more() {
                return;
            }
            trees.extend(self.work_tree(inner));
        }
        once_each(&mut trees);
        for other in trees.iter().filter(|other| *other != tree) {
            if self.has_no_more() {
                return;
            }
            self.add_obeyed(&obeyed, other, tree);
        }
        if depth > 0 {
            let modules = self.git_folders_below(&git.join("modules"));
            for inner in modules.iter().chain(&work_trees) {
                let its = self.work_tree(inner);
                // Git goes there by itself, however deep it is, and takes whatever is there for the repository.
                self.add_if(its.iter().map(|tree| tree.join(".git")), |git| !git.is_dir());
                self.add_git(inner, its.as_deref().unwrap_or(tree), depth - 1);
            }
        }
    }

    /// What was found up to here is what the folder itself obeys.
    fn is_own(&mut self) {
        if self.own.is_empty() {
            self.own = self.found.paths.iter().cloned().collect();
        }
    }

    /// What settings lead to from a work tree of theirs.
    fn add_obeyed(&mut self, obeyed: &Obeyed, from: &Path, tree: &Path) {
        let at = |paths: &[PathBuf]| paths.iter().map(|path| from.join(path)).collect::<Vec<_>>();
        let hooks = at(&obeyed.hooks);
        self.hooks.extend(hooks.iter().cloned());
        // What holds all of a work tree cannot be kept from whoever works in it.
        self.add_if(hooks.into_iter().chain(at(&obeyed.includes)), |path| !holds(path, tree));
        self.add_if(at(&obeyed.words), Path::is_file);
    }

    /// Folders of git below this one: names of submodules, which are their paths, are folders in each other. What cannot be
    /// looked through is found, too.
    fn git_folders_below(&mut self, folder: &Path) -> Vec<PathBuf> {
        let (mut ahead, mut looked, mut found) = (VecDeque::from([folder.to_owned()]), 0, Vec::new());
        while let Some(at) = ahead.pop_front() {
            let (inner, closed) = listed(&at);
            self.add(closed);
            for inner in inner {
                if looked == MAX_LOOKED || self.has_no_more() {
                    self.found.is_cut = true;
                    return found;
                }
                looked += 1;
                if is_git(&inner) { found.push(inner) } else { ahead.push_back(inner) }
            }
        }
        found
    }

    /// The work tree of a folder of git, where that says it.
    fn work_tree(&mut self, git: &Path) -> Option<PathBuf> {
        if let Some(file) = leads_to(&git.join("gitdir")) {
            return file.parent().map(Path::to_owned);
        }
        let of_settings =
            self.settings(vec![git.join("config"), git.join("config.worktree")]).work_tree.map(|tree| git.join(tree));
        of_settings.or_else(|| git.parent().filter(|_| git.ends_with(".git")).map(Path::to_owned))
    }

    /// Links in folders that were found, since what they lead to is obeyed as it were in there; and files by other names.
    fn add_inner(&mut self, root: &Path) {
        let of_hooks: HashSet<&PathBuf> = self.hooks.iter().collect();
        let is_of_hooks = |path: &PathBuf| path.ends_with("hooks") || of_hooks.contains(path);
        let mut all: Vec<&PathBuf> = self.found.paths.iter().collect();
        all.sort_by_key(|path| (!self.own.contains(*path), !(self.own.contains(*path) && is_of_hooks(path))));
        let mut ahead: VecDeque<(PathBuf, usize)> = all.into_iter().map(|path| (path.clone(), 0)).collect();
        while let Some((at, depth)) = ahead.pop_front() {
            if self.is_late() {
                return;
            }
            let Ok(meta) = at.metadata() else { continue };
            if depth == 0 && meta.is_file() && meta.nlink() > 1 {
                self.found.linked.push(at.clone());
            }
            if !meta.is_dir() || holds(&at, root) {
                continue;
            }
            let entries = fs::read_dir(&at).into_iter().flatten().flatten();
            for (number, entry) in entries.enumerate() {
                if self.entries_left == 0 || number == MAX_IN_FOLDER {
                    self.found.is_cut = true;
                    break;
                }
                self.entries_left -= 1;
                if self.leads_on(&entry, root) && depth + 1 < NESTED_DEPTH {
                    ahead.push_back((entry.path(), depth + 1));
                }
            }
        }
    }

    /// Whether there may be more behind what is in a guarded folder.
    fn leads_on(&mut self, entry: &DirEntry, root: &Path) -> bool {
        let path = entry.path();
        match entry.metadata() {
            Ok(meta) if meta.is_symlink() && !holds(&path, root) => {
                if self.links_left == 0 {
                    self.found.is_cut = true;
                    return false;
                }
                // Not one of the names: those of what a command made beside it may have used these up.
                self.links_left -= 1;
                self.found.paths.push(path.clone());
                path.is_dir()
            }
            Ok(meta) if meta.is_file() && meta.nlink() > 1 => {
                self.found.linked.push(path);
                false
            }
            Ok(meta) => meta.is_dir() && !is_built_or_fetched(&entry.file_name()),
            Err(_) => false,
        }
    }
}

fn has_some(folder: &Path) -> bool {
    is_repository(folder) || of_editors(folder).next().is_some()
}

fn is_repository(folder: &Path) -> bool {
    let has = |name: &&str| folder.join(name).symlink_metadata().is_ok();
    has(&".git") || OTHER_REPOSITORIES.iter().any(has) || is_git(folder)
}

fn of_editors(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let all = OF_EDITORS.iter().map(|name| folder.join(name));
    all.filter(|path| path.symlink_metadata().is_ok())
}

/// As git itself sees it: `HEAD` may be a link that leads nowhere yet, and that of a work tree has the objects of another.
pub(super) fn is_git(folder: &Path) -> bool {
    let main = common(folder);
    folder.join("HEAD").symlink_metadata().is_ok() && main.as_deref().unwrap_or(folder).join("objects").exists()
}

/// The folder of git that this one, of a work tree, is a part of.
pub(super) fn common(git: &Path) -> Option<PathBuf> {
    let main = leads_to(&git.join("commondir"))?;
    // As git writes it: that is the folder which holds this one, and is known by its own path.
    let above = (main == git.join("../..")).then(|| main.canonicalize().ok()).flatten();
    Some(above.unwrap_or(main))
}

/// The folder of git, elsewhere, that a linked work tree or a submodule in this folder commits to: that of the whole
/// repository, whose parts the work tree has in common.
#[must_use]
pub fn commits_to(folder: &Path) -> Option<PathBuf> {
    let git = leads_to(&folder.join(".git")).filter(|git| is_git(git))?;
    common(&git).unwrap_or(git).canonicalize().ok()
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

#[cfg(test)]
mod tests;
