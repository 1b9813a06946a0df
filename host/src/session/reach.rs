//! What a session may reach: its rules, and the catalogues of servers as it may see them.
//!
//! A catalogue is looked through once for each session, and what is left of it is kept until the server's changes: so
//! what is hidden and what does not exist are looked up, and not found, in the same way and the same time.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use crate::{
    catalogue::Catalogue,
    gate::{Policy, SessionRules},
    servers::ServerName,
};

use super::Labels;

/// The rules of a session, and what they leave to be seen.
pub struct Reach {
    rules: Arc<SessionRules>,
    seen: Mutex<HashMap<ServerName, Seen>>,
}

/// A catalogue, and what is left of it.
struct Seen {
    of: Weak<Catalogue>,
    left: Arc<Catalogue>,
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach").field("policy", &self.rules.policy().name()).finish_non_exhaustive()
    }
}

impl Reach {
    /// What a session with this policy and these labels may reach.
    #[must_use]
    pub fn new(policy: Arc<Policy>, labels: &Labels) -> Self {
        Self { rules: Arc::new(SessionRules::new(policy, labels)), seen: Mutex::default() }
    }

    /// Its rules.
    #[must_use]
    pub fn rules(&self) -> &Arc<SessionRules> {
        &self.rules
    }

    /// What may be seen of a server's catalogue.
    #[must_use]
    pub fn view(&self, server: &ServerName, catalogue: Arc<Catalogue>) -> Arc<Catalogue> {
        if !self.rules.hides() {
            return catalogue;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // The weak pointer keeps the place of what it pointed to, so no other catalogue can be there.
        if let Some(seen) = seen.get(server).filter(|seen| seen.of.as_ptr() == Arc::as_ptr(&catalogue)) {
            return Arc::clone(&seen.left);
        }
        let left = Arc::new(catalogue.seen_by(&self.rules, server.as_str()));
        let of = Arc::downgrade(&catalogue);
        seen.insert(server.clone(), Seen { of, left: Arc::clone(&left) });
        left
    }
}
