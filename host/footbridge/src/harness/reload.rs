//! Another configuration for a harness that runs.

use std::{collections::BTreeMap, sync::PoisonError};

use super::Harness;
use crate::config::Config;
use footbridge_calls::{service::Forward as _, session::Session, sessions::PoliciesChanged};
use footbridge_core::{
    gate::Policies,
    names::{ServerName, SessionName},
};
use footbridge_mcp::ServersChanged;
use footbridge_services::ServicesChanged;

/// What became of a new configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reloaded {
    /// The servers that it changed.
    pub servers: ServersChanged,
    /// The services that it changed.
    pub services: ServicesChanged,
    /// What its policies are to the sessions.
    pub policies: PoliciesChanged,
    /// Sessions that have services which it does not have any more, each with those: what they ask of them is refused.
    pub services_gone: BTreeMap<SessionName, Vec<ServerName>>,
    /// The open sessions whose budgets it changed.
    pub budgets: Vec<SessionName>,
    /// What it has otherwise and holds only after a restart, as the configuration calls it.
    pub after_restart: Vec<&'static str>,
}

impl Harness {
    /// Takes a new configuration: its policies hold at once, and its servers and secrets too, except over another
    /// provider.
    pub fn reload(&self, config: Config) -> Reloaded {
        // First: what a new server says is looked through for the new values.
        self.redactor.learn(&config.gathered.secrets);
        // Before the servers: a new one must not be reached by old rules.
        let policies = self.replace_policies(config.policies);
        let servers = self.servers.as_ref().map(|servers| servers.replace(config.servers)).unwrap_or_default();
        let services = self.services.replace(config.services);
        // After them: whoever asks from here on asks about the new ones.
        let is_there = |name: &str, number| self.services.known(name).is_some_and(|known| known.revision == number);
        self.approvals().services_changed(is_there);
        let services_gone = self.services_gone();
        let mut limits = self.limits.clone();
        limits.budget = config.limits.budget.clone();
        let budgets = self.sessions.set_budgets(limits.budget.clone());
        let all = [
            ("[limits]", config.limits != limits),
            ("[edge]", config.allow_hosts != self.allow_hosts),
            ("[audit]", config.audit != self.record),
            ("[approval]", config.approval != self.approval),
        ];
        let after_restart = all.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect();
        Reloaded { servers, services, policies, services_gone, budgets, after_restart }
    }

    /// Which sessions have services that are not configured.
    fn services_gone(&self) -> BTreeMap<SessionName, Vec<ServerName>> {
        let gone = |session: &Session| {
            let all = session.services().into_iter();
            all.filter(|name| self.services.spec(name.as_str()).is_none()).collect::<Vec<_>>()
        };
        let all = self.sessions.all().into_iter();
        all.map(|open| (open.session().name().clone(), gone(open.session())))
            .filter(|(_, services)| !services.is_empty())
            .collect()
    }

    /// Gives each session the policy of its name anew.
    fn replace_policies(&self, policies: Policies) -> PoliciesChanged {
        // First: a session that is made meanwhile gets the new ones.
        *self.policies.write().unwrap_or_else(PoisonError::into_inner) = policies.clone();
        self.sessions.set_policies(&policies)
    }
}
