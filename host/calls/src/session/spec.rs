//! What a session is opened with.

use std::{collections::BTreeSet, sync::Arc, time::SystemTime};

use footbridge_proto::token::Token;

use super::BudgetsSpent;
use footbridge_core::names::{Labels, ServerName, SessionName};
use footbridge_core::{digest::Digest, gate::Policy, limits::overrides::Overrides};

/// What a session is opened with.
#[derive(Debug, Clone)]
pub struct SessionSpec {
    /// Its name, unique in a harness.
    pub name: SessionName,
    /// The digest of its token.
    pub token: Digest,
    /// Which calls it may make.
    pub policy: Arc<Policy>,
    /// What the operator finds it by.
    pub labels: Labels,
    /// When it ends by itself, if it does.
    pub expires: Option<SystemTime>,
    /// The services that it may use, besides those of its policy.
    pub services: BTreeSet<ServerName>,
    /// Its own limits, where they are not those of the harness.
    pub limits: Overrides,
    /// Limits of its calls in place of these while no other session is open: see [`Overrides::alone`].
    pub alone: Overrides,
    /// What it has spent of its budgets before.
    pub spent: BudgetsSpent,
}

impl SessionSpec {
    /// A session that this token opens, without labels and without an end. Only the token's digest is kept.
    #[must_use]
    pub fn new(name: SessionName, token: &Token, policy: Arc<Policy>) -> Self {
        let (token, limits, alone) = (Digest::of(token.expose()), Overrides::default(), Overrides::default());
        let (labels, services, spent) = (Labels::new(), BTreeSet::new(), BudgetsSpent::default());
        Self { name, token, policy, labels, expires: None, services, limits, alone, spent }
    }
}
