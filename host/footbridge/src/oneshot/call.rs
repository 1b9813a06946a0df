//! One call, from a server that does not run to one that does not run any more.
//!
//! The harness is that of `run` and `serve`, with one server and without listeners; the record is the chain that all
//! one-shot calls share. States: started; ready, once the server says what it offers; called. On every way out the
//! server is ended in order, or by its keeper.
//!
//! Failure paths: the server does not start; the call is refused or fails; time or patience ends, or a signal comes,
//! which cancels the call first; a second signal leaves the rest to the keeper.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use footbridge_proto::rpc::{ErrorObject, Reason};
use nix::sys::signal::Signal;
use serde_json::value::RawValue;

use super::{
    entries::Entries,
    failure::OneShotFailure,
    listing::compared,
    lists::{Lists, ToolsList},
    terminal,
};
use crate::{
    composition::open_store,
    config::Config,
    harness::{Harness, NotCalled, OperatorCall},
    report,
    server_logs::ServerLogs,
    store::StateStore,
};
use footbridge_audit::Recorder;
use footbridge_calls::{operator::Operator, pins::Pins, watcher::Watcher};
use footbridge_core::{
    gate::{Policy, UnknownPolicy},
    names::ServerName,
};
use footbridge_edge::error_of;
use footbridge_mcp::Servers;
use footbridge_processes::{launch::Launcher, signals::Signals};

/// What ends a call before its time.
const ENDS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// How long after its own limits a server is waited for: they say it better.
const GRACE: Duration = Duration::from_secs(5);

/// What is called, and how.
pub(crate) struct OneCall<'a> {
    /// The configuration with the one server that is needed.
    pub(crate) config: Config,
    /// The state folder.
    pub(crate) state: &'a Path,
    pub(crate) server: ServerName,
    /// The policy's name.
    pub(crate) policy: &'a str,
    pub(crate) timeout: Option<Duration>,
    /// Where what the server offers is kept, and by what.
    pub(crate) lists: &'a Lists,
    pub(crate) entries: &'a Entries,
}

/// A tool and its arguments.
pub(crate) struct Chosen {
    pub(crate) tool: String,
    pub(crate) arguments: Option<String>,
}

impl OneCall<'_> {
    /// Starts the server, has the tool chosen by what it offers, calls it, and ends everything.
    pub(crate) async fn make(
        self,
        choose: impl FnOnce(&ToolsList) -> Result<Chosen, OneShotFailure>,
    ) -> Result<Box<RawValue>, OneShotFailure> {
        let policy = self.config.policies.get(self.policy).map_err(|unknown: UnknownPolicy| usage(&unknown))?;
        let mut signals = Signals::listen(&ENDS).context("cannot listen for signals")?;
        let (running, timeout) = (Running::start(&self).await?, self.timeout);
        let calling = async {
            let list = running.list().await?;
            self.keep(&list);
            let chosen = choose(&list)?;
            running.call(chosen, policy, timeout).await
        };
        let done = tokio::select! {
            biased;
            signal = signals.next() => Err(OneShotFailure::Interrupted(signal)),
            done = calling => done,
        };
        tokio::select! {
            () = running.stop() => {}
            // Whoever is in such a hurry has the keeper do it.
            _again = signals.next() => {}
        }
        done
    }

    /// What a server said of itself is worth keeping; where that fails nothing is lost but time.
    fn keep(&self, list: &ToolsList) {
        if let Some(key) = self.entries.servers.get(self.server.as_str())
            && let Err(error) = self.lists.keep(key, list)
        {
            tracing::warn!(%error, server = %self.server, "its list cannot be kept");
        }
    }
}

fn usage(error: &impl std::fmt::Display) -> OneShotFailure {
    OneShotFailure::Usage(error.to_string())
}

/// A harness with one server.
struct Running {
    harness: Harness,
    servers: Servers,
    store: Arc<dyn StateStore>,
    pins: Pins,
    server: ServerName,
    patience: Duration,
    terminal: Option<terminal::Person>,
}

impl Running {
    async fn start(call: &OneCall<'_>) -> Result<Self, OneShotFailure> {
        let (mut config, state) = (call.config.clone(), call.state);
        config.servers.retain(|spec| spec.name == call.server);
        let terminal = terminal::Person::find();
        config.approval.watch = Some(terminal.is_some());
        let limits = &config.limits.servers;
        let patience = limits.start_time + limits.list_time + GRACE;
        let store = open_store(state).await.context("cannot open the store")?;
        let recorder = Recorder::one_shot(&state.join("audit"), &config.audit).context("cannot write the record")?;
        let pins = Pins::in_store(Arc::clone(&store) as _);
        let launcher = Launcher::Kept { helper: None, folders: config.own_folders.clone() };
        let recorder = recorder.sink(store.head_sink());
        let log = ServerLogs::new(state, "call");
        let harness = Harness::start(config, recorder, launcher, Some(pins.clone()), Some(Arc::new(log)));
        let harness = harness.context("cannot write the record")?;
        if terminal.is_some() {
            harness.approvals().people_answer();
        }
        let servers = harness.servers().cloned().context("there are no servers")?;
        Ok(Self { harness, servers, store, pins, server: call.server.clone(), patience, terminal })
    }

    /// Waits until the server says what it offers.
    async fn list(&self) -> Result<ToolsList, OneShotFailure> {
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

    async fn call(
        &self,
        chosen: Chosen,
        policy: Arc<Policy>,
        timeout: Option<Duration>,
    ) -> Result<Box<RawValue>, OneShotFailure> {
        let name = policy.name().to_owned();
        self.harness.approvals().if_nobody(move || say_that_nobody_is_asked(&name));
        let Chosen { tool, arguments } = chosen;
        let call = OperatorCall { server: self.server.to_string(), tool, arguments, policy: Some(policy) };
        // Listening, so that a person has as long as the limits say.
        let (watcher, _events) = Watcher::listening();
        let operator = Operator::ThisProcess { uid: nix::unistd::geteuid().as_raw() };
        let calling = self.harness.call_watched(&operator, call, watcher);
        let asking = terminal::ask(self.terminal.as_ref(), self.harness.approvals());
        let in_time = async {
            match timeout {
                Some(time) => tokio::time::timeout(time, calling).await.map_err(|_| OneShotFailure::TimedOut(time)),
                None => Ok(calling.await),
            }
        };
        let called = tokio::select! {
            called = in_time => called?,
            left = asking => return Err(left),
        };
        called.map(|result| result.text).map_err(|why| self.refused(why))
    }

    fn refused(&self, why: NotCalled) -> OneShotFailure {
        match why {
            NotCalled::Failed(failure) => {
                let error = error_of(&failure);
                let lost = matches!(error.reason(), Some(Reason::ServerUnavailable | Reason::OutcomeUnknown));
                let because = if lost { self.detail() } else { None };
                OneShotFailure::Refused(Box::new(error), because)
            }
            NotCalled::Arguments(_) => usage(&why),
            NotCalled::Session(_) | NotCalled::Busy => OneShotFailure::Harness(why.into()),
        }
    }

    async fn stop(self) {
        self.harness.stop().await;
        self.store.close().await;
    }
}

/// Says that nobody can be asked and what to do about it.
fn say_that_nobody_is_asked(policy: &str) {
    report::note(&format!(
        "footbridge: policy {policy:?} asks about this call, and there is no terminal to ask on: call from one, set a \
         command or a webhook in [approval] of footbridge.toml, or choose --policy open"
    ));
}
