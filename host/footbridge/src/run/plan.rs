//! What is started for a command, by what isolates it: the program, its arguments, its environment.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    io::{IsTerminal as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use footbridge_proto::{
    endpoint::{Endpoint, TcpEndpoint},
    token::Token,
    vars,
};

use super::{
    HARNESS_FAILED, Run,
    container_files::{ContainerFiles, numbered},
    delivery::SignalDelivery,
    folder::RunFolder,
    guest::GuestBinaries,
    supervise::Prepared,
};
use crate::config::Withheld;
use footbridge_processes::{
    keeper::KeptCommand,
    sandbox::{
        self, Asked, Environments, Nesting, SandboxKind,
        bwrap::{self, BwrapError},
        container::{self, Container},
        engine::{self, Engine, EngineError},
        files::FilePlan,
        held_folder::HeldFolder,
    },
};
use footbridge_services::{GuestAddress, ServiceSpec, environment};

/// What isolates the command, with all that it needs found.
#[derive(Debug)]
pub(super) enum Choice {
    None,
    Net,
    Bwrap { program: PathBuf },
    Container { engine: Engine, image: String },
}

impl Choice {
    /// Says what is known of why a run ended like this.
    pub(super) fn explain(&self, status: &anyhow::Result<i32>) {
        if let (Self::Container { engine, .. }, Ok(HARNESS_FAILED)) = (self, status) {
            engine.explain_failure();
        }
    }

    /// Finds what is needed, and says what is missing.
    pub(super) async fn make(run: &Run) -> anyhow::Result<Self> {
        let outside = Outside {
            names: &run.config.gathered.names,
            path: run.config.search_path.as_deref(),
            withheld: &run.config.withheld,
        };
        let kind = match run.sandbox {
            super::Sandbox::None => return Ok(Self::None),
            super::Sandbox::Net => return Ok(Self::Net),
            super::Sandbox::Bwrap => {
                let program = outside.find(bwrap::PROGRAM).ok_or(BwrapError::Missing)?;
                return Ok(Self::Bwrap { program });
            }
            super::Sandbox::Podman => engine::EngineKind::Podman,
            super::Sandbox::Docker => engine::EngineKind::Docker,
        };
        let image = run.image.clone().context("a container needs an image: name it with --image")?;
        let program = outside.find(kind.name()).ok_or(EngineError::Missing(kind.name()))?;
        let engine = Engine::new(kind, program, &run.engine_args);
        engine.check(&image, &outside.clients_environment(&run.env)?).await?;
        Ok(Self::Container { engine, image })
    }

    /// With what a container gets of the host where that was found.
    pub(super) fn mounting(self, files: &ContainerFiles) -> Self {
        match self {
            Self::Container { engine, image } => {
                Self::Container { engine: engine.with_args(&files.engine_args), image }
            }
            Self::None | Self::Net | Self::Bwrap { .. } => self,
        }
    }

    /// A user of a container can be a stranger to the host. Who can come near the socket is up to its folder.
    pub(super) fn socket_mode(&self) -> u32 {
        match self {
            Self::Container { .. } => 0o666,
            Self::None | Self::Net | Self::Bwrap { .. } => 0o600,
        }
    }
}

/// What programs outside of the sandbox are started with: its engine, or bubblewrap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outside<'a> {
    /// Names of variables that the configuration refers to.
    pub(super) names: &'a BTreeSet<String>,
    /// Their PATH.
    pub(super) path: Option<&'a str>,
    /// Other variables that they do not get as this process has them.
    pub(super) withheld: &'a Withheld,
}

impl Outside<'_> {
    fn find(self, name: &str) -> Option<PathBuf> {
        let is_program =
            |path: &PathBuf| path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
        self.path?.split(':').map(|folder| Path::new(folder).join(name)).find(is_program)
    }

    /// What an engine's client gets: what this process has, but for what the configuration refers to, and for what it
    /// would hand to the container unless asked: proxies, and the socket of a service manager.
    fn clients_environment(self, asked: &[Asked]) -> anyhow::Result<Vec<(OsString, OsString)>> {
        let own = std::env::vars_os().filter(|(name, _)| name != "PATH");
        let own = own.filter_map(|(name, value)| match (name.to_str(), value.to_str()) {
            (Some(text), Some(of_it)) => Some((name.clone(), self.withheld.handed_on(text, of_it)?.into())),
            _ => Some((name, value)),
        });
        let callers: Vec<(OsString, OsString)> =
            own.chain(self.path.map(|path| ("PATH".into(), path.into()))).collect();
        let from = Environments { callers: &callers, asked, referred: self.names, tools: None };
        // For its errors: what may not be asked for is the same everywhere.
        sandbox::environment(SandboxKind::Closed, from)?;
        let mut env = sandbox::environment(SandboxKind::Open, Environments { asked: &[], ..from })?;
        let is_asked = |name: &OsStr| asked.iter().any(|asked| name == OsStr::new(&asked.name));
        env.retain(|(name, _)| !container::is_handed_on(name) || is_asked(name));
        Ok(env)
    }
}

/// What the command's own start needs.
pub(super) struct Plan<'a> {
    pub(super) choice: &'a Choice,
    pub(super) folder: &'a RunFolder,
    pub(super) env: &'a [Asked],
    pub(super) command: &'a [OsString],
    pub(super) outside: Outside<'a>,
    pub(super) token: &'a Token,
    /// The services that the command may use.
    pub(super) services: &'a [ServiceSpec],
    pub(super) nesting: Nesting,
    /// The folder that the command starts in.
    pub(super) start: &'a Path,
    /// What the relay of a container is to find there.
    pub(super) mounted: &'a [OsString],
}

impl Plan<'_> {
    pub(super) fn prepare(
        &self,
        endpoint: &Endpoint,
        guest: &GuestBinaries,
        files: &FilePlan,
    ) -> anyhow::Result<Prepared> {
        let (mut ready, mut delivery) = (None, None);
        let command = match (self.choice, endpoint) {
            (Choice::None, Endpoint::Tcp(tcp)) => {
                warn_none();
                let (program, args) = self.command.split_first().context("there is no command to run")?;
                let command = sandbox::none::command(program, args);
                command.env(self.environment(SandboxKind::Open, tcp.port)?)
            }
            (Choice::Net, Endpoint::Unix(socket)) => {
                let command = sandbox::net::command(files.clone(), self.relay_args(socket.as_path()), self.nesting);
                let command = command.folder(self.start);
                command.env(self.environment(SandboxKind::Closed, vars::DEFAULT_PORT)?)
            }
            (Choice::Bwrap { program }, Endpoint::Unix(socket)) => {
                let (layer, nesting) = (self.folder.layer(), self.nesting);
                let place = bwrap::BwrapLayout { program, folder: self.start, layer: &layer, nesting };
                let (command, said) = bwrap::command(place, files, self.relay_args(socket.as_path()))?;
                ready = Some(said);
                command.env(self.environment(SandboxKind::Closed, vars::DEFAULT_PORT)?)
            }
            (Choice::Container { engine, image }, Endpoint::Unix(_)) => {
                let client = self.outside.clients_environment(self.env)?;
                delivery = Some(SignalDelivery::to(engine.clone(), self.folder.unique(), client.clone()));
                self.container(engine, image, client, guest)?
            }
            (Choice::None | Choice::Net | Choice::Bwrap { .. } | Choice::Container { .. }, _) => {
                anyhow::bail!("a sandbox without a network needs a Unix socket")
            }
        };
        // An engine's client has the command's streams, and hands on what it reads from them.
        let is_closed = match self.choice {
            Choice::Net | Choice::Bwrap { .. } => true,
            Choice::None | Choice::Container { .. } => false,
        };
        Ok(Prepared { command, ready, delivery, is_closed })
    }

    fn relay_args(&self, socket: &Path) -> Vec<OsString> {
        let listen = Endpoint::Tcp(TcpEndpoint::loopback(vars::DEFAULT_PORT)).to_string();
        sandbox::net::relay_args(&listen, socket, self.command)
    }

    fn environment(&self, kind: SandboxKind, port: u16) -> anyhow::Result<Vec<(OsString, OsString)>> {
        let callers: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let tools = self.folder.bin();
        let from =
            Environments { callers: &callers, asked: self.env, referred: self.outside.names, tools: Some(&tools) };
        let mut env = sandbox::environment(kind, from)?;
        let of_services = environment(self.services, GuestAddress { port, token: self.token.expose() });
        // What was asked for by name wins.
        let free = |(name, _): &(String, String)| !self.env.iter().any(|asked| asked.name == *name);
        for (name, value) in of_services.into_iter().filter(free) {
            env.retain(|(set, _)| *set != *name);
            env.push((name.into(), value.into()));
        }
        env.push((vars::STYLE.into(), vars::STYLE_AGENT.into()));
        env.push((vars::PORT.into(), port.to_string().into()));
        env.push((vars::TOKEN.into(), self.token.expose().into()));
        Ok(env)
    }

    /// What the relay of a container is told of its mounts: first itself, which neither an image nor anybody else can have
    /// replaced without replacing who looks.
    fn mounts(&self, shown: &Path, relay: &Path) -> anyhow::Result<impl Iterator<Item = OsString>> {
        let own = numbered(&HeldFolder::hold_by(relay)?, Path::new("/proc/self/exe"))?;
        let session = numbered(&HeldFolder::hold(shown)?, Path::new(container::INSIDE))?;
        let all = [own, session].into_iter().chain(self.mounted.iter().cloned());
        Ok(all.flat_map(|one| ["--mounted".into(), one]))
    }

    fn container(
        &self,
        engine: &Engine,
        image: &str,
        mut client: Vec<(OsString, OsString)>,
        guest: &GuestBinaries,
    ) -> anyhow::Result<KeptCommand> {
        client.push((vars::TOKEN.into(), self.token.expose().into()));
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let style = (vars::STYLE.to_owned(), Some(vars::STYLE_AGENT.into()));
        let mut env = vec![(vars::TOKEN.to_owned(), None), style];
        let address = GuestAddress { port: vars::DEFAULT_PORT, token: self.token.expose() };
        for (name, value) in environment(self.services, address) {
            // By its name alone: it may hold the token.
            client.push((name.clone().into(), value.into()));
            env.push((name, None));
        }
        let is_set = |name: &str| client.iter().any(|(set, _)| set == name);
        if terminal && is_set("TERM") {
            env.push(("TERM".to_owned(), None));
        }
        let asked = self.env.iter().filter(|asked| asked.value.is_some() || is_set(&asked.name));
        env.extend(asked.map(|asked| (asked.name.clone(), asked.value.clone())));
        let socket = Path::new(container::INSIDE).join("footbridge.sock");
        let (name, shown) = (self.folder.unique(), self.folder.shown());
        let entry = format!("/run/{name}/footbridge-relay");
        let container = Container {
            name: &name,
            image,
            folder: &shown,
            programs: [&guest.relay, &guest.tool_cli],
            entry: &entry,
            env,
            terminal,
            nesting: self.nesting,
            relay_args: self.mounts(&shown, &guest.relay)?.chain(self.relay_args(&socket)).collect(),
        };
        Ok(engine.command(container, client, vars::TOKEN)?)
    }
}

fn warn_none() {
    let text = "footbridge: --sandbox none isolates nothing: this command can reach all that its user can\n";
    // Without a standard error there is nobody to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
