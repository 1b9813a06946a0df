//! New links in folders of git, set aside. Git makes none there but names of refs, and git-annex one of its own. Git writes,
//! deletes and reads by what it finds: `git gc` deletes what is below a link `worktrees`, and a commit adds to what
//! `logs/HEAD` leads to.
//!
//! They are set aside wherever they lead: one that stays in the folder may lead to what git obeys there (`COMMIT_EDITMSG`
//! to `config`), and what another leads to can become a link later. New is what changed since the command started, and what
//! was not there before: a folder can be moved there with all links in it, which do not change by that.
//!
//! A link is renamed to the top of its folder of git, since in `worktrees`, `refs` and `logs` git takes every name for one
//! of its own. It is looked at and renamed below folders that are held, and no link on the way is followed. One that
//! somebody puts another in place of meanwhile stays. In a folder that only looks like one of git nothing is changed. What
//! stays is told, and what there was no time for.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use footbridge_core::random::random_text;
use rustix::fs::{AtFlags, FileType, RenameFlags, Stat, readlinkat, renameat, renameat_with, statat};
use rustix::io::Errno;

use super::git_left::{ForgedFate, GitLeft};
use super::git_links::{GitLinksBefore, Walk, git_of, is_gits_own};
use super::held_folder::HeldFolder;

/// How long links are looked for that were moved there, and how long links are set aside.
const LIMIT_OF_LOOK: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(10);
/// Links that are told of; of others it is counted how many were set aside.
const TOLD: usize = 1_000;
/// Bytes that are kept of a name, so that there is room for more.
const MAX_NAME: usize = 200;
/// What is between its name and random text.
const ASIDE: &[u8] = b".set-aside-";
/// Where git takes each name for a work tree of its own, and removes what is none.
const WORK_TREES: &str = "worktrees";

/// A new link in a folder of git.
#[derive(Debug)]
pub struct GitLink {
    /// Where it was found.
    pub path: PathBuf,
    /// Where it leads, as far as that was read.
    pub to: PathBuf,
    /// What became of it.
    pub fate: GitLinkFate,
}

/// What became of such a link.
#[derive(Debug)]
pub enum GitLinkFate {
    /// It is here now.
    SetAside(PathBuf),
    /// It is where it was: the folder only looks like one of git, or it could not be set aside.
    Stays(Option<io::Error>),
}

/// What was done about new links in folders of git.
#[derive(Debug, Default)]
pub struct GitLinksLeft {
    /// As many as are told of.
    pub links: Vec<GitLink>,
    /// How many others were set aside.
    pub more: usize,
    /// Whether there was no time for all.
    pub is_cut: bool,
}

/// What is known once a command has ended.
#[derive(Debug)]
pub struct GitLinksAfter<'a> {
    /// Where it could write.
    pub held: &'a [HeldFolder],
    /// What was found in folders of git, and done about it.
    pub found: &'a GitLeft,
    /// What was there before.
    pub before: &'a GitLinksBefore,
}

/// A folder that is held, where it is now, and where it was.
struct HeldPlace<'a> {
    now: PathBuf,
    held: &'a HeldFolder,
}

impl HeldPlace<'_> {
    fn was_at(&self, path: &Path) -> Option<PathBuf> {
        Some(self.held.path().join(path.strip_prefix(&self.now).ok()?))
    }

    fn is_at(&self, before: &Path) -> Option<PathBuf> {
        Some(self.now.join(before.strip_prefix(self.held.path()).ok()?))
    }

    fn open(&self, folder: &Path) -> io::Result<OwnedFd> {
        self.held.folder_below(folder.strip_prefix(&self.now).map_err(io::Error::other)?)
    }
}

/// A folder with links in it.
struct LinkFolder<'a> {
    at: OwnedFd,
    /// The top of the folder of git that it is in, where that is one.
    top: Option<OwnedFd>,
    path: &'a Path,
    top_path: PathBuf,
}

impl GitLinksAfter<'_> {
    /// Sets aside these, which changed since the command started, and those that were not there before.
    #[must_use]
    pub fn set_aside(&self, changed: Vec<PathBuf>) -> GitLinksLeft {
        let place = |held| Some(HeldPlace { now: HeldFolder::now(held)?, held });
        let mut places: Vec<HeldPlace<'_>> = self.held.iter().filter_map(place).collect();
        places.sort_by_key(|place| place.now.components().count());
        let mut left = GitLinksLeft::default();
        let mut all: BTreeSet<PathBuf> = changed.into_iter().collect();
        self.add_moved_there(&places, &mut all, &mut left);
        for file in &self.found.forged {
            // Some are links, and were set aside as what they stood for.
            if let ForgedFate::SetAside(name) = &file.fate {
                all.remove(&file.path.with_file_name(name));
            }
        }
        let (all, until): (Vec<PathBuf>, _) = (all.into_iter().collect(), Instant::now() + LIMIT);
        for links in all.chunk_by(|one, other| one.parent() == other.parent()) {
            let Some(folder) = links[0].parent() else { continue };
            let Some(place) = places.iter().find(|place| folder.starts_with(&place.now)) else { continue };
            let opened = self.open(folder, place);
            for link in links {
                if Instant::now() > until {
                    left.is_cut = true;
                    return left;
                }
                left.add(self.looked_at(link, &opened, place));
            }
        }
        left
    }

    /// Those in repositories of before that were not there, though they did not change.
    fn add_moved_there(&self, places: &[HeldPlace<'_>], all: &mut BTreeSet<PathBuf>, left: &mut GitLinksLeft) {
        let until = Instant::now() + LIMIT_OF_LOOK;
        for before in &self.before.known {
            let Some(git) = places.iter().find_map(|place| place.is_at(before)) else { continue };
            // A link in its place leads to what is none of the command's.
            if git.is_symlink() {
                continue;
            }
            let walk = Walk::through(&git, until);
            left.is_cut |= !walk.is_whole;
            let is_new = |path: &Path, to: &PathBuf| {
                let was = path.strip_prefix(&git).map(|below| before.join(below));
                was.is_ok_and(|was| self.before.links.get(&was) != Some(to))
            };
            all.extend(walk.links.into_iter().filter(|(path, to)| is_new(path, to)).map(|(path, _)| path));
        }
    }

    fn open<'p>(&self, folder: &'p Path, place: &HeldPlace<'_>) -> io::Result<LinkFolder<'p>> {
        let top = self.top(folder, &place.now);
        Ok(LinkFolder {
            at: place.open(folder)?,
            top: top.map(|top| place.open(top)).transpose()?,
            path: folder,
            top_path: top.unwrap_or(folder).to_owned(),
        })
    }

    /// The top of the folder of git that this one is in, or as much of it as is held.
    fn top<'p>(&'p self, folder: &'p Path, root: &'p Path) -> Option<&'p Path> {
        if let Some(git) = git_of(folder) {
            let is_in_reach = git.starts_with(root);
            return if is_in_reach { Some(git) } else { Some(root).filter(|root| !root.ends_with(WORK_TREES)) };
        }
        // A command can make what is in a folder of git look like another one, so it is the outermost.
        let holds = |git: &&PathBuf| folder.starts_with(git) && git.starts_with(root) && is_gits_own(folder, git);
        self.found.repositories.iter().find(holds).map(PathBuf::as_path)
    }

    /// Nothing where it is no link any more, or one that stays for good.
    fn looked_at(&self, path: &Path, opened: &io::Result<LinkFolder<'_>>, place: &HeldPlace<'_>) -> Option<GitLink> {
        let name = path.file_name()?;
        let of = |to: PathBuf, fate| Some(GitLink { path: path.to_owned(), to, fate });
        let folder = match opened {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                return of(PathBuf::new(), GitLinkFate::Stays(Some(io::Error::new(error.kind(), error.to_string()))));
            }
        };
        let found = folder.link(name)?;
        let to = readlinkat(&folder.at, name, Vec::new()).ok()?;
        let to = PathBuf::from(OsString::from_vec(to.into_bytes()));
        let is_of_before = place.was_at(path).is_some_and(|was| self.before.links.get(&was) == Some(&to));
        if is_of_before || folder.is_name_of_ref(name, &to) || folder.is_of_annex(name, &to) || folder.is_aside(name) {
            return None;
        }
        let Some(top) = &folder.top else { return of(to, GitLinkFate::Stays(None)) };
        let fate = folder.set_aside(name, &found, top);
        of(to, fate.map_or_else(|error| GitLinkFate::Stays(Some(error)), GitLinkFate::SetAside))
    }
}

impl LinkFolder<'_> {
    fn link(&self, name: &OsStr) -> Option<Stat> {
        let found = statat(&self.at, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (FileType::from_raw_mode(found.st_mode) == FileType::Symlink).then_some(found)
    }

    /// Whether git itself makes this link, with `core.preferSymlinkRefs`: it leads to what is below it, and git does not
    /// follow it.
    fn is_name_of_ref(&self, name: &OsStr, to: &Path) -> bool {
        let below: Vec<&OsStr> = self.path.strip_prefix(&self.top_path).into_iter().flat_map(Path::iter).collect();
        let is_place = name == "HEAD" || below.iter().any(|part| *part == "refs");
        let leads_down = to.components().all(|part| matches!(part, Component::Normal(_)));
        is_place && !below.iter().any(|part| *part == "logs") && to.starts_with("refs") && leads_down
    }

    /// Whether it is how git-annex has the annex of a repository in a work tree of it.
    fn is_of_annex(&self, name: &OsStr, to: &Path) -> bool {
        let is_of_work_tree = self.path.parent().is_some_and(|above| above.ends_with(WORK_TREES));
        name == "annex" && to == Path::new("../../annex") && is_of_work_tree
    }

    /// Whether it was set aside before, as by another run that ended meanwhile.
    fn is_aside(&self, name: &OsStr) -> bool {
        self.path == self.top_path && name.as_bytes().windows(ASIDE.len()).any(|part| part == ASIDE)
    }

    /// Unless somebody put another in its place meanwhile: then that one stays.
    fn set_aside(&self, name: &OsStr, found: &Stat, top: &OwnedFd) -> io::Result<PathBuf> {
        let random = random_text::<6>().map_err(io::Error::other)?;
        let kept = &name.as_bytes()[..name.len().min(MAX_NAME)];
        let aside = OsString::from_vec([kept, ASIDE, random.as_bytes()].concat());
        match renameat_with(&self.at, name, top, &aside, RenameFlags::NOREPLACE) {
            // Not every file system has it, and nobody knows the name before.
            Err(Errno::INVAL | Errno::NOSYS) => renameat(&self.at, name, top, &aside)?,
            renamed => renamed?,
        }
        let now = statat(top, &aside, AtFlags::SYMLINK_NOFOLLOW)?;
        if (now.st_dev, now.st_ino) == (found.st_dev, found.st_ino) {
            return Ok(self.top_path.join(aside));
        }
        renameat_with(top, &aside, &self.at, name, RenameFlags::NOREPLACE)?;
        Err(io::Error::other("another is in its place by now"))
    }
}

impl GitLinksLeft {
    fn add(&mut self, link: Option<GitLink>) {
        match link {
            Some(GitLink { fate: GitLinkFate::SetAside(_), .. }) if self.links.len() >= TOLD => self.more += 1,
            Some(_) if self.links.len() >= TOLD => self.is_cut = true,
            link => self.links.extend(link),
        }
    }
}

#[cfg(test)]
mod tests;
