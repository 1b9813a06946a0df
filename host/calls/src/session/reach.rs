//! What a session may reach: its rules, and the catalogues of servers as it may see them.
//!
//! What is left of a catalogue is looked up in a catalogue of its own, so what is hidden and what does not exist are
//! not found in the same way and the same time.

use std::{fmt, sync::Arc};

use footbridge_core::{
    catalogue::Catalogue,
    gate::{Policy, SessionRules},
    names::ServerName,
};

use footbridge_core::names::Labels;

/// The rules of a session, and what they leave to be seen.
pub struct Reach {
    rules: Arc<SessionRules>,
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
        Self { rules: Arc::new(SessionRules::new(policy, labels)) }
    }

    /// Its rules.
    #[must_use]
    pub fn rules(&self) -> &Arc<SessionRules> {
        &self.rules
    }

    /// What may be seen of a server's catalogue.
    #[must_use]
    pub fn view(&self, server: &ServerName, catalogue: &Arc<Catalogue>) -> Arc<Catalogue> {
        catalogue.view(&self.rules, server)
    }
}
