//! One line of the record: what the writer says itself, and the fields that others hand it as they are.
//!
//! This crate knows of a record only its type, and of a call only that its outcome ties to its intent by an id. Names
//! in it may come from a guest: everything that could steer a terminal is escaped, so that it can be shown as it is.

use std::io::{self, Write as _};

use footbridge_core::digest::Digest;
use footbridge_proto::text::safe_json;
use serde::Serialize;
use serde_json::Value;

use super::{head::SignedHead, outcome::RecordedOutcome};

/// Room for the fields of most records, bytes.
const FIELDS_BYTES: usize = 512;

/// What happened: a type and its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    kind: &'static str,
    /// A JSON object, in which all that could steer a terminal is escaped.
    fields: String,
}

/// What became of something whose intent was recorded.
#[derive(Debug, Clone, Serialize)]
pub struct OutcomeRecord {
    /// The id of its intent.
    pub id: String,
    /// What became of it, in a word.
    pub outcome: RecordedOutcome,
    /// The same more exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How long it took, milliseconds.
    pub duration_ms: u64,
    /// How large the answer was, bytes.
    pub bytes: usize,
    /// What passed, of what passes while it comes.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Box<ExchangeRecord>>,
}

/// What passed of a request and its answer.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ExchangeRecord {
    /// The status of the answer; none where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Bytes of the request's body.
    pub sent: u64,
    /// Bytes of the answer's body.
    pub received: u64,
    /// The digest of the request's body, as far as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_digest: Option<Digest>,
    /// The digest of the answer's body, as far as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_digest: Option<Digest>,
    /// From the admission to the head of the answer, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u64>,
    /// How often the service's credential was taken out of the answer.
    #[serde(skip_serializing_if = "is_zero")]
    pub redacted: u64,
    /// What the answer says of its use of a model.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageRecord>,
}

/// What an answer says of its use of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UsageRecord {
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens that went in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_in: Option<u64>,
    /// Tokens that came out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_out: Option<u64>,
    /// Of those that went in, how many were kept from before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_cached: Option<u64>,
    /// Tokens that it may have used without saying so, as far as what passed tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_estimated: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl OutcomeRecord {
    /// Of what was recorded as an intent and did not leave.
    #[must_use]
    pub fn not_sent(id: &str, why: &str) -> Self {
        Self {
            id: id.to_owned(),
            outcome: RecordedOutcome::NotSent,
            detail: Some(why.to_owned()),
            duration_ms: 0,
            bytes: 0,
            exchange: None,
        }
    }
}

#[derive(Serialize)]
struct Started<'a> {
    version: &'static str,
    pid: u32,
    /// The name of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// Whether records are synced to disk before anything leaves.
    sync: bool,
    /// The public key of the heads to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    head_key: Option<&'a str>,
}

#[derive(Serialize)]
struct Rotated<'a> {
    file: &'a str,
}

#[derive(Serialize)]
struct Headed<'a> {
    head: &'a SignedHead,
}

#[derive(Serialize)]
struct Ended {
    open: u64,
}

#[derive(Serialize)]
struct Limited<'a> {
    session: &'a str,
    reason: &'static str,
    count: u64,
}

/// The type of the last record of a chain that was ended in order.
const ENDED: &str = "ended";

impl Record {
    /// A record of this type with the fields of a value, which is a JSON object.
    #[must_use]
    pub fn new(kind: &'static str, fields: &impl Serialize) -> Self {
        let mut json = Vec::with_capacity(FIELDS_BYTES);
        // Types of records always serialize.
        let written = serde_json::to_writer(&mut json, fields);
        let json = written.ok().and_then(|()| String::from_utf8(json).ok()).unwrap_or_default();
        Self { kind, fields: safe_json(json) }
    }

    /// The harness starts to write here.
    pub(super) fn started(version: &'static str, pid: u32, sync: bool, head_key: Option<&str>) -> Self {
        let host = nix::unistd::gethostname().ok().map(|name| name.to_string_lossy().into_owned());
        Self::new("started", &Started { version, pid, host, sync, head_key })
    }

    /// The first line of a further file of the chain.
    pub(super) fn rotated(file: &str) -> Self {
        Self::new("rotated", &Rotated { file })
    }

    /// A signed statement of what the line before is.
    pub(super) fn head(head: &SignedHead) -> Self {
        Self::new("head", &Headed { head })
    }

    /// The harness wrote all it had to. `open` intents have no outcome.
    pub(super) fn ended(open: u64) -> Self {
        Self::new(ENDED, &Ended { open })
    }

    /// What was refused over a limit, counted.
    pub(super) fn limited(session: &str, reason: &'static str, count: u64) -> Self {
        Self::new("limited", &Limited { session, reason, count })
    }

    pub(super) fn outcome(outcome: &OutcomeRecord) -> Self {
        Self::new("outcome", outcome)
    }

    pub(super) fn is_end(&self) -> bool {
        self.kind == ENDED
    }
}

/// Where a line stands in its chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'r> {
    /// Counts from 1 in each chain, without gaps.
    pub(super) seq: u64,
    /// The digest of the line before, without its line break; not in the first line.
    pub(super) prev: Option<Digest>,
    /// The name of the chain, in its first line.
    pub(super) genesis: Option<&'r str>,
    /// When it was written, RFC 3339 in UTC.
    pub(super) time: &'r str,
    /// Microseconds since the chain began, by a clock that is never set.
    pub(super) mono: u64,
}

impl Record {
    /// Writes the line, without its line break.
    ///
    /// # Errors
    /// None, to memory.
    pub(super) fn write(&self, place: Place<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        let Place { seq, prev, genesis, time, mono } = place;
        write!(out, "{{\"seq\":{seq}")?;
        if let Some(prev) = prev {
            out.write_all(b",\"prev\":")?;
            serde_json::to_writer(&mut *out, &prev)?;
        }
        if let Some(genesis) = genesis {
            // A name that a folder has may be any.
            write!(out, ",\"genesis\":{}", safe_json(Value::from(genesis).to_string()))?;
        }
        write!(out, ",\"time\":\"{time}\",\"mono\":{mono},\"type\":\"{}\"", self.kind)?;
        // One object of these members and those of the fields.
        match self.fields.strip_prefix('{').filter(|fields| *fields != "}") {
            Some(fields) => write!(out, ",{fields}"),
            None => out.write_all(b"}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use footbridge_proto::text::needs_escape;
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_in_a_line_steers_a_terminal_and_it_reads_back() {
        let name = "a\u{1b}[2J\u{9b}\u{202e}\u{e0041}\nb";
        let record = Record::new("refused", &json!({"id": "x", "name": name}));
        let line = |record: &Record, place| {
            let mut out = Vec::new();
            record.write(place, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let place = Place { seq: 1, prev: None, genesis: Some("c\"\u{202e}"), time: "1970-01-01T00:00:00Z", mono: 7 };
        let text = line(&record, place);
        assert!(!text.chars().any(needs_escape), "{text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((value["name"].as_str(), value["type"].as_str()), (Some(name), Some("refused")));
        assert_eq!((&value["genesis"], &value["mono"]), (&"c\"\u{202e}".into(), &7.into()));
        let empty = line(&Record::new("nothing", &json!({})), Place { genesis: None, time: "t", mono: 0, ..place });
        assert_eq!(empty, r#"{"seq":1,"time":"t","mono":0,"type":"nothing"}"#);
    }
}
