//! What is told at the end of a run: what the command left where it writes that others run or obey, or that leads out.
//!
//! Of what could be kept from it there is nothing to tell. In a container nothing could: there it is asked of each name
//! whether it was written since the command started, by the kernel's clock. All of it is bounded, and what could not be
//! looked at is said. The folders are held: what the command wrote is looked at where it is now.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use footbridge_processes::sandbox::{
    files::FilePlan,
    guarded::{Guarded, guarded},
    held_folder::HeldFolder,
    new_links::{NewLinks, is_any_of_since, is_of_since},
    places::{credentials, is_instruction},
    sockets::{self, FoundSockets},
};

use super::{
    git_files::{self, GitBefore},
    moved::Moved,
    told::say_new,
};
use crate::report;

/// How long guarded folders are looked through for what was written.
const LIMIT: Duration = Duration::from_secs(2);

/// A run whose command has ended.
pub(super) struct Ended<'a> {
    /// Where the command could write.
    pub(super) writes: &'a [HeldFolder],
    pub(super) since: SystemTime,
    pub(super) homes: Vec<PathBuf>,
    pub(super) plan: &'a FilePlan,
    /// Whether nothing was done about the files.
    pub(super) is_bare: bool,
    /// What git took for repositories before, where nothing was done about them.
    pub(super) repositories: &'a Repositories,
    /// What there was of git before.
    pub(super) git: &'a GitBefore,
    /// Sockets that were there before, if that is known.
    pub(super) found: Option<&'a FoundSockets>,
    /// What is the run's own.
    pub(super) session: Option<&'a Path>,
}

/// What git takes for repositories, and which folder or file each is: another could be put in its place.
#[derive(Debug, Default)]
pub(super) struct Repositories(HashMap<PathBuf, (u64, u64)>);

impl Repositories {
    /// Those that are found in these folders.
    pub(super) fn below(folders: &[PathBuf]) -> Self {
        let names = folders.iter().flat_map(|folder| guarded(folder).paths);
        let all = names.filter_map(|path| path.ancestors().find(|above| above.ends_with(".git")).map(Path::to_owned));
        Self(all.collect::<HashSet<_>>().into_iter().filter_map(|git| Some((git.clone(), id(&git)?))).collect())
    }

    /// Whether this is the one that was at that path.
    fn has(&self, git: &Path, before: &Path) -> bool {
        self.0.get(before).is_some_and(|before| id(git) == Some(*before))
    }
}

/// Where a link leads, also to what is not there.
fn leads_to(link: &Path) -> Option<PathBuf> {
    let to = link.parent()?.join(link.read_link().ok()?);
    to.canonicalize().or_else(|_| std::path::absolute(&to)).ok()
}

fn id(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Names that others run or obey, and whether there may be more.
struct Appeared {
    paths: Vec<PathBuf>,
    is_cut: bool,
}

impl Ended<'_> {
    /// Tells of what could not be kept from the command: names that others run or obey outside, links that lead out of
    /// where it writes, and sockets that other programs made meanwhile there. Sets aside what git must not read or follow.
    pub(super) fn say_what_appeared(&self) {
        let moved = Moved::of(self.writes);
        moved.say_which();
        let look = Look { ended: self, writes: moved.folders(), moved: &moved };
        look.say_what_appeared();
        moved.say_which_were_not_looked_at(self.writes);
    }
}

/// A look at what a command left.
struct Look<'a> {
    ended: &'a Ended<'a>,
    /// Where the folders are now that it could write.
    writes: Vec<PathBuf>,
    moved: &'a Moved,
}

impl Look<'_> {
    fn say_what_appeared(&self) {
        let Appeared { paths, is_cut } = self.names();
        let NewLinks { found, in_git, repositories, git_folders, is_whole } =
            NewLinks::look(&self.writes, self.ended.since, &self.ended.homes);
        let git = git_files::look_at_all(self.ended.writes, git_folders);
        git.say_at_the_end(self.ended.git, &|path| self.moved.before(path));
        git.set_links_aside(self.ended.writes, self.ended.git, in_git);
        let repositories = self.repositories(repositories, &paths);
        let (instructions, paths): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| is_instruction(path));
        say_new(&paths, "or written, and run or obeyed by other programs here", "look before you use them");
        say_new(&instructions, "or written, and instructions to agents", "read them before an agent outside does");
        say_new(&repositories, "repositories of git", "their settings can run programs, also by git status above them");
        if is_cut {
            report::note(
                "footbridge: not all could be looked through for what other programs run or obey, such as repositories: \
                 look at \"git status\" with core.fsmonitor=false before you use git there",
            );
        }
        let links = "links that lead out of what it may write, or to what is above your home folder";
        say_new(&self.most_telling_first(found), links, "look where to before you follow them");
        if !is_whole {
            report::note(
                "footbridge: not all could be looked through for new links, repositories and forged indexes: the folders that the \
                 command may write are too large, or it closed some; before you use git in one, look for links in its .git",
            );
        }
        say_new(
            &self.sockets(),
            "sockets of other programs that it could connect to",
            "start those before it, or elsewhere",
        );
    }

    fn names(&self) -> Appeared {
        let plan = self.ended.plan;
        let mut paths = plan.appeared_where(|path| self.moved.now(path));
        let mut named: HashSet<PathBuf> = paths.iter().cloned().collect();
        let (mut now, mut is_cut, until) = (BTreeSet::new(), false, Instant::now() + LIMIT);
        for folder in &self.writes {
            let Guarded { paths, begun, is_cut: is_cut_now, .. } = guarded(folder);
            now.extend(paths.into_iter().chain(begun));
            // Of one that was too large before, it was said then.
            is_cut |= is_cut_now && !plan.cut().any(|before| before == self.moved.before(folder));
        }
        for path in now.into_iter().filter(|path| self.writes.iter().any(|folder| path.starts_with(folder))) {
            // What is in a folder that is named already need not be.
            if path.ancestors().any(|above| named.contains(above)) {
                continue;
            }
            let is_new = if self.ended.is_bare {
                let written = is_any_of_since(&path, self.ended.since, until);
                is_cut |= written.is_none();
                written.unwrap_or(false)
            } else {
                !plan.knows(&self.moved.before(&path)) && path.symlink_metadata().is_ok()
            };
            if is_new {
                named.insert(path.clone());
                paths.push(path);
            }
        }
        // What is obeyed where most is started from comes first.
        paths.sort_by_key(|path| path.components().count());
        Appeared { paths, is_cut }
    }

    /// Those of these that are new, and of which nothing was said.
    fn repositories(&self, all: Vec<PathBuf>, said: &[PathBuf]) -> Vec<PathBuf> {
        let above: HashSet<&Path> = said.iter().flat_map(|path| path.ancestors()).collect();
        let said: HashSet<&Path> = said.iter().map(PathBuf::as_path).collect();
        let is_said = |git: &Path| above.contains(git) || git.ancestors().any(|above| said.contains(above));
        // Git itself writes in those of before, and what it obeys in them was kept from the command, or is named.
        let plan = self.ended.plan;
        let is_kept = |git: &Path| {
            let before = self.moved.before(git);
            plan.knows(&before) || plan.knows(&before.join("config")) || self.ended.repositories.has(git, &before)
        };
        all.into_iter().filter(|git| !is_kept(git) && !is_said(git)).collect()
    }

    /// Links to what is hidden or a credential come first, then those into a home: only the first are named.
    fn most_telling_first(&self, mut links: Vec<PathBuf>) -> Vec<PathBuf> {
        let (homes, until) = (&self.ended.homes, Instant::now() + LIMIT);
        let secret: Vec<PathBuf> = homes.iter().flat_map(|home| credentials(Some(home), |_| None)).collect();
        links.sort_by_cached_key(|link| {
            // One may lead through deep folders, which takes a while to find out.
            let to = (Instant::now() <= until).then(|| leads_to(link)).flatten();
            let Some(to) = to else { return 3 };
            let is_secret =
                |path: &PathBuf| self.ended.plan.hides(path) || secret.iter().any(|at| path.starts_with(at));
            let is_above = |path: &PathBuf| secret.iter().any(|at| at.starts_with(path));
            if is_secret(&to) {
                0
            } else if is_above(&to) {
                1
            } else if homes.iter().any(|home| to.starts_with(home)) {
                2
            } else {
                3
            }
        });
        links
    }

    fn sockets(&self) -> Vec<PathBuf> {
        let Some(found) = self.ended.found else { return Vec::new() };
        let is_own = |path: &Path| self.ended.session.is_some_and(|session| path.starts_with(session));
        // One that was made anew lost what covered the one before.
        let was_there = |path: &Path| found.sockets.contains(&self.moved.before(path));
        let is_new = |path: &Path| !was_there(path) || is_of_since(path, self.ended.since);
        let is_seen =
            |path: &Path| !path.parent().is_some_and(|folder| self.ended.plan.hides(&self.moved.before(folder)));
        let all = sockets::below(&self.writes).sockets.into_iter();
        all.filter(|path| is_new(path) && is_seen(path) && !is_own(path)).collect()
    }
}
