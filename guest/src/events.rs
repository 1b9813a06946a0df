//! What a bridge tells about a call before its answer.

use footbridge_proto::approval::ApprovalStatus;
use serde::Deserialize;

use crate::error::ClientError;

/// The kind of those that are about an approval.
pub(crate) const APPROVAL: &str = "approval";

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

/// The approval that a call waits for, as far as it was told. What is told of anything else is told of a call that is made,
/// or is not to be: bridges of before say in no other way that a person has answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AwaitedApproval(Option<Box<str>>);

impl AwaitedApproval {
    /// Takes note of what happens.
    pub(crate) fn hears(&mut self, event: &Event) {
        self.0 = match event {
            Event::Approval(approval) if approval.state == ApprovalStatus::Pending => Some(approval.id.as_str().into()),
            _ => None,
        };
    }

    /// Its id, while nobody has answered.
    pub(crate) fn id(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Why there is no result of a call that is not waited for any longer: nothing was called where nobody has answered,
    /// and otherwise it is this.
    pub(crate) fn or_late(&self, late: ClientError) -> ClientError {
        self.0.clone().map_or(late, |approval| ClientError::Unanswered { approval: approval.into() })
    }
}

impl Event {
    /// Reads one. What is of no known kind or shape is none: the answer does not depend on it.
    pub(crate) fn read(kind: &str, data: &[u8]) -> Option<Self> {
        match kind {
            "progress" => serde_json::from_slice(data).ok().map(Self::Progress),
            "log" => serde_json::from_slice(data).ok().map(Self::Log),
            APPROVAL => serde_json::from_slice(data).ok().map(Self::Approval),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn told(events: &[(&str, &str)]) -> ClientError {
        let mut awaited = AwaitedApproval::default();
        for (kind, data) in events {
            awaited.hears(&Event::read(kind, data.as_bytes()).unwrap());
        }
        awaited.or_late(ClientError::Silent { after: Duration::from_secs(2) })
    }

    #[test]
    fn what_a_person_has_not_answered_was_not_called_and_what_one_has_may_have_been() {
        const PENDING: (&str, &str) = ("approval", r#"{"id":"ap-1","state":"pending"}"#);
        let waits = told(&[PENDING]);
        assert!(!waits.may_have_happened() && waits.to_string().contains("approval ap-1 waits on"), "{waits}");
        let again = ("approval", r#"{"id":"ap-2","state":"pending"}"#);
        assert!(told(&[PENDING, again]).to_string().contains("ap-2"));
        let answered = ("approval", r#"{"id":"ap-1","state":"granted"}"#);
        // What a bridge tells that does not say who answered.
        for then in [answered, ("progress", r#"{"progress":1}"#), ("log", r#"{"level":"info","message":"x"}"#)] {
            let late = told(&[PENDING, then]);
            assert!(late.may_have_happened() && matches!(late, ClientError::Silent { .. }), "{then:?}: {late}");
        }
        assert!(matches!(told(&[]), ClientError::Silent { .. }));
    }
}
