//! What a record says: one JSON object on one line. `docs/record.md` lists every field, and a test holds it to this.
//!
//! Names in it may come from a guest: they are cut to a length, and everything that could steer a terminal is escaped,
//! so that a record can be shown as it is.

use std::collections::BTreeMap;

use footbridge_proto::text::SafeJson;
use serde::Serialize;

use super::head::SignedHead;
use crate::digest::Digest;

/// Longest name from a guest in a record, characters; a longer one is cut and followed by its digest.
const MAX_NAME: usize = 256;

/// One line of the record.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Line<'r> {
    /// Counts from 1 in each chain, without gaps.
    pub(super) seq: u64,
    /// The digest of the line before, without its line break; not in the first line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prev: Option<String>,
    /// The name of the chain, in its first line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) genesis: Option<&'r str>,
    /// When it was written, RFC 3339 in UTC.
    pub(super) time: &'r str,
    /// Microseconds since the chain began, by a clock that is never set.
    pub(super) mono: u64,
    #[serde(flatten)]
    pub(super) record: &'r Record,
}

/// What happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Record {
    /// The harness starts to write here.
    Started {
        version: &'static str,
        pid: u32,
        /// Whether records are synced to disk before anything leaves.
        sync: bool,
        /// The public key of the heads to come.
        #[serde(skip_serializing_if = "Option::is_none")]
        head_key: Option<String>,
    },
    /// The first line of a further file of the chain.
    Rotated { file: String },
    /// A signed statement of what the line before is.
    Head { head: SignedHead },
    /// The harness wrote all it had to. `open` calls have no outcome.
    Ended { open: u64 },
    /// A session begins: a token for these listeners.
    Session {
        session: String,
        policy: String,
        listeners: Vec<String>,
        labels: BTreeMap<String, String>,
        /// Those of its own.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        limits: BTreeMap<String, String>,
    },
    /// A session has one more listener, which could not be bound when it began.
    SessionListens { session: String, listener: String },
    /// A session's token was replaced.
    SessionRotated { session: String },
    /// A session ended.
    SessionEnded { session: String, why: &'static str },
    /// A call is about to leave.
    Intent(Box<Intent>),
    /// What became of a call.
    Outcome(Outcome),
    /// A call was refused: before it was decided, because of that, or since nobody allowed it.
    Refused(Box<Refused>),
    /// A step in the life of an approval.
    Approval(Box<Approval>),
    /// A person accepted that a tool is not what it was.
    PinAccepted { server: String, name: String, definition: String, approver: String },
    /// Calls over a limit, or questions of servers, counted.
    Limited { session: String, reason: &'static str, count: u64 },
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
pub(super) struct Outcome {
    pub(super) id: String,
    pub(super) outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
    pub(super) duration_ms: u64,
    pub(super) bytes: usize,
}

impl Outcome {
    /// Of a call that was recorded and did not leave.
    pub(super) fn not_sent(id: &str, why: &str) -> Self {
        Self { id: id.to_owned(), outcome: "not_sent", detail: Some(why.to_owned()), duration_ms: 0, bytes: 0 }
    }
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

/// A digest as records write it.
pub(super) fn digest_text(digest: Digest) -> String {
    format!("sha256:{digest}")
}

impl Line<'_> {
    /// Its text, with the line break.
    pub(super) fn text(&self) -> String {
        // Our own types always serialize.
        let json = serde_json::to_string(self).unwrap_or_default();
        SafeJson(&json).to_string() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use footbridge_proto::text::needs_escape;

    use super::*;

    #[test]
    fn nothing_in_a_line_steers_a_terminal_and_it_reads_back() {
        let name = "a\u{1b}[2J\u{9b}\u{202e}\u{e0041}\nb".to_owned();
        let record = Record::Refused(Box::new(Refused {
            id: "x".into(),
            called: Called {
                session: "s".into(),
                peer: Some("p".into()),
                kind: "tool",
                server: "s".into(),
                name: name.clone(),
            },
            reason: "unknown_tool",
            arguments: None,
            decided: None,
        }));
        let line =
            Line { seq: 1, prev: None, genesis: Some("c"), time: "1970-01-01T00:00:00Z", mono: 7, record: &record };
        let text = line.text();
        assert!(!text.trim_end().chars().any(needs_escape), "{text}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((value["name"].as_str(), value["type"].as_str()), (Some(name.as_str()), Some("refused")));
        assert_eq!((&value["genesis"], &value["mono"]), (&"c".into(), &7.into()));
    }

    #[test]
    fn a_long_name_is_cut_and_keeps_its_digest() {
        let short = short_name(&"é".repeat(10_000));
        assert!(short.len() < 700 && short.contains("sha256:"));
    }
}
