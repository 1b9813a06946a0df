//! Links that a command left in the folders that it may write and that lead out of them: whoever follows one later, by
//! hand or as a path that is given to a program, is elsewhere.
//!
//! When a link was made the kernel says (its change time, which no program can set). Looking at all of a folder takes
//! time, so there is a limit to it.

use std::fs::{DirEntry, read_dir};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::unistd::{AccessFlags, access};

/// How long is looked at most.
const LIMIT: Duration = Duration::from_secs(2);

/// The kernel's time of a change may lie so far before it.
const COARSE: Duration = Duration::from_millis(20);

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewLinks {
    /// The links.
    pub found: Vec<PathBuf>,
    /// Whether all could be looked at in time.
    pub is_whole: bool,
}

impl NewLinks {
    /// Those in these folders, of since then, that lead out of all of them, to what this user may write or into one of
    /// these homes. The folders' paths have no links in them.
    #[must_use]
    pub fn look(folders: &[PathBuf], since: SystemTime, homes: &[PathBuf]) -> Self {
        let (end, mut all) = (Instant::now() + LIMIT, Self { is_whole: true, ..Self::default() });
        let mut ahead: Vec<PathBuf> = folders.to_vec();
        while let Some(folder) = ahead.pop() {
            if Instant::now() > end {
                all.is_whole = false;
                break;
            }
            for entry in read_dir(&folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => ahead.push(entry.path()),
                    Ok(kind) if kind.is_symlink() && is_of_since(&entry, since) => {
                        all.found.extend(Some(entry.path()).filter(|link| leads_out(link, folders, homes)));
                    }
                    _ => {}
                }
            }
        }
        all.found.sort();
        all.found.dedup();
        all
    }
}

fn is_of_since(entry: &DirEntry, since: SystemTime) -> bool {
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(COARSE);
    entry.metadata().is_ok_and(|meta| {
        let changed = Duration::new(meta.ctime().try_into().unwrap_or(0), meta.ctime_nsec().try_into().unwrap_or(0));
        changed >= since
    })
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

    use super::*;

    #[test]
    fn links_of_since_then_that_lead_out_are_found_and_those_of_before_are_not() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(at("work/deep/er")).unwrap();
        fs::create_dir_all(at("home/.ssh")).unwrap();
        for (link, to) in [("work/deep/er/out", "../../../home/.ssh"), ("work/in", "deep"), ("work/later", "../new")] {
            symlink(to, at(link)).unwrap();
        }
        let (folders, homes) = ([at("work")], [at("home")]);
        let found = NewLinks::look(&folders, SystemTime::now() - Duration::from_secs(60), &homes);
        assert_eq!(found, NewLinks { found: vec![at("work/deep/er/out"), at("work/later")], is_whole: true });
        let later = SystemTime::now() + Duration::from_secs(60);
        assert_eq!(NewLinks::look(&folders, later, &homes).found, Vec::<PathBuf>::new());
    }
}
