//! What `serve` needs of the place that keeps its sessions.

use std::{collections::BTreeSet, time::SystemTime};

use futures::future::BoxFuture;

use super::StoreError;
use footbridge_calls::session::BudgetsSpent;
use footbridge_core::{
    digest::Digest,
    limits::overrides::Overrides,
    names::{Labels, ServerName, SessionName},
};
use footbridge_edge::listener::Listen;
use footbridge_processes::process::ProcessIdentity;

/// A session as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// Its name.
    pub name: SessionName,
    /// The digest of its token.
    pub token: Digest,
    /// When it was created, to the millisecond.
    pub created: SystemTime,
    /// When it ends by itself, to the millisecond.
    pub expires: Option<SystemTime>,
    /// The name of its policy.
    pub policy: String,
    /// What the operator finds it by.
    pub labels: Labels,
    /// Its own limits.
    pub limits: Overrides,
    /// The services that it may use, besides those of its policy.
    pub services: BTreeSet<ServerName>,
    /// Where it listens.
    pub listens: Vec<Listen>,
    /// The process that it ends with.
    pub process: Option<ProcessIdentity>,
    /// What it had spent of its budgets.
    pub spent: BudgetsSpent,
    /// What of it was written as this version cannot read it: it is nothing to open, and can be forgotten.
    pub unread: Option<&'static str>,
}

/// A place that keeps sessions, durably. A change that fails has not happened.
pub trait SessionStore: Send + Sync {
    /// Keeps a new session.
    fn add_session<'a>(&'a self, session: &'a StoredSession) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Gives a session another token; says whether there is such a session.
    fn set_token<'a>(&'a self, name: &'a SessionName, token: Digest) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Gives a session other limits of its own; says whether there is such a session.
    fn set_limits<'a>(
        &'a self,
        name: &'a SessionName,
        limits: &'a Overrides,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Keeps what these sessions have spent, of all of them or of none. One that is there no more is passed over, also
    /// where another one has its name by now.
    fn set_spent<'a>(&'a self, sessions: &'a [StoredSession]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Forgets a session; says whether there was one.
    fn remove_session<'a>(&'a self, name: &'a SessionName) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// All sessions, oldest first.
    fn sessions(&self) -> BoxFuture<'_, Result<Vec<StoredSession>, StoreError>>;
}
