//! Which of the host's files the command of a run sees, and which it may write: what was typed, and where it starts.
//!
//! Started in a home folder or above one, all of it would be writable; so that has to be named. Nothing in what the
//! command may write is run or obeyed outside: see `config::Writable`.

use std::{
    env, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use footbridge_processes::sandbox::{
    files::is_kernels,
    places::{OF_THE_SYSTEM, PRIVATE, SOCKETS, credentials},
};

use super::{
    Run, Sandbox,
    container_files::{ContainerFiles, ContainerFilesError},
    links::{KeptBack, LinkElsewhere, WORKING_FOLDER, working_folder},
};
use crate::config::folders::Folders;

/// The files of a command as they were asked for, and where they really are.
#[derive(Debug)]
pub(super) struct AskedFiles {
    /// The folder that it starts in.
    pub(super) start: PathBuf,
    /// What the command may write for good; without a sandbox that is no question.
    pub(super) writes: Vec<PathBuf>,
    /// What it may read though it would be hidden.
    pub(super) shown: Vec<PathBuf>,
    /// The home folder that is set, if it is one.
    pub(super) home: Option<PathBuf>,
    /// What a container gets of them, which is held.
    pub(super) container: ContainerFiles,
}

/// Why the command cannot have these files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum GuestFilesError {
    /// The working folder is gone.
    #[error("cannot find the working folder: {0}")]
    Start(#[source] io::Error),
    /// Something that was named is not there.
    #[error("{flag} {}: {source}; name something that is there", path.display())]
    Missing {
        /// What named it.
        flag: &'static str,
        /// What was named.
        path: PathBuf,
        /// Why it cannot be found.
        source: io::Error,
    },
    /// All of it, or what the kernel shows of itself.
    #[error("{flag} {}: no sandbox lets a command have that; name a folder or file further down", path.display())]
    Never {
        /// What named it.
        flag: &'static str,
        /// What was named.
        path: PathBuf,
    },
    /// All that is run and obeyed for this user.
    #[error(
        "--write {}: your home folder is in it, and with that the settings and modules of programs outside, MCP servers \
         among them: name folders in it", .0.display()
    )]
    Home(PathBuf),
    /// The harness's own.
    #[error("{what} {} is in {}, where Footbridge keeps its own files; use another folder", path.display(), own.display())]
    Own {
        /// What named it.
        what: &'static str,
        /// What was named.
        path: PathBuf,
        /// The harness's folder.
        own: PathBuf,
    },
    /// A link leads to what nobody named.
    #[error(transparent)]
    Link(#[from] LinkElsewhere),
    /// A container would have what it must not.
    #[error(transparent)]
    Container(#[from] ContainerFilesError),
    /// Credentials would be opened unasked.
    #[error(
        "the working folder {} is in {}, which is hidden: start elsewhere, or open it with --write {}", path.display(),
        hidden.display(), path.display()
    )]
    Hidden {
        /// The working folder.
        path: PathBuf,
        /// What is hidden.
        hidden: PathBuf,
    },
    /// Too much would be writable.
    #[error(
        "the working folder is {}, and the command could write to all of it: start in the folder that it is to work in, \
         or name what it may write, as in --write PATH", path.display()
    )]
    TooMuch {
        /// The working folder.
        path: PathBuf,
    },
}

impl AskedFiles {
    /// What was asked for, checked.
    pub(super) fn of(run: &Run, folders: &Folders) -> Result<Self, GuestFilesError> {
        let start = start_folder().map_err(GuestFilesError::Start)?;
        let home = home_folder().filter(|home| home.is_dir() && !is_shared(home));
        let mut container = ContainerFiles::default();
        let writes = match run.sandbox {
            Sandbox::None => Vec::new(),
            // An image has its own files.
            Sandbox::Podman | Sandbox::Docker => {
                container = ContainerFiles::of(run, &own_folders(folders), &kept_back(home.as_deref()))?;
                container.written.iter().map(|held| held.path().to_owned()).collect()
            }
            Sandbox::Net | Sandbox::Bwrap => opened(run, folders, &start, home.as_deref())?,
        };
        let shown = named("--show", &run.show, &own_folders(folders))?;
        Ok(Self { start, writes, shown, home, container })
    }

    /// Whether the command may write, make or replace this; the path has no links in it.
    pub(super) fn may_write(&self, path: &Path) -> bool {
        self.writes.iter().any(|folder| path.starts_with(folder))
    }

    /// The home folders of this user.
    pub(super) fn homes(&self) -> Vec<PathBuf> {
        homes(self.home.as_deref())
    }
}

/// What the command of a sandbox that shows the host's files may write: what was named, and where it starts.
fn opened(run: &Run, folders: &Folders, start: &Path, home: Option<&Path>) -> Result<Vec<PathBuf>, GuestFilesError> {
    let own = own_folders(folders);
    let kept = kept_back(home);
    let mut all = named("--write", &run.write, &own)?;
    let shown = named("--show", &run.show, &own)?;
    for (path, real) in run.write.iter().zip(&all) {
        kept.check("--write", path, real, true)?;
    }
    for (path, real) in run.show.iter().zip(&shown) {
        kept.check("--show", path, real, false)?;
    }
    kept.check(WORKING_FOLDER, &working_folder(start), start, true)?;
    let is_named = all.iter().chain(&shown).any(|named| start.starts_with(named));
    if let Some(hidden) = kept.hides(start).filter(|_| !is_named) {
        return Err(GuestFilesError::Hidden { path: start.to_owned(), hidden: hidden.to_owned() });
    }
    if let Some(path) = all.iter().find(|path| holds_a_home(path, home)) {
        return Err(GuestFilesError::Home(path.clone()));
    }
    if !is_too_much(start, home) {
        is_not_own(WORKING_FOLDER, start, &own)?;
        all.push(start.to_owned());
    } else if all.is_empty() {
        return Err(GuestFilesError::TooMuch { path: start.to_owned() });
    }
    Ok(all)
}

/// The folder that the command of a run starts in, where it may write all of it though nobody named it.
pub(super) fn opened_unasked() -> Option<PathBuf> {
    start_folder().ok().filter(|start| !is_too_much(start, home_folder().as_deref()))
}

/// Whether this is all of it, or has the home folder in it.
pub(super) fn is_never_opened(path: &Path) -> bool {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real.parent().is_none() || holds_a_home(&real, home_folder().as_deref())
}

fn start_folder() -> io::Result<PathBuf> {
    env::current_dir().and_then(|folder| folder.canonicalize())
}

fn home_folder() -> Option<PathBuf> {
    env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok())
}

pub(super) fn own_folders(folders: &Folders) -> Vec<PathBuf> {
    vec![folders.config.clone(), folders.state.clone(), folders.runtime.clone()]
}

fn named(flag: &'static str, paths: &[PathBuf], own: &[PathBuf]) -> Result<Vec<PathBuf>, GuestFilesError> {
    let check = |path: &PathBuf| {
        let missing = |source| GuestFilesError::Missing { flag, path: path.clone(), source };
        let real = path.canonicalize().map_err(missing)?;
        let devices = flag == "--show" && real.starts_with("/dev/");
        if real == Path::new("/") || (is_kernels(&real) && !devices) {
            return Err(GuestFilesError::Never { flag, path: path.clone() });
        }
        is_not_own(flag, &real, own)?;
        Ok(real)
    };
    paths.iter().map(check).collect()
}

fn is_not_own(what: &'static str, path: &Path, own: &[PathBuf]) -> Result<(), GuestFilesError> {
    let real = own.iter().filter_map(|own| own.canonicalize().ok());
    match real.into_iter().find(|own| path.starts_with(own)) {
        Some(own) => Err(GuestFilesError::Own { what, path: path.to_owned(), own }),
        None => Ok(()),
    }
}

/// A folder that many programs share, or one above it: no folder of work, and no home.
fn is_shared(folder: &Path) -> bool {
    let shared = PRIVATE.iter().chain(&SOCKETS).map(Path::new);
    is_kernels(folder) || shared.into_iter().any(|shared| shared.starts_with(folder))
}

/// What the system runs and obeys, and below it where people build things all the same.
const SYSTEM: [&str; 7] = ["/bin", "/boot", "/etc", "/lib", "/lib64", "/sbin", "/usr"];
const BUILT_THERE: [&str; 2] = ["/usr/src", "/usr/local/src"];

/// Folders of a home folder that are as it is: many programs keep in them what they run and obey.
const SETTINGS: [&str; 6] = [".cache", ".config", ".local", ".local/bin", ".local/lib", ".local/share"];

/// Whether too much would be writable if all of this were: a home folder, or what is above one, or its settings, or
/// what is shared or the system's.
fn is_too_much(folder: &Path, home: Option<&Path>) -> bool {
    let is_at_home = homes(home).iter().any(|home| folder.starts_with(home));
    let is_of_the_system = !is_at_home && SYSTEM.iter().any(|system| folder.starts_with(system));
    let is_built = BUILT_THERE.iter().any(|built| folder.starts_with(built) && folder != Path::new(built));
    let are_settings = || homes(home).iter().any(|home| SETTINGS.iter().any(|below| folder == home.join(below)));
    is_shared(folder) || (is_of_the_system && !is_built) || holds_a_home(folder, home) || are_settings()
}

/// Whether this is a home folder of this user, or above one, by whatever mount it shows.
fn holds_a_home(folder: &Path, home: Option<&Path>) -> bool {
    let file = |path: &Path| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    let is_it = |above: &Path| above == folder || (file(folder).is_some() && file(above) == file(folder));
    homes(home).iter().any(|home| home.ancestors().any(is_it))
}

/// The home folders of this user: the one that is set, and the one that is registered.
fn homes(home: Option<&Path>) -> Vec<PathBuf> {
    let registered = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    let registered = registered.and_then(|user| user.dir.canonicalize().ok()).filter(|home| home.parent().is_some());
    let mut homes: Vec<PathBuf> = home.map(Path::to_owned).into_iter().chain(registered).collect();
    homes.dedup();
    homes
}

/// Where credentials are, below either home folder and of the system, and what links must not lead to.
pub(super) fn kept_back(home: Option<&Path>) -> KeptBack {
    let homes = homes(home);
    let named_by_variables = credentials(None, |name| env::var_os(name));
    let below = homes.iter().flat_map(|home| credentials(Some(home), |_| None));
    let of_the_system = OF_THE_SYSTEM.map(PathBuf::from);
    KeptBack { hidden: named_by_variables.into_iter().chain(below).chain(of_the_system).collect(), homes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_hidden_below_the_home_folder_that_is_set_and_the_registered_one() {
        let hidden = kept_back(Some(Path::new("/elsewhere"))).hidden;
        assert!(hidden.contains(&PathBuf::from("/elsewhere/.ssh")));
        for home in homes(None) {
            assert!(hidden.contains(&home.join(".ssh")), "{}", home.display());
        }
    }

    #[test]
    fn a_home_folder_and_what_is_above_one_is_too_much() {
        let home = Some(Path::new("/h/me"));
        for folder in ["/", "/h", "/h/me", "/tmp", "/run", "/var", "/sys/fs/cgroup", "/dev/shm"] {
            assert!(is_too_much(Path::new(folder), home), "{folder}");
        }
        for folder in ["/h/me/work", "/h/you", "/tmp/work", "/srv"] {
            assert!(!is_too_much(Path::new(folder), home), "{folder}");
        }
    }
}
