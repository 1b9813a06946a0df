//! A tool as one line: its arguments with their types, what is decided about a call, and the first sentence of what it
//! says of itself.
//!
//! Types are short: `str`, `int`, `num`, `bool`, values of an enum, `{name: type}`, `type[]`, `a|b`; `?` is behind what
//! may be left out, and `=` before what it is then. A line is of bounded length whatever the schema is: what does not
//! fit is `...`, and the tool in full has it. All of it is a server's own text, and is escaped.

use footbridge_proto::text::{Escaped, SafeJson};
use serde_json::Value;

use crate::{
    answers::ToolDescription,
    gathered::gathered,
    schema::{properties, referred, required},
};

/// Parts of types that one line has room for.
const MOST_PARTS: usize = 120;
/// How deep types are shown in each other.
const MOST_DEPTH: usize = 5;
/// Characters of a sentence, and of a value or name.
const MOST_SENTENCE: usize = 160;
const MOST_VALUE: usize = 60;

/// A tool as one line, without its end. `decision` is `ask` or `deny` where a call is not simply allowed.
#[must_use]
pub fn signature(tool: &ToolDescription, decision: Option<&str>) -> String {
    let mut out = Escaped(&tool.name).to_string();
    out.push_str(&arguments(&tool.input_schema));
    match decision {
        Some("ask") => out.push_str(" [asks]"),
        Some("deny") => out.push_str(" [denied]"),
        _ => {}
    }
    let sentence = tool.description.as_deref().map(first_sentence).unwrap_or_default();
    if !sentence.is_empty() {
        out.push_str(" - ");
        out.push_str(&sentence);
    }
    out
}

/// The arguments of a schema, in parentheses.
#[must_use]
pub fn arguments(schema: &Value) -> String {
    let schema = &*gathered(schema);
    let mut types = Types { root: schema, left: MOST_PARTS };
    match schema {
        Value::Object(_) => format!("({})", types.members(schema, 0)),
        // An older bridge does not say.
        _ => "(...)".to_owned(),
    }
}

/// The type of a value, as a signature has it.
#[must_use]
pub(crate) fn type_of(schema: &Value, root: &Value) -> String {
    Types { root, left: MOST_PARTS }.of(schema, 0)
}

/// The first sentence of a text, on one line and without its full stop.
#[must_use]
pub fn first_sentence(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    let is_end = |(at, _): &(usize, &str)| {
        let before = &line[..*at];
        let abbreviates = before.rsplit(' ').next().is_some_and(|word| word.contains('.'));
        !abbreviates && line[at + 2..].starts_with(|c: char| !c.is_lowercase())
    };
    let end = line.match_indices(". ").find(is_end).map_or(line.len(), |(at, _)| at);
    shortened(line[..end].trim_end_matches('.'), MOST_SENTENCE)
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}...", Escaped(&text[..at])),
        None => Escaped(text).to_string(),
    }
}

/// Types on their way into one line.
struct Types<'s> {
    root: &'s Value,
    /// How much more of them there is room for.
    left: usize,
}

impl Types<'_> {
    fn of(&mut self, schema: &Value, depth: usize) -> String {
        if self.left == 0 || depth > MOST_DEPTH {
            return "...".to_owned();
        }
        self.left -= 1;
        if let Some(to) = referred(schema, self.root) {
            return self.of(to, depth + 1);
        }
        if let Some(value) = schema.get("const") {
            return literal(value);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return self.one_of(values);
        }
        for (key, between) in [("anyOf", "|"), ("oneOf", "|"), ("allOf", "&")] {
            if let Some(all) = schema.get(key).and_then(Value::as_array).filter(|all| !all.is_empty()) {
                return self.joined(all, between, depth);
            }
        }
        match schema.get("type") {
            Some(Value::String(name)) => self.named(name, schema, depth),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                names.map(|name| self.named(name, schema, depth)).collect::<Vec<_>>().join("|")
            }
            _ if schema.get("properties").is_some() => self.named("object", schema, depth),
            _ if schema.get("items").is_some() => self.named("array", schema, depth),
            _ => "any".to_owned(),
        }
    }

    fn named(&mut self, name: &str, schema: &Value, depth: usize) -> String {
        match name {
            "string" => "str".to_owned(),
            "integer" => "int".to_owned(),
            "number" => "num".to_owned(),
            "boolean" => "bool".to_owned(),
            "array" => self.list(schema, depth),
            "object" => self.object(schema, depth),
            other => shortened(other, MOST_VALUE),
        }
    }

    fn list(&mut self, schema: &Value, depth: usize) -> String {
        if let Some(each) = schema.get("prefixItems").and_then(Value::as_array) {
            let each: Vec<String> = each.iter().map(|one| self.of(one, depth + 1)).collect();
            return format!("[{}]", each.join(", "));
        }
        let item = schema.get("items").map_or_else(|| "any".to_owned(), |items| self.of(items, depth + 1));
        let is_one = item.starts_with('{') && item.ends_with('}') || !item.contains(['|', '&']);
        if is_one { format!("{item}[]") } else { format!("({item})[]") }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> String {
        if properties(schema).next().is_some() {
            return format!("{{{}}}", self.members(schema, depth + 1));
        }
        match schema.get("additionalProperties").filter(|more| more.is_object()) {
            Some(more) => format!("{{[name]: {}}}", self.of(more, depth + 1)),
            None => "object".to_owned(),
        }
    }

    fn members(&mut self, schema: &Value, depth: usize) -> String {
        let schema = referred(schema, self.root).unwrap_or(schema);
        let needed: Vec<&str> = required(schema).collect();
        let mut all = Vec::new();
        for (name, property) in properties(schema) {
            if self.left == 0 {
                all.push("...".to_owned());
                break;
            }
            let optional = if needed.contains(&name.as_str()) { "" } else { "?" };
            let kind = self.of(property, depth);
            let default = property.get("default").map_or_else(String::new, |value| format!(" = {}", literal(value)));
            all.push(format!("{}{optional}: {kind}{default}", key(name)));
        }
        all.join(", ")
    }

    fn joined(&mut self, all: &[Value], between: &str, depth: usize) -> String {
        let mut kinds: Vec<String> = Vec::new();
        for one in all {
            let kind = self.of(one, depth + 1);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds.join(between)
    }

    fn one_of(&mut self, values: &[Value]) -> String {
        let room = self.left.min(values.len());
        self.left -= room;
        let mut shown: Vec<String> = values[..room].iter().map(literal).collect();
        if room < values.len() {
            shown.push("...".to_owned());
        }
        shown.join("|")
    }
}

/// A value as JSON, on one line.
fn literal(value: &Value) -> String {
    let text = SafeJson(&value.to_string()).to_string();
    match text.char_indices().nth(MOST_VALUE) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

/// A name as it is, or in quotes where it could be taken for something else.
fn key(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    if !name.is_empty() && name.chars().all(is_plain) {
        shortened(name, MOST_VALUE)
    } else {
        literal(&Value::from(name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(tool: Value, decision: Option<&str>) -> String {
        signature(&serde_json::from_value(tool).unwrap(), decision)
    }

    fn of(properties: Value) -> String {
        arguments(&json!({ "properties": properties }))
    }

    #[test]
    fn a_tool_is_one_line_with_all_that_a_call_needs() {
        let edit = json!({"type": "object", "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}},
            "required": ["oldText", "newText"]});
        let tool = json!({"name": "edit_file", "description": "Make line-based edits. Each edit\nreplaces lines.",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"},
                "edits": {"type": "array", "items": edit}, "dryRun": {"type": "boolean", "default": false}},
                "required": ["path", "edits"]}});
        let expected = "edit_file(path: str, edits: {oldText: str, newText: str}[], dryRun?: bool = false) [asks] - \
                        Make line-based edits";
        assert_eq!(line(tool, Some("ask")), expected);
    }

    #[test]
    fn what_schemas_can_say_is_short() {
        for (property, shown) in [
            (json!({"enum": ["a", 2, null]}), r#""a"|2|null"#),
            (json!({"const": "x"}), r#""x""#),
            (json!({"type": ["integer", "null"]}), "int|null"),
            (json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "number"}}]}), "str|num[]"),
            (json!({"type": "array", "items": {"enum": ["a", "b"]}}), r#"("a"|"b")[]"#),
            (json!({"type": "array"}), "any[]"),
            (json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}), "[str, int]"),
            (json!({"type": "object"}), "object"),
            (json!({"type": "object", "additionalProperties": {"type": "integer"}}), "{[name]: int}"),
            (json!({"allOf": [{"type": "string"}, {"type": "string"}]}), "str"),
            (json!({"type": "string", "default": "a\u{1b}b"}), r#"str = "a\u001bb""#),
            (json!(true), "any"),
            (json!({"type": 5}), "any"),
        ] {
            assert_eq!(of(json!({ "x": property })), format!("(x?: {shown})"), "{property}");
        }
        assert_eq!(of(json!({"a b\n": {"type": "string"}})), r#"("a b\n"?: str)"#);
        assert_eq!(arguments(&json!({"type": "object"})), "()");
        assert_eq!(arguments(&Value::Null), "(...)");
    }

    #[test]
    fn no_schema_makes_a_line_without_end() {
        let own = json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#/nowhere"}}});
        let text = arguments(&own);
        assert!(text.len() < 4_000 && text.contains("..."), "{}", text.len());
        let values: Vec<u32> = (0..10_000).collect();
        assert!(of(json!({"n": {"enum": values}})).len() < 1_000);
        assert!(of(json!({"n": {"default": "x".repeat(10_000)}})).len() < 200);
    }

    #[test]
    fn a_sentence_ends_where_one_does() {
        for (text, first) in [
            ("Gets it. And more.", "Gets it"),
            ("Reads e.g. a file. Then more", "Reads e.g. a file"),
            ("Version 1.2 of it", "Version 1.2 of it"),
            ("  One line\nand another", "One line"),
            ("Ends.", "Ends"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text), first, "{text}");
        }
        assert_eq!(first_sentence(&"x".repeat(1_000)).len(), MOST_SENTENCE + 3);
    }
}
