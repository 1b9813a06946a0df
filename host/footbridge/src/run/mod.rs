//! `footbridge run`: one session for one command.
//!
//! The harness listens first, then the command starts, in its sandbox and under a keeper; its status is ours. On
//! every way out the command, the servers and the run's folder are gone: in order when the command ends, and by the
//! keepers when this process is killed.

mod agent;
mod appeared;
mod ask;
mod asked_files;
mod commands;
mod container_files;
mod delivery;
mod ending;
mod exposed;
mod folder;
mod git_files;
mod guest;
mod killed;
mod links;
mod moved;
mod note;
mod opened_files;
mod patience;
mod plan;
mod replaced;
mod supervise;
mod told;

use std::{collections::BTreeSet, ffi::OsString, io::IsTerminal as _, path::PathBuf, sync::Arc};

use footbridge_proto::{
    endpoint::{Endpoint, TcpEndpoint},
    vars,
};

use crate::{
    composition::{self, Started, Wanted},
    config::{Config, Writable, folders::Folders, of_names},
    control,
};
pub(crate) use agent::NotTold;
pub(crate) use agent::{Agent, Models};
use ask::Person;
use asked_files::AskedFiles;
pub(crate) use asked_files::GuestFilesError;
use commands::RunHandler;
use folder::{RunFolder, Tools};
use footbridge_calls::session::SessionSpec;
use footbridge_core::{
    gate::Policy,
    limits::overrides::Overrides,
    names::{Labels, ServerName, SessionName},
    random::new_token,
};
use footbridge_edge::listener::{Access, Listen, Listener, Listeners};
use footbridge_processes::{
    pty::{Local, Unaskable},
    sandbox::{Asked, Nesting, engine, engine_args::host_mounts},
};
pub(crate) use guest::GuestBinaries;
use note::Note;
use opened_files::OpenedFiles;
use plan::{Choice, Outside, Plan};
use supervise::Supervised;

/// What isolates the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sandbox {
    /// Nothing: promises hold against honest code only.
    None,
    /// Own user, network, mount, pid and ipc namespaces.
    Net,
    /// The same by bubblewrap.
    Bwrap,
    /// A container of Podman.
    Podman,
    /// A container of Docker.
    Docker,
}

impl Sandbox {
    /// The container engine, for those that have one.
    #[must_use]
    pub(crate) fn engine(self) -> Option<engine::EngineKind> {
        match self {
            Self::Podman => Some(engine::EngineKind::Podman),
            Self::Docker => Some(engine::EngineKind::Docker),
            Self::None | Self::Net | Self::Bwrap => None,
        }
    }

    /// Whether its command finds files of the host, as far as they are not hidden from it.
    #[must_use]
    pub(crate) fn shows_host_files(self) -> bool {
        match self {
            Self::Net | Self::Bwrap => true,
            Self::None | Self::Podman | Self::Docker => false,
        }
    }

    /// What its command can write of the host's files for good. Without a sandbox that is no question.
    #[must_use]
    pub(crate) fn writable(self, engine_args: &[OsString], named: &[PathBuf]) -> Writable {
        match self {
            Self::None => Writable::default(),
            Self::Net | Self::Bwrap => {
                // These are opened by no sandbox: they are refused by name when the files are planned.
                let named = named.iter().filter(|path| !asked_files::is_never_opened(path)).cloned();
                Writable::folders(asked_files::opened_unasked().into_iter().chain(named))
            }
            Self::Podman | Self::Docker => {
                let mounts = host_mounts(engine_args).into_iter().filter(|mount| mount.is_writable);
                Writable::folders(mounts.map(|mount| mount.source))
            }
        }
    }
}

/// What to run.
#[derive(Debug)]
pub(crate) struct Run {
    /// The operator's configuration.
    pub(crate) config: Config,
    /// Which calls may be made.
    pub(crate) policy: Arc<Policy>,
    /// What isolates the command.
    pub(crate) sandbox: Sandbox,
    /// The image of a container.
    pub(crate) image: Option<String>,
    /// What the command could write when the configuration was read.
    pub(crate) writable: Writable,
    /// What a container's engine is told besides.
    pub(crate) engine_args: Vec<OsString>,
    /// What `--env` names.
    pub(crate) env: Vec<Asked>,
    /// What the command may write besides the folder that it starts in.
    pub(crate) write: Vec<PathBuf>,
    /// What it sees although it would be hidden.
    pub(crate) show: Vec<PathBuf>,
    /// Whether it may make namespaces of its own.
    pub(crate) nesting: Nesting,
    /// What the operator finds this run by.
    pub(crate) labels: Labels,
    /// The services that it may use.
    pub(crate) services: BTreeSet<ServerName>,
    /// The agent that is told of the bridge as an MCP server.
    pub(crate) agent: Option<Agent>,
    /// Its own limits, where they are not those of the configuration.
    pub(crate) limits: Overrides,
    /// The command and its arguments.
    pub(crate) command: Vec<OsString>,
}

/// The status when the command could not be run because of the harness.
pub(crate) const HARNESS_FAILED: i32 = 125;

/// Runs a command and gives its exit status.
///
/// # Errors
/// When the harness, the sandbox or the command cannot be started.
pub(crate) async fn run(mut run: Run, folders: &Folders) -> anyhow::Result<i32> {
    crate::log::of_run(&folders.state);
    let guest = GuestBinaries::out_of_reach(&run.writable)?;
    // What is missing is said before anything is started.
    let choice = Choice::make(&run).await?;
    let files = AskedFiles::of(&run, folders)?;
    let choice = choice.mounting(&files.container);
    let folder = RunFolder::create(&folders.runtime, tools(&choice, &guest))?;
    killed::say_what_killed_runs_left(&folders.state, || files.homes());
    let (listener, endpoint) = bind(&choice, &folder)?;
    tell_agent(&mut run, &endpoint)?;
    let files = OpenedFiles::of(files, &run, folders, &folder, &guest).await?;
    let local = Local::find()?;
    let (services, limits) = (of_names(&run.config, &run.services)?, run.limits.alone(&run.config.named_limits));
    let names = run.config.gathered.names.clone();
    let (path, withheld) = (run.config.search_path.clone(), run.config.withheld.clone());
    let unaskable = local.as_ref().map_or(Some(Unaskable::Nowhere), Local::unaskable);
    let person = unaskable.is_none();
    let others = run.config.approval.watch.unwrap_or(person);
    run.config.approval.watch = Some(person || others);
    let (socket, asking) = (control::in_folder(folder.path()), run.policy.name().to_owned());
    // From here on what is logged would be drawn over what the command shows, or over a question.
    let logged = std::io::stderr().is_terminal().then(|| crate::log::to_file(&folders.state));
    let Started { harness, mut rest } =
        composition::start(Wanted { config: run.config, state: &folders.state, front: "run", socket: &socket }).await?;
    rest.answer(Arc::new(RunHandler::new(&harness, others)));
    harness.approvals().if_nobody(move || ask::say_that_nobody_is_asked(&asking, unaskable));
    let person = person.then(|| Person::new(harness.approvals(), others));
    let mut note = None;
    // Whatever fails from here on, what was started ends in order.
    let ended = async {
        let token = new_token()?;
        let spec = SessionSpec {
            labels: run.labels,
            limits,
            services: run.services,
            ..SessionSpec::new(session_name(), &token, run.policy)
        };
        harness.open(spec, vec![listener])?;
        let outside = Outside { names: &names, path: path.as_deref(), withheld: &withheld };
        let (env, command, nesting) = (&run.env, &run.command, run.nesting);
        let (services, start) = (&services[..], &files.asked().start);
        let (choice, folder, token, mounted) = (&choice, &folder, &token, &files.asked().container.mounted[..]);
        let plan = Plan { choice, folder, env, command, outside, token, services, nesting, start, mounted };
        note = Note::write(&folders.state, &files.asked().writes, files.since())?;
        let prepared = plan.prepare(&endpoint, &guest, files.plan())?.noted(note.as_ref())?;
        anyhow::Ok(supervise::supervise(prepared, local, person).await)
    }
    .await;
    let mut ended = ended.unwrap_or_else(Supervised::not_started);
    choice.explain(&ended.status);
    drop(logged);
    ending::look(move || files.say_what_appeared(), note, &mut ended).await;
    ending::end(rest.end(harness.stop()), &mut ended).await;
    ended.status
}

/// How the command comes by `tool-cli`.
fn tools<'a>(choice: &Choice, guest: &'a GuestBinaries) -> Tools<'a> {
    match choice {
        Choice::None => Tools::Link(&guest.tool_cli),
        Choice::Net | Choice::Bwrap { .. } | Choice::Container { .. } => Tools::Mounts,
    }
}

/// Has the agent of the command know of the bridge, whose port is the relay's where this is no port.
fn tell_agent(run: &mut Run, endpoint: &Endpoint) -> anyhow::Result<()> {
    let Some(agent) = run.agent else { return Ok(()) };
    let port = if let Endpoint::Tcp(tcp) = endpoint { tcp.port } else { vars::DEFAULT_PORT };
    let models = Models::of(&of_names(&run.config, &run.services)?, port);
    Ok(agent.tell(&mut run.command, &mut run.env, &models)?)
}

/// Listens where the command, or its relay, connects to.
fn bind(choice: &Choice, folder: &RunFolder) -> anyhow::Result<(Listener, Endpoint)> {
    let endpoint = match choice {
        Choice::None => Endpoint::Tcp(TcpEndpoint::loopback(0)),
        Choice::Net | Choice::Bwrap { .. } | Choice::Container { .. } => Endpoint::Unix(folder.socket()?),
    };
    let access = Access { mode: choice.socket_mode(), ..Access::default() };
    let listeners = Listeners::default().with_own_folder(folder.path().to_owned());
    let listener = listeners.bind(&Listen { access, ..Listen::at(endpoint) })?;
    let endpoint = listener.endpoint()?;
    Ok((listener, endpoint))
}

fn session_name() -> SessionName {
    let name = format!("run-{}", std::process::id());
    // A word and a number always make a name.
    name.parse().unwrap_or_else(|_| unreachable!("run-PID is a session name"))
}
