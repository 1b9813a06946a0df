//! What a bridge tells about a call before its answer.

use footbridge_proto::approval::ApprovalStatus;
use serde::Deserialize;

/// What happens while a call runs. More kinds may come.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// How far the call is.
    Progress(Progress),
    /// A line about the call.
    Log(LogLine),
    /// A person is asked, or has answered.
    Approval(Approval),
}

/// How far a call is. It only ever grows; some of it may be left out.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Progress {
    /// How far.
    pub progress: f64,
    /// Of how much, where the server knows.
    #[serde(default)]
    pub total: Option<f64>,
    /// What it does now, as the server wrote it: escape it before a terminal sees it.
    #[serde(default)]
    pub message: Option<String>,
}

/// A line about a call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LogLine {
    /// `debug`, `info`, `warning`, `error` or a word of a later version.
    pub level: String,
    /// The line, as the server wrote it.
    pub message: String,
}

/// What became of asking a person.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// What `awaitApproval` takes.
    pub id: String,
    /// How it is.
    pub state: ApprovalStatus,
    /// When that state ends by itself, RFC 3339.
    #[serde(default)]
    pub expires_at: Option<String>,
    /// How long that is from when it was told, by the bridge's clock, milliseconds.
    #[serde(default)]
    pub expires_in_ms: Option<u64>,
    /// What is asked.
    #[serde(default)]
    pub summary: Option<String>,
}

impl Event {
    /// Reads one. What is of no known kind or shape is none: the answer does not depend on it.
    pub(crate) fn read(kind: &str, data: &[u8]) -> Option<Self> {
        match kind {
            "progress" => serde_json::from_slice(data).ok().map(Self::Progress),
            "log" => serde_json::from_slice(data).ok().map(Self::Log),
            "approval" => serde_json::from_slice(data).ok().map(Self::Approval),
            _ => None,
        }
    }
}
