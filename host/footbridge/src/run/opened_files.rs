//! The files of a command from before it starts to after it has ended: held, shown or hidden, and looked at again.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use footbridge_processes::keeper::StartRefusal;
use footbridge_processes::sandbox::{
    files::{FilePlan, MountsBefore, View},
    guarded::commits_to,
    held_folder::HeldFolder,
    layer,
    sockets::{self, FoundSockets, Reach},
};

use super::{
    Run, Sandbox,
    appeared::{Ended, Repositories},
    asked_files::{AskedFiles, GuestFilesError, kept_back, own_folders},
    exposed,
    folder::RunFolder,
    git_files::{self, GitBefore},
    guest::GuestBinaries,
    moved::Moved,
    replaced::KeptFiles,
    told::names_of,
};
use crate::{config::folders::Folders, report};

/// The files of a command that may be started.
#[derive(Debug)]
pub(super) struct OpenedFiles {
    asked: AskedFiles,
    /// Whether nothing is done about them: a container has what is mounted as it is.
    is_bare: bool,
    /// What the command may write, held from before it starts.
    held: Vec<HeldFolder>,
    /// What there was of git there.
    git: GitBefore,
    /// When that was so, by the clocks that say when files changed.
    since: SystemTime,
    seen: Seen,
}

/// What the command sees of them, and what there was before it did. Nothing is known of them without a sandbox.
#[derive(Debug, Default)]
struct Seen {
    /// What is shown and hidden.
    plan: FilePlan,
    /// The sockets of other programs.
    found: FoundSockets,
    /// What git took for repositories, in what a container is given.
    repositories: Repositories,
    /// The session's own folder, which it may use.
    session: Option<PathBuf>,
    /// What is kept of them, in case that it is replaced all the same.
    kept: KeptFiles,
}

/// What can be mounted here.
struct Mountable {
    /// Whether a layer can be laid over the home folder, which writes go into.
    layered: bool,
    /// What else can be mounted before.
    before: MountsBefore,
}

impl OpenedFiles {
    /// Holds what the command may write, looks at what an earlier one left there for git, and does what each kind of
    /// sandbox needs. Says what it cannot do, and what shows in the clear.
    pub(super) async fn of(
        mut asked: AskedFiles,
        run: &Run,
        folders: &Folders,
        folder: &RunFolder,
        guest: &GuestBinaries,
    ) -> anyhow::Result<Self> {
        let is_bare = run.sandbox.engine().is_some();
        // What a container writes is held since it was looked at.
        let held = if is_bare { std::mem::take(&mut asked.container.written) } else { hold(&asked.writes)? };
        let git = git_files::look_at_all(&held, Vec::new()).say_before();
        let since = now_in(&held);
        let seen = match run.sandbox {
            Sandbox::None => Seen::default(),
            Sandbox::Net | Sandbox::Bwrap => Seen::of_the_host(&asked, run, folders, folder, guest).await?,
            Sandbox::Podman | Sandbox::Docker => Seen::mounted(&asked),
        };
        Ok(Self { asked, is_bare, held, git, since, seen })
    }

    /// When the command had not started yet, by the clocks that say when files changed.
    pub(super) fn since(&self) -> SystemTime {
        self.since
    }

    /// As they were asked for.
    pub(super) fn asked(&self) -> &AskedFiles {
        &self.asked
    }

    /// What is done about them.
    pub(super) fn plan(&self) -> &FilePlan {
        &self.seen.plan
    }

    /// Tells of what could not be kept from the command.
    pub(super) fn say_what_appeared(&self) {
        self.seen.kept.say_what_was_replaced(&Moved::of(&self.held));
        let ended = Ended {
            writes: &self.held,
            since: self.since,
            homes: self.asked.homes(),
            plan: &self.seen.plan,
            is_bare: self.is_bare,
            repositories: &self.seen.repositories,
            git: &self.git,
            found: Some(&self.seen.found),
            session: self.seen.session.as_deref(),
        };
        ended.say_what_appeared();
    }
}

impl Seen {
    /// As a sandbox shows the host's files.
    async fn of_the_host(
        asked: &AskedFiles,
        run: &Run,
        folders: &Folders,
        folder: &RunFolder,
        guest: &GuestBinaries,
    ) -> anyhow::Result<Self> {
        let configurations = run.config.files.iter().filter(|path| !path.is_symlink());
        let shown: Vec<&Path> = configurations.map(PathBuf::as_path).filter(|path| asked.may_write(path)).collect();
        exposed::warn_of(&shown);
        say_where_commits_go(asked);
        let mountable = Mountable::of(asked.home.as_deref(), run.sandbox, folder, guest).await;
        let named: Vec<PathBuf> = asked.writes.iter().chain(&asked.shown).cloned().collect();
        let layered = asked.home.as_deref().filter(|_| mountable.layered);
        let found = sockets::in_reach(Reach { named: &named, layered });
        say_not_whole(&found.cut);
        let bin = folder.bin();
        let mut hidden = kept_back(asked.home.as_deref()).hidden;
        hidden.extend(folders.users_runtime.clone());
        let view = View {
            own_folders: own_folders(folders),
            secrets: run.config.gathered.files.clone(),
            configurations: run.config.files.clone(),
            hidden,
            // Whoever closed a folder could open it inside, and connect to what is in it.
            sockets: found.sockets.iter().chain(&found.closed).cloned().collect(),
            writable: asked.writes.clone(),
            shown: asked.shown.clone(),
            home: layered.map(Path::to_owned),
            session: folder.shown(),
            programs: vec![
                (guest.relay.clone(), bin.join("footbridge-relay")),
                (guest.tool_cli.clone(), bin.join("tool-cli")),
            ],
            empty: folder.empty(),
            mounts_before: mountable.before,
        };
        let plan = view.plan()?;
        say_not_kept(&plan);
        let kept = KeptFiles::of(run, &plan);
        Ok(Self { plan, found, session: Some(folder.shown()), kept, ..Self::default() })
    }

    /// What a container is given, as it is.
    fn mounted(asked: &AskedFiles) -> Self {
        let found = sockets::within(&asked.container.sources);
        say_not_whole(&found.cut);
        say_what_listens(&found);
        Self { found, repositories: Repositories::below(&asked.writes), ..Self::default() }
    }
}

impl Mountable {
    /// Finds out. Says what cannot be.
    async fn of(home: Option<&Path>, sandbox: Sandbox, folder: &RunFolder, guest: &GuestBinaries) -> Self {
        let mut layered = false;
        if let Some(home) = home {
            match layer::can_be_laid(home, &folder.layer(), &guest.relay).await {
                Ok(()) => layered = true,
                Err(refusal) => say_refused("the home folder is read-only for this command", &refusal),
            }
        }
        // The other sandbox is not without.
        if sandbox == Sandbox::Bwrap
            && !layered
            && let Err(refusal) = layer::mounts_can_be_made(&guest.relay).await
        {
            let what = "this command can replace links to what others run or obey, and sees what is mounted here later";
            say_refused(what, &refusal);
            return Self { layered, before: MountsBefore::Refused };
        }
        Self { layered, before: MountsBefore::default() }
    }
}

/// Holds folders, and single files.
fn hold(writes: &[PathBuf]) -> Result<Vec<HeldFolder>, GuestFilesError> {
    let missing = |path: &PathBuf, source| GuestFilesError::Missing { flag: "--write", path: path.clone(), source };
    writes.iter().map(|path| HeldFolder::hold(path).map_err(|source| missing(path, source))).collect()
}

/// The time by the clocks of the file systems of these folders and of this machine, whichever is most behind: servers of file
/// systems have clocks of their own. What is read-only has none that matters.
fn now_in(held: &[HeldFolder]) -> SystemTime {
    let clock = |folder: &HeldFolder| {
        let meta = tempfile::tempfile_in(folder.path()).and_then(|file| file.metadata()).ok()?;
        let changed = Duration::new(meta.ctime().try_into().ok()?, meta.ctime_nsec().try_into().ok()?);
        UNIX_EPOCH.checked_add(changed)
    };
    held.iter().filter_map(clock).chain([SystemTime::now()]).min().unwrap_or(UNIX_EPOCH)
}

/// Says where git would write that commits in the working folder, where it cannot.
fn say_where_commits_go(asked: &AskedFiles) {
    let Some(git) = commits_to(&asked.start).filter(|git| asked.may_write(&asked.start) && !asked.may_write(git))
    else {
        return;
    };
    let git = names_of(&[git]);
    report::note(&format!(
        "footbridge: git cannot commit in the working folder, whose repository is {git}: the command can write that, \
         but for what git runs or obeys there, with --write {git}"
    ));
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
            "footbridge: {} holds more than is looked through, as work trees, links and repositories below it that an earlier \
             command may have made: what git and editors run or obey in some of them can be written; remove them, or start \
             further down",
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_time_is_that_of_the_folders_and_asking_for_it_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (work, file) = (folder.path().join("work"), folder.path().join("file"));
        fs::create_dir(&work).unwrap();
        fs::write(&file, "").unwrap();
        let held = [&work, &file].map(|path| HeldFolder::hold(path).unwrap());
        let since = now_in(&held);
        fs::write(work.join("later"), "").unwrap();
        assert!(work.join("later").metadata().unwrap().modified().unwrap() >= since);
        assert!(SystemTime::now() >= since && since >= file.metadata().unwrap().modified().unwrap());
        assert_eq!(fs::read_dir(&work).unwrap().count(), 1);
    }
}
