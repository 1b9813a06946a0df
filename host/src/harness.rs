//! One harness: the stages, the MCP servers behind them, and the listeners in front.
//!
//! Order of a start: record, stages, servers (in the background), listeners. Order of the end: no new connections,
//! what runs gets a moment, servers end, the record is written out.

use std::{sync::Arc, time::Duration};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    audit::{Audit, Journal},
    budget::Budget,
    call::Stages,
    config::Config,
    digest::Digest,
    edge::Edge,
    limits::Limits,
    listener::Listener,
    redact::Redactor,
    resolve::Resolver,
    servers::{Launcher, Servers, ServersContext, tls},
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

/// A running harness.
pub struct Harness {
    edge: Edge,
    servers: Servers,
    audit: Audit,
    redactor: Redactor,
    limits: Limits,
    shutdown: CancellationToken,
    tasks: TaskTracker,
    sessions: Table,
    connections: Connections,
    budget: Budget,
}

impl Harness {
    /// Starts the stages and the servers, and writes to this journal. Only [`Launcher::Kept`] keeps the promise that
    /// no process is left behind.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn start(config: Config, journal: impl Journal + 'static, launcher: Launcher) -> std::io::Result<Self> {
        tls::install();
        let limits = config.limits;
        let audit = Audit::start(journal, limits.audit.clone())?;
        let budget = Budget::new(limits.edge.held_bytes);
        let redactor = Redactor::new(&config.gathered.secrets);
        let context =
            ServersContext { limits: limits.clone(), redactor: redactor.clone(), budget: budget.clone(), launcher };
        let servers = Servers::start(config.servers, context);
        let resolver = Resolver::new(servers.clone(), limits.calls.clone(), limits.edge.parsed_bytes);
        let stages = Stages { resolver, audit: audit.clone(), servers: servers.clone() };
        let edge = Edge::new(stages, &limits, config.allow_hosts);
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        let (sessions, connections) = (Table::default(), Connections::new(&limits.edge));
        Ok(Self { edge, servers, audit, redactor, limits, shutdown, tasks, sessions, connections, budget })
    }

    /// Opens a session and serves it on these listeners, until it ends.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(&self, spec: SessionSpec, listeners: Vec<Listener>) -> Result<(), OpenError> {
        let endpoints = listeners.iter().map(Listener::endpoint).collect::<Result<Vec<_>, _>>()?;
        let shares = Shares { connections: self.connections.share(), bytes: self.budget.share() };
        let session = Arc::new(Session::new(spec, self.limits.calls.clone(), shares));
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
            self.tasks.spawn(expire(open, self.sessions.clone(), self.audit.clone(), self.shutdown.clone()));
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
        let Some(open) = self.sessions.get(name) else { return false };
        let ended = self.sessions.end(&open, why);
        if ended {
            self.audit.session_ended(name, why);
        }
        open.listeners.wait().await;
        ended
    }

    /// The open sessions, by name.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionView> {
        self.sessions.view()
    }

    /// The servers, for the operator's view of them.
    #[must_use]
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Ends everything, in order and within a deadline.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        if tokio::time::timeout(DRAIN, self.edge.drained()).await.is_err() {
            tracing::warn!("calls were still running when the harness ended");
        }
        self.servers.shutdown().await;
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
async fn expire(open: Arc<Open>, sessions: Table, audit: Audit, shutdown: CancellationToken) {
    let Some(until) = open.session.until() else { return };
    tokio::select! {
        () = tokio::time::sleep_until(until) => {}
        () = open.session.over().cancelled() => return,
        () = shutdown.cancelled() => return,
    }
    if sessions.end(&open, Ended::Expired) {
        audit.session_ended(open.session.name(), Ended::Expired);
    }
}
