//! Names that a sandbox keeps by mounts in what its command may write, as they were when it started: whether each still is.
//!
//! From a mount namespace of its own a command can rename, remove and replace them, since there they are no mounts. That is
//! where namespaces are allowed, or another run hands it a folder and the kernel has no domains. What was behind a name it
//! cannot write even then, so that it is enough to know which file or folder it is, and of a file that nothing was done to
//! it since, by the kernel's clock. Nothing is put back.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::file_plan::{FileAccess, FilePlan, FileStep};

/// All of a plan.
#[derive(Debug, Default)]
pub struct KeptNames(Vec<(PathBuf, Seen)>);

/// What is at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    file: (u64, u64),
    /// A folder that is removed and made again may get the number of the one before.
    made: Option<SystemTime>,
    /// When something was done to it, unless it is a folder: others may write in those.
    changed: Option<(i64, i64)>,
}

impl Seen {
    /// Nothing where nothing is, or what programs make anew as they start and end.
    fn at(path: &Path) -> Option<Self> {
        let meta = path.symlink_metadata().ok()?;
        let kind = meta.file_type();
        let is_file = !meta.is_dir();
        (!kind.is_socket() && !kind.is_fifo()).then(|| Self {
            file: (meta.dev(), meta.ino()),
            made: meta.created().ok(),
            changed: is_file.then(|| (meta.ctime(), meta.ctime_nsec())),
        })
    }
}

impl KeptNames {
    /// As they are now.
    #[must_use]
    pub fn of(plan: &FilePlan) -> Self {
        let written = plan.steps.iter().filter(|step| step.access == FileAccess::Writable);
        let written: BTreeSet<&OsStr> = written.map(|step| step.path.as_os_str()).collect();
        let is_kept = |step: &FileStep, above: Option<&FileStep>| {
            let is_host_s =
                above.is_some_and(|above| matches!(above.access, FileAccess::Writable | FileAccess::ReadOnly));
            let shows = Path::new(&step.path).ancestors().skip(1).any(|above| written.contains(above.as_os_str()));
            is_host_s && shows && step.access != FileAccess::Private
        };
        let kept = plan.with_above().filter(|(step, above)| is_kept(step, *above));
        let paths = kept.map(|(step, _)| PathBuf::from(&step.path));
        Self(paths.filter_map(|path| Seen::at(&path).map(|seen| (path, seen))).collect())
    }

    /// Those that are not there any more, or something else, or were changed, where what was at a path is now where this
    /// says. What is in a folder that is another one is not named besides.
    #[must_use]
    pub fn replaced(&self, now: impl Fn(&Path) -> PathBuf) -> Vec<PathBuf> {
        let (mut all, mut last): (_, Option<&PathBuf>) = (Vec::new(), None);
        for (path, before) in &self.0 {
            let is_named = last.is_some_and(|last| path.starts_with(last));
            let at = now(path);
            if !is_named && Seen::at(&at) != Some(*before) {
                all.push(at);
                last = Some(path);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn plan(work: &Path) -> FilePlan {
        let step = |path: PathBuf, access| {
            let path = path.into_os_string();
            FileStep { from: path.clone(), path, access }
        };
        let steps = vec![
            step(work.to_owned(), FileAccess::Writable),
            step(work.join(".envrc"), FileAccess::ReadOnly),
            step(work.join(".git"), FileAccess::Writable),
            step(work.join(".git/config"), FileAccess::ReadOnly),
            step(work.join(".git/hooks"), FileAccess::ReadOnly),
            step(work.join("keys"), FileAccess::Empty),
            step(work.join("link"), FileAccess::Link),
            step(work.join("secret"), FileAccess::EmptyFile),
        ];
        FilePlan { steps, ..FilePlan::default() }
    }

    fn furnished() -> (tempfile::TempDir, PathBuf, KeptNames) {
        let base = tempfile::tempdir().unwrap();
        let work = base.path().join("work");
        for folder in [".git/hooks", "keys"] {
            fs::create_dir_all(work.join(folder)).unwrap();
        }
        for file in [".envrc", ".git/config", "secret"] {
            fs::write(work.join(file), "text").unwrap();
        }
        std::os::unix::fs::symlink(".envrc", work.join("link")).unwrap();
        let kept = KeptNames::of(&plan(&work));
        (base, work, kept)
    }

    #[test]
    fn what_a_command_may_do_there_is_no_replacement() {
        let (_base, work, kept) = furnished();
        fs::write(work.join("new"), "").unwrap();
        fs::write(work.join(".git/index"), "").unwrap();
        fs::write(work.join("keys/of-the-host"), "").unwrap();
        assert_eq!(kept.replaced(Path::to_owned), [] as [PathBuf; 0]);
    }

    #[test]
    fn a_folder_that_was_moved_has_them_still() {
        let (base, work, kept) = furnished();
        let moved = base.path().join("elsewhere");
        fs::rename(&work, &moved).unwrap();
        let now = |path: &Path| moved.join(path.strip_prefix(&work).unwrap());
        assert_eq!(kept.replaced(now), [] as [PathBuf; 0]);
        fs::remove_file(moved.join(".envrc")).unwrap();
        assert_eq!(kept.replaced(now), [moved.join(".envrc")]);
    }

    #[test]
    fn names_that_lead_to_something_else_are_told_and_not_what_is_in_them() {
        let all = [".envrc", ".git", ".git/config", ".git/hooks", "keys", "link", "secret"];
        for name in all {
            let (_base, work, kept) = furnished();
            let path = work.join(name);
            fs::rename(&path, work.join("old")).unwrap();
            assert_eq!(kept.replaced(Path::to_owned), [path.as_path()], "{name} is gone");
            if work.join("old").symlink_metadata().unwrap().is_dir() {
                fs::create_dir(&path).unwrap();
            } else {
                fs::copy(work.join(".envrc"), &path).or_else(|_| fs::copy(work.join("old"), &path)).unwrap();
            }
            assert_eq!(kept.replaced(Path::to_owned), [path.as_path()], "{name} is another one");
        }
    }

    #[test]
    fn a_file_that_was_away_meanwhile_is_told_and_so_is_an_empty_folder_that_was_made_anew() {
        let (_base, work, kept) = furnished();
        fs::rename(work.join("secret"), work.join("away")).unwrap();
        fs::rename(work.join("away"), work.join("secret")).unwrap();
        fs::remove_dir(work.join(".git/hooks")).unwrap();
        fs::create_dir(work.join(".git/hooks")).unwrap();
        assert_eq!(kept.replaced(Path::to_owned), [work.join(".git/hooks"), work.join("secret")]);
    }
}
