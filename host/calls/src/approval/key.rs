//! What an approval is for, exactly: nothing that differs in any of this is covered by it.

use std::{fmt, str::FromStr};

use serde_json::json;

use crate::{decide::Verdict, request::OutgoingRequest};
use footbridge_core::{digest::Digest, random::random_text};

/// The word for questions of servers in records and where approvals are shown.
pub(super) const ELICITATION: &str = "elicitation";

/// Which call of which session. Two that are equal send the same bytes to the same tool under the same policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The session's number in this process: a session of the same name that comes later has another.
    pub(super) session: u64,
    pub(super) kind: &'static str,
    pub(super) server: String,
    pub(super) name: String,
    pub(super) arguments: Digest,
    pub(super) definition: Option<Digest>,
    /// Which one of its name a service is.
    pub(super) service: Option<u64>,
    pub(super) policy: Digest,
    /// Of a server's question, the call that it asks about: two may ask the same, and each is answered by itself. A no is one
    /// to the question, whichever call asks it.
    pub(super) asked_by: Option<u64>,
}

impl Key {
    /// Of a call that was decided about.
    pub(super) fn of(verdict: &Verdict) -> Self {
        let call = verdict.call();
        let (kind, name) = call.request().named();
        Self {
            session: call.principal().session().serial(),
            kind,
            server: call.server().to_string(),
            name: name.to_owned(),
            arguments: call.arguments().0,
            definition: call.definition(),
            service: match call.request() {
                OutgoingRequest::Service(call) => Some(call.revision()),
                _ => None,
            },
            policy: verdict.policy().revision(),
            asked_by: None,
        }
    }

    /// What stands for it where it must not take room.
    pub(super) fn digest(&self) -> Digest {
        let Self { session, kind, server, name, arguments, definition, service, policy, asked_by: _ } = self;
        let [arguments, policy] = [arguments, policy].map(ToString::to_string);
        let definition = definition.map(|definition| definition.to_string());
        Digest::of(json!(["approval", session, kind, server, name, arguments, definition, service, policy]).to_string())
    }

    /// Whether it is the same but for what somebody changed: the tool's definition, the service or the policy.
    pub(super) fn is_same_call(&self, other: &Self) -> bool {
        let Self { definition, service, policy, .. } = *other;
        let changed = Self { definition, service, policy, ..self.clone() };
        changed == *other
    }
}

/// The name of an approval: `ap-` and 16 hexadecimal digits, drawn at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApprovalId(pub(super) u64);

impl ApprovalId {
    /// A new one.
    ///
    /// # Errors
    /// [`footbridge_core::random::NoRandomness`].
    pub(super) fn new() -> Result<Self, footbridge_core::random::NoRandomness> {
        let digest = Digest::of(random_text::<16>()?);
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&digest.as_bytes()[..8]);
        Ok(Self(u64::from_be_bytes(bytes)))
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ap-{:016x}", self.0)
    }
}

/// Not the name of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an approval's id is ap- and 16 of 0-9 and a-f, as \"footbridge approvals list\" shows it")]
pub struct BadApprovalId;

impl FromStr for ApprovalId {
    type Err = BadApprovalId;

    fn from_str(text: &str) -> Result<Self, BadApprovalId> {
        let digits = text.strip_prefix("ap-").filter(|digits| digits.len() == 16).ok_or(BadApprovalId)?;
        if !digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return Err(BadApprovalId);
        }
        u64::from_str_radix(digits, 16).map(Self).map_err(|_| BadApprovalId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_nothing_else_is_one() {
        let id = ApprovalId::new().unwrap();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_ne!(ApprovalId::new().unwrap(), id);
        for bad in ["", "ap-", "ap-1", "ap-+123456789abcdef", "ap-0123456789ABCDEF", "0123456789abcdef"] {
            assert_eq!(bad.parse::<ApprovalId>(), Err(BadApprovalId), "{bad}");
        }
    }
}
