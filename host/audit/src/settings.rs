//! What `[audit]` of the settings file may say.

use std::time::Duration;

use serde::Deserialize;

use footbridge_core::human::{duration, size};

/// Fields whose values are left out of redacted arguments, unless the settings name others.
const FIELDS: [&str; 15] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "pin",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "credentials",
    "authorization",
    "cookie",
    "otp",
];

/// What of a call's arguments is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentsRecorded {
    /// Digest and length.
    #[default]
    Digest,
    /// Also their text without secrets, head and tail of it.
    Redacted,
}

/// Settings of the record.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditSettings {
    /// Sync each record to disk before its call leaves. Without it a call costs less, and a crash of the machine (not
    /// of the harness) loses the records of the last seconds, though their calls were made.
    pub sync: bool,
    /// What of a call's arguments is recorded.
    pub arguments: ArgumentsRecorded,
    /// Fields whose values are never recorded: those whose name ends with one of these, whatever the case, without
    /// `_` and `-`.
    pub redact_fields: Vec<String>,
    /// A file that is larger is followed by the next one.
    #[serde(deserialize_with = "size")]
    pub file_bytes: usize,
    /// A head is signed after so many records.
    pub head_records: u64,
    /// A head is signed this long after the last one, where there are records since.
    #[serde(deserialize_with = "duration")]
    pub head_time: Duration,
    /// A program and its arguments that get each head as JSON on standard input, to keep it elsewhere.
    pub head_command: Vec<String>,
    /// How long that program may take.
    #[serde(deserialize_with = "duration")]
    pub head_command_time: Duration,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self {
            sync: true,
            arguments: ArgumentsRecorded::default(),
            redact_fields: FIELDS.map(str::to_owned).to_vec(),
            file_bytes: 64 << 20,
            head_records: 1_000,
            head_time: Duration::from_secs(60),
            head_command: Vec::new(),
            head_command_time: Duration::from_secs(5),
        }
    }
}
