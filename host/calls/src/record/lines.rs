//! What records say of calls, sessions, approvals and pins. `docs/record.md` lists every field, and a test holds it to
//! this.
//!
//! Names in it may come from a guest: they are cut to a length.

use std::collections::BTreeMap;

use serde::Serialize;

use footbridge_audit::Record;
use footbridge_core::digest::Digest;

/// Longest name from a guest in a record, characters; a longer one is cut and followed by its digest.
const MAX_NAME: usize = 256;

/// What a line can say, with its type.
#[derive(Debug, Clone)]
pub(super) enum Line {
    /// A session begins: a token for these listeners.
    Session(SessionBegins),
    /// A session has one more listener, which could not be bound when it began.
    SessionListens(SessionListens),
    /// A session's token was replaced.
    SessionRotated(SessionRotated),
    /// A session ended.
    SessionEnded(SessionEnded),
    /// A call is about to leave.
    Intent(Intent),
    /// A call was refused: before it was decided, because of that, or since nobody allowed it.
    Refused(Refused),
    /// A step in the life of an approval.
    Approval(Approval),
    /// A person accepted that a tool is not what it was.
    PinAccepted(PinAccepted),
}

impl Line {
    /// As the writer takes it.
    pub(super) fn record(&self) -> Record {
        match self {
            Self::Session(fields) => Record::new("session", fields),
            Self::SessionListens(fields) => Record::new("session_listens", fields),
            Self::SessionRotated(fields) => Record::new("session_rotated", fields),
            Self::SessionEnded(fields) => Record::new("session_ended", fields),
            Self::Intent(fields) => Record::new("intent", fields),
            Self::Refused(fields) => Record::new("refused", fields),
            Self::Approval(fields) => Record::new("approval", fields),
            Self::PinAccepted(fields) => Record::new("pin_accepted", fields),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct SessionBegins {
    pub(super) session: String,
    pub(super) policy: String,
    pub(super) listeners: Vec<String>,
    pub(super) labels: BTreeMap<String, String>,
    /// Those of its own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) limits: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct SessionListens {
    pub(super) session: String,
    pub(super) listener: String,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct SessionRotated {
    pub(super) session: String,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct SessionEnded {
    pub(super) session: String,
    pub(super) why: &'static str,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct PinAccepted {
    pub(super) server: String,
    pub(super) name: String,
    pub(super) definition: String,
    pub(super) approver: String,
}

/// What was called, and by whom.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Called {
    pub(super) session: String,
    /// None where nobody was at the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peer: Option<String>,
    pub(super) kind: &'static str,
    pub(super) server: String,
    pub(super) name: String,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Intent {
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) called: Called,
    pub(super) arguments: Arguments,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) definition: Option<String>,
    #[serde(flatten)]
    pub(super) decided: DecidedLine,
}

/// What the gate said of a call.
#[derive(Debug, Clone, Serialize)]
pub(super) struct DecidedLine {
    pub(super) decision: &'static str,
    pub(super) policy: String,
    /// None where no rule matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rule: Option<String>,
    pub(super) effects: Vec<&'static str>,
    /// The approval that it used or waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) approval: Option<String>,
    /// Who allowed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) approver: Option<String>,
}

/// A step in the life of an approval.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Approval {
    pub(super) id: String,
    pub(super) state: &'static str,
    #[serde(flatten)]
    pub(super) called: Called,
    pub(super) arguments: Arguments,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) definition: Option<String>,
    pub(super) policy: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) approver: Option<String>,
    /// What a server's question was answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<Arguments>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Arguments {
    pub(super) digest: String,
    pub(super) bytes: usize,
    /// Their text without secrets, head and tail, where the settings ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) redacted: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Refused {
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) called: Called,
    pub(super) reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<Arguments>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) decided: Option<DecidedLine>,
}

/// A name from a guest, short enough for a record.
pub(super) fn short_name(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME) {
        Some((at, _)) => format!("{}... (sha256:{})", &name[..at], Digest::of(name)),
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
