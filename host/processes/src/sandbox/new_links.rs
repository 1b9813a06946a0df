//! Links that a command left in the folders that it may write and that lead out of them: whoever follows one later, by
//! hand or as a path that is given to a program, is elsewhere. And all that it left in folders of git, whose links are
//! looked at there (`git_links_aside`).
//!
//! When a link was made the kernel says (its change time, which no program can set). The folder that it was made in changed
//! then, too: of others only what may be below them is looked at. Looking at all takes time, so there is a limit.

use std::collections::{HashMap, HashSet};
use std::fs::{Metadata, read_dir};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::statfs::{EXT4_SUPER_MAGIC, FsType, TMPFS_MAGIC, XFS_SUPER_MAGIC, statfs};
use nix::unistd::{AccessFlags, access};

use super::git_links::{git_of, is_gits_own};
use super::places::GUARDED_IN_GIT;

/// How long is looked at most.
const LIMIT: Duration = Duration::from_secs(2);

/// The kernel's time of a change may lie so far before it.
const COARSE: Duration = Duration::from_millis(20);

/// File systems where a folder has a link more for each folder in it: ext2 to ext4, which have one number, tmpfs and XFS.
const COUNTING: [FsType; 3] = [EXT4_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC];

/// What git takes for a repository, what each folder of git has, and how many of these are remembered.
const GIT: &str = ".git";
const HEAD: &str = "HEAD";
const MAX_GIT_FOLDERS: usize = 10_000;
/// One of which git wants besides: what it keeps, or where another folder has that.
const ALSO_IN_GIT: [&str; 2] = ["objects", "commondir"];

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewLinks {
    /// The links that lead out.
    pub found: Vec<PathBuf>,
    /// Those in folders of git, wherever they lead.
    pub in_git: Vec<PathBuf>,
    /// What git takes for a repository and was made, moved there or written meanwhile, by git as well: git looks into
    /// those below it by itself, however deep they are, and obeys their settings.
    pub repositories: Vec<PathBuf>,
    /// What may be a folder of git, of before as well.
    pub git_folders: Vec<PathBuf>,
    /// Whether all could be looked at, and in time.
    pub is_whole: bool,
}

impl NewLinks {
    /// Those in these folders, of since then, that lead out of all of them, to what this user may write, or into one of
    /// these homes or above it; and all in folders of git. The folders' paths have no links in them.
    #[must_use]
    pub fn look(folders: &[PathBuf], since: SystemTime, homes: &[PathBuf]) -> Self {
        let mut search = Search {
            since: earliest(since),
            until: Instant::now() + LIMIT,
            counting: HashMap::new(),
            gits: HashSet::new(),
            all: Self { is_whole: true, ..Self::default() },
        };
        // The last is the first that is looked at: whatever else a command left, there is time for git's folders.
        let mut ahead = folders.to_vec();
        let is_folder = |git: &PathBuf| git.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        ahead.extend(folders.iter().map(|folder| folder.join(GIT)).filter(is_folder));
        let mut looked = HashSet::new();
        while let Some(folder) = ahead.pop() {
            if !folder.ends_with(GIT) || looked.insert(folder.clone()) {
                search.look_in(&folder, &mut ahead, |link| leads_out(link, folders, homes));
            }
        }
        let mut all = search.all;
        for found in [&mut all.found, &mut all.in_git, &mut all.repositories, &mut all.git_folders] {
            found.sort();
            found.dedup();
        }
        all
    }
}

/// Whether this was made, renamed or otherwise changed since then, by the kernel's clock.
#[must_use]
pub fn is_of_since(path: &Path, since: SystemTime) -> bool {
    path.symlink_metadata().is_ok_and(|meta| changed(&meta) >= earliest(since))
}

/// Whether this, or anything in it, is of since then; nothing where that could not be told in time. No link is followed.
#[must_use]
pub fn is_any_of_since(path: &Path, since: SystemTime, until: Instant) -> Option<bool> {
    let mut ahead = vec![path.to_owned()];
    while let Some(at) = ahead.pop() {
        if Instant::now() > until {
            return None;
        }
        let Ok(meta) = at.symlink_metadata() else { continue };
        if changed(&meta) >= earliest(since) {
            return Some(true);
        }
        if meta.is_dir() {
            ahead.extend(read_dir(&at).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    Some(false)
}

fn earliest(since: SystemTime) -> Duration {
    since.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(COARSE)
}

fn changed(meta: &Metadata) -> Duration {
    Duration::new(meta.ctime().try_into().unwrap_or(0), meta.ctime_nsec().try_into().unwrap_or(0))
}

struct Search {
    since: Duration,
    until: Instant,
    /// Whether a file system, by its device, is one of [`COUNTING`].
    counting: HashMap<u64, bool>,
    /// Folders of git, above those that are still to be looked at.
    gits: HashSet<PathBuf>,
    all: NewLinks,
}

impl Search {
    fn look_in(&mut self, folder: &Path, ahead: &mut Vec<PathBuf>, leads_out: impl Fn(&Path) -> bool) {
        let Ok(meta) = folder.symlink_metadata() else { return };
        let is_changed = changed(&meta) >= self.since;
        self.look_at_repository(folder.join(GIT));
        if !is_changed && meta.nlink() == 2 && self.counts(&meta, folder) {
            if folder.join(HEAD).symlink_metadata().is_ok() {
                self.found_git(folder);
            }
            return;
        }
        let entries = match read_dir(folder) {
            // One that was closed before the command started is no news, nor is one that is gone or was named as a file.
            Err(error) => {
                let is_none = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
                self.all.is_whole &= !is_changed || is_none;
                return;
            }
            Ok(entries) => entries,
        };
        let (mut links, first) = (Vec::new(), ahead.len());
        for entry in entries.flatten() {
            if Instant::now() > self.until {
                ahead.clear();
                self.all.is_whole = false;
                break;
            }
            if entry.file_name() == HEAD {
                self.found_git(folder);
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                ahead.push(entry.path());
            } else if is_changed && kind.is_symlink() {
                let is_new = entry.metadata().is_ok_and(|meta| changed(&meta) >= self.since);
                links.extend(Some(entry.path()).filter(|_| is_new));
            }
        }
        if let Some(git) = ahead.iter().skip(first).position(|inner| inner.ends_with(GIT)) {
            ahead[first..].rotate_left(git + 1);
        }
        let is_in = |git: &Path| self.gits.contains(git) && is_gits_own(folder, git);
        if !links.is_empty() && (git_of(folder).is_some() || folder.ancestors().any(is_in)) {
            self.all.in_git.extend(links);
        } else {
            // One may lead through deep folders, which takes a while to find out.
            for link in links {
                if Instant::now() > self.until {
                    self.all.is_whole = false;
                    break;
                }
                self.all.found.extend(Some(link).filter(|link| leads_out(link)));
            }
        }
    }

    fn found_git(&mut self, folder: &Path) {
        let has_room = self.all.git_folders.len() < MAX_GIT_FOLDERS;
        self.all.is_whole &= has_room;
        if has_room {
            self.all.git_folders.push(folder.to_owned());
        }
        // Files of that name stand elsewhere, too, in folders with links of their own below.
        if ALSO_IN_GIT.iter().any(|name| folder.join(name).symlink_metadata().is_ok()) {
            self.gits.insert(folder.to_owned());
        }
    }

    /// By its change, as of what it obeys in it: one that was moved there, or is a hard link, was born before.
    fn look_at_repository(&mut self, git: PathBuf) {
        let of_since = |path: &Path| path.symlink_metadata().is_ok_and(|meta| changed(&meta) >= self.since);
        if of_since(&git) || GUARDED_IN_GIT.iter().any(|name| of_since(&git.join(name))) {
            self.all.repositories.push(git);
        }
    }

    fn counts(&mut self, meta: &Metadata, folder: &Path) -> bool {
        let of_its_kind = || statfs(folder).is_ok_and(|found| COUNTING.contains(&found.filesystem_type()));
        *self.counting.entry(meta.dev()).or_insert_with(of_its_kind)
    }
}

fn leads_out(link: &Path, folders: &[PathBuf], homes: &[PathBuf]) -> bool {
    let Ok(to) = link.read_link() else { return false };
    let to = link.parent().unwrap_or(link).join(to);
    // What is not there yet can come, and what is above it then is not known.
    let there = to.ancestors().find_map(|above| Some((above.canonicalize().ok()?, to.strip_prefix(above).ok()?)));
    let Some((there, rest)) = there else { return false };
    let is_below = |of: &[PathBuf]| of.iter().any(|folder| there.starts_with(folder));
    let is_above_home = homes.iter().any(|home| home.starts_with(&there));
    let is_known = !rest.components().any(|part| part == Component::ParentDir);
    if is_below(folders) && is_known {
        return false;
    }
    !is_known || is_below(homes) || is_above_home || access(&there, AccessFlags::W_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::thread;

    use super::*;

    #[test]
    fn links_of_since_then_that_lead_out_are_found_and_those_of_before_are_not() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(at("work/deep/er")).unwrap();
        fs::create_dir_all(at("home/.ssh")).unwrap();
        fs::create_dir_all(at("work/.git/worktrees")).unwrap();
        fs::create_dir_all(at("work/bare/objects")).unwrap();
        fs::create_dir_all(at("work/other/in")).unwrap();
        for tree in ["work/.git/tool/tree", "work/.git/refs/tree", "work/bare/tree"] {
            fs::create_dir_all(at(tree)).unwrap();
            fs::write(at(tree).join(".git"), "").unwrap();
        }
        for name in ["work/bare/HEAD", "work/other/HEAD"] {
            fs::write(at(name), "").unwrap();
        }
        for (link, to) in [
            ("work/deep/er/out", "../../../home/.ssh"),
            ("work/in", "deep"),
            ("work/in-later", "gone/x"),
            ("work/later", "../new"),
            ("work/unknown", "gone/../deep"),
            ("work/above", "../home/.."),
            ("work/.git/COMMIT_EDITMSG", "config"),
            ("work/.git/logs", "../deep"),
            ("work/.git/worktrees/later", "../../gone"),
            ("work/bare/worktrees", "/"),
            ("work/other/in/bin", "../HEAD"),
            ("work/.git/tool/tree/out", "/"),
            ("work/.git/refs/tree/out", "/"),
            ("work/bare/tree/out", "/"),
        ] {
            symlink(to, at(link)).unwrap();
        }
        let (folders, homes) = ([at("work")], [at("home")]);
        let found = NewLinks::look(&folders, SystemTime::now() - Duration::from_secs(60), &homes);
        let found = NewLinks { repositories: Vec::new(), ..found };
        let out = ["above", "bare/tree/out", "deep/er/out", "later", "unknown"];
        let all = [".git/tool/tree/out"].iter().chain(&out).map(|name| at("work").join(name)).collect();
        let in_git =
            ["COMMIT_EDITMSG", "logs", "refs/tree/out", "worktrees/later"].map(|name| at("work/.git").join(name));
        let in_git = in_git.into_iter().chain([at("work/bare/worktrees")]).collect();
        let git_folders = ["work/bare", "work/other"].map(at).to_vec();
        let none = NewLinks { git_folders, is_whole: true, ..NewLinks::default() };
        assert_eq!(found, NewLinks { found: all, in_git, ..none.clone() });
        let later = SystemTime::now() + Duration::from_secs(60);
        assert_eq!(NewLinks::look(&folders, later, &homes), none);
    }

    #[test]
    fn they_are_found_in_folders_of_before_below_ones_that_did_not_change_and_where_they_were_moved_to() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        for name in ["work/old/leaf", "work/old/quiet", "work/other"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        symlink("../../..", at("work/old/quiet/of-before")).unwrap();
        symlink("../..", at("work/before")).unwrap();
        for folder in ["work/.git/hooks", "work/renamed.git", "work/deep/.git", "work/leaf"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("work/leaf/.git"), "gitdir: somewhere").unwrap();
        fs::write(at("work/deep/.git/config"), "as it was").unwrap();
        // Longer than the kernel's clock is coarse.
        thread::sleep(COARSE * 4);
        let since = SystemTime::now();
        thread::sleep(COARSE);
        symlink("../../..", at("work/old/leaf/new")).unwrap();
        fs::create_dir_all(at("work/old/leaf/node_modules/x/y/z/.git")).unwrap();
        fs::rename(at("work/renamed.git"), at("work/old/.git")).unwrap();
        fs::write(at("work/leaf/.git"), "gitdir: elsewhere").unwrap();
        fs::write(at("work/deep/.git/HEAD"), "").unwrap();
        fs::write(at("work/deep/.git/config"), "written in place").unwrap();
        fs::rename(at("work/before"), at("work/other/renamed")).unwrap();
        let found = NewLinks::look(&[at("work")], since, &[]);
        assert_eq!(found.found, [at("work/old/leaf/new"), at("work/other/renamed")]);
        assert_eq!(found.git_folders, [at("work/deep/.git")]);
        let new = ["deep/.git", "leaf/.git", "old/.git", "old/leaf/node_modules/x/y/z/.git"];
        assert_eq!(found.repositories, new.map(|git| at("work").join(git)), "and none of before");
        assert!(is_of_since(&at("work/old/leaf"), since) && !is_of_since(&at("work/old/quiet"), since));
    }
}
