//! What is new in the folders that a command may write, once it has ended: links that lead out of them, since whoever
//! follows one later, by hand or as a path that is given to a program, is elsewhere; and sockets at which another program
//! listens, which it could connect to.
//!
//! When something was made the kernel says (its change time, which no program can set). A folder that something was made in
//! changed then, too: of others only what may be below them is looked at. Looking at all takes time, so there is a limit.

use std::collections::HashMap;
use std::fs::{Metadata, read_dir};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::statfs::{EXT4_SUPER_MAGIC, FsType, TMPFS_MAGIC, XFS_SUPER_MAGIC, statfs};
use nix::unistd::{AccessFlags, access};

use super::sockets::is_bound;

/// How long is looked at most.
const LIMIT: Duration = Duration::from_secs(2);

/// The kernel's time of a change may lie so far before it.
const COARSE: Duration = Duration::from_millis(20);

/// File systems where a folder has a link more for each folder in it: ext2 to ext4, which have one number, tmpfs and XFS.
const COUNTING: [FsType; 3] = [EXT4_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC];

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MadeSince {
    /// Links that lead out.
    pub links: Vec<PathBuf>,
    /// Sockets that somebody has bound.
    pub sockets: Vec<PathBuf>,
    /// Whether all could be looked at in time.
    pub is_whole: bool,
}

impl MadeSince {
    /// What is in these folders of since then: links that lead out of all of them, to what this user may write or into one
    /// of these homes, and sockets. The folders' paths have no links in them.
    #[must_use]
    pub fn look(folders: &[PathBuf], since: SystemTime, homes: &[PathBuf]) -> Self {
        let since = since.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(COARSE);
        let mut search = Search { since, counting: HashMap::new(), found: Self { is_whole: true, ..Self::default() } };
        let (end, mut ahead) = (Instant::now() + LIMIT, folders.to_vec());
        while let Some(folder) = ahead.pop() {
            if Instant::now() > end {
                search.found.is_whole = false;
                break;
            }
            search.look_in(&folder, &mut ahead, |link| leads_out(link, folders, homes));
        }
        let Self { mut links, mut sockets, is_whole } = search.found;
        for all in [&mut links, &mut sockets] {
            all.sort();
            all.dedup();
        }
        Self { links, sockets, is_whole }
    }
}

struct Search {
    since: Duration,
    /// Whether a file system, by its device, is one of [`COUNTING`].
    counting: HashMap<u64, bool>,
    found: MadeSince,
}

impl Search {
    fn look_in(&mut self, folder: &Path, ahead: &mut Vec<PathBuf>, leads_out: impl Fn(&Path) -> bool) {
        let Ok(meta) = folder.symlink_metadata() else { return };
        let is_changed = self.is_of_since(&meta);
        if !is_changed && meta.nlink() == 2 && self.counts(&meta, folder) {
            return;
        }
        for entry in read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                ahead.push(entry.path());
            } else if is_changed && (kind.is_symlink() || kind.is_socket()) {
                let path = entry.path();
                let is_new = entry.metadata().is_ok_and(|meta| self.is_of_since(&meta));
                if is_new && kind.is_symlink() && leads_out(&path) {
                    self.found.links.push(path);
                } else if is_new && kind.is_socket() && is_bound(&path) {
                    self.found.sockets.push(path);
                }
            }
        }
    }

    fn is_of_since(&self, meta: &Metadata) -> bool {
        let changed = Duration::new(meta.ctime().try_into().unwrap_or(0), meta.ctime_nsec().try_into().unwrap_or(0));
        changed >= self.since
    }

    fn counts(&mut self, meta: &Metadata, folder: &Path) -> bool {
        let of_its_kind = || statfs(folder).is_ok_and(|found| COUNTING.contains(&found.filesystem_type()));
        *self.counting.entry(meta.dev()).or_insert_with(of_its_kind)
    }
}

fn leads_out(link: &Path, folders: &[PathBuf], homes: &[PathBuf]) -> bool {
    let Ok(to) = link.read_link() else { return false };
    let to = link.parent().unwrap_or(link).join(to);
    // What is not there yet can come.
    let there = to.ancestors().find_map(|above| above.canonicalize().ok());
    let is_below = |of: &[PathBuf]| there.as_ref().is_some_and(|to| of.iter().any(|folder| to.starts_with(folder)));
    !is_below(folders) && (is_below(homes) || there.is_some_and(|to| access(&to, AccessFlags::W_OK).is_ok()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    #[test]
    fn links_and_sockets_of_since_then_are_found_and_those_of_before_are_not() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(at("work/deep/er")).unwrap();
        fs::create_dir_all(at("home/.ssh")).unwrap();
        for (link, to) in [("work/deep/er/out", "../../../home/.ssh"), ("work/in", "deep"), ("work/later", "../new")] {
            symlink(to, at(link)).unwrap();
        }
        let _listener = UnixListener::bind(at("work/deep/s")).unwrap();
        drop(UnixListener::bind(at("work/deep/left")).unwrap());
        let (folders, homes) = ([at("work")], [at("home")]);
        let found = MadeSince::look(&folders, SystemTime::now() - Duration::from_secs(60), &homes);
        let links = vec![at("work/deep/er/out"), at("work/later")];
        assert_eq!(found, MadeSince { links, sockets: vec![at("work/deep/s")], is_whole: true });
        let later = SystemTime::now() + Duration::from_secs(60);
        assert_eq!(MadeSince::look(&folders, later, &homes), MadeSince { is_whole: true, ..MadeSince::default() });
    }

    #[test]
    fn they_are_found_in_folders_of_before_below_ones_that_did_not_change_and_where_they_were_moved_to() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        for name in ["work/old/leaf", "work/old/moved", "work/old/closed", "work/other"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        symlink("../../..", at("work/old/moved/of-before")).unwrap();
        symlink("../..", at("work/before")).unwrap();
        // Longer than the kernel's clock is coarse.
        thread::sleep(COARSE * 4);
        let since = SystemTime::now();
        thread::sleep(COARSE);
        symlink("../../..", at("work/old/leaf/new")).unwrap();
        fs::rename(at("work/before"), at("work/other/renamed")).unwrap();
        fs::rename(at("work/old/moved"), at("work/other/moved")).unwrap();
        let found = MadeSince::look(&[at("work")], since, &[]);
        assert_eq!(found.links, [at("work/old/leaf/new"), at("work/other/renamed")]);
    }
}
