//! `footbridge run`: one session for one command.
//!
//! The harness listens first, then the command starts, in its sandbox and under a keeper; its status is ours. On
//! every way out the command, the servers and the run's folder are gone: in order when the command ends, and by the
//! keepers when this process is killed.

mod folder;
mod guest;

use std::{collections::BTreeSet, ffi::OsString, io::Write as _};

use anyhow::Context as _;
use footbridge_proto::{
    endpoint::{Endpoint, TcpEndpoint},
    token::Token,
    vars,
};
use nix::sys::signal::Signal;
use tokio::signal::unix::{Signal as UnixSignal, SignalKind, signal};

use crate::{
    audit::FileJournal,
    config::{Config, folders::Folders},
    gate::Policy,
    harness::Harness,
    keeper::{Kept, KeptCommand, SpawnError, Stream},
    listener::{Listen, Listeners},
    pty::Local,
    sandbox::{self, Asked, Environments, Kind},
    servers::Launcher,
    session::{Labels, SessionName, SessionSpec, new_token},
};
use folder::RunFolder;
use guest::GuestBinaries;

/// What isolates the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Sandbox {
    /// Nothing: promises hold against honest code only.
    None,
    /// Own user, network, mount, pid and ipc namespaces.
    Net,
}

/// What to run.
#[derive(Debug)]
pub struct Run {
    /// The operator's configuration.
    pub config: Config,
    /// Which calls may be made.
    pub policy: Policy,
    /// What isolates the command.
    pub sandbox: Sandbox,
    /// What `--env` names.
    pub env: Vec<Asked>,
    /// What the operator finds this run by.
    pub labels: Labels,
    /// The command and its arguments.
    pub command: Vec<OsString>,
}

/// The status when the command could not be run because of the harness.
pub const HARNESS_FAILED: i32 = 125;

/// Runs a command and gives its exit status.
///
/// # Errors
/// When the harness, the sandbox or the command cannot be started.
pub async fn run(run: Run, folders: &Folders) -> anyhow::Result<i32> {
    let guest = GuestBinaries::find()?;
    let folder = RunFolder::create(&folders.runtime, &guest.tool_cli)?;
    let endpoint = match run.sandbox {
        Sandbox::None => Endpoint::Tcp(TcpEndpoint::loopback(0)),
        Sandbox::Net => Endpoint::Unix(folder.socket()?),
    };
    let listener = Listeners::default().bind(&Listen::at(endpoint))?;
    let endpoint = listener.endpoint()?;
    let view = view_of(&run, folders, &folder);
    let names = run.config.gathered.names.clone();
    let journal = FileJournal::create(&folders.state.join("audit"))?;
    tracing::info!(record = %journal.path().display(), "calls are recorded");
    let harness =
        Harness::start(run.config, journal, Launcher::Kept { helper: None }).context("cannot write the record")?;
    let token = new_token()?;
    let spec = SessionSpec { labels: run.labels, ..SessionSpec::new(session_name(), &token, run.policy) };
    harness.open(spec, vec![listener])?;
    let plan = Plan { sandbox: run.sandbox, env: &run.env, command: &run.command, names: &names, token: &token };
    let ended = match plan.prepare(&endpoint, &folder, &guest, view) {
        Ok(command) => supervise(command).await,
        Err(error) => Err(error),
    };
    harness.stop().await;
    ended
}

fn session_name() -> SessionName {
    let name = format!("run-{}", std::process::id());
    // A word and a number always make a name.
    name.parse().unwrap_or_else(|_| unreachable!("run-PID is a session name"))
}

/// What the sandbox must not see of the harness.
fn view_of(run: &Run, folders: &Folders, folder: &RunFolder) -> sandbox::net::View {
    let mut hidden_folders = vec![folders.config.clone(), folders.state.clone(), folders.runtime.clone()];
    hidden_folders.extend(folders.users_runtime.clone());
    let mut hidden_files = run.config.files.clone();
    hidden_files.extend(run.config.gathered.files.iter().cloned());
    sandbox::net::View { hidden_folders, hidden_files, socket_folder: folder.shown() }
}

/// What the command's own start needs.
struct Plan<'a> {
    sandbox: Sandbox,
    env: &'a [Asked],
    command: &'a [OsString],
    names: &'a BTreeSet<String>,
    token: &'a Token,
}

impl Plan<'_> {
    fn prepare(
        &self,
        endpoint: &Endpoint,
        folder: &RunFolder,
        guest: &GuestBinaries,
        mut view: sandbox::net::View,
    ) -> anyhow::Result<Prepared> {
        let local = Local::find()?;
        view.hidden_files.extend(local.as_ref().and_then(|local| local.name().cloned()));
        let (program, args) = self.command.split_first().context("there is no command to run")?;
        let (kind, port, command) = match (self.sandbox, endpoint) {
            (Sandbox::None, Endpoint::Tcp(tcp)) => {
                warn_none();
                (Kind::Open, tcp.port, sandbox::none::command(program, args))
            }
            (_, Endpoint::Unix(socket)) => {
                let listen = Endpoint::Tcp(TcpEndpoint::loopback(vars::DEFAULT_PORT)).to_string();
                let args = sandbox::net::relay_args(&listen, socket.as_path(), self.command);
                (Kind::Closed, vars::DEFAULT_PORT, sandbox::net::command(&guest.relay, args, &view))
            }
            _ => anyhow::bail!("a sandbox without a network needs a Unix socket"),
        };
        let callers: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let tools = folder.bin();
        let from = Environments { callers: &callers, asked: self.env, referred: self.names, tools: Some(&tools) };
        let mut env = sandbox::environment(kind, from)?;
        env.push((vars::PORT.into(), port.to_string().into()));
        env.push((vars::TOKEN.into(), self.token.expose().into()));
        Ok(Prepared { command: command.env(env), local })
    }
}

fn warn_none() {
    let text = "footbridge: --sandbox none isolates nothing: this command can reach all that its user can\n";
    // Without a standard error there is nobody to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

struct Prepared {
    command: KeptCommand,
    local: Option<Local>,
}

/// Starts the command, passes signals on, and waits until nothing of it is left.
async fn supervise(prepared: Prepared) -> anyhow::Result<i32> {
    let Prepared { command, local } = prepared;
    let (command, local) = match local {
        Some(local) => {
            let [stdin, stdout, stderr] = local.streams();
            (command.streams(stdin, stdout, stderr).local_terminal(local.duplicate()?), Some(local))
        }
        None => (command.streams(Stream::Inherit, Stream::Inherit, Stream::Inherit), None),
    };
    // Before the command starts: from then on whoever sends a signal expects it to get there.
    let mut signals = Signals::listen()?;
    let mut spawning = std::pin::pin!(command.spawn());
    let mut early = None;
    let spawned = loop {
        tokio::select! {
            spawned = &mut spawning => break spawned,
            // The first is for the command, which may run already; a second is for a start that hangs.
            signal = signals.next() => if early.replace(signal).is_some() {
                return Ok(128 + signal as i32);
            },
        }
    };
    let mut kept = match spawned {
        Ok(kept) => kept,
        Err(SpawnError::Refused(refusal)) => {
            crate::report::error(&anyhow::Error::new(refusal.clone()));
            return Ok(refusal.exit_code());
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(signal) = early {
        kept.signal(signal);
    }
    let terminal = kept.terminal.take();
    match (local, terminal) {
        (Some(local), Some(terminal)) => local.attach(terminal)?.carry(wait(&mut kept, &mut signals)).await?,
        _ => wait(&mut kept, &mut signals).await,
    }
}

/// The signals that are passed on to the command.
struct Signals {
    interrupt: UnixSignal,
    terminate: UnixSignal,
    hangup: UnixSignal,
    quit: UnixSignal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Signal::SIGINT,
            Some(()) = self.terminate.recv() => Signal::SIGTERM,
            Some(()) = self.hangup.recv() => Signal::SIGHUP,
            Some(()) = self.quit.recv() => Signal::SIGQUIT,
            // Their streams never end.
            else => std::future::pending().await,
        }
    }
}

/// Waits for the end, and passes on what asks for it.
async fn wait(kept: &mut Kept, signals: &mut Signals) -> anyhow::Result<i32> {
    loop {
        let signal = tokio::select! {
            ended = kept.wait() => return Ok(ended?.code()),
            signal = signals.next() => signal,
        };
        kept.signal(signal);
    }
}
