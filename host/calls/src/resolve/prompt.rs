//! Getting a prompt: its arguments are texts, those that it wants are there, and no others.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, value::to_raw_value};

use super::Found;
use crate::cause::{BadPromptArguments, Broken, Cause};
use crate::request::OutgoingRequest;
use footbridge_core::{
    catalogue::Prompt,
    gate::{SessionRules, Subject},
    names::ServerName,
};

/// How many names are listed: a server may say thousands.
const MAX_NAMED: usize = 20;

/// Checks arguments against what the prompt says of them, and evaluates the conditions of the rules.
///
/// # Errors
/// Why they do not fit.
pub(super) fn checked(rules: &SessionRules, server: ServerName, prompt: &Prompt, text: &str) -> Result<Found, Cause> {
    let unfit = |why| Cause::PromptArguments { server: server.clone(), prompt: prompt.name().to_owned(), why };
    let arguments = fitting(prompt, text).map_err(unfit)?;
    let values: Map<String, Value> = arguments.into_iter().map(|(name, text)| (name, Value::String(text))).collect();
    let values = Value::Object(values);
    let (effects, tested) = {
        let subject = Subject::prompt(server.as_str(), prompt.name());
        (subject.effects(), rules.test(&subject, &values))
    };
    let broken = |_| Cause::Internal(Broken::Writing);
    let canonical = to_raw_value(&values).map_err(broken)?;
    let request = OutgoingRequest::GetPrompt { name: prompt.name().to_owned(), arguments: canonical };
    Ok(Found::of(server, request, effects, tested))
}

/// The arguments, sorted by name so that their text is the canonical one; or why they do not fit.
fn fitting(prompt: &Prompt, text: &str) -> Result<BTreeMap<String, String>, BadPromptArguments> {
    let read = text.starts_with('{').then(|| serde_json::from_str::<BTreeMap<String, String>>(text).ok()).flatten();
    let arguments = read.ok_or(BadPromptArguments::NotStrings)?;
    let known = prompt.arguments();
    // A server may say thousands, and a guest as many.
    let names: HashSet<&str> = known.iter().map(|argument| argument.name.as_str()).collect();
    if let Some(name) = arguments.keys().find(|name| !names.contains(name.as_str())) {
        let takes = known.iter().map(|argument| argument.name.clone()).take(MAX_NAMED).collect();
        return Err(BadPromptArguments::Unknown { name: name.clone(), takes });
    }
    let missing = known.iter().filter(|argument| argument.required && !arguments.contains_key(&argument.name));
    let missing: Vec<String> = missing.map(|argument| argument.name.clone()).take(MAX_NAMED).collect();
    if missing.is_empty() { Ok(arguments) } else { Err(BadPromptArguments::Missing(missing)) }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::RawValue};

    use super::*;
    use footbridge_core::{catalogue::Offered, limits::ServerLimits};

    fn fits(arguments: Value, text: &str) -> Result<BTreeMap<String, String>, BadPromptArguments> {
        let mut catalogue = Offered::default();
        let raw = RawValue::from_string(json!({"name": "p", "arguments": arguments}).to_string()).unwrap();
        catalogue.add_prompt(raw, &ServerLimits::default()).unwrap();
        fitting(catalogue.entries().prompt("p").unwrap(), text)
    }

    #[test]
    fn arguments_are_strings_the_required_ones_and_no_others() {
        let two = || json!([{"name": "city", "required": true}, {"name": "day"}]);
        assert_eq!(fits(two(), r#"{"city":"Bern"}"#).unwrap().len(), 1);
        assert!(fits(two(), r#"{"day":"x","city":""}"#).unwrap().keys().eq(["city", "day"]));
        assert!(fits(json!(null), "{}").unwrap().is_empty());
        for text in [r#"{"city":7}"#, "[]", "\"x\"", r#"{"city":null}"#, r#"{"city":{"a":"b"}}"#] {
            assert_eq!(fits(two(), text).unwrap_err(), BadPromptArguments::NotStrings, "{text}");
        }
        assert_eq!(fits(two(), "{}").unwrap_err(), BadPromptArguments::Missing(vec!["city".to_owned()]));
        let unknown = |name: &str, takes: &[&str]| BadPromptArguments::Unknown {
            name: name.to_owned(),
            takes: takes.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(fits(two(), r#"{"city":"x","City":"y"}"#).unwrap_err(), unknown("City", &["city", "day"]));
        assert_eq!(fits(json!([]), r#"{"a":"b"}"#).unwrap_err(), unknown("a", &[]));
    }
}
