//! Whether a result has what the tool's `outputSchema` promises: MCP has servers see to it (2025-11-25, server/tools,
//! "Output Schema"), and here the server is us.

use std::sync::Arc;

use footbridge_calls::low_threads::LowThreads;
use footbridge_core::{
    digest::Digest,
    names::ServerName,
    schema::{Check, Compiled, InputSchema, KeptSchemas},
};
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

/// What the programs of all servers promise, compiled, and where what they printed is looked at if that may take long.
#[derive(Debug, Default)]
pub(crate) struct OutputChecks {
    schemas: Arc<KeptSchemas>,
    pub(super) threads: LowThreads,
}

impl OutputChecks {
    /// What holds a result of this server to its schema.
    pub(super) fn of(&self, server: &ServerName, schema: &Value) -> Promise {
        let (schemas, server, digest) = (Arc::clone(&self.schemas), server.clone(), Digest::of(schema.to_string()));
        Promise { schemas, server, digest, schema: schema.clone() }
    }
}

/// One tool's promise.
pub(super) struct Promise {
    schemas: Arc<KeptSchemas>,
    server: ServerName,
    digest: Digest,
    schema: Value,
}

impl Promise {
    /// Whether so many bytes are held to it within about a millisecond. To compile it may take a tenth of a second.
    pub(super) fn is_quick(&self, bytes: usize) -> bool {
        let kept = self.schemas.get(&self.server, self.digest);
        kept.is_some_and(|kept| kept.is_ok_and(|schema| schema.is_quick(bytes)))
    }

    /// Checks the structured part of a result. That of an error is not promised.
    pub(super) fn check(&self, result: &RawValue) -> Result<(), NoResult> {
        let compile = || InputSchema::compile(&self.schema);
        check(result, || self.schemas.get_or_compile(&self.server, self.digest, compile))
    }
}

fn check(result: &RawValue, schema: impl FnOnce() -> Compiled) -> Result<(), NoResult> {
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
    let checked = match schema() {
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
            let said = check(&raw, || InputSchema::compile(&schema).map(Arc::new)).err().map(|why| why.to_string());
            match says {
                None => assert_eq!(said, None, "{result}"),
                Some(says) => assert!(said.as_ref().is_some_and(|said| said.contains(says)), "{result}: {said:?}"),
            }
        }
    }
}
