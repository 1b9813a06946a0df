//! One harness: the stages, the MCP servers behind them, and the listeners in front.
//!
//! Order of a start: record, stages, servers (in the background), listeners. Order of the end: no new connections,
//! what runs gets a moment, servers end, the record is written out.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    approval::{self, Approvals},
    audit::{Audit, AuditSettings, Recorder},
    budget::Budget,
    call::Stages,
    config::Config,
    control::servers::Overseen,
    digest::Digest,
    edge::Edge,
    gate::Policies,
    limits::Limits,
    listener::{Listener, Listeners},
    pins::{self, Pins},
    provider::{Guard, ToolProvider, Upstream},
    redact::Redactor,
    resolve::Resolver,
    secret::Secret,
    servers::{Launcher, Servers, ServersChanged, ServersContext, tls},
    session::{
        Ended, Session, SessionName, SessionSpec, SessionView, Shares,
        connections::Connections,
        table::{Open, Table},
    },
};

/// How long calls may still run when the harness ends.
const DRAIN: Duration = Duration::from_secs(2);

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is one of that name.
    #[error("there is a session {0} already: revoke it, or choose another name")]
    Taken(SessionName),
    /// The system does not say where a listener listens.
    #[error("cannot tell where the session listens: {0}")]
    Listener(#[from] std::io::Error),
}

/// What became of a new configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reloaded {
    /// The servers that it changed.
    pub servers: ServersChanged,
    /// Sessions whose policy it does not have any more: they keep what they had.
    pub policy_gone: Vec<SessionName>,
    /// Whether it has limits, names of hosts or settings of the record that hold only after a restart.
    pub needs_restart: bool,
}

/// What the stages in front of a provider are made of.
struct Front {
    limits: Limits,
    allow_hosts: Vec<String>,
    audit: Audit,
    budget: Budget,
    approval: approval::Settings,
    pins: Option<Pins>,
}

/// A running harness.
pub struct Harness {
    edge: Edge,
    upstream: Upstream,
    servers: Option<Servers>,
    pins: Option<Pins>,
    approvals: Approvals,
    approval: approval::Settings,
    audit: Audit,
    redactor: Redactor,
    limits: Limits,
    record: AuditSettings,
    allow_hosts: Vec<String>,
    policies: RwLock<Policies>,
    shutdown: CancellationToken,
    tasks: TaskTracker,
    sessions: Table,
    connections: Connections,
    budget: Budget,
    sockets: Listeners,
}

impl Harness {
    /// Starts the stages and the servers, and writes as this says, or to this journal. With pins, only what is as it
    /// was pinned is offered. Only [`Launcher::Kept`] keeps the promise that
    /// no process is left behind.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn start(
        config: Config,
        recorder: impl Into<Recorder>,
        launcher: Launcher,
        pins: Option<Pins>,
    ) -> std::io::Result<Self> {
        tls::install();
        let redactor = Redactor::new(&config.gathered.secrets);
        crate::log::hide(&redactor);
        let recorder = recorder.into().secrets(redactor.clone()).launcher(launcher.clone());
        let audit = Audit::start(recorder, config.limits.audit.clone())?;
        let budget = Budget::new(config.limits.edge.held_bytes);
        let limits = config.limits.clone();
        let elicitation = config.approval.asks_anybody();
        let context =
            ServersContext { limits, redactor: redactor.clone(), budget: budget.clone(), launcher, elicitation };
        let servers = Servers::start(config.servers, context);
        let front = Front {
            limits: config.limits,
            allow_hosts: config.allow_hosts,
            audit,
            budget,
            approval: config.approval,
            pins,
        };
        // What servers say is redacted where it comes in, and not again.
        let mut harness = Self::behind(front, Arc::new(servers.clone()), Redactor::default());
        if let Some(pins) = &harness.pins {
            harness.tasks.spawn(pins::watch(pins.clone(), servers.clone(), harness.shutdown.clone()));
        }
        harness.servers = Some(servers);
        harness.redactor = redactor;
        harness.record = config.audit;
        harness.policies = RwLock::new(config.policies);
        Ok(harness)
    }

    /// Starts the stages in front of a provider, and writes as this says, or to this journal. The values of `secrets` are taken out of
    /// what it answers. With pins, only what is as it was pinned is offered.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn over(
        provider: Arc<dyn ToolProvider>,
        limits: Limits,
        secrets: &[Secret],
        recorder: impl Into<Recorder>,
        pins: Option<Pins>,
    ) -> std::io::Result<Self> {
        let redactor = Redactor::new(secrets);
        let audit = Audit::start(recorder.into().secrets(redactor.clone()), limits.audit.clone())?;
        let budget = Budget::new(limits.edge.held_bytes);
        let approval = approval::Settings { watch: Some(false), command: None, webhook: None };
        let front = Front { limits, allow_hosts: Vec::new(), audit, budget, approval, pins };
        Ok(Self::behind(front, provider, redactor))
    }

    fn behind(front: Front, provider: Arc<dyn ToolProvider>, redactor: Redactor) -> Self {
        let Front { limits, allow_hosts, audit, budget, approval, pins } = front;
        let guard = Guard { budget: budget.clone(), redactor: redactor.clone() };
        let upstream = Upstream::new(provider, guard).pinned(pins.clone());
        let resolver = Resolver::new(upstream.clone(), limits.calls.clone(), limits.edge.parsed_bytes);
        let approvals = Approvals::new(limits.approval.clone(), &approval, audit.clone());
        let stages =
            Stages { resolver, approvals: approvals.clone(), audit: audit.clone(), upstream: upstream.clone() };
        let edge = Edge::new(stages, &limits, allow_hosts.clone());
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        let (sessions, connections) = (Table::default(), Connections::new(&limits.edge));
        Self {
            edge,
            upstream,
            servers: None,
            pins,
            approvals,
            approval,
            audit,
            redactor,
            limits,
            record: AuditSettings::default(),
            allow_hosts,
            policies: RwLock::default(),
            shutdown,
            tasks,
            sessions,
            connections,
            budget,
            sockets: Listeners::default(),
        }
    }

    /// What binds the listeners of its sessions.
    #[must_use]
    pub fn listeners(&self) -> &Listeners {
        &self.sockets
    }

    /// Opens a session and serves it on these listeners, until it ends.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(&self, spec: SessionSpec, listeners: Vec<Listener>) -> Result<(), OpenError> {
        let endpoints = listeners.iter().map(Listener::endpoint).collect::<Result<Vec<_>, _>>()?;
        let limits = spec.limits.over(&self.limits);
        let connections = self.connections.share(limits.edge.connections_per_session);
        let shares = Shares { connections, bytes: self.budget.share() };
        let session = Arc::new(Session::new(spec, limits, shares));
        let open = Arc::new(Open { session: Arc::clone(&session), endpoints, listeners: TaskTracker::new() });
        if !self.sessions.add(Arc::clone(&open)) {
            return Err(OpenError::Taken(session.name().clone()));
        }
        self.audit.session_opened(session.spec(), &open.endpoints);
        for listener in listeners {
            let (edge, session, shutdown) = (self.edge.clone(), Arc::clone(&session), self.shutdown.clone());
            self.tasks.spawn(open.listeners.track_future(async move { edge.run(listener, session, shutdown).await }));
        }
        open.listeners.close();
        if session.until().is_some() {
            self.tasks.spawn(expire(open, self.sessions.clone(), self.approvals.clone(), self.shutdown.clone()));
        }
        Ok(())
    }

    /// Serves an open session on one more listener. False if there is no such session: the listener is closed then.
    ///
    /// # Errors
    /// When the system does not say where it listens.
    pub fn listen(&self, name: &SessionName, listener: Listener) -> std::io::Result<bool> {
        let endpoint = listener.endpoint()?;
        let Some(open) = self.sessions.get(name) else { return Ok(false) };
        self.audit.session_listens(name, &endpoint);
        let (edge, session, shutdown) = (self.edge.clone(), Arc::clone(&open.session), self.shutdown.clone());
        self.tasks.spawn(open.listeners.track_future(async move { edge.run(listener, session, shutdown).await }));
        Ok(true)
    }

    /// Replaces a session's token: the old one ends at once, calls that are running go on. False if there is no such
    /// session.
    #[must_use]
    pub fn rotate(&self, name: &SessionName, token: Digest) -> bool {
        let Some(open) = self.sessions.get(name) else { return false };
        open.session.rotate(token);
        self.audit.session_rotated(name);
        true
    }

    /// Ends a session: its connections are cut, its calls cancelled, and its sockets are gone when this returns. False
    /// if there is no such session.
    pub async fn end(&self, name: &SessionName, why: Ended) -> bool {
        let Some(open) = self.sessions.find(name) else { return false };
        let ended = open.session.end(why);
        if ended {
            self.approvals.end_session(&open.session);
            self.audit.session_ended(name, why);
        }
        // In a task of its own: whoever waits for it here may leave.
        let sessions = self.sessions.clone();
        let _ends_with_the_runtime = self.tasks.spawn(async move { sessions.remove(&open).await }).await;
        ended
    }

    /// Records the end of a session that is not open here: it ended while no harness was running.
    pub fn ended_meanwhile(&self, name: &SessionName, why: Ended) {
        self.audit.session_ended(name, why);
    }

    /// Takes a new configuration: its policies hold at once, and its servers and secrets too, except over another
    /// provider.
    pub fn reload(&self, config: Config) -> Reloaded {
        // First: what a new server says is looked through for the new values.
        self.redactor.learn(&config.gathered.secrets);
        // Before the servers: a new one must not be reached by old rules.
        let policy_gone = self.replace_policies(config.policies);
        let servers = self.servers.as_ref().map(|servers| servers.replace(config.servers)).unwrap_or_default();
        let same = config.limits == self.limits
            && config.allow_hosts == self.allow_hosts
            && config.audit == self.record
            && config.approval == self.approval;
        Reloaded { servers, policy_gone, needs_restart: !same }
    }

    /// The policies of the configuration; over another provider those that are built in.
    #[must_use]
    pub fn policies(&self) -> Policies {
        self.policies.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives each session the policy of its name anew; those that have none any more keep their own.
    fn replace_policies(&self, policies: Policies) -> Vec<SessionName> {
        // First: a session that is made meanwhile gets the new ones.
        *self.policies.write().unwrap_or_else(PoisonError::into_inner) = policies.clone();
        let mut gone = Vec::new();
        for SessionView { spec, .. } in self.sessions.view() {
            let Some(open) = self.sessions.get(&spec.name) else { continue };
            match policies.get(spec.policy.name()) {
                Ok(policy) => open.session.set_policy(policy),
                Err(_) => gone.push(spec.name),
            }
        }
        gone
    }

    /// The open sessions, by name.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionView> {
        self.sessions.view()
    }

    /// The approvals, for whoever answers them.
    #[must_use]
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// What commands may look at and restart.
    pub(crate) fn overseen(&self) -> Overseen {
        Overseen { servers: self.servers.clone(), pins: self.pins.clone(), audit: self.audit.clone() }
    }

    /// The MCP servers, for the operator's view of them; none over another provider.
    #[must_use]
    pub fn servers(&self) -> Option<&Servers> {
        self.servers.as_ref()
    }

    /// Ends everything, in order and within a deadline.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        // What still waits for a person has waited for nothing.
        self.approvals.stop().await;
        // A port is bound again only after it was let go of.
        let _ = tokio::time::timeout(DRAIN, self.sockets.released()).await;
        if tokio::time::timeout(DRAIN, self.edge.drained()).await.is_err() {
            tracing::warn!("calls were still running when the harness ended");
        }
        self.upstream.shutdown().await;
        if self.redactor.replaced() > 0 {
            let count = self.redactor.replaced();
            tracing::warn!(count, "values of configured secrets were taken out of what servers said");
        }
        // Calls that the end of their server ended have their outcome queued by now, or within a moment.
        let _ = tokio::time::timeout(DRAIN, self.edge.drained()).await;
        let audit = self.audit;
        if tokio::task::spawn_blocking(move || audit.close()).await.is_err() {
            tracing::error!("the record could not be closed");
        }
    }
}

/// Ends a session when its time is over.
async fn expire(open: Arc<Open>, sessions: Table, approvals: Approvals, shutdown: CancellationToken) {
    let Some(until) = open.session.until() else { return };
    tokio::select! {
        () = until.passed() => {}
        () = open.session.over().cancelled() => return,
        () = shutdown.cancelled() => return,
    }
    if open.session.end(Ended::Expired) {
        approvals.end_session(&open.session);
        approvals.audit().session_ended(open.session.name(), Ended::Expired);
    }
    sessions.remove(&open).await;
}
