//! What records say of calls, sessions, approvals and pins. `docs/record.md` lists every field, and a test holds it to
//! this.
//!
//! Names in it may come from a guest: they are cut to a length.

use std::collections::BTreeMap;

use serde::Serialize;

use footbridge_audit::Record;
use footbridge_core::digest::{Digest, digest_text};
use footbridge_proto::approval::ApprovalStatus;

/// Longest name from a guest in a record, characters; a longer one is cut and followed by its digest.
const MAX_NAME: usize = 256;

/// What a line can say, with its type.
#[derive(Debug, Clone)]
pub(crate) enum Line<'c> {
    /// A session begins: a token for these listeners.
    Session(SessionBegins),
    /// A session has one more listener, which could not be bound when it began.
    SessionListens(SessionListens),
    /// A session's token was replaced.
    SessionRotated(SessionRotated),
    /// An operator gave a session other limits.
    SessionLimited(SessionLimited),
    /// A session ended.
    SessionEnded(SessionEnded),
    /// A call is about to leave.
    Intent(Intent<'c>),
    /// A call was refused: before it was decided, because of that, or since nobody allowed it.
    Refused(Refused<'c>),
    /// A step in the life of an approval.
    Approval(Approval<'c>),
    /// A person accepted that a tool is not what it was.
    PinAccepted(PinAccepted),
}

impl Line<'_> {
    /// As the writer takes it.
    pub(crate) fn record(&self) -> Record {
        match self {
            Self::Session(fields) => Record::new("session", fields),
            Self::SessionListens(fields) => Record::new("session_listens", fields),
            Self::SessionRotated(fields) => Record::new("session_rotated", fields),
            Self::SessionLimited(fields) => Record::new("session_limited", fields),
            Self::SessionEnded(fields) => Record::new("session_ended", fields),
            Self::Intent(fields) => Record::new("intent", fields),
            Self::Refused(fields) => Record::new("refused", fields),
            Self::Approval(fields) => Record::new("approval", fields),
            Self::PinAccepted(fields) => Record::new("pin_accepted", fields),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct SessionBegins {
    pub(crate) session: String,
    pub(crate) policy: String,
    pub(crate) listeners: Vec<String>,
    pub(crate) labels: BTreeMap<String, String>,
    /// Those of its own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) limits: BTreeMap<String, String>,
    /// Those that it may use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) services: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct SessionListens {
    pub(crate) session: String,
    pub(crate) listener: String,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct SessionRotated {
    pub(crate) session: String,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct SessionLimited {
    pub(crate) session: String,
    pub(crate) limits: BTreeMap<String, String>,
    pub(crate) approver: String,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct SessionEnded {
    pub(crate) session: String,
    pub(crate) why: &'static str,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct PinAccepted {
    pub(crate) server: String,
    pub(crate) name: String,
    pub(crate) definition: Digest,
    pub(crate) approver: String,
}

/// What was called, and by whom.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Called<'c> {
    pub(crate) session: &'c str,
    /// None where nobody was at the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<&'c str>,
    pub(crate) kind: &'static str,
    pub(crate) server: &'c str,
    pub(crate) name: String,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Intent<'c> {
    pub(crate) id: &'c str,
    #[serde(flatten)]
    pub(crate) called: Called<'c>,
    pub(crate) arguments: Arguments,
    /// What goes to the server besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) meta: Option<Arguments>,
    /// How long the body of a request to a service is to be, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) definition: Option<Digest>,
    #[serde(flatten)]
    pub(crate) decided: DecidedLine<'c>,
}

/// What the gate said of a call.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct DecidedLine<'c> {
    pub(crate) decision: &'static str,
    pub(crate) policy: &'c str,
    /// None where no rule matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<&'c str>,
    pub(crate) effects: Vec<&'static str>,
    /// The approval that it used or waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<String>,
    /// Who allowed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approver: Option<&'c str>,
}

/// A step in the life of an approval.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Approval<'c> {
    pub(crate) id: &'c str,
    pub(crate) state: &'c ApprovalStatus,
    #[serde(flatten)]
    pub(crate) called: Called<'c>,
    pub(crate) arguments: Arguments,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) definition: Option<Digest>,
    pub(crate) policy: &'c str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approver: Option<&'c str>,
    /// What a server's question was answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Arguments>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Arguments {
    pub(crate) digest: Digest,
    pub(crate) bytes: usize,
    /// Their text without secrets, head and tail, where the settings ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) redacted: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Refused<'c> {
    pub(crate) id: &'c str,
    #[serde(flatten)]
    pub(crate) called: Called<'c>,
    pub(crate) reason: &'static str,
    /// More of it, in no words of a guest or a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<Arguments>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) decided: Option<DecidedLine<'c>>,
}

/// A name from a guest, short enough for a record.
pub(super) fn short_name(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME) {
        Some((at, _)) => format!("{}... ({})", &name[..at], digest_text(Digest::of(name))),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_and_keeps_its_digest() {
        let short = short_name(&"é".repeat(10_000));
        assert!(short.len() < 700 && short.contains("sha256:"));
    }
}
