//! Another configuration for a harness that runs.

use std::sync::PoisonError;

use super::Harness;
use crate::config::Config;
use footbridge_core::{gate::Policies, names::SessionName};
use footbridge_mcp::ServersChanged;

/// What became of a new configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reloaded {
    /// The servers that it changed.
    pub servers: ServersChanged,
    /// Sessions whose policy it does not have any more: they keep what they had.
    pub policy_gone: Vec<SessionName>,
    /// Whether it has limits, names of hosts or settings of the record that hold only after a restart.
    pub needs_restart: bool,
}

impl Harness {
    /// Takes a new configuration: its policies hold at once, and its servers and secrets too, except over another
    /// provider.
    pub fn reload(&self, config: Config) -> Reloaded {
        // First: what a new server says is looked through for the new values.
        self.redactor.learn(&config.gathered.secrets);
        // Before the servers: a new one must not be reached by old rules.
        let policy_gone = self.replace_policies(config.policies);
        let servers = self.servers.as_ref().map(|servers| servers.replace(config.servers)).unwrap_or_default();
        self.services.replace(config.services);
        let same = config.limits == self.limits
            && config.allow_hosts == self.allow_hosts
            && config.audit == self.record
            && config.approval == self.approval;
        Reloaded { servers, policy_gone, needs_restart: !same }
    }

    /// Gives each session the policy of its name anew; those that have none any more keep their own.
    fn replace_policies(&self, policies: Policies) -> Vec<SessionName> {
        // First: a session that is made meanwhile gets the new ones.
        *self.policies.write().unwrap_or_else(PoisonError::into_inner) = policies.clone();
        self.sessions.set_policies(&policies)
    }
}
