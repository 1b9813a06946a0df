//! What is shown of an approval: to the operator's programs as JSON, over the control socket, and on a prompt.

use std::collections::BTreeMap;

use footbridge_proto::approval::ApprovalStatus;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A call, or a question of a server, that waits for an answer, or was allowed and not made yet, or is allowed again. What guests and
/// servers wrote is in it as it is: it is escaped where it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalInfo {
    /// Its id.
    pub id: String,
    /// Pending or granted.
    pub state: ApprovalStatus,
    /// The session that asks.
    pub session: String,
    /// What the operator finds the session by.
    pub labels: BTreeMap<String, String>,
    /// Who is at the other end, as the kernel says.
    pub peer: String,
    /// `tool`, `resource`, `prompt` or `completion`; or `elicitation`: the server of a running call asks something.
    pub kind: String,
    /// The server.
    pub server: String,
    /// The tool's or prompt's name, or the resource's URI.
    pub name: String,
    /// What its server says that the tool does, shortened; none of what is no tool's call, or where it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it can do.
    pub effects: Vec<String>,
    /// Who says so of a tool: `server`, or `operator` where `[[effects]]` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects_by: Option<String>,
    /// The policy that asks.
    pub policy: String,
    /// Digest of the tool's definition.
    pub definition: Option<String>,
    /// Digest of the canonical text of the arguments.
    pub digest: String,
    /// Bytes of that text.
    pub bytes: usize,
    /// Of a request to a service, how long its body is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<usize>,
    /// Its beginning; the whole if there is no tail.
    pub head: String,
    /// The end of a long one.
    pub tail: String,
    /// What the server asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionInfo>,
    /// When it was asked, RFC 3339.
    pub asked: String,
    /// When it ends by itself, RFC 3339; nothing of what is remembered, which does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Seconds until then.
    #[serde(default)]
    pub seconds_left: u64,
    /// Who allowed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver: Option<String>,
    /// Whether the same call is allowed again, without asking.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_remembered: bool,
    /// Whether `footbridge approvals` may not answer it: only who sits in front of the run, or a command or webhook.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_answered_elsewhere: bool,
    /// Whether all who waited for the answer left. It is kept for whoever makes the same call again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_abandoned: bool,
    /// How many identical calls wait for the answer; a yes is for one of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting: usize,
}

/// Whether nothing waits, which is left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it in like this")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What a server asks a person while it runs a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionInfo {
    /// Its words.
    pub message: String,
    /// The address that it is about; nobody has opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What it wants to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldInfo>,
}

/// A field of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldInfo {
    /// Its name.
    pub name: String,
    /// What it takes, for people.
    pub takes: String,
    /// The values to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// What else its schema demands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// Whether it must be there.
    pub required: bool,
    /// What it is where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the server says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// An approval with its whole arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalShown {
    /// What is always shown.
    #[serde(flatten)]
    pub info: ApprovalInfo,
    /// The canonical text of the arguments, which is what is sent.
    pub arguments: String,
}
