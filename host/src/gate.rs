//! Whether a call may be made. A pure function of values: no clock, no lock, no socket.

use crate::{digest::Digest, resolve::ResolvedCall};

/// A named set of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Allows all that resolves.
    Open,
    /// Asks a person about every call.
    Ask,
}

impl Policy {
    /// Its name in configuration and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Ask => "ask",
        }
    }

    /// Whether a person may have to be asked.
    #[must_use]
    pub fn can_ask(self) -> bool {
        self == Self::Ask
    }

    /// The policy of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Open, Self::Ask].into_iter().find(|policy| policy.name() == name)
    }
}

/// What a policy says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It may be made.
    Allow,
    /// A person has to say so first.
    Ask,
}

impl Decision {
    /// The word for it in records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
        }
    }
}

/// A call and what was decided about it. Only this stage makes one.
#[derive(Debug)]
pub struct Verdict {
    call: ResolvedCall,
    decision: Decision,
    policy: Policy,
}

impl Verdict {
    /// The call.
    #[must_use]
    pub fn call(&self) -> &ResolvedCall {
        &self.call
    }

    /// What was decided.
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// The policy that decided.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// What is another one as soon as the policy says anything else.
    #[must_use]
    pub fn policy_revision(&self) -> Digest {
        Digest::of(self.policy.name())
    }

    pub(crate) fn into_call(self) -> ResolvedCall {
        self.call
    }
}

/// Decides about a call.
#[must_use]
pub fn decide(policy: Policy, call: ResolvedCall) -> Verdict {
    match policy {
        Policy::Open => Verdict { call, decision: Decision::Allow, policy },
        Policy::Ask => Verdict { call, decision: Decision::Ask, policy },
    }
}
