//! Which of the host's files a sandbox shows, and how: decided here, once, for every sandbox that shows them.
//!
//! All is there to read and nothing to write, but for what a [`View`] says. From it comes a [`FilePlan`]: steps in the
//! order in which they are taken, a folder before what is in it. So the deepest step decides about a path. What the
//! harness keeps for itself is hidden whatever else is said.
//!
//! A folder that can be written has parts that cannot: they are mounts, and so are the folders above them in it and the
//! links on the way to them, since a mount can be neither renamed nor replaced from inside. What is not there when the
//! command starts cannot be mounted on. A plan remembers such names, and says afterwards which of them are there.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use nix::libc::{ELOOP, ENAMETOOLONG};

use crate::file_plan::{FileAccess, FileStep, Version, Watched, link_at};
pub use crate::file_plan::{FilePlan, MountsBefore};
use crate::mount_table::MountTable;

use super::guarded::{Guarded, guarded};
use super::places::{KERNEL, PRIVATE, SOCKETS};

/// Sockets that are covered one by one, each by a mount.
pub(super) const MAX_COVERED: usize = 1_000;
/// Sockets in one folder that are; where there are more, the folder is covered if nothing of it was named.
const FEW: usize = 50;

/// What the sandbox shows of the host's files.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Folders of the harness: they show as empty. One that is missing is made, or the command could make it and fill it.
    pub own_folders: Vec<PathBuf>,
    /// Files that show as empty: secrets of the harness. What is missing is passed over, here and below.
    pub secrets: Vec<PathBuf>,
    /// Configurations that were read: read-only in a folder that can be written, so that nothing there looks changed,
    /// and empty elsewhere.
    pub configurations: Vec<PathBuf>,
    /// Files and folders that show as empty unless they are named: credentials of the user.
    pub hidden: Vec<PathBuf>,
    /// Sockets of other programs, which show as empty files unless they are named.
    pub sockets: Vec<PathBuf>,
    /// What the command may write, for good.
    pub writable: Vec<PathBuf>,
    /// What shows although it would be hidden.
    pub shown: Vec<PathBuf>,
    /// The home folder, if writes to it go into a layer.
    pub home: Option<PathBuf>,
    /// The session's folder; it shows, read-only, even below a hidden folder.
    pub session: PathBuf,
    /// Programs of the host, and where they show; the relay comes first.
    pub programs: Vec<(PathBuf, PathBuf)>,
    /// An empty file, which covers hidden ones.
    pub empty: PathBuf,
    /// Without them links can only be watched.
    pub mounts_before: MountsBefore,
}

/// Why there is no view.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// A folder that must not be replaced cannot be made.
    #[error("cannot make the folder {}, which the sandbox must not make: {source}", path.display())]
    Make {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something cannot be looked at.
    #[error("cannot look at {}: {source}", path.display())]
    Look {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A configuration is found by what the command could replace.
    #[error(
        "{} is reached by the link {}, which the command could replace, as it lies in a folder that it may write: name \
         the file itself, or keep the link elsewhere", path.display(), link.display()
    )]
    Link {
        /// The configuration.
        path: PathBuf,
        /// The link on the way.
        link: PathBuf,
    },
    /// Not all sockets can be covered.
    #[error(
        "programs listen at more sockets where the command could connect to them than the {MAX_COVERED} that are covered, \
         {count} of them in {}: end those programs, or start in another folder, and name no other in or above that one",
        folder.display()
    )]
    Sockets {
        /// The folder that holds most of them.
        folder: PathBuf,
        /// How many it holds that were found.
        count: usize,
    },
}

/// Steps in the making, by their paths.
#[derive(Debug, Default)]
struct Steps(BTreeMap<PathBuf, (FileAccess, PathBuf)>);

impl Steps {
    fn add(&mut self, path: &Path, access: FileAccess) {
        self.0.insert(path.to_owned(), (access, path.to_owned()));
    }

    /// Shows nothing there.
    fn hide(&mut self, path: &Path, empty: &Path) {
        if is_kernels(path) {
            // What the kernel shows of itself is private anyway, or read-only.
        } else if path.is_dir() {
            self.add(path, FileAccess::Empty);
        } else {
            self.0.insert(path.to_owned(), (FileAccess::EmptyFile, empty.to_owned()));
        }
    }

    /// What decides about a path that has no step of its own.
    fn above(&self, path: &Path) -> Option<FileAccess> {
        path.ancestors().skip(1).find_map(|above| self.0.get(above)).map(|(access, _)| *access)
    }

    /// Whether a socket there is the host's. A layer's files are others: no socket in it leads anywhere. Where a folder was
    /// named, the sockets in it were not.
    fn leads_out(&self, path: &Path) -> bool {
        let above = self.above(path);
        matches!(above, None | Some(FileAccess::Writable | FileAccess::ReadOnly)) && !self.0.contains_key(path)
    }

    /// Whether the command may not write this folder, and nothing was said of it or of what is in it.
    fn is_unnamed(&self, folder: &Path) -> bool {
        let next = self.0.range(folder.to_owned()..).next();
        self.at(folder) != Some(FileAccess::Writable) && next.is_none_or(|(step, _)| !step.starts_with(folder))
    }

    /// What decides about a path.
    fn at(&self, path: &Path) -> Option<FileAccess> {
        self.0.get(path).map(|(access, _)| *access).or_else(|| self.above(path))
    }
}

impl View {
    /// The steps to it. Makes folders that must not be made from inside.
    ///
    /// # Errors
    /// [`ViewError`].
    pub fn plan(&self) -> Result<FilePlan, ViewError> {
        let mut steps = self.shared()?;
        let guard = self.guard(&mut steps)?;
        self.show_configurations(&mut steps)?;
        self.refuse_links(&steps)?;
        for path in everywhere(&self.secrets)? {
            steps.hide(&path, &self.empty);
        }
        self.hide_own(&mut steps)?;
        self.hide_sockets(&mut steps)?;
        let steps = self.with_session(steps)?;
        let program = self.programs.first().map(|(_, at)| at.clone().into_os_string()).unwrap_or_default();
        Ok(FilePlan { mounts_before: self.mounts_before, ..FilePlan::new(steps, program, guard) })
    }

    /// What shows but for the harness's own: what is private or hidden, the home folder, and what is named.
    fn shared(&self) -> Result<Steps, ViewError> {
        let mut steps = Steps::default();
        for path in existing(PRIVATE)? {
            steps.add(&path, FileAccess::Private);
        }
        for path in everywhere(SOCKETS)? {
            steps.hide(&path, &self.empty);
        }
        if let Some(home) = &self.home {
            steps.add(home, FileAccess::Layer);
        }
        for path in everywhere(&self.hidden)? {
            steps.hide(&path, &self.empty);
        }
        for path in existing(&self.shown)? {
            steps.add(&path, FileAccess::ReadOnly);
        }
        for path in existing(&self.writable)? {
            steps.add(&path, FileAccess::Writable);
        }
        // A layer is over one file system.
        let mounts = MountTable::read();
        for path in self.home.iter().flat_map(|home| mounts.below(home)) {
            if steps.above(&path) == Some(FileAccess::Layer) && !steps.0.contains_key(&path) {
                steps.add(&path, FileAccess::ReadOnly);
            }
        }
        Ok(steps)
    }

    /// Takes what others run or obey out of what can be written, and gives the names that must be watched instead.
    fn guard(&self, steps: &mut Steps) -> Result<Watched, ViewError> {
        let mut watched = Watched::default();
        for folder in existing(&self.writable)? {
            let Guarded { paths, begun, linked, is_cut } = guarded(&folder);
            watched.known.extend(paths.iter().chain(&begun).cloned());
            watched.cut.extend(is_cut.then(|| folder.clone().into_os_string()));
            let linked = existing(&linked)?.into_iter().filter(|path| path.starts_with(&folder));
            watched.linked.extend(linked.map(PathBuf::into_os_string));
            let begun = begun.into_iter().filter(|path| steps.at(&there_of(path)) == Some(FileAccess::Writable));
            watched.begun.extend(begun.map(|path| (path.clone().into_os_string(), Version::at(&path))));
            for path in paths.into_iter().map(closed_by) {
                let real = resolved(&path)?;
                let mut links = links_to(&path);
                links.retain(|link| steps.above(link) == Some(FileAccess::Writable));
                let is_writable = |path: &Path| steps.at(path) == Some(FileAccess::Writable);
                // Settings lead to other places, too.
                if links.is_empty() && !is_writable(&path) && !real.as_deref().is_some_and(is_writable) {
                    continue;
                }
                match self.mounts_before {
                    MountsBefore::Made => links.iter().for_each(|link| steps.add(link, FileAccess::Link)),
                    MountsBefore::Refused => watched.names.extend(links.into_iter().map(as_it_is)),
                }
                make_hooks(&path)?;
                let real = if real.is_some() { real } else { resolved(&path)? };
                if real.is_none() {
                    watched.names.push(as_it_is(path));
                }
                // What was named itself may be written.
                let Some(real) = real.filter(|real| !steps.0.contains_key(real)) else { continue };
                if steps.at(&real) == Some(FileAccess::Writable) {
                    steps.add(&real, FileAccess::ReadOnly);
                }
            }
        }
        Ok(watched)
    }

    fn show_configurations(&self, steps: &mut Steps) -> Result<(), ViewError> {
        let writable = existing(&self.writable)?;
        for path in everywhere(&self.configurations)? {
            if !writable.iter().any(|folder| path.starts_with(folder)) {
                steps.hide(&path, &self.empty);
            } else if steps.at(&path) == Some(FileAccess::Writable) {
                steps.add(&path, FileAccess::ReadOnly);
            }
        }
        Ok(())
    }

    fn refuse_links(&self, steps: &Steps) -> Result<(), ViewError> {
        for path in &self.configurations {
            for link in links_to(path) {
                if steps.above(&link) == Some(FileAccess::Writable) {
                    return Err(ViewError::Link { path: path.clone(), link });
                }
            }
        }
        Ok(())
    }

    fn hide_own(&self, steps: &mut Steps) -> Result<(), ViewError> {
        for path in &self.own_folders {
            make_folder(path).map_err(|source| ViewError::Make { path: path.clone(), source })?;
        }
        for path in everywhere(&self.own_folders)? {
            steps.0.retain(|step, _| !step.starts_with(&path));
            steps.add(&path, FileAccess::Empty);
        }
        Ok(())
    }

    fn hide_sockets(&self, steps: &mut Steps) -> Result<(), ViewError> {
        let all: BTreeSet<PathBuf> = everywhere(&self.sockets)?.into_iter().collect();
        let leading_out = |steps: &Steps| all.iter().filter(|path| steps.leads_out(path)).cloned().collect::<Vec<_>>();
        for (folder, count) in by_folder(&leading_out(steps)) {
            if count > FEW && steps.is_unnamed(folder) {
                steps.hide(folder, &self.empty);
            }
        }
        let left = leading_out(steps);
        if left.len() > MAX_COVERED {
            let most = by_folder(&left).into_iter().max_by_key(|(_, count)| *count);
            let (folder, count) = most.map(|(folder, count)| (folder.to_owned(), count)).unwrap_or_default();
            return Err(ViewError::Sockets { folder, count });
        }
        left.iter().for_each(|path| steps.hide(path, &self.empty));
        Ok(())
    }

    fn with_session(&self, mut steps: Steps) -> Result<Vec<FileStep>, ViewError> {
        let own = everywhere(&self.own_folders)?;
        for path in steps.0.keys().cloned().collect::<Vec<_>>() {
            let hides = matches!(steps.0.get(&path), Some((FileAccess::Empty | FileAccess::EmptyFile, _)));
            // Nothing of it shows there. The harness's own are made all the same, or the command could make them.
            let needless = match steps.above(&path) {
                Some(FileAccess::Empty) => true,
                Some(FileAccess::Private) => !own.contains(&path),
                _ => false,
            };
            if hides && needless {
                steps.0.remove(&path);
            }
        }
        steps.add(&needed(&self.session)?, FileAccess::ReadOnly);
        for (program, at) in &self.programs {
            steps.0.insert(at.clone(), (FileAccess::ReadOnly, needed(program)?));
        }
        for pin in pins(&steps) {
            steps.add(&pin, FileAccess::Writable);
        }
        let step = |(path, (access, from)): (PathBuf, (FileAccess, PathBuf))| FileStep {
            path: path.into_os_string(),
            access,
            from: from.into_os_string(),
        };
        Ok(steps.0.into_iter().map(step).collect())
    }
}

/// A name, and what is there now.
fn as_it_is(path: PathBuf) -> (OsString, Option<OsString>) {
    let now = link_at(&path).map(PathBuf::into_os_string);
    (path.into_os_string(), now)
}

/// As much of a path as is there, by where it really is.
fn there_of(path: &Path) -> PathBuf {
    path.ancestors().find_map(|above| above.canonicalize().ok()).unwrap_or_default()
}

/// The folder that keeps this user from looking at what is there, or the path itself: whoever takes the right to look away
/// keeps nothing from being guarded by that.
fn closed_by(path: PathBuf) -> PathBuf {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let closed = path.ancestors().skip(1).find(|above| above.symlink_metadata().is_ok());
            closed.map_or_else(|| path.clone(), Path::to_owned)
        }
        _ => path,
    }
}

/// How many of these each folder holds.
fn by_folder(paths: &[PathBuf]) -> BTreeMap<&Path, usize> {
    let mut counts = BTreeMap::new();
    for folder in paths.iter().filter_map(|path| path.parent()) {
        *counts.entry(folder).or_default() += 1;
    }
    counts
}

/// The folders between one that can be written and what in it cannot. They become mounts, or the command could rename
/// them and put folders of its own at those paths, which others would take for what was there.
fn pins(steps: &Steps) -> BTreeSet<PathBuf> {
    let mut pins = BTreeSet::new();
    for path in steps.0.keys() {
        let between = path.ancestors().skip(1).take_while(|above| !steps.0.contains_key(*above));
        if steps.above(path) == Some(FileAccess::Writable) {
            pins.extend(between.map(Path::to_owned));
        }
    }
    pins
}

/// Git does without hooks; a folder for them that is made from inside would have the command's own.
fn make_hooks(path: &Path) -> Result<(), ViewError> {
    let of_git = path.parent().is_some_and(|git| git.join("objects").is_dir());
    if !of_git || !path.ends_with("hooks") || path.symlink_metadata().is_ok() {
        return Ok(());
    }
    make_folder(path).map_err(|source| ViewError::Make { path: path.to_owned(), source })
}

/// What these paths lead to, as far as they lead anywhere.
fn existing(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Vec<PathBuf>, ViewError> {
    let mut all = Vec::new();
    for path in paths {
        all.extend(resolved(path.as_ref())?);
    }
    Ok(all)
}

/// As [`existing`], with all other places where the same files show: what is hidden at one path is hidden at all.
fn everywhere(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Vec<PathBuf>, ViewError> {
    let mut all = existing(paths)?;
    let mounts = MountTable::read();
    all.extend(all.iter().flat_map(|path| mounts.other_places(path)).collect::<Vec<_>>());
    Ok(all)
}

/// Where the path leads to; nothing if it is not there or not to be reached, or can lead nowhere: a command may have left
/// links that lead to each other or are too long, and settings that name what is no path.
fn resolved(path: &Path) -> Result<Option<PathBuf>, ViewError> {
    use io::ErrorKind::{InvalidInput, NotADirectory, NotFound, PermissionDenied};
    let leads_nowhere = |error: &io::Error| {
        matches!(error.kind(), NotFound | NotADirectory | PermissionDenied | InvalidInput)
            || matches!(error.raw_os_error(), Some(ELOOP | ENAMETOOLONG))
    };
    match path.canonicalize() {
        Ok(real) => Ok(Some(real)),
        Err(error) if leads_nowhere(&error) => Ok(None),
        Err(source) => Err(ViewError::Look { path: path.to_owned(), source }),
    }
}

/// Where the path of something leads without which there is no sandbox.
fn needed(path: &Path) -> Result<PathBuf, ViewError> {
    path.canonicalize().map_err(|source| ViewError::Look { path: path.to_owned(), source })
}

/// Makes a missing folder, unless this user could not: then the command cannot make it either.
fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
            Ok(())
        }
        other => other,
    }
}

/// Links on the way to a path, each by where it lies, as many as the kernel follows.
fn links_to(path: &Path) -> Vec<PathBuf> {
    let mut links = Vec::new();
    let mut real = PathBuf::from("/");
    let parts =
        |path: &Path| -> Vec<OsString> { path.components().rev().map(|part| part.as_os_str().to_owned()).collect() };
    let mut ahead = parts(path);
    while let Some(part) = ahead.pop() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => _ = real.pop(),
            Some(Component::RootDir) => real = PathBuf::from("/"),
            Some(Component::Normal(name)) => real.push(name),
            _ => continue,
        }
        if let Ok(to) = real.read_link() {
            links.push(real.clone());
            real.pop();
            ahead.extend(parts(&to));
        }
        if links.len() > 40 {
            break;
        }
    }
    links
}

/// Whether this is where the kernel shows itself, which no sandbox lets be written.
#[must_use]
pub fn is_kernels(path: &Path) -> bool {
    KERNEL.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests;
