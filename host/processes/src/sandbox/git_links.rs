//! Links in folders of git, as they are before a command starts: people have some there, as `objects` of another repository,
//! and those stay. And what of such a folder is git's own.
//!
//! It is looked at while somebody waits, so not for long: where not all could be looked at, it is asked later of each link
//! whether it changed, by the kernel's clock, and of no more. An earlier command may have brought that about.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::read_dir;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long is looked at most.
const LIMIT: Duration = Duration::from_millis(250);
/// Links in one folder of git that are looked at.
const MAX_LINKS: usize = 100_000;

/// Folders that git and what works with it have in a folder of git. What else is there may be a work tree, which tools
/// keep there, too: git does not look into it by itself.
const OF_GIT: [&str; 22] = [
    "NOTES_MERGE_WORKTREE",
    "annex",
    "branches",
    "fsmonitor--daemon",
    "gitweb",
    "hooks",
    "info",
    "lfs",
    "logs",
    "lost-found",
    "modules",
    "objects",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "reftable",
    "remotes",
    "rr-cache",
    "sequencer",
    "sl",
    "svn",
    "worktrees",
];

/// The folder of git that this one is, or is in, as one of its own.
pub(super) fn git_of(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|above| above.ends_with(".git")).filter(|git| is_gits_own(folder, git))
}

/// Whether this, in that folder of git, is git's own and not in a work tree that is kept there.
pub(super) fn is_gits_own(folder: &Path, git: &Path) -> bool {
    let Some(first) = folder.strip_prefix(git).ok().and_then(|below| below.iter().next()) else { return true };
    let mut between = folder.ancestors().take_while(|above| *above != git);
    OF_GIT.iter().any(|own| first == *own) || !between.any(|above| above.join(".git").symlink_metadata().is_ok())
}

/// Links in folders of git before a command starts.
#[derive(Debug, Default)]
pub struct GitLinksBefore {
    /// Where each leads.
    pub(super) links: HashMap<PathBuf, PathBuf>,
    /// Folders of git all of whose links are among these.
    pub(super) known: BTreeSet<PathBuf>,
}

impl GitLinksBefore {
    /// Those in these repositories.
    #[must_use]
    pub fn of(repositories: &BTreeSet<PathBuf>) -> Self {
        let (mut before, until) = (Self::default(), Instant::now() + LIMIT);
        let is_in_another = |git: &Path| git.ancestors().skip(1).any(|above| repositories.contains(above));
        for git in repositories.iter().filter(|git| !is_in_another(git)) {
            let Walk { links, is_whole } = Walk::through(git, until);
            before.links.extend(links);
            if is_whole {
                before.known.insert(git.clone());
            }
        }
        before
    }
}

/// Links in a folder of git, and whether they are all.
pub(super) struct Walk {
    pub(super) links: HashMap<PathBuf, PathBuf>,
    pub(super) is_whole: bool,
}

impl Walk {
    pub(super) fn through(git: &Path, until: Instant) -> Self {
        let (mut walk, mut ahead) = (Self { links: HashMap::new(), is_whole: true }, vec![git.to_owned()]);
        while let Some(folder) = ahead.pop() {
            for entry in read_dir(&folder).into_iter().flatten().flatten() {
                if Instant::now() > until || walk.links.len() == MAX_LINKS {
                    return Self { is_whole: false, ..walk };
                }
                let Ok(kind) = entry.file_type() else { continue };
                let path = entry.path();
                if kind.is_dir() && is_gits_own(&path, git) && !has_objects_alone(&path, git) {
                    ahead.push(path);
                } else if kind.is_symlink()
                    && let Ok(to) = path.read_link()
                {
                    walk.links.insert(path, to);
                }
            }
        }
        walk
    }
}

/// Whether git and its like have in this folder nothing but many files that are not written again.
fn has_objects_alone(folder: &Path, git: &Path) -> bool {
    let below = folder.strip_prefix(git).unwrap_or(folder);
    let is_fan = |name: &OsStr| name.len() == 2 && name.as_bytes().iter().all(u8::is_ascii_hexdigit);
    let is_of_objects = || folder.parent().is_some_and(|above| above.ends_with("objects"));
    // Names of branches and tags, and nothing else, can have such names by chance.
    let is_of_refs = || below.iter().any(|part| part == "refs" || part == "logs");
    below == Path::new("annex/objects") || folder.file_name().is_some_and(is_fan) && is_of_objects() && !is_of_refs()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_git_goes_through_by_itself_is_its_own_and_a_work_tree_that_a_tool_keeps_there_is_not() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for tree in ["w/.git/tool/main", "w/.git/logs/main", "w/sub"] {
            fs::create_dir_all(at(tree).join("src")).unwrap();
            fs::write(at(tree).join(".git"), "gitdir: somewhere").unwrap();
        }
        for own in ["w/.git", "w/.git/tool", "w/.git/logs/main/src", "w/.git/worktrees/x", "w/.git/tool/main/.git"] {
            assert!(git_of(&at(own)).is_some(), "{own}");
        }
        for other in ["w", "w/sub", "w/.git/tool/main", "w/.git/tool/main/src"] {
            assert!(git_of(&at(other)).is_none(), "{other}");
        }
    }

    #[test]
    fn links_of_before_are_found_in_all_of_a_repository_but_where_it_has_objects_alone() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let found =
            ["g/objects", "g/logs/refs/objects/ab/x", "g/modules/a/objects/info/alternates", "g/hooks/pre-commit"];
        let others = ["g/modules/a/objects/ab/x", "g/annex/objects/x", "g/tool/tree/x"];
        for link in found.iter().chain(&others) {
            fs::create_dir_all(at(link).parent().unwrap()).unwrap();
            symlink("to", at(link)).unwrap();
        }
        fs::write(at("g/tool/tree/.git"), "").unwrap();
        let before = GitLinksBefore::of(&["g", "g/modules/a"].map(at).into());
        let all: BTreeSet<PathBuf> = before.links.keys().cloned().collect();
        assert_eq!((all, before.known), (found.map(at).into(), [at("g")].into()));
        assert!(before.links.values().all(|to| to == Path::new("to")));
    }
}
