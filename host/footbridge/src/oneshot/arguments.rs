//! What was typed, as the arguments of a call: JSON, and flags that beat it member by member.

use std::collections::BTreeMap;

use footbridge_proto::{json, text::Escaped};
use serde_json::{Value, value::RawValue};

use super::{
    failure::OneShotFailure,
    flags::{ToolFlags, TypedFlag},
};

/// The arguments of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Merged {
    /// A JSON object.
    pub(crate) text: String,
    /// Members that JSON and a flag give different values; the flag's counts.
    pub(crate) beaten: Vec<String>,
}

/// Puts flags over JSON. What a tool requires must be there by then.
///
/// # Errors
/// Where the JSON cannot be read, or something is missing.
pub(crate) fn merged(
    given: Option<&RawValue>,
    typed: Vec<TypedFlag>,
    flags: &ToolFlags,
) -> Result<Merged, OneShotFailure> {
    let text = given.map_or("{}", RawValue::get);
    json::check(text.as_bytes(), json::MAX_ARGUMENT_DEPTH)
        .map_err(|error| OneShotFailure::Usage(format!("the arguments cannot be used: {error}")))?;
    // `null` counts as nothing.
    let members: Option<BTreeMap<String, Box<RawValue>>> = serde_json::from_str(text)
        .map_err(|error| OneShotFailure::Usage(format!("the arguments are no object: {error}")))?;
    let mut all: BTreeMap<String, String> =
        members.unwrap_or_default().into_iter().map(|(name, raw)| (name, raw.get().to_owned())).collect();
    let mut beaten = Vec::new();
    for (name, value) in typed {
        if all.insert(name.clone(), value.clone()).is_some_and(|before| before != value) {
            beaten.push(name);
        }
    }
    let missing = flags.missing(|name| all.contains_key(name));
    if !missing.is_empty() {
        return Err(OneShotFailure::Usage(format!("these arguments are required and missing: {}", missing.join(", "))));
    }
    let members: Vec<String> = all.into_iter().map(|(name, raw)| format!("{}:{raw}", Value::from(name))).collect();
    Ok(Merged { text: format!("{{{}}}", members.join(",")), beaten })
}

impl Merged {
    /// What is to be said of it, a line each.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        self.beaten.iter().map(|name| format!("--{} beats \"{0}\" of the JSON", Escaped(name)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flags() -> ToolFlags {
        let schema = json!({"properties": {"a": {"type": "string"}, "b": {"type": "object"}}, "required": ["a", "b"]});
        ToolFlags::of(&schema, &[])
    }

    fn put(given: &str, typed: &[(&str, &str)]) -> Result<Merged, String> {
        let raw = RawValue::from_string(given.to_owned()).unwrap();
        let typed = typed.iter().map(|(name, raw)| ((*name).to_owned(), (*raw).to_owned())).collect();
        merged(Some(&raw), typed, &flags()).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_beat_json_member_by_member_and_nothing_loses_digits() {
        let got = put(r#"{"b": {"n": 1.50}, "c": 12345678901234567890123, "a": "x"}"#, &[("a", "\"y\"")]).unwrap();
        assert_eq!(got.text, r#"{"a":"y","b":{"n": 1.50},"c":12345678901234567890123}"#);
        assert_eq!(got.notes().collect::<Vec<_>>(), ["--a beats \"a\" of the JSON"]);
        assert!(put(r#"{"a": "y", "b": {}}"#, &[("a", "\"y\"")]).unwrap().beaten.is_empty());
    }

    #[test]
    fn what_is_missing_is_named_as_it_can_be_given() {
        assert!(put("null", &[]).unwrap_err().ends_with("missing: --a, b (with --json)"));
        assert!(put("{}", &[("a", "1")]).unwrap_err().ends_with("missing: b (with --json)"));
    }

    #[test]
    fn json_that_parsers_read_differently_is_refused() {
        for given in [r#"{"a":1,"a":2}"#, "[]", "7"] {
            assert!(put(given, &[]).is_err(), "{given}");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(70), "]".repeat(70));
        assert!(put(&deep, &[]).unwrap_err().contains("deeper"));
    }
}
