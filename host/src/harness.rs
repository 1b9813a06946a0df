//! One harness: the stages, the MCP servers behind them, and the listeners in front.
//!
//! Order of a start: record, stages, servers (in the background), listeners. Order of the end: no new connections,
//! what runs gets a moment, servers end, the record is written out.

use std::{sync::Arc, time::Duration};

use footbridge_proto::token::Token;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    audit::{Audit, Journal},
    budget::Budget,
    call::Stages,
    config::Config,
    edge::Edge,
    gate::Policy,
    limits::Limits,
    listener::Listener,
    provider::{Guard, ToolProvider, Upstream},
    redact::Redactor,
    resolve::Resolver,
    secret::Secret,
    servers::{Launcher, Servers, ServersContext, tls},
    session::{Labels, NoRandomness, Session, SessionName, new_token},
};

/// How long calls may still run when the harness ends.
const DRAIN: Duration = Duration::from_secs(2);

/// Why a session cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// There is no token to be had.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// The system does not say where the listener listens.
    #[error("cannot tell where the session listens: {0}")]
    Listener(#[from] std::io::Error),
}

/// What the stages in front of a provider are made of.
struct Front {
    limits: Limits,
    policy: Policy,
    allow_hosts: Vec<String>,
    audit: Audit,
    budget: Budget,
}

/// A running harness.
pub struct Harness {
    edge: Edge,
    upstream: Upstream,
    servers: Option<Servers>,
    audit: Audit,
    redactor: Redactor,
    limits: Limits,
    policy: Policy,
    shutdown: CancellationToken,
    listeners: TaskTracker,
}

impl Harness {
    /// Starts the stages and the servers, and writes to this journal. Only [`Launcher::Kept`] keeps the promise that
    /// no process is left behind.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn start(
        config: Config,
        policy: Policy,
        journal: impl Journal + 'static,
        launcher: Launcher,
    ) -> std::io::Result<Self> {
        tls::install();
        let audit = Audit::start(journal, config.limits.audit.clone())?;
        let budget = Budget::new(config.limits.edge.held_bytes);
        let redactor = Redactor::new(&config.gathered.secrets);
        let limits = config.limits.clone();
        let context = ServersContext { limits, redactor: redactor.clone(), budget: budget.clone(), launcher };
        let servers = Servers::start(config.servers, context);
        let front = Front { limits: config.limits, policy, allow_hosts: config.allow_hosts, audit, budget };
        // What servers say is redacted where it comes in, and not again.
        let mut harness = Self::behind(front, Arc::new(servers.clone()), Redactor::default());
        harness.servers = Some(servers);
        harness.redactor = redactor;
        Ok(harness)
    }

    /// Starts the stages in front of a provider, and writes to this journal. The values of `secrets` are taken out of
    /// what it answers.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn over(
        provider: Arc<dyn ToolProvider>,
        limits: Limits,
        secrets: &[Secret],
        policy: Policy,
        journal: impl Journal + 'static,
    ) -> std::io::Result<Self> {
        let audit = Audit::start(journal, limits.audit.clone())?;
        let budget = Budget::new(limits.edge.held_bytes);
        let front = Front { limits, policy, allow_hosts: Vec::new(), audit, budget };
        Ok(Self::behind(front, provider, Redactor::new(secrets)))
    }

    fn behind(front: Front, provider: Arc<dyn ToolProvider>, redactor: Redactor) -> Self {
        let Front { limits, policy, allow_hosts, audit, budget } = front;
        let guard = Guard { limits: limits.calls.clone(), budget: budget.clone(), redactor: redactor.clone() };
        let upstream = Upstream::new(provider, guard);
        let resolver = Resolver::new(upstream.clone(), limits.calls.clone(), limits.edge.parsed_bytes);
        let stages = Stages { resolver, policy, audit: audit.clone(), upstream: upstream.clone() };
        let edge = Edge::new(stages, &limits, budget, allow_hosts);
        let (shutdown, listeners) = (CancellationToken::new(), TaskTracker::new());
        Self { edge, upstream, servers: None, audit, redactor, limits, policy, shutdown, listeners }
    }

    /// Serves a new session on a listener, and gives its token.
    ///
    /// # Errors
    /// [`ServeError`].
    pub fn serve(&self, name: SessionName, listener: Listener, labels: &Labels) -> Result<Token, ServeError> {
        let token = new_token()?;
        self.audit.session(&name, self.policy, &listener.endpoint()?, labels);
        let session = Arc::new(Session::new(name, &token, self.limits.calls.clone()));
        let (edge, shutdown) = (self.edge.clone(), self.shutdown.clone());
        self.listeners.spawn(async move { edge.run(listener, session, shutdown).await });
        Ok(token)
    }

    /// The MCP servers, for the operator's view of them; none over another provider.
    #[must_use]
    pub fn servers(&self) -> Option<&Servers> {
        self.servers.as_ref()
    }

    /// Ends everything, in order and within a deadline.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.listeners.close();
        self.listeners.wait().await;
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
