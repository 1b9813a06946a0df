//! What is told at the end of a run: what the command left where it writes that others run or obey, or that leads out.
//!
//! Of what could be kept from it there is nothing to tell. In a container nothing could: there it is asked of each name
//! whether it was written since the command started, by the kernel's clock. All of it is bounded, and what could not be
//! looked at is said.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use footbridge_processes::sandbox::{
    files::FilePlan,
    guarded::{Guarded, guarded},
    new_links::{NewLinks, is_any_of_since, is_of_since},
    sockets::{self, FoundSockets},
};

use footbridge_proto::text::Escaped;

use crate::report;

/// Paths that are named in one line.
const NAMED: usize = 150;

/// How long guarded folders are looked through for what was written.
const LIMIT: Duration = Duration::from_secs(2);

/// A run whose command has ended.
pub(super) struct Ended<'a> {
    /// Where the command could write.
    pub(super) writes: &'a [PathBuf],
    pub(super) since: SystemTime,
    pub(super) homes: Vec<PathBuf>,
    pub(super) plan: &'a FilePlan,
    /// Whether nothing was done about the files.
    pub(super) is_bare: bool,
    /// What git took for repositories before, where nothing was done about them.
    pub(super) repositories: &'a Repositories,
    /// Sockets that were there before.
    pub(super) found: &'a FoundSockets,
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

    fn has(&self, git: &Path) -> bool {
        self.0.get(git).is_some_and(|before| id(git) == Some(*before))
    }
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
    /// where it writes, and sockets that other programs made meanwhile there.
    pub(super) fn say_what_appeared(&self) {
        let Appeared { paths, is_cut } = self.names();
        let links = NewLinks::look(self.writes, self.since, &self.homes);
        let repositories = self.repositories(links.repositories, &paths);
        say_new(&paths, "or written, and run or obeyed by other programs here", "look before you use them");
        say_new(&repositories, "repositories of git", "their settings can run programs, also by git status above them");
        if is_cut {
            report::note(
                "footbridge: not all could be looked through for what other programs run or obey, such as repositories: \
                 look at \"git status\" with core.fsmonitor=false before you use git there",
            );
        }
        say_new(&links.found, "links that lead out of what it may write", "look where to before you follow them");
        if !links.is_whole {
            report::note(
                "footbridge: not all could be looked through for new links and repositories: the folders that the command \
                 may write are too large, or it closed some",
            );
        }
        say_new(
            &self.sockets(),
            "sockets of other programs that it could connect to",
            "start those before it, or elsewhere",
        );
    }

    fn names(&self) -> Appeared {
        let mut paths = self.plan.appeared();
        let mut named: HashSet<PathBuf> = paths.iter().cloned().collect();
        let (mut now, mut is_cut, until) = (BTreeSet::new(), false, Instant::now() + LIMIT);
        for folder in self.writes {
            let Guarded { paths, begun, is_cut: is_cut_now, .. } = guarded(folder);
            now.extend(paths.into_iter().chain(begun));
            // Of one that was too large before, it was said then.
            is_cut |= is_cut_now && !self.plan.cut().any(|before| before == folder);
        }
        for path in now.into_iter().filter(|path| self.writes.iter().any(|folder| path.starts_with(folder))) {
            // What is in a folder that is named already need not be.
            if path.ancestors().any(|above| named.contains(above)) {
                continue;
            }
            let is_new = if self.is_bare {
                let written = is_any_of_since(&path, self.since, until);
                is_cut |= written.is_none();
                written.unwrap_or(false)
            } else {
                !self.plan.knows(&path) && path.symlink_metadata().is_ok()
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
        let is_kept = |git: &Path| self.plan.knows(git) || self.plan.knows(&git.join("config"));
        let is_kept = |git: &Path| is_kept(git) || self.repositories.has(git);
        all.into_iter().filter(|git| !is_kept(git) && !is_said(git)).collect()
    }

    fn sockets(&self) -> Vec<PathBuf> {
        let is_own = |path: &Path| self.session.is_some_and(|session| path.starts_with(session));
        // One that was made anew lost what covered the one before.
        let is_new = |path: &PathBuf| !self.found.sockets.contains(path) || is_of_since(path, self.since);
        let is_seen = |path: &Path| !path.parent().is_some_and(|folder| self.plan.hides(folder));
        let all = sockets::below(self.writes).sockets.into_iter();
        all.filter(|path| is_new(path) && is_seen(path) && !is_own(path)).collect()
    }
}

/// Says what is new of a kind, if anything is.
fn say_new(paths: &[PathBuf], what: &str, next: &str) {
    if !paths.is_empty() {
        let names = names_of(paths);
        report::note(&format!("footbridge: new since the command started, {what}: {names}; {next}"));
    }
}

/// These paths in one line, if they are not too many.
pub(super) fn names_of(paths: &[PathBuf]) -> String {
    let name = |path: &PathBuf| Escaped(&path.to_string_lossy()).to_string();
    let mut names: Vec<String> = paths.iter().take(NAMED).map(name).collect();
    names.extend((paths.len() > NAMED).then(|| format!("{} more", paths.len() - NAMED)));
    names.join(", ")
}
