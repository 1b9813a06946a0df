//! What is done about files before a command starts: steps, a folder before what is in it, so that the deepest decides.
//!
//! They are values that cross from the harness to the keeper. It refuses to know why anything is hidden.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What the command finds at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileAccess {
    /// An empty folder.
    Empty,
    /// An empty file.
    EmptyFile,
    /// An empty folder of its own, which it may fill.
    Private,
    /// What is there, with what the command writes in a layer of its own.
    Layer,
    /// What is there, to read.
    ReadOnly,
    /// What is there, to read and write.
    Writable,
    /// The link that is there, which can be neither replaced nor removed; where it leads is for other steps.
    Link,
}

/// Whether mounts can be made before another program makes the sandbox, by a child of the keeper in namespaces of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MountsBefore {
    /// They can: what is mounted outside later does not show, layers can be laid and links held.
    #[default]
    Made,
    /// The system lets that program make namespaces, and not this one.
    Refused,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStep {
    pub(crate) path: OsString,
    pub(crate) access: FileAccess,
    /// What of the host shows there; another path where something else does.
    pub(crate) from: OsString,
}

impl FileStep {
    /// Whether it must not be left out where nothing is at its path any more, nor can be made there.
    pub(crate) fn is_needed(&self) -> bool {
        !matches!(self.access, FileAccess::EmptyFile | FileAccess::Empty)
    }

    /// Whether it keeps something as what it is, in its own place, in what that one shows of the host in its own place.
    pub(crate) fn is_in_place_below(&self, above: Option<&Self>) -> bool {
        let keeps =
            |step: &Self| matches!(step.access, FileAccess::ReadOnly | FileAccess::Writable) && step.from == step.path;
        keeps(self) && above.is_some_and(|above| above.access == FileAccess::Writable && keeps(above))
    }

    /// Whether it is about something in that one's folder.
    pub(crate) fn is_below(&self, folder: &Self) -> bool {
        self.path != folder.path && Path::new(&self.path).starts_with(&folder.path)
    }
}

/// What every sandbox has of its own: devices, and the processes in it.
const KERNELS_OWN: [&str; 2] = ["/dev", "/proc"];

/// What is done about files before a command starts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct FilePlan {
    pub(crate) steps: Vec<FileStep>,
    pub(crate) program: OsString,
    pub(crate) mounts_before: MountsBefore,
    /// It is looked at where the plan was made.
    #[serde(skip)]
    pub(crate) watched: Watched,
}

/// What others run or obey, and what of it could not be kept from a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watched {
    /// All such names that were looked at, whether they are there or not.
    pub(crate) known: BTreeSet<PathBuf>,
    /// Names, and what they were: links with where they lead, or nothing.
    pub(crate) names: Vec<(OsString, Option<OsString>)>,
    /// Files by which git goes on with what was begun, and which they were.
    pub(crate) begun: Vec<(OsString, Option<Version>)>,
    /// Files that are read-only and have other names (hard links), by which they can be written.
    pub(crate) linked: Vec<OsString>,
    /// Folders below which not all was looked at.
    pub(crate) cut: Vec<OsString>,
}

/// Which file is at a path and when it was changed last, by the kernel's clock, which no program sets back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    file: (u64, u64),
    changed: (i64, i64),
}

impl Version {
    /// Nothing where no file is.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let meta = path.metadata().ok()?;
        Some(Self { file: (meta.dev(), meta.ino()), changed: (meta.ctime(), meta.ctime_nsec()) })
    }
}

impl FilePlan {
    pub(crate) fn new(steps: Vec<FileStep>, program: OsString, watched: Watched) -> Self {
        Self { steps, program, mounts_before: MountsBefore::default(), watched }
    }

    /// Names that others run or obey and that could not be kept from the command, since they were not there, or led
    /// nowhere, when it started, or are its own to write: those that are there now, lead elsewhere, or were written.
    #[must_use]
    pub fn appeared(&self) -> Vec<PathBuf> {
        self.appeared_where(Path::to_owned)
    }

    /// As [`FilePlan::appeared`], where what was at a path is now where this says.
    #[must_use]
    pub fn appeared_where(&self, now: impl Fn(&Path) -> PathBuf) -> Vec<PathBuf> {
        let now = |path: &OsString| now(Path::new(path));
        let leads_elsewhere = |path: &Path, before: Option<&OsString>| link_at(path) != before.map(now);
        let names = self.watched.names.iter().map(|(path, before)| (now(path), before.as_ref()));
        let names = names.filter(|(path, before)| leads_elsewhere(path, *before)).map(|(path, _)| path);
        let begun = self.watched.begun.iter().map(|(path, before)| (now(path), before));
        let begun = begun.filter(|(path, before)| Version::at(path) != **before).map(|(path, _)| path);
        names.chain(begun).filter(|path| path.symlink_metadata().is_ok()).collect()
    }

    /// Whether this name is one that others run or obey and that was looked at before the command started.
    #[must_use]
    pub fn knows(&self, path: &Path) -> bool {
        self.watched.known.contains(path)
    }

    /// The steps, each with the one that decides about where it is.
    pub(crate) fn with_above(&self) -> impl Iterator<Item = (&FileStep, Option<&FileStep>)> {
        with_above(&self.steps)
    }

    /// Links that the command must not replace.
    pub(crate) fn links(&self) -> impl Iterator<Item = &Path> {
        let links = self.steps.iter().filter(|step| step.access == FileAccess::Link);
        links.map(|step| Path::new(&step.path))
    }

    /// Where the command may write at all, the outermost of each: what is in these and cannot be written, mounts keep.
    #[must_use]
    pub(crate) fn written(&self) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = KERNELS_OWN.map(PathBuf::from).into();
        let is_written = |access| matches!(access, FileAccess::Private | FileAccess::Layer | FileAccess::Writable);
        // A folder comes before what is in it.
        for path in self.steps.iter().filter(|step| is_written(step.access)).map(|step| Path::new(&step.path)) {
            if !path.ancestors().any(|above| all.iter().any(|written| written == above)) {
                all.push(path.to_owned());
            }
        }
        all
    }

    /// Whether the command finds nothing there: the deepest step decides.
    #[must_use]
    pub fn hides(&self, path: &Path) -> bool {
        let above = self.steps.iter().filter(|step| path.starts_with(Path::new(&step.path)));
        let deepest = above.max_by_key(|step| Path::new(&step.path).components().count());
        deepest.is_some_and(|step| matches!(step.access, FileAccess::Empty | FileAccess::EmptyFile))
    }

    /// Files that others run or obey, and that the command may write by another name, if that is in what it may write.
    #[must_use]
    pub fn linked(&self) -> Vec<PathBuf> {
        self.watched.linked.iter().map(PathBuf::from).collect()
    }

    /// Folders that can be written and have more below them than was looked at for what others run or obey.
    pub fn cut(&self) -> impl Iterator<Item = &Path> {
        self.watched.cut.iter().map(Path::new)
    }
}

/// Steps, each with the one that decides about where it is. Their paths are sorted.
pub(crate) fn with_above(steps: &[FileStep]) -> impl Iterator<Item = (&FileStep, Option<&FileStep>)> {
    let mut above: Vec<&FileStep> = Vec::new();
    steps.iter().map(move |step| {
        above.retain(|folder| step.is_below(folder));
        let nearest = above.last().copied();
        above.push(step);
        (step, nearest)
    })
}

/// Where a link leads, or what it says where that is nowhere; an empty path where something else is, and nothing where
/// nothing is.
pub(crate) fn link_at(path: &Path) -> Option<PathBuf> {
    let link = path.read_link().map(|says| path.canonicalize().unwrap_or(says));
    link.or_else(|_| path.symlink_metadata().map(|_| PathBuf::new())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_named_by_the_outermost_folder() {
        let step = |path: &str, access| FileStep { path: path.into(), access, from: path.into() };
        let steps = vec![
            step("/dev/shm", FileAccess::Private),
            step("/h", FileAccess::Layer),
            step("/h/work", FileAccess::Writable),
            step("/h/work/.envrc", FileAccess::ReadOnly),
            step("/run", FileAccess::Empty),
            step("/run/work", FileAccess::Writable),
            step("/run/work/.git", FileAccess::Writable),
            step("/run/workshop", FileAccess::Writable),
            step("/tmp", FileAccess::Private),
        ];
        let plan = FilePlan { steps, ..FilePlan::default() };
        let expected = ["/dev", "/proc", "/h", "/run/work", "/run/workshop", "/tmp"];
        assert_eq!(plan.written(), expected.map(PathBuf::from));
    }
}
