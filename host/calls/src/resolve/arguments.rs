//! Arguments: from what a guest wrote to their canonical text, checked against the tool's schema.

use std::sync::Arc;

use footbridge_proto::json;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::{Found, Heavy, QUICK, Resolver};
use crate::{
    auth::Principal,
    cause::{BadArguments, Broken, Cause},
    request::OutgoingRequest,
};
use footbridge_core::{
    catalogue::Tool,
    gate::{SessionRules, Tested},
    names::ServerName,
    schema::{BadSchema, Check, KeptSchemas},
};

/// Digits of a number that a refusal repeats.
const MAX_NUMBER: usize = 60;

/// The arguments of a call, as a guest wrote them.
pub(super) struct WrittenArguments<'a> {
    pub(super) server: ServerName,
    /// What is called there.
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    pub(super) heavy: Heavy,
}

impl Resolver {
    /// Reads the arguments of a call: what may take long beside the workers and behind them, one of a session at a time,
    /// no more of them at a time than leave a processor to others, and none that would take too much as values.
    pub(super) async fn read_arguments(
        &self,
        principal: &Principal,
        written: WrittenArguments<'_>,
        read: impl FnOnce(&str) -> Result<Found, Cause> + Send + 'static,
    ) -> Result<Found, Cause> {
        let WrittenArguments { server, name, text, heavy } = written;
        if heavy == Heavy::No && text.len() <= QUICK {
            // There are no more of these at a time than workers, so they need not wait for the large ones.
            return read(text);
        }
        let own = principal.session().turn().await;
        // Never closed; and without a place it would only be slower.
        let place = Arc::clone(&self.at_once).acquire_owned().await;
        let text: Arc<str> = text.into();
        let counted = Arc::clone(&text);
        // The turn and the bytes go with the work: it goes on when the client leaves, and so does what it takes.
        let count = move || (json::value_bytes(&counted), own, place);
        let (bytes, own, place) = self.threads.run(count).await.ok_or(Cause::Internal(Broken::Reading))?;
        let too_large = |_| Cause::Arguments { server, name: name.to_owned(), why: BadArguments::TooLarge };
        let parsed = self.parsing.wait(bytes).await.map_err(too_large)?;
        let work = move || {
            let _taken = (own, parsed, place);
            read(&text)
        };
        self.threads.run(work).await.unwrap_or(Err(Cause::Internal(Broken::Reading)))
    }
}

/// By what arguments are checked.
#[derive(Debug)]
pub(super) struct ArgumentChecks {
    /// How deep they may be nested.
    pub(super) depth: usize,
    /// The schemas that are compiled.
    pub(super) schemas: Arc<KeptSchemas>,
}

/// The text of arguments; what is not given is nothing.
pub(super) fn text_of(arguments: Option<&RawValue>) -> &str {
    arguments.map_or("{}", |raw| if raw.get() == "null" { "{}" } else { raw.get() })
}

/// Whether checking a text against the tool's schema may take long. Compiling may, so what is not kept is heavy.
pub(super) fn heavy(schemas: &KeptSchemas, server: &ServerName, tool: &Tool, text: &str) -> Heavy {
    match schemas.get(server, tool.digest()) {
        Some(Ok(schema)) if schema.is_quick(text.len()) => Heavy::No,
        Some(Err(_)) => Heavy::No,
        _ => Heavy::Yes,
    }
}

/// Checks arguments against what the tool says of them. It may take a tenth of a second.
///
/// The conditions of the rules are evaluated here too, since this is where the arguments are values; what stays of them
/// is which conditions hold.
///
/// # Errors
/// The answer for the guest.
pub(super) fn checked(
    rules: &SessionRules,
    server: ServerName,
    tool: &Tool,
    by: &ArgumentChecks,
    text: &str,
) -> Result<Found, Cause> {
    let unfit = |why| Cause::Arguments { server: server.clone(), name: tool.name().to_owned(), why };
    let value = parse_arguments(by.depth, text).map_err(unfit)?;
    let compiled = by.schemas.get_or_compile(&server, tool.digest(), || tool.compile_schema_first());
    let schema = compiled.map_err(|bad| match bad {
        BadSchema::NotNow => Cause::NoThread,
        bad => Cause::InvalidSchema { server: server.clone(), tool: tool.name().to_owned(), why: bad.to_string() },
    })?;
    match schema.check(&value) {
        Check::Fits => {}
        Check::Violations(found) => return Err(unfit(BadArguments::Violations(found))),
        Check::TooCostly => return Err(unfit(BadArguments::TooCostly)),
        Check::NotNow => return Err(Cause::NoThread),
    }
    let (effects, tested) = {
        let subject = rules.tool(server.as_str(), tool.name(), tool.effects());
        (subject.effects(), rules.test(&subject, &value))
    };
    let broken = |_| Cause::Internal(Broken::Writing);
    let canonical = to_raw_value(&value).map_err(broken)?;
    let request = OutgoingRequest::CallTool {
        name: tool.name().to_owned(),
        definition: tool.digest(),
        arguments: canonical,
        in_headers: tool.is_promoted(),
        as_task: tool.is_task_only(),
    };
    Ok(Found::of(server, request, effects, tested))
}

/// Which rules have conditions that hold of arguments, once these are checked as those of a call are.
///
/// # Errors
/// What the call itself would be answered.
pub fn tested(
    rules: &SessionRules,
    server: ServerName,
    tool: &Tool,
    depth: usize,
    text: &str,
) -> Result<Tested, Cause> {
    let by = ArgumentChecks { depth, schemas: Arc::default() };
    Ok(checked(rules, server, tool, &by, text)?.tested)
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
