//! Arguments: from what a guest wrote to their canonical text, checked against the tool's schema.

use footbridge_proto::json;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::{Found, QUICK, Resolver};
use crate::{
    auth::Principal,
    cause::{BadArguments, Broken, Cause},
    request::OutgoingRequest,
};
use footbridge_core::{catalogue::Tool, digest::Digest, gate::SessionRules, names::ServerName, schema::Check};

/// Digits of a number that a refusal repeats.
const MAX_NUMBER: usize = 60;

impl Resolver {
    /// Reads the arguments of a call: a large one beside the workers, one of a session at a time.
    pub(super) async fn read_arguments(
        &self,
        principal: &Principal,
        (server, name): (ServerName, &str),
        arguments: Option<&RawValue>,
        read: impl FnOnce(&str) -> Result<Found, Cause> + Send + 'static,
    ) -> Result<Found, Cause> {
        let text = arguments.map_or("{}", |raw| if raw.get() == "null" { "{}" } else { raw.get() });
        if text.len() <= QUICK {
            // There are no more of these at a time than workers, so they need not wait for the large ones.
            return read(text);
        }
        let own = principal.session().turn().await;
        let too_large = |_| Cause::Arguments { server, name: name.to_owned(), why: BadArguments::TooLarge };
        let parsed = self.parsing.wait(text.len()).await.map_err(too_large)?;
        let text = text.to_owned();
        // The turn and the bytes go with the work: it goes on when the client leaves, and so does what it takes.
        let work = tokio::task::spawn_blocking(move || {
            let _taken = (own, parsed);
            read(&text)
        });
        work.await.unwrap_or(Err(Cause::Internal(Broken::Reading)))
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
) -> Result<Found, Cause> {
    let unfit = |why| Cause::Arguments { server: server.clone(), name: tool.name().to_owned(), why };
    let value = parse_arguments(depth, text).map_err(unfit)?;
    let schema = tool.input_schema().map_err(|bad| Cause::InvalidSchema {
        server: server.clone(),
        tool: tool.name().to_owned(),
        why: bad.to_string(),
    })?;
    match schema.check(&value) {
        Check::Fits => {}
        Check::Violations(found) => return Err(unfit(BadArguments::Violations(found))),
        Check::TooCostly => return Err(unfit(BadArguments::TooCostly)),
    }
    let (effects, tested) = {
        let subject = rules.tool(server.as_str(), tool.name(), tool.effects());
        (subject.effects(), rules.test(&subject, &value))
    };
    let broken = |_| Cause::Internal(Broken::Writing);
    let canonical = to_raw_value(&value).map_err(broken)?;
    Ok(Found {
        arguments: Digest::of(canonical.get()),
        argument_bytes: canonical.get().len(),
        request: OutgoingRequest::CallTool {
            name: tool.name().to_owned(),
            definition: tool.digest(),
            arguments: canonical,
            in_headers: tool.is_promoted(),
        },
        server,
        effects,
        tested,
        tool: None,
    })
}

/// Arguments as a value with its members sorted, so that its text is the canonical one.
fn parse_arguments(depth: usize, text: &str) -> Result<Value, BadArguments> {
    if !text.starts_with('{') {
        return Err(BadArguments::NotAnObject);
    }
    let measured = json::measured(text);
    if measured.depth > depth {
        return Err(BadArguments::TooDeep(depth));
    }
    if let Some(number) = measured.inexact {
        return Err(BadArguments::Inexact(number.chars().take(MAX_NUMBER).collect()));
    }
    let mut value: Value = serde_json::from_str(text).map_err(|_| BadArguments::NotAnObject)?;
    json::sort_members(&mut value);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_their_canonical_text() {
        let value = parse_arguments(64, r#"{ "b": [1, {"y":2,"x":1}], "a": 1e2 }"#).unwrap();
        assert_eq!(value.to_string(), r#"{"a":100.0,"b":[1,{"x":1,"y":2}]}"#);
    }

    #[test]
    fn arguments_that_would_change_or_are_no_object_are_named() {
        let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(64), "]".repeat(64));
        for (text, why) in [
            ("[]", BadArguments::NotAnObject),
            ("7", BadArguments::NotAnObject),
            (r#"{"n":18446744073709551616}"#, BadArguments::Inexact("18446744073709551616".to_owned())),
            (&deep, BadArguments::TooDeep(64)),
        ] {
            assert_eq!(parse_arguments(64, text).unwrap_err(), why, "{text}");
        }
    }
}
