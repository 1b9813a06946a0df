//! Entries of listings, and results of tools, in the shape that strict clients take.
//!
//! Many clients check a whole listing and refuse all of it for one member of one entry: one server's tool would take
//! those of all others away. So what no client takes is written as they take it where it means the same, and else the
//! member, or the entry, is left out. A result that they refuse is worse: its call was made. Calls are decided by what the server said, whatever is shown here.

use std::{borrow::Cow, fmt};

use footbridge_proto::{json::Members, rpc::raw};
use serde_json::{Value, value::RawValue};

use super::{one_hop, revision::Revision};

/// What a value has to be. One that is not is left out of what it is in.
pub(super) enum Form {
    Text,
    Flag,
    Integer,
    /// A number from 0 to 1.
    Share,
    /// A moment with its offset, as RFC 3339 has it.
    Moment,
    OneOf(&'static [&'static str]),
    List(&'static Form),
    Object(&'static ObjectForm),
    /// An object of what is said besides, of which some is not a server's to say.
    Meta,
    /// The JSON Schema of arguments, which are objects.
    InputSchema,
    /// The JSON Schema of results, which are objects.
    OutputSchema,
}

/// What an object has to be: any member may be there that is not named here.
pub(super) struct ObjectForm {
    members: &'static [(&'static str, Form)],
    required: &'static [&'static str],
}

const ANY_OBJECT: Form = Form::Object(&ObjectForm { members: &[], required: &[] });
const ICONS: Form = Form::List(&Form::Object(&ObjectForm {
    members: &[
        ("src", Form::Text),
        ("mimeType", Form::Text),
        ("sizes", Form::List(&Form::Text)),
        ("theme", Form::OneOf(&["light", "dark"])),
    ],
    required: &["src"],
}));
const ANNOTATIONS: Form = Form::Object(&ObjectForm {
    members: &[
        ("audience", Form::List(&Form::OneOf(&["user", "assistant"]))),
        ("priority", Form::Share),
        ("lastModified", Form::Moment),
    ],
    required: &[],
});

const ANNOTATIONS_OF_TOOL: Form = Form::Object(&ObjectForm {
    members: &[
        ("title", Form::Text),
        ("readOnlyHint", Form::Flag),
        ("destructiveHint", Form::Flag),
        ("idempotentHint", Form::Flag),
        ("openWorldHint", Form::Flag),
    ],
    required: &[],
});
const EXECUTION: Form = Form::Object(&ObjectForm {
    members: &[("taskSupport", Form::OneOf(&["required", "optional", "forbidden"]))],
    required: &[],
});

/// A tool, for revisions in which results are objects.
const TOOL: &ObjectForm = &ObjectForm {
    members: &[
        ("title", Form::Text),
        ("icons", ICONS),
        ("inputSchema", Form::InputSchema),
        ("outputSchema", Form::OutputSchema),
        ("annotations", ANNOTATIONS_OF_TOOL),
        ("execution", EXECUTION),
        ("_meta", Form::Meta),
    ],
    required: &["inputSchema"],
};

/// A tool, whose results may be anything.
const TOOL_OF_ANYTHING: &ObjectForm = &ObjectForm {
    members: &[
        ("title", Form::Text),
        ("icons", ICONS),
        ("inputSchema", Form::InputSchema),
        ("outputSchema", ANY_OBJECT),
        ("annotations", ANNOTATIONS_OF_TOOL),
        ("execution", EXECUTION),
        ("_meta", Form::Meta),
    ],
    required: &["inputSchema"],
};

/// A tool, for clients of this revision.
pub(super) fn tool(revision: Revision) -> &'static ObjectForm {
    if revision.has_any_results() { TOOL_OF_ANYTHING } else { TOOL }
}

/// A resource, or a template of some.
pub(super) const RESOURCE: &ObjectForm = &ObjectForm {
    members: &[
        ("name", Form::Text),
        ("title", Form::Text),
        ("description", Form::Text),
        ("icons", ICONS),
        ("mimeType", Form::Text),
        ("size", Form::Integer),
        ("annotations", ANNOTATIONS),
        ("_meta", Form::Meta),
    ],
    required: &["name"],
};

/// A prompt.
pub(super) const PROMPT: &ObjectForm = &ObjectForm {
    members: &[
        ("title", Form::Text),
        ("description", Form::Text),
        ("icons", ICONS),
        (
            "arguments",
            Form::List(&Form::Object(&ObjectForm {
                members: &[("name", Form::Text), ("description", Form::Text), ("required", Form::Flag)],
                required: &["name"],
            })),
        ),
        ("_meta", Form::Meta),
    ],
    required: &[],
};

/// Why an entry cannot be shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotShown {
    /// It has nothing that clients take for this member.
    Lacks(&'static str),
    /// A number in this member is beyond a double, for which some clients refuse the whole listing.
    Number(&'static str),
}

impl fmt::Display for NotShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lacks("inputSchema") => {
                f.write_str("its inputSchema is not that of an object, as MCP's arguments are")
            }
            Self::Lacks(member) => write!(f, "it has no \"{member}\" that MCP clients take"),
            Self::Number(member) => write!(f, "its {member} has a number that is larger than MCP clients can read"),
        }
    }
}

/// An entry as it is shown: as it was given, byte for byte, where there is nothing in it that clients do not take.
///
/// # Errors
/// [`NotShown`] when what it must have is not there, or nothing that it could be written as.
pub(super) fn shown<'a>(entry: &'a str, form: &ObjectForm) -> Result<Cow<'a, str>, NotShown> {
    let given: Members<'_> = serde_json::from_str(entry).map_err(|_| NotShown::Lacks("name"))?;
    let mut written = Written::default();
    for (name, value) in given.0 {
        let value = value.get();
        if is_beyond_a_double(value) {
            if let Some(needed) = form.required.iter().find(|needed| **needed == name) {
                return Err(NotShown::Number(needed));
            }
            written.add(name, None);
            continue;
        }
        match form.members.iter().find(|(known, _)| *known == name) {
            Some((_, form)) => written.add(name, formed(value, form)),
            None => written.add(name, Some(value.into())),
        }
    }
    match form.required.iter().find(|name| !written.has(name)) {
        Some(missing) => Err(NotShown::Lacks(missing)),
        None => Ok(written.instead_of(entry)),
    }
}

/// A tool's result as clients of this revision are shown it: without members that are null and, where that has to be an
/// object, a structured part that is none; and with a content. What is in these is its server's own.
pub(super) fn result(given: Box<RawValue>, revision: Revision) -> Box<RawValue> {
    let text = given.get();
    // Nearly always, and quickly found out of a large one.
    let is_plain = text.starts_with("{\"content\":[") && !text.contains("null") && !text.contains("structuredContent");
    let members = (!is_plain).then(|| serde_json::from_str::<Members<'_>>(text)).and_then(Result::ok);
    let Some(members) = members else { return given };
    let mut written = Written::default();
    for (name, value) in members.0 {
        let value = value.get();
        let is_taken = match name.as_str() {
            "structuredContent" => revision.has_any_results() || value.starts_with('{'),
            _ => value != "null",
        };
        written.add(name, is_taken.then_some(value.into()));
    }
    if !written.has("content") {
        written.add("content".to_owned(), Some(instead("[]")));
    }
    match written.instead_of(text) {
        Cow::Owned(other) => RawValue::from_string(other).unwrap_or(given),
        Cow::Borrowed(_) => given,
    }
}

/// A value in its form; none where it has another.
fn formed<'a>(value: &'a str, form: &Form) -> Option<Cow<'a, str>> {
    let is = |is_it: bool| is_it.then_some(Cow::Borrowed(value));
    match form {
        Form::Text => is(value.starts_with('"')),
        Form::Flag => is(value == "true" || value == "false"),
        Form::Integer => is(value.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit())),
        Form::Share => is(serde_json::from_str::<f64>(value).is_ok_and(|share| (0.0..=1.0).contains(&share))),
        Form::Moment => {
            let moment = serde_json::from_str::<&str>(value).ok()?;
            // RFC 3339 takes a blank or a small letter for the T, and a small z; clients do not.
            is(moment.contains('T') && !moment.contains('z') && chrono::DateTime::parse_from_rfc3339(moment).is_ok())
        }
        Form::OneOf(words) => is(serde_json::from_str::<String>(value).is_ok_and(|word| words.contains(&&*word))),
        Form::List(of) => list(value, of),
        Form::Object(form) => shown(value, form).ok(),
        Form::Meta => value.starts_with('{').then(|| one_hop::meta(value)).flatten(),
        Form::InputSchema => schema(value, |types| types.is_none_or(|types| types.iter().any(|name| name == OBJECT))),
        Form::OutputSchema => schema(value, |types| types.is_some_and(|types| types.iter().all(|name| name == OBJECT))),
    }
}

fn list<'a>(value: &'a str, of: &Form) -> Option<Cow<'a, str>> {
    let given: Vec<&RawValue> = serde_json::from_str(value).ok()?;
    let kept: Vec<Cow<'_, str>> = given.iter().filter_map(|one| formed(one.get(), of)).collect();
    // An empty one could say that there is nothing or nobody, which this did not.
    if kept.is_empty() && !given.is_empty() {
        return None;
    }
    let is_same = kept.len() == given.len() && kept.iter().all(|one| matches!(one, Cow::Borrowed(_)));
    Some(if is_same { value.into() } else { format!("[{}]", kept.join(",")).into() })
}

/// The only type that clients take at the root of a schema.
const OBJECT: &str = "object";

/// The schema of an object: its type is that word alone, and those of its members are objects, too. `is_of_objects` is
/// asked about the types that it has; where it says none, its members say that it is one.
fn schema(value: &str, is_of_objects: impl Fn(Option<Vec<String>>) -> bool) -> Option<Cow<'_, str>> {
    let given: Members<'_> = serde_json::from_str(value).ok()?;
    let types = given.get("type").and_then(|value| types(value.get()));
    if !is_of_objects(types.or_else(|| given.is_object("properties").then(|| vec![OBJECT.to_owned()]))) {
        return None;
    }
    let mut written = Written::default();
    for (name, value) in given.0 {
        let value = value.get();
        let taken = match name.as_str() {
            "type" if value == "\"object\"" => Some(value.into()),
            "type" => Some(instead("\"object\"")),
            // Without them, what it requires would be left.
            "properties" if value.starts_with('{') => Some(properties(value)?),
            "properties" => None,
            "required" => list(value, &Form::Text),
            _ => Some(value.into()),
        };
        written.add(name, taken);
    }
    if !written.has("type") {
        written.add("type".to_owned(), Some(instead("\"object\"")));
    }
    Some(written.instead_of(value))
}

/// Whether there is a number in this JSON that no double comes near, such as `1e400`.
fn is_beyond_a_double(json: &str) -> bool {
    let (mut rest, is_of_number) = (json, |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    while let Some(start) = rest.find(|c: char| c == '"' || c.is_ascii_digit()) {
        let (is_text, from) = (rest[start..].starts_with('"'), start + 1);
        let end = if is_text { end_of_text(&rest[from..]) } else { rest[from..].find(|c| !is_of_number(c)) };
        let end = end.map_or(rest.len(), |end| from + end);
        if !is_text && rest[start..end].parse::<f64>().is_ok_and(f64::is_infinite) {
            return true;
        }
        rest = &rest[end..];
    }
    false
}

/// Where a text of JSON ends, behind its quote.
fn end_of_text(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map(|quote| quote + 1)
}

/// The types that a schema names; none where it does not.
fn types(value: &str) -> Option<Vec<String>> {
    match serde_json::from_str(value).ok()? {
        Value::String(one) => Some(vec![one]),
        Value::Array(several) => Some(several.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        _ => None,
    }
}

/// Schemas by their names. What is `true` or `false` as one is an object that means the same.
fn properties(value: &str) -> Option<Cow<'_, str>> {
    let given: Members<'_> = serde_json::from_str(value).ok()?;
    let mut written = Written::default();
    for (name, value) in given.0 {
        let schema = match value.get() {
            text if text.starts_with('{') => text.into(),
            "false" => instead("{\"not\":{}}"),
            _ => instead("{}"),
        };
        written.add(name, Some(schema));
    }
    Some(written.instead_of(value))
}

/// What is written instead of what was given, which is borrowed wherever it stays.
fn instead<'a>(text: &str) -> Cow<'a, str> {
    Cow::Owned(text.to_owned())
}

/// An object as it is written.
#[derive(Default)]
struct Written<'a> {
    members: Vec<(String, Cow<'a, str>)>,
    is_other: bool,
}

impl<'a> Written<'a> {
    /// The next member, unless there is nothing to write of it.
    fn add(&mut self, name: String, value: Option<Cow<'a, str>>) {
        self.is_other |= !matches!(value, Some(Cow::Borrowed(_)));
        self.members.extend(value.map(|value| (name, value)));
    }

    fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(written, _)| written == name)
    }

    fn instead_of(self, given: &'a str) -> Cow<'a, str> {
        if !self.is_other {
            return given.into();
        }
        let members = self.members.iter().map(|(name, value)| format!("{}:{value}", raw(name).get()));
        format!("{{{}}}", members.collect::<Vec<_>>().join(",")).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result_of(given: &str, revision: Revision) -> String {
        result(RawValue::from_string(given.to_owned()).unwrap(), revision).get().to_owned()
    }

    /// A tool that has these members besides.
    fn tool(members: &str) -> String {
        let given = format!(r#"{{"name":"t",{members}}}"#);
        let text = shown(&given, TOOL).map(Cow::into_owned).unwrap_or_else(|why| why.to_string());
        text.strip_prefix(r#"{"name":"t","#).and_then(|rest| rest.strip_suffix('}')).map(str::to_owned).unwrap_or(text)
    }

    #[test]
    fn what_every_client_takes_is_as_it_was_given() {
        let given = r#"{ "name":"t","title":"T", "inputSchema" : {"type":"object", "properties":{"x":{"const":1.50}},
            "required":["x"]},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"own":null},
            "icons":[{"src":"data:,x","theme":"dark"}],"_meta":{"n":1e300,"t":"1e400"},"execution":{"taskSupport":"optional"}}"#;
        assert!(matches!(shown(given, TOOL), Ok(Cow::Borrowed(text)) if text == given));
    }

    #[test]
    fn a_schema_of_arguments_means_the_same_in_the_form_that_clients_take() {
        let object = r#""inputSchema":{"type":"object"}"#;
        for (given, written) in [
            ("{}", r#"{"type":"object"}"#),
            (r#"{"properties":{}}"#, r#"{"properties":{},"type":"object"}"#),
            (r##"{"$ref":"#/$defs/a","n":1.50}"##, r##"{"$ref":"#/$defs/a","n":1.50,"type":"object"}"##),
            (r#"{"type":["null","object"]}"#, r#"{"type":"object"}"#),
            (r#"{"type":null}"#, r#"{"type":"object"}"#),
            (r#"{"type":"object","required":null,"properties":null}"#, r#"{"type":"object"}"#),
            (r#"{"type":"object","required":["a",1]}"#, r#"{"type":"object","required":["a"]}"#),
            (
                r#"{"type":"object","properties":{"b":true,"a":false,"c":{"n":1.0},"d":null}}"#,
                r#"{"type":"object","properties":{"b":{},"a":{"not":{}},"c":{"n":1.0},"d":{}}}"#,
            ),
        ] {
            assert_eq!(tool(&format!(r#""inputSchema":{given}"#)), format!(r#""inputSchema":{written}"#), "{given}");
        }
        for other in [r#"{"type":"array"}"#, r#"{"type":["array","null"]}"#, "true", "[]"] {
            let said = tool(&format!(r#""inputSchema":{other}"#));
            assert!(said.contains("its inputSchema is not that of an object"), "{other}: {said}");
        }
        assert_eq!(tool(object), object);
    }

    #[test]
    fn a_result_has_what_clients_want_and_nothing_that_they_do_not_take() {
        for (given, written) in [
            ("{}", r#"{"content":[]}"#),
            (r#"{"content":null,"isError":null,"_meta":null}"#, r#"{"content":[]}"#),
            (r#"{"content":[],"isError":null,"n":1.50}"#, r#"{"content":[],"n":1.50}"#),
            (r#"{"content":[],"structuredContent":[null]}"#, r#"{"content":[]}"#),
            (r#"{"structuredContent":{"a":null}}"#, r#"{"structuredContent":{"a":null},"content":[]}"#),
        ] {
            assert_eq!(result_of(given, Revision::November2025), written, "{given}");
        }
        for same in [
            r#"{"content":[{"type":"text","text":"a"}],"own":1e400}"#,
            r#"{"content":[{"type":"text","text":"null"}], "isError" : true}"#,
            r#"{"isError":false, "content":[],"structuredContent": {"a":null}}"#,
        ] {
            assert_eq!(result_of(same, Revision::November2025), same);
        }
    }

    #[test]
    fn clients_of_the_revision_in_which_results_are_anything_get_them_as_they_are() {
        for result in ["[1,2]", "42", "null", "\"x\"", r#"{"x":null}"#] {
            let given = format!(r#"{{"structuredContent":{result},"content":[]}}"#);
            assert_eq!(result_of(&given, Revision::July2026), given);
        }
        assert_eq!(result_of(r#"{"content":[],"isError":null}"#, Revision::July2026), r#"{"content":[]}"#);
        for schema in [r#"{"type":"array","items":true}"#, r#"{"oneOf":[{"type":"null"}]}"#, "{}"] {
            let given = format!(r#"{{"name":"t","inputSchema":{{"type":"object"}},"outputSchema":{schema}}}"#);
            assert_eq!(shown(&given, super::tool(Revision::July2026)).unwrap(), given);
            assert_ne!(shown(&given, super::tool(Revision::June2025)).unwrap(), given);
        }
    }

    #[test]
    fn a_schema_of_results_that_are_no_objects_is_left_out() {
        let with = |output: &str| tool(&format!(r#""inputSchema":{{"type":"object"}},"outputSchema":{output}"#));
        for left_out in
            ["{}", "null", "true", r#"{"type":"array"}"#, r#"{"type":["object","null"]}"#, r#"{"anyOf":[]}"#]
        {
            assert_eq!(with(left_out), r#""inputSchema":{"type":"object"}"#, "{left_out}");
        }
        for (given, written) in [
            (r#"{"properties":{"x":true}}"#, r#"{"properties":{"x":{}},"type":"object"}"#),
            (r#"{"type":["object"]}"#, r#"{"type":"object"}"#),
        ] {
            let expected = format!(r#""inputSchema":{{"type":"object"}},"outputSchema":{written}"#);
            assert_eq!(with(given), expected);
        }
    }

    #[test]
    fn a_number_that_is_no_double_takes_away_no_more_than_it_has_to() {
        let object = r#""inputSchema":{"type":"object"}"#;
        for (member, beyond) in [("outputSchema", "1e400"), ("_meta", "-1E+400"), ("own", &"9".repeat(400))] {
            let given = format!(r#"{object},"{member}":{{"type":"object","x":{beyond}}}"#);
            assert_eq!(tool(&given), object, "{member}");
        }
        let given = format!(r#"{{"name":"t",{object},"outputSchema":{{"type":"array","maxItems":1e400}}}}"#);
        let left = format!(r#"{{"name":"t",{object}}}"#);
        assert_eq!(shown(&given, super::tool(Revision::July2026)).unwrap(), left);
        let said = tool(r#""inputSchema":{"type":"object","properties":{"n":{"maximum":1e400}}}"#);
        assert_eq!(said, "its inputSchema has a number that is larger than MCP clients can read");
        for near in ["1e308", "1e-400", r#"["\\\"1e400","\\",2]"#, "\"1e400\""] {
            assert!(!is_beyond_a_double(near), "{near}");
        }
        assert!(is_beyond_a_double(r#"["\\",{"é":[1,-1e999]}]"#));
    }

    #[test]
    fn members_of_another_type_are_left_out_and_all_others_stay() {
        for (given, written) in [
            (r#""title":null"#, ""),
            (r#""title":5"#, ""),
            (r#""annotations":null"#, ""),
            (
                r#""annotations":{"title":null,"readOnlyHint":"yes","openWorldHint":false,"own":1.0}"#,
                r#","annotations":{"openWorldHint":false,"own":1.0}"#,
            ),
            (r#""icons":"x""#, ""),
            (
                r#""icons":[{"mimeType":"image/png"},{"src":"a","sizes":"48x48","theme":"blue"}]"#,
                r#","icons":[{"src":"a"}]"#,
            ),
            (r#""_meta":5"#, ""),
            (r#""_meta":{"footbridge/partial":["x"],"a":1.0}"#, r#","_meta":{"a":1.0}"#),
            (r#""_meta":{}"#, r#","_meta":{}"#),
            (r#""execution":{"taskSupport":"x"}"#, r#","execution":{}"#),
            (r#""unknown":null"#, r#","unknown":null"#),
        ] {
            let expected = format!(r#""inputSchema":{{"type":"object"}}{written}"#);
            assert_eq!(tool(&format!(r#""inputSchema":{{"type":"object"}},{given}"#)), expected);
        }
    }

    #[test]
    fn resources_and_prompts_are_in_their_shape_too() {
        let of = |given: &str, form| shown(given, form).map(Cow::into_owned);
        let annotations = r#"{"audience":["user","dog"],"priority":"high","lastModified":"2025-01-01"}"#;
        let given = format!(r#"{{"uri":"a:b","name":"n","mimeType":null,"annotations":{annotations}}}"#);
        let expected = r#"{"uri":"a:b","name":"n","annotations":{"audience":["user"]}}"#;
        assert_eq!(of(&given, RESOURCE).unwrap(), expected);
        let shares = r#"{"name":"n","annotations":{"priority":5}}"#;
        assert_eq!(of(shares, RESOURCE).unwrap(), r#"{"name":"n","annotations":{}}"#);
        let dated = r#"{"name":"n","annotations":{"priority":0.50,"lastModified":"2025-01-12T15:00:58Z"}}"#;
        assert_eq!(of(dated, RESOURCE).unwrap(), dated);
        assert_eq!(of(r#"{"uri":"a:b"}"#, RESOURCE).unwrap_err(), NotShown::Lacks("name"));
        let given = r#"{"name":"p","arguments":[{"name":"a","required":null},{"title":"b"},7]}"#;
        assert_eq!(of(given, PROMPT).unwrap(), r#"{"name":"p","arguments":[{"name":"a"}]}"#);
    }
}
