//! What is known of a server: for guests its state, for the operator everything.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore, watch};

use super::{
    LogSource, ServerLog, ServerSpec, ServersContext, ignored::IgnoredMessages, live::Live, relisting::ListingAsks,
    stderr::StderrRing,
};
use footbridge_core::budget::Share;
use footbridge_core::catalogue::{Offered, Origin};
use footbridge_core::names::ServerName;

/// Whether a server can be used.
#[derive(Debug, Clone)]
pub enum ServerState {
    /// Not yet.
    Starting,
    /// Yes; what it offers.
    Ready(Arc<Offered>),
    /// No; why, for the guest: no path, no address, no environment.
    Unavailable(Arc<str>),
}

/// All that the operator may see of one server. Texts of the server are escaped.
#[derive(Debug, Clone)]
pub struct ServerReport {
    /// Its name.
    pub name: ServerName,
    /// How it is reached: `stdio`, `http`, `sse` or `cli`.
    pub kind: &'static str,
    /// Whether it can be used.
    pub state: ServerState,
    /// The program's process id, if it is one of ours and runs.
    pub pid: Option<u32>,
    /// The revision of MCP that is spoken.
    pub revision: Option<String>,
    /// How often it was started again.
    pub restarts: usize,
    /// Why it last failed or ended, in detail.
    pub last_error: Option<String>,
    /// The last lines of its standard error.
    pub stderr: Vec<String>,
    /// Entries of its listings that were left out.
    pub left_out: usize,
    /// Why, for the first of them.
    pub left_out_reasons: Vec<String>,
    /// Names in its `disabledTools` that none of its tools has.
    pub disabled_in_vain: Vec<String>,
    /// Messages that were ignored: rubbish, unknown ids, floods.
    pub ignored: u64,
    /// Calls in flight.
    pub in_flight: usize,
}

/// What a supervisor tells the handles.
#[derive(Debug, Clone)]
pub(super) struct Published {
    pub(super) state: ServerState,
    pub(super) live: Option<Live>,
    /// Grows with each change.
    pub(super) turn: u64,
}

/// What a supervisor and the handles of its server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) name: ServerName,
    /// How it is reached, for its definitions.
    pub(super) origin: Arc<Origin>,
    pub(super) disabled_tools: Arc<BTreeSet<String>>,
    pub(super) published: watch::Sender<Published>,
    /// A place for each call in flight.
    pub(super) places: Arc<Semaphore>,
    pub(super) ignored: Arc<IgnoredMessages>,
    pub(super) stderr: Arc<StderrRing>,
    pub(super) log: Option<Arc<dyn ServerLog>>,
    /// That the operator wants a fresh start. However often that is said before it is heard, there is one.
    pub(super) anew: Notify,
    /// To list again for those who ask.
    pub(super) asks: ListingAsks,
    /// Its part of the budget, for what programs of its tools print; connections have their own.
    pub(super) share: Share,
    facts: Mutex<Facts>,
    /// Told of every change of every server.
    changes: watch::Sender<()>,
}

/// What only the report shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub(super) pid: Option<u32>,
    pub(super) revision: Option<String>,
    pub(super) restarts: usize,
    pub(super) last_error: Option<String>,
    pub(super) left_out: usize,
    pub(super) left_out_reasons: Vec<String>,
    pub(super) disabled_in_vain: Vec<String>,
}

impl Shared {
    /// A server that is starting.
    pub(super) fn new(spec: &ServerSpec, context: &ServersContext, changes: watch::Sender<()>) -> Self {
        let (name, limits) = (&spec.name, &context.limits);
        Self {
            name: name.clone(),
            origin: Arc::new(spec.transport.origin(&context.redactor)),
            disabled_tools: Arc::new(spec.disabled_tools.clone()),
            changes,
            published: watch::Sender::new(Published { state: ServerState::Starting, live: None, turn: 0 }),
            places: Arc::new(Semaphore::new(limits.calls.in_flight_per_server)),
            ignored: Arc::new(IgnoredMessages::of(name.clone(), context.log.clone(), context.redactor.clone())),
            stderr: Arc::new(StderrRing::new(limits.servers.stderr_bytes)),
            log: context.log.clone(),
            anew: Notify::new(),
            asks: ListingAsks::default(),
            share: context.budget.share(),
            facts: Mutex::default(),
        }
    }

    /// Keeps which tools are disabled that the server does not have; that is logged where it is new: a tool that was meant
    /// can be called.
    pub(super) fn disabled_in_vain(&self, names: Vec<String>) {
        let is_new = !names.is_empty() && self.facts().disabled_in_vain != names;
        if is_new {
            tracing::warn!(server = %self.name, ?names, "\"disabledTools\" names tools that an MCP server does not have");
        }
        self.facts().disabled_in_vain = names;
    }

    /// Tells the handles.
    pub(super) fn publish(&self, state: ServerState, live: Option<Live>) {
        self.published.send_modify(|published| {
            *published = Published { state, live, turn: published.turn + 1 };
        });
        self.changes.send_replace(());
    }

    /// Keeps what the harness has to say of the server.
    pub(super) fn keep(&self, text: &str) {
        if let Some(log) = &self.log {
            log.keep(&self.name, LogSource::Harness, text);
        }
    }

    /// The facts, to read or to change.
    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
