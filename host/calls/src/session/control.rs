//! What changes a session: another token, another policy, other budgets, its end. The table of sessions alone has it,
//! which records what it does; no [`Session`], and so no principal, leads to it.

use std::sync::{Arc, Mutex, PoisonError};

use footbridge_core::{
    budget,
    digest::Digest,
    gate::{Policy, SessionRules},
    limits::{Limits, overrides::Overrides},
};

use super::{Key, LifeControl, OpenSessions, Session, SessionSpec, Shown};

/// A session that was made, and what changes it.
#[derive(Debug)]
pub(crate) struct SessionControl {
    session: Arc<Session>,
    /// Its own limits, as they are now.
    own: Mutex<Overrides>,
}

impl SessionControl {
    /// An open session with these limits, its own among them.
    pub(crate) fn new(
        spec: SessionSpec,
        limits: Limits,
        bytes: budget::Share,
        life: &LifeControl,
        open: OpenSessions,
    ) -> Self {
        let own = Mutex::new(spec.limits.clone());
        Self { session: Arc::new(Session::new(spec, limits, bytes, life.life().clone(), open)), own }
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// As if its token was shown now.
    pub(crate) fn shown(&self) -> Shown {
        Shown(self.session.key().turn)
    }

    /// Replaces the token: the old one ends at once, calls that are running go on.
    pub(crate) fn rotate(&self, token: Digest) {
        let mut key = self.session.key.write().unwrap_or_else(PoisonError::into_inner);
        *key = Key { digest: token, turn: key.turn + 1 };
    }

    /// Gives it another policy, for whatever is looked up from now on. Where its rules say the same, what was looked up and
    /// what was allowed stay so. Whether they say something else.
    pub(crate) fn set_policy(&self, policy: Arc<Policy>) -> bool {
        let session = &self.session;
        let before = session.rules();
        let says_the_same = before.policy().revision() == policy.revision();
        if !says_the_same || before.services() != policy.services() {
            let rules = Arc::new(SessionRules::new(policy, &session.spec.labels));
            *session.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
        }
        !says_the_same
    }

    /// Gives it the budgets of these limits, but for those that it has of its own; these are some more of them. What is
    /// spent stays so. Whether that changes any.
    pub(crate) fn set_budgets(&self, limits: &Limits, own: Overrides) -> bool {
        let mut all = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        all.add(own);
        self.session.set_budgets(&all.over(limits).budget)
    }
}
