//! One harness: the stages, the MCP servers behind them, and the listeners in front.
//!
//! Order of a start: record, stages, servers (in the background), listeners. Order of the end: no new connections,
//! what runs gets a moment and is cancelled then, servers end, the record is written out.

pub(crate) mod budgets_by_control;
pub(crate) mod calls_by_control;
pub(crate) mod descriptors;
mod lists_by_control;
mod operator_call;
mod reload;
mod sessions;
mod vetting;

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    approvers::ApprovalSettings as Asking,
    config::{Config, Withheld},
    control::servers::Overseen,
    head_command::HeadCommand,
};
use footbridge_audit::{AuditSettings, RecordLost, Recorder};
use footbridge_calls::{
    approval::Approvals,
    call::Stages,
    pins::Pins,
    provider::ToolProvider,
    record::Audit,
    resolve::Resolver,
    sessions::Sessions,
    upstream::{Guard, Upstream},
};
use footbridge_core::{budget::Budget, gate::Policies, limits::Limits, redact::Redactor, secret::Secret};
use footbridge_edge::{Connections, Edge, listener::Listeners};
use footbridge_mcp::{ServerLog, Servers, ServersContext};
use footbridge_processes::{launch::Launcher, sys};
use footbridge_services::{ServiceSpec, Services};

pub(crate) use operator_call::OperatorCalls;
pub use operator_call::{NotCalled, OperatorCall};
pub use reload::Reloaded;
use sessions::Places;
pub use sessions::{OpenError, SessionView};

/// How long what is left of an end that is in order may take: ports that are let go of, outcomes on their way.
const LAST: Duration = Duration::from_secs(2);

/// What the stages in front of a provider are made of.
struct Front {
    limits: Limits,
    allow_hosts: Vec<String>,
    services: Vec<ServiceSpec>,
    audit: Audit,
    budget: Budget,
    approval: Asking,
    /// What starts the command that is asked.
    launcher: Launcher,
    /// What takes secrets out of what that says, and out of all else that is no answer.
    redactor: Redactor,
    pins: Option<Pins>,
    /// Those that are for sessions and connections.
    descriptors: usize,
}

/// A running harness.
pub struct Harness {
    edge: Edge,
    stages: Stages,
    upstream: Upstream,
    services: Services,
    servers: Option<Servers>,
    pins: Option<Pins>,
    approvals: Approvals,
    approval: Asking,
    audit: Audit,
    redactor: Redactor,
    limits: Limits,
    record: AuditSettings,
    allow_hosts: Vec<String>,
    policies: RwLock<Policies>,
    shutdown: CancellationToken,
    /// Whether calls that run have no more time at the end.
    hurried: CancellationToken,
    tasks: TaskTracker,
    sessions: Sessions<Places>,
    connections: Connections,
    sockets: Listeners,
    operator_places: Arc<Semaphore>,
}

/// How long after its start, or a wave, the memory of that is given back: once its last answers have ended.
const AFTER_WAVE: Duration = Duration::from_secs(1);

/// How long after that it is given back once more: when the threads that it was for have ended, too, which takes 10 s.
const AFTER_THREADS: Duration = Duration::from_secs(13);

/// Gives memory back after the start and each wave of connections, until the harness ends. It costs milliseconds, on a
/// thread that serves nobody.
async fn release_after_waves(connections: Connections, shutdown: CancellationToken) {
    let release = || {
        tokio::task::spawn_blocking(|| {
            sys::release_free_memory();
            sys::release_code();
        })
    };
    let each = async {
        tokio::time::sleep(AFTER_WAVE).await;
        let _released = release().await;
        loop {
            connections.ebbed().await;
            // The next wave begins this anew: the last one's memory never waits for what an earlier one has left.
            loop {
                tokio::time::sleep(AFTER_WAVE).await;
                let _released = release().await;
                if tokio::time::timeout(AFTER_THREADS, connections.ebbed()).await.is_err() {
                    break;
                }
            }
            let _released = release().await;
        }
    };
    shutdown.run_until_cancelled(each).await;
}

impl Harness {
    /// Starts the stages and the servers, and writes as this says, or to this journal. With pins, only what is as it
    /// was pinned is offered; with a log, what servers say besides is kept. Only [`Launcher::Kept`] keeps the promise that no process is left behind.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn start(
        config: Config,
        recorder: impl Into<Recorder>,
        launcher: Launcher,
        pins: Option<Pins>,
        log: Option<Arc<dyn ServerLog>>,
    ) -> std::io::Result<Self> {
        let redactor = Redactor::new(&config.gathered.secrets);
        crate::log::hide(&redactor);
        let recorder = HeadCommand::added_to(recorder.into(), &launcher, config.search_path, &config.withheld);
        let audit = Audit::start(recorder, redactor.clone(), config.limits.audit.clone())?;
        let budget = Budget::new(config.limits.edge.held_bytes);
        let limits = config.limits.clone();
        let elicitation = config.approval.asks_anybody();
        let own_launcher = launcher.clone();
        let context =
            ServersContext { limits, redactor: redactor.clone(), budget: budget.clone(), launcher, elicitation, log };
        let descriptors =
            descriptors::for_sessions(footbridge_processes::descriptors::limit(), &config.servers, &config.limits);
        let servers = Servers::start(config.servers, context);
        let front = Front {
            descriptors,
            limits: config.limits,
            allow_hosts: config.allow_hosts,
            services: config.services,
            audit,
            budget,
            approval: config.approval,
            launcher: own_launcher,
            redactor,
            pins,
        };
        // What servers say is redacted where it comes in, and not again.
        let mut harness = Self::behind(front, Arc::new(servers.clone()), Redactor::default());
        if let Some(pins) = &harness.pins {
            harness.tasks.spawn(vetting::watch(pins.clone(), servers.clone(), harness.shutdown.clone()));
        }
        harness.servers = Some(servers);
        harness.record = config.audit;
        harness.policies = RwLock::new(config.policies);
        Ok(harness)
    }

    /// Starts the stages in front of a provider, and writes as this says, or to this journal. The values of `secrets`
    /// are taken out of what it answers. With pins, only what is as it was pinned is offered.
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
        let audit = Audit::start(
            HeadCommand::added_to(recorder.into(), &Launcher::default(), None, &Withheld::default()),
            redactor.clone(),
            limits.audit.clone(),
        )?;
        let budget = Budget::new(limits.edge.held_bytes);
        let approval = Asking { watch: Some(false), command: None, webhook: None };
        let launcher = Launcher::default();
        let descriptors = descriptors::for_sessions(footbridge_processes::descriptors::limit(), &[], &limits);
        let (allow_hosts, services) = (Vec::new(), Vec::new());
        let guarding = redactor.clone();
        let front =
            Front { limits, allow_hosts, services, audit, budget, approval, launcher, redactor, pins, descriptors };
        Ok(Self::behind(front, provider, guarding))
    }

    /// The stages in front of a provider, whose answers this takes secrets out of.
    fn behind(front: Front, provider: Arc<dyn ToolProvider>, guarding: Redactor) -> Self {
        let Front { limits, allow_hosts, services, audit, budget, approval, launcher, redactor, pins, descriptors } =
            front;
        let to_services = descriptors::for_services(descriptors);
        let descriptors = if services.is_empty() { descriptors } else { descriptors - to_services };
        let services = Services::new(services, &limits.services, to_services);
        let guard = Guard { budget: budget.clone(), redactor: guarding };
        let upstream = Upstream::new(provider, guard).pinned(pins.clone());
        let resolver = Resolver::new(upstream.catalogues().clone(), limits.calls.clone(), limits.edge.parsed_bytes);
        let approvers = approval.approvers(limits.approval.command_time, launcher, redactor.clone());
        let approvals = Approvals::new(approvers, audit.clone());
        let stages =
            Stages { resolver, approvals: approvals.clone(), audit: audit.clone(), upstream: upstream.clone() };
        let edge = Edge::new(stages.clone(), &limits, allow_hosts.clone(), services.clone());
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        let sessions = Sessions::new(approvals.clone(), limits.clone(), budget.clone());
        let connections = Connections::new(&limits.edge, descriptors);
        tasks.spawn(release_after_waves(connections.clone(), shutdown.clone()));
        Self {
            edge,
            stages,
            upstream,
            services,
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
            hurried: CancellationToken::new(),
            tasks,
            sessions,
            connections,
            sockets: Listeners::default(),
            operator_places: operator_call::operator_places(),
        }
    }

    /// What binds the listeners of its sessions.
    #[must_use]
    pub fn listeners(&self) -> &Listeners {
        &self.sockets
    }

    /// The policies of the configuration; over another provider those that are built in.
    #[must_use]
    pub fn policies(&self) -> Policies {
        self.policies.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The approvals, for whoever answers them.
    #[must_use]
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// Why the last record could not be written, if it could not.
    pub(crate) fn record_failed(&self) -> Option<String> {
        self.audit.failure()
    }

    /// What commands may look at and restart.
    pub(crate) fn overseen(&self) -> Overseen {
        Overseen { servers: self.servers.clone(), pins: self.pins.clone(), audit: self.audit.clone() }
    }

    /// The services of the configuration.
    #[must_use]
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// The MCP servers, for the operator's view of them; none over another provider.
    #[must_use]
    pub fn servers(&self) -> Option<&Servers> {
        self.servers.as_ref()
    }

    /// What takes the time from calls that still run when everything ends, also while it does.
    pub(crate) fn hurry(&self) -> CancellationToken {
        self.hurried.clone()
    }

    /// Ends everything, in order and within a deadline.
    ///
    /// # Errors
    /// [`RecordLost`]: all has ended, and not all of it is recorded.
    pub async fn stop(self) -> Result<(), RecordLost> {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.sessions.stop().await;
        // What still waits for a person has waited for nothing.
        self.approvals.stop().await;
        // A port is bound again only after it was let go of.
        let _ = tokio::time::timeout(LAST, self.sockets.released()).await;
        let drain = self.limits.calls.drain_time;
        let drained = self.hurried.run_until_cancelled(tokio::time::timeout(drain, self.edge.drained()));
        if matches!(drained.await, Some(Err(_))) {
            tracing::warn!(
                ?drain,
                "calls were still running when the harness ended; calls.drain_time gives them longer"
            );
        }
        self.upstream.shutdown().await;
        if self.redactor.replaced() > 0 {
            let count = self.redactor.replaced();
            tracing::warn!(count, "values of configured secrets were taken out of what servers said");
        }
        // Calls that the end of their server ended have their outcome queued by now, or within a moment, and answer yet.
        // What no server ends, as streams of services, has its outcome as where its session ends.
        if tokio::time::timeout(LAST, self.edge.drained()).await.is_err() {
            self.sessions.cut();
            let _ = tokio::time::timeout(LAST, self.edge.drained()).await;
        }
        let audit = self.audit;
        tokio::task::spawn_blocking(move || audit.close()).await.unwrap_or(Err(RecordLost::WriterPanicked))
    }
}
