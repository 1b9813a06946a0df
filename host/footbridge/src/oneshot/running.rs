//! A harness with one server, for one call of the operator: started, asked what it offers, called, ended.
//!
//! It is the harness of `run` and `serve`, without listeners; the record is the chain that all one-shot calls of a user
//! share. On every way out the server is ended in order, or by its keeper.

use std::{
    convert::Infallible,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use footbridge_proto::rpc::{ErrorObject, Reason};
use serde_json::value::RawValue;
use tokio::{sync::mpsc, time::Instant};

use super::{failure::OneShotFailure, listing::compared, lists::ToolsList, terminal};
use crate::{
    composition::{cannot_record, open_store},
    config::Config,
    harness::{Harness, NotCalled, OperatorCall},
    report,
    server_logs::ServerLogs,
    store::StateStore,
    waiting::WaitLine,
};
use footbridge_audit::Recorder;
use footbridge_calls::{events::CallEvent, operator::Operator, pins::Pins, watcher::Watcher};
use footbridge_cli::drawn_line::how_far;
use footbridge_core::{gate::Policy, names::ServerName};
use footbridge_edge::error_of_own_call;
use footbridge_mcp::Servers;
use footbridge_processes::launch::Launcher;

/// How long after its own limits a server is waited for: they say it better.
const GRACE: Duration = Duration::from_secs(5);

/// How long a server may take to end by itself: many in Python take a fifth of their start, and whoever called waits.
const LEAVE_TIME: Duration = Duration::from_millis(20);

const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// A tool and its arguments.
pub(crate) struct Chosen {
    pub(crate) tool: String,
    pub(crate) arguments: Option<String>,
}

/// The time that was given for something, and when it is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Within {
    pub(crate) time: Duration,
    pub(crate) until: Instant,
}

impl Within {
    /// It begins now.
    pub(crate) fn from_now(time: Duration) -> Self {
        // A time that no clock has is one that is never over.
        let until = Instant::now().checked_add(time).unwrap_or_else(|| Instant::now() + FOREVER);
        Self { time, until }
    }
}

/// A harness with one server.
pub(crate) struct OneServer {
    harness: Harness,
    servers: Servers,
    store: Arc<dyn StateStore>,
    pins: Pins,
    server: ServerName,
    patience: Duration,
    terminal: Option<terminal::Person>,
}

impl OneServer {
    /// Starts the one server of a configuration that is called so; its log is called like the command.
    pub(crate) async fn start(
        mut config: Config,
        state: &Path,
        server: &ServerName,
        command: &'static str,
    ) -> Result<Self, OneShotFailure> {
        config.servers.retain(|spec| spec.name == *server);
        let terminal = terminal::Person::find();
        config.approval.watch = Some(terminal.is_some());
        let limits = &mut config.limits.servers;
        limits.leave_time = limits.leave_time.min(LEAVE_TIME);
        let patience = limits.start_time + limits.list_time + GRACE;
        let store = open_store(config.store, state).await.context("cannot open the store")?;
        let recorder =
            Recorder::one_shot(&state.join("audit"), &config.audit).map_err(|error| not_recorded(state, error))?;
        let pins = Pins::in_store(Arc::clone(&store) as _);
        let launcher = Launcher::Kept { helper: None, folders: config.own_folders.clone() };
        let recorder = recorder.sink(store.head_sink());
        let log = ServerLogs::new(state, command);
        let harness = Harness::start(config, recorder, launcher, Some(pins.clone()), Some(Arc::new(log)));
        let harness = harness.map_err(|error| not_recorded(state, error))?;
        if terminal.is_some() {
            harness.approvals().people_answer();
        }
        let servers = harness.servers().cloned().context("there are no servers")?;
        Ok(Self { harness, servers, store, pins, server: server.clone(), patience, terminal })
    }

    /// Whether there is somebody to ask about a call.
    pub(crate) fn may_be_asked(&self) -> bool {
        self.terminal.is_some()
    }

    /// Waits until the server says what it offers.
    pub(crate) async fn list(&self) -> Result<ToolsList, OneShotFailure> {
        let server = self.server.clone();
        let _line = WaitLine::shown(move || format!("Starting {server}"));
        let offered = match self.servers.ready(self.server.as_str(), self.patience).await {
            Some(Ok(offered)) => offered,
            Some(Err(why)) => return Err(self.unavailable(why.to_string())),
            None => return Err(OneShotFailure::Usage(format!("there is no server \"{}\"", self.server))),
        };
        compared(&self.pins, &self.server, &offered).await.map_err(|why| self.unavailable(why.to_string()))
    }

    /// With what only the operator may know.
    fn unavailable(&self, why: String) -> OneShotFailure {
        let error = ErrorObject::new(Reason::ServerUnavailable, why);
        OneShotFailure::Refused(Box::new(error), self.detail())
    }

    fn detail(&self) -> Option<String> {
        let report = self.servers.report().into_iter().find(|report| report.name == self.server)?;
        report.last_error
    }

    /// Calls a tool of it, within this time if there is one; whoever sits at the terminal is asked about it.
    pub(crate) async fn call(
        &self,
        chosen: Chosen,
        policy: Arc<Policy>,
        within: Option<Within>,
    ) -> Result<Box<RawValue>, OneShotFailure> {
        let name = policy.name().to_owned();
        self.harness.approvals().if_nobody(move || say_that_nobody_is_asked(&name));
        let Chosen { tool, arguments } = chosen;
        let timeout = within.map(|within| within.until.saturating_duration_since(Instant::now()));
        let what = format!("Calling {} of {}", tool, self.server);
        let call = OperatorCall { server: self.server.to_string(), tool, arguments, policy: Some(policy), timeout };
        // Listening, so that a person has as long as the limits say.
        let (watcher, mut events) = Watcher::listening();
        let operator = Operator::ThisProcess { uid: nix::unistd::geteuid().as_raw() };
        let calling = self.harness.call_watched(&operator, call, watcher);
        let asking = terminal::ask(self.terminal.as_ref(), self.harness.approvals());
        let called = tokio::select! {
            called = calling => called,
            left = asking => return Err(left),
            never = show_how_far(what, &mut events) => match never {},
        };
        called.map(|result| result.text).map_err(|why| match why {
            NotCalled::OutOfTime(failure) => {
                let time = within.map(|within| within.time).unwrap_or_default();
                OneShotFailure::out_of_time(time, &error_of_own_call(&failure))
            }
            why => self.refused(why),
        })
    }

    fn refused(&self, why: NotCalled) -> OneShotFailure {
        match why {
            NotCalled::Failed(failure) | NotCalled::OutOfTime(failure) => {
                let error = error_of_own_call(&failure);
                let lost = matches!(error.reason(), Some(Reason::ServerUnavailable | Reason::OutcomeUnknown));
                let because = if lost { self.detail() } else { None };
                OneShotFailure::Refused(Box::new(error), because)
            }
            NotCalled::Arguments(_) => OneShotFailure::Usage(why.to_string()),
            NotCalled::Session(_) | NotCalled::Busy => OneShotFailure::Harness(why.into()),
        }
    }

    /// Whether a call that is being made may have reached the server.
    pub(crate) fn may_have_sent(&self) -> bool {
        !terminal::waits_for_person(self.harness.approvals())
    }

    /// Ends all of it.
    pub(crate) async fn stop(self) {
        if let Err(error) = self.harness.stop().await {
            report::note(&format!("footbridge: {error}"));
        }
        self.store.close().await;
    }
}

/// Shows what is called and how far that is, by what is told of it.
async fn show_how_far(what: String, events: &mut mpsc::Receiver<Box<CallEvent>>) -> Infallible {
    let far = Arc::new(Mutex::new(what.clone()));
    let shown = Arc::clone(&far);
    let _line = WaitLine::shown(move || shown.lock().unwrap_or_else(PoisonError::into_inner).clone());
    while let Some(event) = events.recv().await {
        if let CallEvent::Progress { progress, total, message } = *event {
            let told = format!("{what}: {}", how_far(progress, total, message.as_deref()));
            *far.lock().unwrap_or_else(PoisonError::into_inner) = told;
        }
    }
    std::future::pending().await
}

/// What is said where the record takes nothing; the reason follows.
fn not_recorded(state: &Path, error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    let is_held = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::TimedOut;
    if error.chain().filter_map(|cause| cause.downcast_ref()).any(is_held) {
        let lock = state.join("audit/one-shot.lock");
        return error.context(format!(
            "calls of this kind are recorded in turn, and another process does not end its turn: find the one that has \
             {} locked and end it, or call again later",
            lock.display()
        ));
    }
    // What is no failure to write says itself what to do.
    let is_of_the_system = |cause: &std::io::Error| cause.raw_os_error().is_some();
    if error.chain().filter_map(|cause| cause.downcast_ref()).any(is_of_the_system) {
        return cannot_record(state, error);
    }
    error
}

/// Says that nobody can be asked and what to do about it.
fn say_that_nobody_is_asked(policy: &str) {
    report::note(&format!(
        "footbridge: policy {policy:?} asks about this call, and there is no terminal to ask on: call from one, set a \
         command or a webhook in [approval] of footbridge.toml, or choose --policy open"
    ));
}
