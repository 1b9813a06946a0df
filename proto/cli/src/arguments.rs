//! What was typed, as the arguments of a call: JSON, and flags that beat it member by member.

use std::collections::BTreeMap;

use footbridge_proto::{json, text::Escaped};
use serde_json::{Value, value::RawValue};

use crate::flags::{ToolFlags, TypedFlag};

/// The arguments of a call.
#[derive(Debug)]
pub struct MergedArguments {
    /// A JSON object.
    pub json: Box<RawValue>,
    /// Members that JSON and a flag give different values, each with the flag, which counts.
    beaten: Vec<BeatenMember>,
}

/// A member of the JSON that a flag beats.
#[derive(Debug)]
struct BeatenMember {
    flag: String,
    member: String,
}

/// Why what was typed makes no arguments.
#[derive(Debug, thiserror::Error)]
pub enum NotMerged {
    /// Parsers read the JSON differently.
    #[error("the arguments cannot be used: {0}")]
    Json(#[from] json::JsonError),
    /// The same, of what a flag was given.
    #[error("--{} cannot be used: {}", Escaped(.0), .1)]
    Flag(String, json::JsonError),
    /// It is none.
    #[error("the arguments are no object: {0}")]
    NoObject(serde_json::Error),
    /// A flag is of a member of what is no object.
    #[error("--{} is of a member of \"{}\", and the JSON says that this is no object", Escaped(.0), Escaped(.1))]
    NoMembers(String, String),
    /// The call needs more.
    #[error("these arguments are required and missing: {}", .0.join(", "))]
    Missing(Vec<String>),
}

/// Members of an object, each as its text.
type Members = BTreeMap<String, Box<RawValue>>;

/// Puts flags over JSON. What a tool requires must be there by then.
///
/// # Errors
/// [`NotMerged`].
pub fn merged(
    given: Option<&RawValue>,
    typed: Vec<TypedFlag>,
    flags: &ToolFlags,
) -> Result<MergedArguments, NotMerged> {
    let text = given.map_or("{}", RawValue::get);
    json::check(text.as_bytes(), json::MAX_ARGUMENT_DEPTH)?;
    // `null` counts as nothing.
    let members: Option<Members> = serde_json::from_str(text).map_err(NotMerged::NoObject)?;
    let (mut all, mut beaten) = (members.unwrap_or_default(), Vec::new());
    // A member's flag beats its object's, wherever either stands.
    let mut typed = typed;
    typed.sort_by_key(|flag| flag.path.len());
    for TypedFlag { path, json } in typed {
        // A member's flag would put another object in the place of this one, with one of two members of a name in it.
        json::check(json.as_bytes(), json::MAX_ARGUMENT_DEPTH)
            .map_err(|error| NotMerged::Flag(flags.name_of(&path), error))?;
        let value = RawValue::from_string(json).map_err(NotMerged::NoObject)?;
        if put(&mut all, &path, &path, value)? {
            beaten.push(BeatenMember { flag: flags.name_of(&path), member: path.join(".") });
        }
    }
    let mut missing = flags.missing(|name| all.contains_key(name));
    missing.extend(flags.missing_members(|path| lacks(&all, path)));
    if !missing.is_empty() {
        return Err(NotMerged::Missing(missing));
    }
    Ok(MergedArguments { json: object(&all).map_err(NotMerged::NoObject)?, beaten })
}

/// Puts a value where a path leads, and says whether another was there.
fn put(all: &mut Members, path: &[String], rest: &[String], value: Box<RawValue>) -> Result<bool, NotMerged> {
    let [name, below @ ..] = rest else { return Ok(false) };
    if below.is_empty() {
        let before = all.insert(name.clone(), value.clone());
        return Ok(before.is_some_and(|before| before.get() != value.get()));
    }
    let within = all.get(name).map(|raw| serde_json::from_str::<Option<Members>>(raw.get()));
    let within = within.transpose().map_err(|_| NotMerged::NoMembers(path.join("."), name.clone()))?;
    let is_null = matches!(within, Some(None));
    let mut within = within.flatten().unwrap_or_default();
    let beats = is_null | put(&mut within, path, below, value)?;
    all.insert(name.clone(), object(&within).map_err(NotMerged::NoObject)?);
    Ok(beats)
}

/// Whether the last name is missing from an object that the others lead to.
fn lacks(all: &Members, path: &[String]) -> bool {
    match path {
        [] => false,
        [last] => !all.contains_key(last),
        [first, below @ ..] => {
            let within = all.get(first).and_then(|raw| serde_json::from_str::<Members>(raw.get()).ok());
            within.is_some_and(|within| lacks(&within, below))
        }
    }
}

fn object(members: &Members) -> serde_json::Result<Box<RawValue>> {
    let members: Vec<String> =
        members.iter().map(|(name, raw)| format!("{}:{raw}", Value::from(name.as_str()))).collect();
    RawValue::from_string(format!("{{{}}}", members.join(",")))
}

impl MergedArguments {
    /// What is to be said of it, a line each.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let note = |BeatenMember { flag, member }: &BeatenMember| {
            format!("--{} beats \"{}\" of the JSON", Escaped(flag), Escaped(member))
        };
        self.beaten.iter().map(note)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn put(given: &str, typed: &[(&str, &str)]) -> Result<MergedArguments, String> {
        let schema = json!({"properties": {"a": {"type": "string"}, "b": {"type": "object"}}, "required": ["a", "b"]});
        let raw = RawValue::from_string(given.to_owned()).unwrap();
        let one = |(path, json): &(&str, &str)| TypedFlag {
            path: path.split('.').map(str::to_owned).collect(),
            json: (*json).to_owned(),
        };
        let typed = typed.iter().map(one).collect();
        merged(Some(&raw), typed, &ToolFlags::of(&schema, &[])).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_beat_json_member_by_member_and_nothing_loses_digits() {
        let given = r#"{"b": {"n": 1.50}, "c": 12345678901234567890123, "a": "x"}"#;
        let got = put(given, &[("a", "\"y\"")]).unwrap();
        assert_eq!(got.json.get(), r#"{"a":"y","b":{"n": 1.50},"c":12345678901234567890123}"#);
        assert_eq!(got.notes().collect::<Vec<_>>(), ["--a beats \"a\" of the JSON"]);
        let got = put(given, &[("b.n", "2"), ("b.x.y", "3")]).unwrap();
        assert_eq!(got.json.get(), r#"{"a":"x","b":{"n":2,"x":{"y":3}},"c":12345678901234567890123}"#);
        assert_eq!(got.notes().collect::<Vec<_>>(), ["--b.n beats \"b.n\" of the JSON"]);
        assert!(put(r#"{"a": "y", "b": {}}"#, &[("a", "\"y\"")]).unwrap().beaten.is_empty());
    }

    #[test]
    fn a_flag_is_named_as_it_is_typed() {
        let flags = ToolFlags::of(&json!({"properties": {"json": {"type": "string"}}}), &["json"]);
        let given = RawValue::from_string(r#"{"json": "x"}"#.to_owned()).unwrap();
        let typed = |json: &str| vec![TypedFlag { path: vec!["json".to_owned()], json: json.to_owned() }];
        let got = merged(Some(&given), typed("\"y\""), &flags).unwrap();
        assert_eq!(got.notes().collect::<Vec<_>>(), ["--arg.json beats \"json\" of the JSON"]);
        let said = merged(None, typed(r#"{"a":1,"a":2}"#), &flags).unwrap_err().to_string();
        assert!(said.starts_with("--arg.json cannot be used"), "{said}");
    }

    #[test]
    fn what_is_missing_is_named_as_it_can_be_given() {
        assert!(put("null", &[]).unwrap_err().ends_with("missing: --a, --b"));
        assert!(put("{}", &[("a", "1")]).unwrap_err().ends_with("missing: --b"));
        assert!(put(r#"{"b": 3}"#, &[("b.n", "1")]).unwrap_err().contains("--b.n is of a member of \"b\""));
    }

    #[test]
    fn a_member_is_missing_where_its_object_is_there() {
        let schema = json!({"properties": {"f": {"type": "object", "required": ["owner"], "properties":
            {"owner": {"type": "string"}, "n": {"type": "integer"}}}}});
        let flags = ToolFlags::of(&schema, &[]);
        let said = |given: &str, name: &str, json: &str| {
            let raw = RawValue::from_string(given.to_owned()).unwrap();
            let typed = TypedFlag { path: name.split('.').map(str::to_owned).collect(), json: json.to_owned() };
            merged(Some(&raw), vec![typed], &flags).map_err(|error| error.to_string())
        };
        assert!(said("{}", "f.n", "1").unwrap_err().ends_with("missing: --f.owner"));
        assert!(said(r#"{"f": {"n": 2}}"#, "x", "1").unwrap_err().ends_with("missing: --f.owner"));
        for (given, name) in [("{}", "x"), (r#"{"f": {"owner": "me"}}"#, "f.n"), (r#"{"f": null}"#, "x")] {
            assert!(said(given, name, "1").is_ok(), "{given}");
        }
    }

    #[test]
    fn json_that_parsers_read_differently_is_refused() {
        for given in [r#"{"a":1,"a":2}"#, "[]", "7"] {
            assert!(put(given, &[]).is_err(), "{given}");
        }
        let twice = ("b", r#"{"n":1,"n":2}"#);
        for typed in [&[twice][..], &[twice, ("b.x", "3")], &[("b.x", "3"), twice]] {
            let said = put(r#"{"a": "x"}"#, typed).unwrap_err();
            assert!(said.starts_with("--b cannot be used: ") && said.contains("appears twice"), "{typed:?}: {said}");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(70), "]".repeat(70));
        assert!(put(&deep, &[]).unwrap_err().contains("deeper"));
    }
}
