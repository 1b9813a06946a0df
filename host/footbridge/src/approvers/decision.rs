//! What a program of the operator answers: one JSON object, and nothing else is an answer.

use serde::Deserialize;
use serde_json::{Map, Value};

use footbridge_calls::approval::{Answer, Given};

/// Longest answer, bytes.
pub(super) const MAX_ANSWER: usize = 64 * 1024;

/// An answer that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it answered something other than {{\"decision\":\"allow\"}} or {{\"decision\":\"deny\"}}")]
pub(super) struct Unreadable;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    decision: Decision,
    /// To a server's question: its fields.
    #[serde(default)]
    content: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Allow,
    Deny,
}

/// Reads it.
pub(super) fn read(answered: &[u8]) -> Result<Answer, Unreadable> {
    let read: Written = serde_json::from_slice(answered).map_err(|_| Unreadable)?;
    match (read.decision, read.content) {
        (Decision::Allow, None) => Ok(Answer::Allow { remember: false }),
        (Decision::Allow, Some(content)) => Ok(Answer::Accept(Given::Content(Value::Object(content)))),
        (Decision::Deny, None) => Ok(Answer::Deny),
        (Decision::Deny, Some(_)) => Err(Unreadable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_decisions_are_answers() {
        assert_eq!(read(b" {\"decision\":\"allow\"}\n"), Ok(Answer::Allow { remember: false }));
        assert_eq!(read(br#"{"decision":"deny"}"#), Ok(Answer::Deny));
        let content = Given::Content(serde_json::json!({"a": 1}));
        assert_eq!(read(br#"{"decision":"allow","content":{"a":1}}"#), Ok(Answer::Accept(content)));
        for other in [
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
        ] {
            assert_eq!(read(other.as_bytes()), Err(Unreadable), "{other}");
        }
    }
}
