//! Whether a result has what the tool's `outputSchema` promises: MCP has servers see to it (2025-11-25, server/tools,
//! "Output Schema"), and here the server is us.

use footbridge_core::schema::{Check, InputSchema};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::printed::NoResult;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Structured {
    structured_content: Option<Value>,
    #[serde(default)]
    is_error: bool,
}

/// Checks the structured part of a result against a schema. That of an error is not promised.
pub(super) fn check(result: &RawValue, schema: &Value) -> Result<(), NoResult> {
    let unfit = |why: String| Err(NoResult::Unfit(why));
    let Ok(found) = serde_json::from_str::<Structured>(result.get()) else {
        return unfit("what it printed cannot be held against its \"outputSchema\"".to_owned());
    };
    if found.is_error {
        return Ok(());
    }
    let Some(structured) = found.structured_content else {
        return unfit("it printed no object, which its \"outputSchema\" promises".to_owned());
    };
    let checked = match InputSchema::compile(schema) {
        Ok(schema) => schema.check(&structured),
        Err(bad) => return unfit(format!("its \"outputSchema\" cannot be used: {bad}")),
    };
    match checked {
        Check::Fits => Ok(()),
        Check::Violations(violations) => {
            let said: Vec<String> = violations.iter().map(ToString::to_string).collect();
            unfit(format!("what it printed is not what its \"outputSchema\" promises: {}", said.join("; ")))
        }
        Check::TooCostly => unfit("it printed too much to be held against its \"outputSchema\"".to_owned()),
        Check::NotNow => unfit("what it printed could not be held against its \"outputSchema\" now".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_promised_is_there_or_said_to_lack() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        for (result, says) in [
            (r#"{"content":[],"structuredContent":{"n":1}}"#, None),
            (r#"{"content":[],"isError":true}"#, None),
            (r#"{"content":[]}"#, Some("printed no object, which")),
            (r#"{"content":[],"structuredContent":{"n":"x"}}"#, Some("promises: /n: \"x\" is not of type")),
            (r#"{"content":[],"structuredContent":{}}"#, Some("\"n\" is a required property")),
        ] {
            let raw = RawValue::from_string(result.to_owned()).unwrap();
            let said = check(&raw, &schema).err().map(|why| why.to_string());
            match says {
                None => assert_eq!(said, None, "{result}"),
                Some(says) => assert!(said.as_ref().is_some_and(|said| said.contains(says)), "{result}: {said:?}"),
            }
        }
    }
}
