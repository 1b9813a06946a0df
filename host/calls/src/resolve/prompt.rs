//! Getting a prompt: its arguments are texts, those that it wants are there, and no others.

use std::collections::BTreeMap;

use footbridge_proto::rpc::{ErrorObject, Reason};
use serde_json::{Map, Value, value::to_raw_value};

use super::{Found, arguments::label_of, repeated};
use crate::provider::OutgoingRequest;
use footbridge_core::{
    catalogue::Prompt,
    digest::Digest,
    gate::{SessionRules, Subject},
    names::ServerName,
};

/// How many names a message lists: a server may say thousands.
const MAX_NAMED: usize = 20;

/// Checks arguments against what the prompt says of them, and evaluates the conditions of the rules.
///
/// # Errors
/// The answer for the guest.
pub(super) fn checked(
    rules: &SessionRules,
    server: ServerName,
    prompt: &Prompt,
    text: &str,
) -> Result<Found, ErrorObject> {
    let label = label_of(&server, prompt.name());
    let arguments = fitting(prompt, text).map_err(|why| {
        ErrorObject::new(Reason::InvalidArguments, format!("Invalid arguments for the prompt \"{label}\": {why}"))
    })?;
    let values: Map<String, Value> = arguments.into_iter().map(|(name, text)| (name, Value::String(text))).collect();
    let values = Value::Object(values);
    let (effects, tested) = {
        let subject = Subject::prompt(server.as_str(), prompt.name());
        (subject.effects(), rules.test(&subject, &values))
    };
    let broken = |_| ErrorObject::new(Reason::Internal, "The arguments could not be written");
    let canonical = to_raw_value(&values).map_err(broken)?;
    Ok(Found {
        arguments: Digest::of(canonical.get()),
        argument_bytes: canonical.get().len(),
        definition: None,
        request: OutgoingRequest::GetPrompt { name: prompt.name().to_owned(), arguments: canonical },
        server,
        effects,
        tested,
    })
}

/// The arguments, sorted by name so that their text is the canonical one; or why they do not fit.
fn fitting(prompt: &Prompt, text: &str) -> Result<BTreeMap<String, String>, String> {
    let read = text.starts_with('{').then(|| serde_json::from_str::<BTreeMap<String, String>>(text).ok()).flatten();
    let arguments = read.ok_or("an object whose values are strings is required")?;
    let known = prompt.arguments();
    if let Some(name) = arguments.keys().find(|name| known.iter().all(|argument| argument.name != **name)) {
        let takes = match known {
            [] => "no arguments".to_owned(),
            _ => listed(known.iter().map(|argument| argument.name.as_str())),
        };
        return Err(format!("\"{}\" is none of them, it takes {takes}", repeated(name)));
    }
    let missing = |argument: &&footbridge_core::catalogue::PromptArgument| {
        argument.required && !arguments.contains_key(&argument.name)
    };
    match known.iter().any(|argument| missing(&argument)) {
        true => Err(format!("it needs {}", listed(known.iter().filter(missing).map(|it| it.name.as_str())))),
        false => Ok(arguments),
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.take(MAX_NAMED).map(|name| format!("\"{}\"", repeated(name))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::RawValue};

    use super::*;
    use footbridge_core::{catalogue::Catalogue, limits::ServerLimits};

    fn fits(arguments: Value, text: &str) -> Result<BTreeMap<String, String>, String> {
        let mut catalogue = Catalogue::default();
        let raw = RawValue::from_string(json!({"name": "p", "arguments": arguments}).to_string()).unwrap();
        catalogue.add_prompt(raw, &ServerLimits::default()).unwrap();
        fitting(catalogue.prompt("p").unwrap(), text)
    }

    #[test]
    fn arguments_are_strings_the_required_ones_and_no_others() {
        let two = || json!([{"name": "city", "required": true}, {"name": "day"}]);
        assert_eq!(fits(two(), r#"{"city":"Bern"}"#).unwrap().len(), 1);
        assert!(fits(two(), r#"{"day":"x","city":""}"#).unwrap().keys().eq(["city", "day"]));
        assert!(fits(json!(null), "{}").unwrap().is_empty());
        for text in [r#"{"city":7}"#, "[]", "\"x\"", r#"{"city":null}"#, r#"{"city":{"a":"b"}}"#] {
            assert!(fits(two(), text).unwrap_err().contains("values are strings"), "{text}");
        }
        assert_eq!(fits(two(), "{}").unwrap_err(), "it needs \"city\"");
        let other = fits(two(), r#"{"city":"x","City":"y"}"#).unwrap_err();
        assert_eq!(other, "\"City\" is none of them, it takes \"city\", \"day\"");
        assert!(fits(json!([]), r#"{"a":"b"}"#).unwrap_err().ends_with("it takes no arguments"));
    }
}
