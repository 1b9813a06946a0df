//! Which of the host's files the command of a run sees, and which it may write: what was typed, and where it starts.
//!
//! Started in a home folder or above one, all of it would be writable; so that has to be named. Nothing in what the
//! command may write is run or obeyed outside: see `config::Writable`.

use std::{
    env, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use footbridge_processes::keeper::StartRefusal;
use footbridge_processes::sandbox::{
    files::{FilePlan, MountsBefore, View, is_kernels},
    guarded::commits_to,
    held_folder::HeldFolder,
    layer,
    places::{OF_THE_SYSTEM, PRIVATE, SOCKETS, credentials},
    sockets::{self, FoundSockets, Reach},
};

use super::{
    Run, Sandbox,
    appeared::{Ended, Repositories},
    container_files::{ContainerFiles, ContainerFilesError},
    exposed,
    folder::RunFolder,
    git_files::{self, GitBefore},
    guest::GuestBinaries,
    links::{KeptBack, LinkElsewhere, WORKING_FOLDER, working_folder},
    moved::Moved,
    replaced::KeptFiles,
    told::names_of,
};
use crate::{config::folders::Folders, report};

/// The files of one command.
#[derive(Debug)]
pub(super) struct GuestFiles {
    /// The folder that it starts in.
    pub(super) start: PathBuf,
    /// What the command may write for good, by where it really is; without a sandbox that is no question.
    writes: Vec<PathBuf>,
    shown: Vec<PathBuf>,
    home: Option<PathBuf>,
    /// Whether writes to the home folder go into a layer.
    layered: bool,
    /// What else can be mounted before.
    mounts_before: MountsBefore,
    /// The session's own folder, which it may use.
    session: Option<PathBuf>,
    /// The sockets of other programs when the view was made.
    found: FoundSockets,
    /// What the command may write, held from before it starts.
    held: Vec<HeldFolder>,
    /// What there is of git there.
    git: GitBefore,
    /// What a container gets of them.
    container: ContainerFiles,
    /// Whether nothing is done about them: a container has what is mounted as it is.
    is_bare: bool,
    /// What git took for repositories there.
    repositories: Repositories,
    /// When the view was made.
    since: SystemTime,
    /// What is kept there, in case that it is replaced all the same.
    kept: KeptFiles,
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

impl GuestFiles {
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
        Ok(Self {
            start,
            writes,
            shown,
            home,
            layered: false,
            mounts_before: MountsBefore::default(),
            session: None,
            found: FoundSockets::default(),
            held: std::mem::take(&mut container.written),
            container,
            git: GitBefore::default(),
            is_bare: run.sandbox.engine().is_some(),
            repositories: Repositories::default(),
            since: SystemTime::now(),
            kept: KeptFiles::default(),
        })
    }

    /// What is done about them in each kind of sandbox.
    pub(super) async fn plan(
        &mut self,
        run: &Run,
        folders: &Folders,
        folder: &RunFolder,
        guest: &GuestBinaries,
    ) -> anyhow::Result<FilePlan> {
        self.hold()?;
        match run.sandbox {
            Sandbox::None => Ok(FilePlan::default()),
            Sandbox::Net | Sandbox::Bwrap => self.view_of_them(run, folders, folder, guest).await,
            Sandbox::Podman | Sandbox::Docker => {
                self.since = SystemTime::now();
                self.found = sockets::within(&self.container.sources);
                say_not_whole(&self.found.cut);
                say_what_listens(&self.found);
                self.repositories = Repositories::below(&self.writes);
                Ok(FilePlan::default())
            }
        }
    }

    /// Holds what the command may write, and looks at what an earlier one left there for git.
    fn hold(&mut self) -> Result<(), GuestFilesError> {
        let missing = |path: &PathBuf, source| GuestFilesError::Missing { flag: "--write", path: path.clone(), source };
        // What a container writes is held since it was looked at.
        if !self.is_bare {
            let held = self.writes.iter().map(|path| HeldFolder::hold(path).map_err(|source| missing(path, source)));
            self.held = held.collect::<Result<_, _>>()?;
        }
        self.git = git_files::look_at_all(&self.held, Vec::new()).say_before();
        Ok(())
    }

    /// What a sandbox that shows the host's files does about them. Says what it cannot do, and what shows in the clear.
    async fn view_of_them(
        &mut self,
        run: &Run,
        folders: &Folders,
        folder: &RunFolder,
        guest: &GuestBinaries,
    ) -> anyhow::Result<FilePlan> {
        let configurations = run.config.files.iter().filter(|path| !path.is_symlink());
        let shown: Vec<&Path> = configurations.map(PathBuf::as_path).filter(|path| self.may_write(path)).collect();
        exposed::warn_of(&shown);
        self.say_where_commits_go();
        self.since = SystemTime::now();
        self.session = Some(folder.shown());
        self.try_mounts(run.sandbox, folder, guest).await;
        let named: Vec<PathBuf> = self.writes.iter().chain(&self.shown).cloned().collect();
        let layered = self.home.as_deref().filter(|_| self.layered);
        self.found = sockets::in_reach(Reach { named: &named, layered });
        say_not_whole(&self.found.cut);
        let plan = self.view(run, folders, folder, guest).plan()?;
        say_not_kept(&plan);
        self.kept = KeptFiles::of(run, &plan);
        Ok(plan)
    }

    /// Finds out what can be mounted here. Says what cannot.
    async fn try_mounts(&mut self, sandbox: Sandbox, folder: &RunFolder, guest: &GuestBinaries) {
        if let Some(home) = &self.home {
            match layer::can_be_laid(home, &folder.layer(), &guest.relay).await {
                Ok(()) => self.layered = true,
                Err(refusal) => say_refused("the home folder is read-only for this command", &refusal),
            }
        }
        // The other sandbox is not without.
        if sandbox == Sandbox::Bwrap
            && !self.layered
            && let Err(refusal) = layer::mounts_can_be_made(&guest.relay).await
        {
            let what = "this command can replace links to what others run or obey, and sees what is mounted here later";
            say_refused(what, &refusal);
            self.mounts_before = MountsBefore::Refused;
        }
    }

    /// Says where git would write that commits in the working folder, where it cannot.
    fn say_where_commits_go(&self) {
        let Some(git) = commits_to(&self.start).filter(|git| self.may_write(&self.start) && !self.may_write(git))
        else {
            return;
        };
        let git = names_of(&[git]);
        report::note(&format!(
            "footbridge: git cannot commit in the working folder, whose repository is {git}: the command can write that, \
             but for what git runs or obeys there, with --write {git}"
        ));
    }

    /// Whether the command may write, make or replace this; the path has no links in it.
    fn may_write(&self, path: &Path) -> bool {
        self.writes.iter().any(|folder| path.starts_with(folder))
    }

    fn view(&self, run: &Run, folders: &Folders, folder: &RunFolder, guest: &GuestBinaries) -> View {
        let mut hidden = kept_back(self.home.as_deref()).hidden;
        hidden.extend(folders.users_runtime.clone());
        let bin = folder.bin();
        View {
            own_folders: own_folders(folders),
            secrets: run.config.gathered.files.clone(),
            configurations: run.config.files.clone(),
            hidden,
            // Whoever closed a folder could open it inside, and connect to what is in it.
            sockets: self.found.sockets.iter().chain(&self.found.closed).cloned().collect(),
            writable: self.writes.clone(),
            shown: self.shown.clone(),
            home: self.home.clone().filter(|_| self.layered),
            session: folder.shown(),
            programs: vec![
                (guest.relay.clone(), bin.join("footbridge-relay")),
                (guest.tool_cli.clone(), bin.join("tool-cli")),
            ],
            empty: folder.empty(),
            mounts_before: self.mounts_before,
        }
    }

    /// Tells of what could not be kept from the command.
    pub(super) fn say_what_appeared(&self, plan: &FilePlan) {
        self.kept.say_what_was_replaced(&Moved::of(&self.held));
        let ended = Ended {
            writes: &self.held,
            since: self.since,
            homes: self.homes(),
            plan,
            is_bare: self.is_bare,
            repositories: &self.repositories,
            git: &self.git,
            found: Some(&self.found),
            session: self.session.as_deref(),
        };
        ended.say_what_appeared();
    }

    /// The home folders of this user.
    pub(super) fn homes(&self) -> Vec<PathBuf> {
        homes(self.home.as_deref())
    }

    /// What a container's engine is told, and its relay is to find.
    pub(super) fn container(&self) -> &ContainerFiles {
        &self.container
    }

    /// Folders that it may write, and single files.
    pub(super) fn writes(&self) -> &[PathBuf] {
        &self.writes
    }
}

/// What the command of a sandbox that shows the host's files may write: what was named, and where it starts.
fn opened(run: &Run, folders: &Folders, start: &Path, home: Option<&Path>) -> Result<Vec<PathBuf>, GuestFilesError> {
    let own = own_folders(folders);
    let kept = kept_back(home);
    let mut all = named("--write", &run.write, &own)?;
    let shown = named("--show", &run.show, &own)?;
    check_links(&kept, "--write", &run.write, &all)?;
    check_links(&kept, "--show", &run.show, &shown)?;
    kept.check(WORKING_FOLDER, &working_folder(start), start)?;
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

/// Says what is so since there are no mounts.
fn say_refused(what: &str, refusal: &StartRefusal) {
    let (step, cause) = (&refusal.step, refusal.cause().desc());
    report::note(&format!("footbridge: {what}: cannot {step}: {cause}"));
}

/// Says which folders hold more than is looked through for sockets.
fn say_not_whole(cut: &[PathBuf]) {
    if !cut.is_empty() {
        report::note(&format!(
            "footbridge: not looked through whole for sockets of other programs, which the command could connect to: {}; \
             name folders further down",
            names_of(cut)
        ));
    }
}

/// Says which sockets a container is given with what is mounted: read-only or not, it can connect to them.
fn say_what_listens(found: &FoundSockets) {
    if !found.sockets.is_empty() {
        let sockets: Vec<PathBuf> = found.sockets.iter().cloned().collect();
        report::note(&format!(
            "footbridge: less isolated by --engine-arg: programs here listen at {}, and the command can connect to them",
            names_of(&sockets)
        ));
    }
}

/// Says what of that which others run or obey this plan does not keep from the command.
fn say_not_kept(plan: &FilePlan) {
    for cut in plan.cut() {
        report::note(&format!(
            "footbridge: {} holds more than is looked through: what git and editors run or obey in some repositories \
             below it can be written; start further down",
            cut.display()
        ));
    }
    let linked = plan.linked();
    if !linked.is_empty() {
        report::note(&format!(
            "footbridge: run or obeyed by other programs here, and the same files by other names (hard links), by which \
             the command may be able to write them: {}; put a copy in place of each, once you have looked at it",
            names_of(&linked)
        ));
    }
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

fn own_folders(folders: &Folders) -> Vec<PathBuf> {
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
fn kept_back(home: Option<&Path>) -> KeptBack {
    let homes = homes(home);
    let named_by_variables = credentials(None, |name| env::var_os(name));
    let below = homes.iter().flat_map(|home| credentials(Some(home), |_| None));
    let of_the_system = OF_THE_SYSTEM.map(PathBuf::from);
    KeptBack { hidden: named_by_variables.into_iter().chain(below).chain(of_the_system).collect(), homes }
}

fn check_links(kept: &KeptBack, what: &'static str, named: &[PathBuf], real: &[PathBuf]) -> Result<(), LinkElsewhere> {
    named.iter().zip(real).try_for_each(|(path, real)| kept.check(what, path, real))
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
