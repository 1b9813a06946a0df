//! Which servers there are, and how a new configuration takes the place of the old one while they run.
//!
//! A server whose configuration did not change is not touched. One that did is ended first, with whatever runs on it,
//! and then started afresh, so that two of them never run side by side.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use tokio::sync::{mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Handle, ServerSpec, ServerState, ServersContext, TransportSpec, WAKES, program_call, restarts::Restarts,
    status::Shared,
};
use crate::supervisor::Supervisor;
use footbridge_core::names::ServerName;

/// What a new configuration changed, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServersChanged {
    /// Servers that are new.
    pub added: Vec<ServerName>,
    /// Servers that are gone.
    pub removed: Vec<ServerName>,
    /// Servers that were ended and are started with another configuration.
    pub restarted: Vec<ServerName>,
}

/// The servers at one moment.
#[derive(Debug, Default)]
pub(super) struct Current {
    pub(super) names: Arc<[ServerName]>,
    pub(super) servers: BTreeMap<ServerName, Arc<Handle>>,
    /// Servers that were removed and have not ended.
    ending: BTreeMap<ServerName, Arc<Handle>>,
}

/// The servers, now and later.
#[derive(Debug)]
pub(super) struct ConfiguredServers {
    current: RwLock<Arc<Current>>,
    context: Arc<ServersContext>,
    stop: CancellationToken,
    tracker: TaskTracker,
    changes: watch::Sender<()>,
}

impl ConfiguredServers {
    /// No servers.
    pub(super) fn new(context: Arc<ServersContext>, stop: CancellationToken, tracker: TaskTracker) -> Self {
        Self { current: RwLock::default(), context, stop, tracker, changes: watch::Sender::new(()) }
    }

    /// The servers now.
    pub(super) fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Hears of each change of a server's state.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Puts these servers in the place of those that are. Of several with one name the last one counts.
    pub(super) fn replace(&self, specs: Vec<ServerSpec>) -> ServersChanged {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut old = current.servers.clone();
        let mut changed = ServersChanged::default();
        let specs: BTreeMap<_, _> = specs.into_iter().map(|spec| (spec.name.clone(), spec)).collect();
        let mut ending = current.ending.clone();
        ending.retain(|_, handle| !handle.ended.is_cancelled());
        let mut servers = BTreeMap::new();
        for (name, spec) in specs {
            let handle = match old.remove(&name) {
                Some(same) if same.spec == spec => same,
                Some(other) => {
                    changed.restarted.push(name.clone());
                    other.stop.cancel();
                    self.start(spec, Some(other))
                }
                None => {
                    changed.added.push(name.clone());
                    self.start(spec, ending.remove(&name))
                }
            };
            servers.insert(name, handle);
        }
        for (name, gone) in old {
            gone.stop.cancel();
            changed.removed.push(name.clone());
            ending.insert(name, gone);
        }
        let names = servers.keys().cloned().collect();
        *current = Arc::new(Current { names, servers, ending });
        changed
    }

    /// Starts a server in the background, once the one before it has ended.
    fn start(&self, spec: ServerSpec, before: Option<Arc<Handle>>) -> Arc<Handle> {
        let shared = Arc::new(Shared::new(&spec, &self.context, self.changes.clone()));
        let (sender, wakes) = mpsc::channel(WAKES);
        let (stop, ended) = (self.stop.child_token(), CancellationToken::new());
        let supervisor = Supervisor {
            choice: spec.protocol,
            spec: spec.clone(),
            context: Arc::clone(&self.context),
            shared: Arc::clone(&shared),
            wakes,
            stop: stop.clone(),
            tracker: self.tracker.clone(),
            restarts: Restarts::new(),
            last: None,
            not_started: None,
            logged: None,
        };
        let when_done = ended.clone().drop_guard();
        self.tracker.spawn(async move {
            if let Some(before) = before {
                before.ended.cancelled().await;
            }
            match supervisor.spec.transport.clone() {
                TransportSpec::Cli(mut cli) => {
                    let disabled = &supervisor.spec.disabled_tools;
                    let in_vain = disabled.iter().filter(|name| !cli.tools.iter().any(|tool| tool.name == **name));
                    supervisor.shared.disabled_in_vain(in_vain.cloned().collect());
                    cli.tools.retain(|tool| !disabled.contains(&tool.name));
                    let Supervisor { context, shared, wakes, stop, .. } = supervisor;
                    say(program_call::state(&cli, &context, &shared), &shared, wakes, &stop).await;
                }
                TransportSpec::Lacking { why, .. } => {
                    let Supervisor { shared, wakes, stop, .. } = supervisor;
                    say(lacking(&shared, why), &shared, wakes, &stop).await;
                }
                TransportSpec::Stdio(_) | TransportSpec::Http(_) | TransportSpec::Sse(_) => supervisor.run().await,
            }
            drop(when_done);
        });
        Arc::new(Handle { spec, shared, wakes: sender, stop, ended })
    }
}

/// Says how a server is that has no connection, and says it again whenever somebody asks for it while it is not there,
/// until `stop`.
async fn say(state: ServerState, shared: &Shared, mut wakes: mpsc::Receiver<u64>, stop: &CancellationToken) {
    loop {
        shared.publish(state.clone(), None);
        match stop.run_until_cancelled(wakes.recv()).await {
            Some(Some(_turn)) => {}
            Some(None) | None => return,
        }
    }
}

/// That a server cannot be used for want of values.
fn lacking(shared: &Shared, why: String) -> ServerState {
    tracing::warn!(server = %shared.name, %why, "an MCP server cannot be used");
    shared.facts().last_error = Some(why);
    let name = &shared.name;
    let why = format!(
        "Server \"{name}\" is not available: a value that its configuration needs is missing; ask the operator"
    );
    ServerState::Unavailable(why.into())
}
