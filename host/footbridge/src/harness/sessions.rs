//! The sessions of a harness: opened with their listeners, served, looked at, and ended. Who is in the table is
//! [`Sessions`]'s to know.
//!
//! [`Sessions`]: footbridge_calls::sessions::Sessions

use std::{collections::BTreeSet, sync::Arc, time::SystemTime};

use footbridge_proto::endpoint::Endpoint;

use super::{Harness, descriptors};
use footbridge_calls::{
    operator::Operator,
    session::{BudgetOf, BudgetUse, Ended, Life, Session, SessionSpec},
    sessions::{NameTaken, Open},
};
use footbridge_core::{
    digest::Digest,
    names::{ServerName, SessionName},
};
use footbridge_edge::{ConnectionShare, NoDescriptors, ServedSession, listener::Listener};

/// What a harness keeps of an open session: the places that its connections have.
pub(super) type Places = Arc<ConnectionShare>;

/// An open session as the operator sees it.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// What it was opened with. The token's digest may be another one by now.
    pub spec: SessionSpec,
    /// The services that it may use by now.
    pub services: BTreeSet<ServerName>,
    /// Where it listens.
    pub endpoints: Vec<Endpoint>,
    /// Its open connections.
    pub connections: usize,
    /// Its calls in flight.
    pub calls: usize,
    /// What it has spent of each budget since it was created, and how much that may be.
    pub spent: Vec<(BudgetOf, BudgetUse)>,
}

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is one of that name.
    #[error("there is a session {0} already: revoke it, or choose another name")]
    Taken(SessionName),
    /// There are too few descriptors for one more.
    #[error(transparent)]
    Descriptors(#[from] NoDescriptors),
    /// The system does not say where a listener listens.
    #[error("cannot tell where the session listens: {0}")]
    Listener(#[from] std::io::Error),
}

impl From<NameTaken> for OpenError {
    fn from(NameTaken(name): NameTaken) -> Self {
        Self::Taken(name)
    }
}

impl Harness {
    /// The open sessions, by name.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionView> {
        let view = |open: Arc<Open<Places>>| SessionView {
            spec: open.session().spec().clone(),
            services: open.session().services(),
            endpoints: open.endpoints().to_vec(),
            connections: open.front().used(),
            calls: open.session().calls_in_flight(),
            spent: BudgetOf::ALL.map(|of| (of, open.session().spent(of))).into(),
        };
        self.sessions.all().into_iter().map(view).collect()
    }

    /// The open sessions themselves, by name.
    pub(crate) fn open_sessions(&self) -> Vec<Arc<Session>> {
        self.sessions.all().iter().map(|open| Arc::clone(open.session())).collect()
    }

    /// Opens a session and serves it on these listeners, until it ends; says how long it lasts. It may have been held
    /// until now.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(&self, spec: SessionSpec, listeners: Vec<Listener>) -> Result<Life, OpenError> {
        let endpoints = listeners.iter().map(Listener::endpoint).collect::<Result<Vec<_>, _>>()?;
        let limits = spec.limits.over(&self.limits);
        let descriptors = descriptors::of_session(listeners.len());
        let connections = self.connections.share(limits.edge.connections_per_session, descriptors)?;
        let connections = Arc::new(connections);
        let open = self.sessions.open(spec, endpoints, connections)?;
        for listener in listeners {
            self.serve(&open, listener);
        }
        Ok(open.session().over().clone())
    }

    /// Takes the name of a session that cannot be opened yet; its time runs.
    ///
    /// # Errors
    /// [`OpenError::Taken`].
    pub(crate) fn hold(&self, name: &SessionName, expires: Option<SystemTime>) -> Result<Life, OpenError> {
        Ok(self.sessions.hold(name, expires)?)
    }

    /// Serves an open session on one more listener. False if there is no such session: the listener is closed then.
    ///
    /// # Errors
    /// When the system does not say where it listens.
    pub fn listen(&self, name: &SessionName, listener: Listener) -> std::io::Result<bool> {
        let endpoint = listener.endpoint()?;
        let Some(open) = self.sessions.find(name) else { return Ok(false) };
        self.sessions.listens(&open, &endpoint);
        self.serve(&open, listener);
        Ok(true)
    }

    fn serve(&self, open: &Open<Places>, listener: Listener) {
        let served = ServedSession { session: Arc::clone(open.session()), connections: Arc::clone(open.front()) };
        let (edge, shutdown) = (self.edge.clone(), self.shutdown.clone());
        self.tasks.spawn(open.users().track_future(async move { edge.run(listener, served, shutdown).await }));
    }

    /// Replaces a session's token: the old one ends at once, calls that are running go on. False if there is no such
    /// session.
    #[must_use]
    pub fn rotate(&self, name: &SessionName, token: Digest) -> bool {
        self.sessions.rotate(name, token)
    }

    /// Ends a session because an operator says so: its connections are cut, its calls cancelled, and its sockets are
    /// gone when this returns. False if there is no such session.
    pub async fn revoke(&self, operator: &Operator, name: &SessionName) -> bool {
        self.sessions.revoke(operator, name).await
    }

    /// Ends a session whose process is gone; of one that has ended this waits for its sockets.
    pub(crate) async fn process_gone(&self, name: &SessionName) -> bool {
        self.sessions.process_gone(name).await
    }

    /// Records the end of a session that is not open here: it ended while no harness was running.
    pub fn ended_meanwhile(&self, name: &SessionName, why: Ended) {
        self.sessions.ended_meanwhile(name, why);
    }
}
