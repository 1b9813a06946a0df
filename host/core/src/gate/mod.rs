//! Whether a call may be made. A pure function of values: no clock, no lock, no socket.
//!
//! A session has the rules of one policy, those that are meant for its labels ([`SessionRules`]). They are asked three
//! times: what the session may see (`hide`, without arguments, when a catalogue is looked at), which conditions hold of
//! a call's arguments (while the resolve stage has them as values), and at last what is decided about it.

pub mod conditions;
pub mod effects;
pub mod globs;
pub mod policy;
pub mod rules;
mod spelling;
mod uri;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    digest::Digest,
    names::{Labels, ServerName},
};
pub use effects::{Effect, Effects};
pub use policy::{Policies, Policy, UnknownPolicy};
pub use rules::{CallKind, Rule, Says, Subject};
pub(crate) use spelling::{readings, with_lower_authority};

/// The rules of one session: of its policy, those that are meant for its labels.
#[derive(Debug, Clone)]
pub struct SessionRules {
    policy: Arc<Policy>,
    applied: Vec<usize>,
    digest: Digest,
    hides: bool,
}

/// Says in which form the rules of a session are written for their digest.
const WRITTEN_FORM: &str = "footbridge session rules 1";

/// Of the rules of a session, those whose conditions hold of the arguments of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tested(Option<Vec<usize>>);

/// What a policy says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It may be made.
    Allow,
    /// A person has to say so first.
    Ask,
    /// It may not be made.
    Deny,
}

impl Decision {
    /// The word for it in records and on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A decision, and the rule that made it; none where no rule matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// What was decided.
    pub decision: Decision,
    /// The rule.
    pub rule: Option<Arc<str>>,
}

impl SessionRules {
    /// The rules of a policy for a session with these labels.
    #[must_use]
    pub fn new(policy: Arc<Policy>, labels: &Labels) -> Self {
        let rules = policy.rules().iter().enumerate();
        let applied: Vec<usize> = rules.filter(|(_, rule)| rule.is_for(labels)).map(|(at, _)| at).collect();
        let hides = applied.iter().any(|at| policy.rules()[*at].says == Says::Hide);
        let digest = Digest::of(json!([WRITTEN_FORM, policy.revision().to_string(), applied]).to_string());
        Self { policy, applied, digest, hides }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// The same for rules that say the same, of all sessions that they are for.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    fn rules(&self) -> impl Iterator<Item = (usize, &Rule)> {
        self.applied.iter().map(|at| (*at, &self.policy.rules()[*at]))
    }

    /// A tool as rules see it.
    #[must_use]
    pub fn tool<'a>(&self, server: &'a str, name: &'a str, annotated: Effects) -> Subject<'a> {
        Subject::tool(server, name, self.policy.effects(server, name, annotated))
    }

    /// Whether anything of any server is hidden.
    #[must_use]
    pub fn hides(&self) -> bool {
        self.hides
    }

    /// Whether resources of a server may be hidden.
    #[must_use]
    pub fn hides_resources_of(&self, server: &str) -> bool {
        let about = |rule: &Rule| rule.says == Says::Hide && rule.is_about_server(server) && rule.is_about_resources();
        self.hides && self.rules().any(|(_, rule)| about(rule))
    }

    /// The services that the policy gives its sessions.
    #[must_use]
    pub fn services(&self) -> &[ServerName] {
        self.policy.services()
    }

    /// Whether the session may know that there is this server. Asked of the name alone, so that a hidden server is
    /// neither waited for nor started.
    #[must_use]
    pub fn shows_server(&self, server: &str) -> bool {
        self.hides_server(server).is_none()
    }

    /// The rule that hides a whole server, unless one before it says something else of any part of it.
    #[must_use]
    pub fn hides_server(&self, server: &str) -> Option<&Rule> {
        let about = |rule: &&Rule| rule.is_about_server(server) && rule.conditions.is_empty();
        let deciding = |rule: &&Rule| about(rule) && (rule.says != Says::Hide || rule.is_about_whole_servers());
        let first = self.hides.then(|| self.rules().map(|(_, rule)| rule).find(deciding))?;
        first.filter(|rule| rule.says == Says::Hide)
    }

    /// Whether the session may know that there is this.
    #[must_use]
    pub fn shows(&self, subject: &Subject<'_>) -> bool {
        self.hides_this(subject).is_none()
    }

    /// The rule that hides this. Rules with conditions on arguments are passed over: what is seen must not hang on
    /// them.
    #[must_use]
    pub fn hides_this(&self, subject: &Subject<'_>) -> Option<&Rule> {
        let deciding = |rule: &&Rule| rule.conditions.is_empty() && rule.is_about(subject);
        let first = self.hides.then(|| self.rules().map(|(_, rule)| rule).find(deciding))?;
        first.filter(|rule| rule.says == Says::Hide)
    }

    /// What may be decided about this, by its arguments. The last is what is decided where no condition holds.
    #[must_use]
    pub fn outlook(&self, subject: &Subject<'_>) -> Vec<Decision> {
        self.possible(subject).into_iter().map(|decided| decided.decision).collect()
    }

    /// The same, each with the rule that would decide.
    #[must_use]
    pub fn possible(&self, subject: &Subject<'_>) -> Vec<Decided> {
        let mut all = Vec::new();
        for (_, rule) in self.rules().filter(|(_, rule)| rule.is_about(subject)) {
            all.push(Decided { decision: decision_of(rule), rule: Some(Arc::clone(&rule.id)) });
            if rule.conditions.is_empty() {
                return all;
            }
        }
        all.push(Decided { decision: Decision::Ask, rule: None });
        all
    }

    /// What may be decided about requests like this one, whatever their path.
    #[must_use]
    pub fn outlook_of_like(&self, subject: &Subject<'_>) -> Vec<Decision> {
        let mut all = Vec::new();
        for (_, rule) in self.rules() {
            let (some, every) = rule.is_about_like(subject);
            if some {
                all.push(decision_of(rule));
            }
            if every {
                return all;
            }
        }
        all.push(Decision::Ask);
        all
    }

    /// Evaluates the conditions of the rules that are about this, where there are any.
    #[must_use]
    pub fn test(&self, subject: &Subject<'_>, arguments: &Value) -> Tested {
        let asked = self.rules().filter(|(_, rule)| !rule.conditions.is_empty() && rule.is_about(subject));
        Tested(Some(asked.filter(|(_, rule)| rule.conditions_hold(arguments)).map(|(at, _)| at).collect()))
    }

    /// Decides: the first rule that matches, or else ask.
    #[must_use]
    pub fn decide(&self, subject: &Subject<'_>, tested: &Tested) -> Decided {
        let first = self.rules().find(|(at, rule)| tested.holds(*at, rule) && rule.is_about(subject));
        let Some((_, rule)) = first else { return Decided { decision: Decision::Ask, rule: None } };
        Decided { decision: decision_of(rule), rule: Some(Arc::clone(&rule.id)) }
    }
}

fn decision_of(rule: &Rule) -> Decision {
    match rule.says {
        Says::Allow => Decision::Allow,
        Says::Ask => Decision::Ask,
        // What is hidden does not resolve. If it came here all the same, it would not leave.
        Says::Deny | Says::Hide => Decision::Deny,
    }
}

impl Tested {
    /// A rule's conditions that were not evaluated count as those that could not be.
    fn holds(&self, at: usize, rule: &Rule) -> bool {
        match &self.0 {
            _ if rule.conditions.is_empty() => true,
            Some(held) => held.contains(&at),
            None => !rule.opens(),
        }
    }
}

#[cfg(test)]
mod documented;
#[cfg(test)]
mod revisions;
#[cfg(test)]
mod tests;
