//! What a program of the operator answers: one JSON object, and nothing else is an answer.

use footbridge_proto::text::needs_escape;
use serde::Deserialize;
use serde_json::{Map, Value};

use footbridge_calls::approval::{Answer, ApproverAnswer, Given};

/// Longest answer, bytes.
pub(super) const MAX_ANSWER: usize = 64 * 1024;

/// An answer that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it answered something other than {{\"decision\":\"allow\"}} or {{\"decision\":\"deny\"}}, with an \"approver\" of 1 to \
     {MAX_APPROVER} plain characters if it names one"
)]
pub(super) struct Unreadable;

/// Longest name of an approver, characters.
const MAX_APPROVER: usize = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    decision: Decision,
    /// To a server's question: its fields.
    #[serde(default)]
    content: Option<Map<String, Value>>,
    /// Who decided.
    #[serde(default)]
    approver: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Allow,
    Deny,
}

/// Reads it.
pub(super) fn read(answered: &[u8]) -> Result<ApproverAnswer, Unreadable> {
    // What is made for a program by a macro takes a list of its values for an object, too.
    if !answered.trim_ascii_start().starts_with(b"{") {
        return Err(Unreadable);
    }
    let read: Written = serde_json::from_slice(answered).map_err(|_| Unreadable)?;
    let answer = match (read.decision, read.content) {
        (Decision::Allow, None) => Answer::Allow { remember: false },
        (Decision::Allow, Some(content)) => Answer::Accept(Given::Content(Value::Object(content))),
        (Decision::Deny, None) => Answer::Deny,
        (Decision::Deny, Some(_)) => return Err(Unreadable),
    };
    let is_name = |name: &String| (1..=MAX_APPROVER).contains(&name.chars().count()) && !name.chars().any(needs_escape);
    if read.approver.as_ref().is_some_and(|name| !is_name(name)) {
        return Err(Unreadable);
    }
    Ok(ApproverAnswer { answer, who: read.approver })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_decisions_are_answers() {
        let nobody = |answer| Ok(ApproverAnswer { answer, who: None });
        assert_eq!(read(b" {\"decision\":\"allow\"}\n"), nobody(Answer::Allow { remember: false }));
        assert_eq!(read(br#"{"decision":"deny"}"#), nobody(Answer::Deny));
        let content = Given::Content(serde_json::json!({"a": 1}));
        assert_eq!(read(br#"{"decision":"allow","content":{"a":1}}"#), nobody(Answer::Accept(content)));
        let named = read("{\"decision\":\"deny\",\"approver\":\"Zoë <zoe@example.com>\"}".as_bytes());
        assert_eq!(named, Ok(ApproverAnswer { answer: Answer::Deny, who: Some("Zoë <zoe@example.com>".into()) }));
        let long = format!(r#"{{"decision":"allow","approver":"{}"}}"#, "x".repeat(257));
        for other in [
            long.as_str(),
            r#"{"decision":"allow","approver":""}"#,
            r#"{"decision":"allow","approver":7}"#,
            r#"{"decision":"allow","approver":"a\u001b[2J"}"#,
            r#"{"decision":"deny","content":{}}"#,
            r#"{"decision":"allow","content":[]}"#,
            "",
            "allow",
            "true",
            "{}",
            r#"{"decision":"yes"}"#,
            r#"{"decision":"allow","x":1}"#,
            r#"{"decision":"ALLOW"}"#,
            r#"{"decision":"allow"}{"decision":"deny"}"#,
            r#"{"decision":"deny","decision":"allow"}"#,
            r#"["allow"]"#,
            r#"["allow",null,"zoe"]"#,
        ] {
            assert_eq!(read(other.as_bytes()), Err(Unreadable), "{other}");
        }
    }
}
