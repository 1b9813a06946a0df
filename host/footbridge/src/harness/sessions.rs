//! The sessions of a harness: opened, served, and ended.

use footbridge_edge::ServedSession;
use std::sync::Arc;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::Harness;
use crate::harness::table::{Open, Table};
use footbridge_calls::{
    approval::Approvals,
    session::{Ended, Session, SessionSpec},
};
use footbridge_core::{digest::Digest, names::SessionName};
use footbridge_edge::listener::Listener;

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

impl Harness {
    /// Opens a session and serves it on these listeners, until it ends.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(&self, spec: SessionSpec, listeners: Vec<Listener>) -> Result<(), OpenError> {
        let endpoints = listeners.iter().map(Listener::endpoint).collect::<Result<Vec<_>, _>>()?;
        let limits = spec.limits.over(&self.limits);
        let connections = self.connections.share(limits.edge.connections_per_session);
        let session = Arc::new(Session::new(spec, limits, self.budget.share()));
        let served = ServedSession { session: Arc::clone(&session), connections: Arc::new(connections) };
        let open = Arc::new(Open { served: served.clone(), endpoints, listeners: TaskTracker::new() });
        if !self.sessions.add(Arc::clone(&open)) {
            return Err(OpenError::Taken(session.name().clone()));
        }
        self.audit.session_opened(session.spec(), &open.endpoints);
        for listener in listeners {
            let (edge, served, shutdown) = (self.edge.clone(), served.clone(), self.shutdown.clone());
            self.tasks.spawn(open.listeners.track_future(async move { edge.run(listener, served, shutdown).await }));
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
        let (edge, served, shutdown) = (self.edge.clone(), open.served.clone(), self.shutdown.clone());
        self.tasks.spawn(open.listeners.track_future(async move { edge.run(listener, served, shutdown).await }));
        Ok(true)
    }

    /// Replaces a session's token: the old one ends at once, calls that are running go on. False if there is no such
    /// session.
    #[must_use]
    pub fn rotate(&self, name: &SessionName, token: Digest) -> bool {
        let Some(open) = self.sessions.get(name) else { return false };
        open.served.session.rotate(token);
        self.audit.session_rotated(name);
        true
    }

    /// Ends a session: its connections are cut, its calls cancelled, and its sockets are gone when this returns. False
    /// if there is no such session.
    pub async fn end(&self, name: &SessionName, why: Ended) -> bool {
        let Some(open) = self.sessions.find(name) else { return false };
        let ended = open.served.session.end(why);
        if ended {
            self.approvals.end_session(&open.served.session);
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
}

/// Ends a session when its time is over.
async fn expire(open: Arc<Open>, sessions: Table, approvals: Approvals, shutdown: CancellationToken) {
    let Some(until) = open.served.session.until() else { return };
    tokio::select! {
        () = until.passed() => {}
        () = open.served.session.over().cancelled() => return,
        () = shutdown.cancelled() => return,
    }
    if open.served.session.end(Ended::Expired) {
        approvals.end_session(&open.served.session);
        approvals.audit().session_ended(open.served.session.name(), Ended::Expired);
    }
    sessions.remove(&open).await;
}
