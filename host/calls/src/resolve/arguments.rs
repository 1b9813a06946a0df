//! Arguments: from what a guest wrote to their canonical text, checked against the tool's schema.

use footbridge_proto::{
    json,
    rpc::{ErrorObject, Reason},
};
use serde_json::{Value, value::RawValue};

use super::{Found, QUICK, Resolver};
use crate::{auth::Principal, provider::OutgoingRequest};
use footbridge_core::{catalogue::Tool, digest::Digest, gate::SessionRules, names::ServerName, schema::Check};

/// What messages call a tool or a prompt.
pub(super) fn label_of(server: &ServerName, name: &str) -> String {
    format!("{server}/{name}")
}

impl Resolver {
    /// Reads the arguments of a call: a large one beside the workers, one of a session at a time.
    pub(super) async fn read_arguments(
        &self,
        principal: &Principal,
        label: &str,
        arguments: Option<&RawValue>,
        read: impl FnOnce(&str) -> Result<Found, ErrorObject> + Send + 'static,
    ) -> Result<Found, ErrorObject> {
        let text = arguments.map_or("{}", |raw| if raw.get() == "null" { "{}" } else { raw.get() });
        if text.len() <= QUICK {
            // There are no more of these at a time than workers, so they need not wait for the large ones.
            return read(text);
        }
        let own = principal.session().turn().await;
        let parsed =
            self.parsing.wait(text.len()).await.map_err(|_| {
                ErrorObject::new(Reason::TooLarge, format!("Arguments for \"{label}\" are over the limit"))
            })?;
        let text = text.to_owned();
        // The turn and the bytes go with the work: it goes on when the client leaves, and so does what it takes.
        let work = tokio::task::spawn_blocking(move || {
            let _taken = (own, parsed);
            read(&text)
        });
        work.await.unwrap_or_else(|_| Err(ErrorObject::new(Reason::Internal, "The arguments could not be checked")))
    }
}

/// Checks arguments, nested no deeper than `depth`, against what the tool says of them.
///
/// The conditions of the rules are evaluated here too, since this is where the arguments are values; what stays of them
/// is which conditions hold.
///
/// # Errors
/// The answer for the guest.
pub fn checked(
    rules: &SessionRules,
    server: ServerName,
    tool: &Tool,
    depth: usize,
    text: &str,
) -> Result<Found, ErrorObject> {
    let label = &label_of(&server, tool.name());
    let value = parse_arguments(label, depth, text)?;
    let schema = tool.input_schema().map_err(|bad| {
        let message = format!("Tool \"{}\" on server \"{server}\" has an invalid input schema: {bad}", tool.name());
        ErrorObject::new(Reason::InvalidSchema, message)
    })?;
    match schema.check(&value) {
        Check::Fits => {}
        Check::Violations(found) => {
            let message = format!("Arguments do not match the input schema for \"{label}\"");
            return Err(ErrorObject::new(Reason::InvalidArguments, message).with("validationErrors", found));
        }
        Check::TooCostly => {
            let message = format!("Checking these arguments for \"{label}\" against its schema would cost too much");
            return Err(ErrorObject::new(Reason::InvalidArguments, message));
        }
    }
    let (effects, tested) = {
        let subject = rules.tool(server.as_str(), tool.name(), tool.effects());
        (subject.effects(), rules.test(&subject, &value))
    };
    let broken = |_| ErrorObject::new(Reason::Internal, "The arguments could not be written");
    let canonical = RawValue::from_string(value.to_string()).map_err(broken)?;
    Ok(Found {
        arguments: Digest::of(canonical.get()),
        argument_bytes: canonical.get().len(),
        definition: Some(tool.digest()),
        request: OutgoingRequest::CallTool {
            name: tool.name().to_owned(),
            definition: tool.digest(),
            arguments: canonical,
            in_headers: tool.is_promoted(),
        },
        server,
        effects,
        tested,
    })
}

/// Arguments as a value with its members sorted, so that its text is the canonical one.
fn parse_arguments(label: &str, depth: usize, text: &str) -> Result<Value, ErrorObject> {
    let invalid = |message: String| ErrorObject::new(Reason::InvalidArguments, message);
    let not_object = || invalid(format!("Invalid arguments for \"{label}\": an object is required"));
    if !text.starts_with('{') {
        return Err(not_object());
    }
    if json::depth(text) > depth {
        return Err(invalid(format!(
            "Invalid arguments for \"{label}\": an object is required, nested at most {depth} deep"
        )));
    }
    if let Some(number) = json::inexact_number(text) {
        let shown: String = number.chars().take(60).collect();
        return Err(invalid(format!("Invalid arguments for \"{label}\": the number {shown} would not keep its value")));
    }
    let mut value: Value = serde_json::from_str(text).map_err(|_| not_object())?;
    json::sort_members(&mut value);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_their_canonical_text() {
        let value = parse_arguments("s/t", 64, r#"{ "b": [1, {"y":2,"x":1}], "a": 1e2 }"#).unwrap();
        assert_eq!(value.to_string(), r#"{"a":100.0,"b":[1,{"x":1,"y":2}]}"#);
    }

    #[test]
    fn arguments_that_would_change_or_are_no_object_are_named() {
        for (text, part) in [
            ("[]", "an object is required"),
            ("7", "an object is required"),
            (r#"{"n":18446744073709551616}"#, "the number 18446744073709551616"),
            (&format!(r#"{{"a":{}1{}}}"#, "[".repeat(64), "]".repeat(64)), "at most 64 deep"),
        ] {
            let error = parse_arguments("s/t", 64, text).unwrap_err();
            assert!(error.message.contains(part), "{}", error.message);
            assert_eq!((error.code, error.reason()), (-32602, Some(Reason::InvalidArguments)));
        }
    }
}
