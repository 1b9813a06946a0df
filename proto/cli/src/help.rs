//! A tool as a command explains it: its flags, an example, what of its result can be picked, and what its server says
//! that it does.

use std::fmt::Write as _;

use footbridge_proto::{
    text::{EscapedLines, SafeJson},
    wire::NO_DESCRIPTION,
};
use serde_json::{Map, Value};

use crate::{
    answers::ToolDescription,
    flags::ToolFlags,
    gathered::gathered,
    schema::{kind, meant, properties, sample},
    shell_word::quoted,
    signature::type_of,
};

/// Paths of a result that are listed, and how deep they go.
const MOST_PATHS: usize = 40;
const MOST_DEPTH: usize = 4;
/// Places of a schema that are looked at for them.
const MOST_LOOKED_AT: usize = 1_000;
/// Column width of a flag.
const WIDTH: usize = 24;

/// What hints say in words: their name, whether they hold, and what that means.
const WORDS: [(&str, bool, &str); 7] = [
    ("readOnlyHint", true, "it only reads"),
    ("readOnlyHint", false, "it changes things"),
    ("destructiveHint", true, "it may destroy"),
    ("destructiveHint", false, "it only adds"),
    ("idempotentHint", true, "called again with the same arguments it changes nothing more"),
    ("openWorldHint", true, "it reaches beyond its server"),
    ("openWorldHint", false, "it stays within its server"),
];

/// All that it takes to call a tool; `command` is what is typed before the arguments.
#[must_use]
pub fn explained(tool: &ToolDescription, flags: &ToolFlags, command: &str) -> String {
    let description = tool.description.as_deref().unwrap_or(NO_DESCRIPTION).trim();
    let mut out = format!("{}\n\nUsage: {command} [FLAGS] [JSON | @FILE | -]\n", EscapedLines(description));
    match (flags.flags.is_empty(), flags.in_json.is_empty()) {
        (true, true) => out.push_str("\nIt takes no arguments that are known: '{}' calls it.\n"),
        (true, false) => out.push_str("\nArguments:\n"),
        (false, _) => out.push_str("\nFlags, each of which beats the JSON:\n"),
    }
    for flag in &flags.flags {
        let left = format!("--{} {}", flag.name, flag.kind);
        let required = match flag.needed_with() {
            _ if flag.is_required => "required. ".to_owned(),
            Some(object) => format!("required with --{object}. "),
            None => String::new(),
        };
        let repeated = if flag.is_list { "[may be repeated]" } else { "" };
        let words = format!("{required}{} {repeated}", flag.shown);
        let _ = writeln!(out, "{}", format!("  {left:WIDTH$} {}", words.trim()).trim_end());
    }
    for name in &flags.in_json {
        let _ = writeln!(out, "  {:WIDTH$} by JSON only", named_in_json(name));
    }
    let schema = gathered(&tool.input_schema);
    let json = SafeJson(&sample(&schema, &schema).to_string()).to_string();
    let _ = write!(out, "\nExamples:\n");
    if !flags.flags.is_empty() {
        let _ = writeln!(out, "  {command} {}", flags.example(&[]));
    }
    let _ = writeln!(out, "  {command} {}", quoted(&if json.starts_with('{') { json } else { "{}".to_owned() }));
    out.push_str(&of_result(tool));
    out
}

/// An argument that no flag can have the name of, as JSON has it.
#[must_use]
pub fn named_in_json(name: &str) -> String {
    SafeJson(&Value::from(name).to_string()).to_string()
}

/// What of its result can be picked, and what its server says that it does.
#[must_use]
pub fn of_result(tool: &ToolDescription) -> String {
    let mut out = String::new();
    let paths = tool.output_schema.as_ref().map(paths).unwrap_or_default();
    if !paths.is_empty() {
        let _ = write!(out, "\nThe result is JSON, of which jq takes a part by its path:\n{paths}");
    }
    let says = tool.annotations.as_ref().map(in_words).unwrap_or_default();
    if !says.is_empty() {
        let _ = writeln!(out, "\nAs its server says: {says}.");
    }
    out
}

/// The paths of a result, a line each.
#[must_use]
pub fn paths(schema: &Value) -> String {
    let mut paths = Paths { root: schema, lines: Vec::new(), left: MOST_LOOKED_AT };
    paths.add(schema, "", 0);
    let Paths { mut lines, left, .. } = paths;
    if lines.len() > MOST_PATHS || left == 0 {
        lines.truncate(MOST_PATHS);
        lines.push("  ...".to_owned());
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Paths on their way into lines.
struct Paths<'s> {
    root: &'s Value,
    lines: Vec<String>,
    /// How many more places are looked at: what has no line counts too.
    left: usize,
}

impl<'s> Paths<'s> {
    fn add(&mut self, property: &'s Value, path: &str, depth: usize) {
        let at = meant(property, self.root);
        if self.lines.len() > MOST_PATHS || depth > MOST_DEPTH || self.left == 0 {
            return;
        }
        self.left -= 1;
        let mut is_leaf = true;
        if kind(at) == Some("array")
            && let Some(items) = at.get("items")
        {
            return self.add(items, &format!("{path}[]"), depth + 1);
        }
        for (name, member) in properties(at).take(self.left) {
            is_leaf = false;
            let is_plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
            let step = if is_plain {
                format!(".{name}")
            } else {
                format!("[{}]", SafeJson(&Value::from(name.as_str()).to_string()))
            };
            self.add(member, &format!("{path}{step}"), depth + 1);
        }
        if is_leaf && !path.is_empty() {
            self.lines.push(format!("  {path}  {}", type_of(at, self.root)));
        }
    }
}

/// What hints say.
fn in_words(annotations: &Map<String, Value>) -> String {
    let held = WORDS.iter().filter(|(name, is, _)| annotations.get(*name).and_then(Value::as_bool) == Some(*is));
    // Of what only reads it means nothing whether it destroys.
    let reads = annotations.get("readOnlyHint") == Some(&Value::Bool(true));
    let held = held.filter(|(name, ..)| !(reads && matches!(*name, "destructiveHint" | "idempotentHint")));
    held.map(|(_, _, words)| *words).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_is_explained_with_flags_an_example_paths_and_its_hints() {
        let schema = json!({"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "Which", "examples": ["Bern"]}, "days": {"type": "integer"}}});
        let output = json!({"type": "object", "properties": {"tempC": {"type": "number"},
            "days": {"type": "array", "items": {"type": "object", "properties": {"a b": {"type": "string"}}}}}});
        let tool = json!({"name": "t", "description": "Gets it\u{1b}", "inputSchema": schema, "outputSchema": output,
            "annotations": {"readOnlyHint": true, "destructiveHint": true, "openWorldHint": true}});
        let tool: ToolDescription = serde_json::from_value(tool).unwrap();
        let text = explained(&tool, &ToolFlags::of(&schema, &[]), "tool-cli s t");
        for part in [
            "Gets it\\u{1b}\n\nUsage: tool-cli s t [FLAGS]",
            "\n  --city str               required. Which\n",
            "\n  tool-cli s t --city Bern\n  tool-cli s t '{\"city\":\"Bern\"}'\n",
            "\n  .tempC  num\n  .days[][\"a b\"]  str\n",
            "\nAs its server says: it only reads; it reaches beyond its server.\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // What a server calls a tool stays a name when it is typed.
        let typed = ["get_weather", "a;$(id)", "--help"].map(crate::shell_word::typed_name);
        assert_eq!(typed, ["get_weather", "'a;$(id)'", "-- --help"]);
        let none: ToolDescription = serde_json::from_value(json!({"name": "t"})).unwrap();
        let text = explained(&none, &ToolFlags::default(), "x");
        assert!(text.contains("It takes no arguments") && text.contains("\n  x '{}'\n"), "{text}");
    }

    #[test]
    fn arguments_that_no_flag_can_be_called_are_listed_too() {
        let text = json!({"type": "string"});
        let explain = |properties: Value| {
            let schema = json!({ "properties": properties });
            let tool = serde_json::from_value(json!({"name": "t", "inputSchema": schema})).unwrap();
            explained(&tool, &ToolFlags::of(&schema, &[]), "x")
        };
        let help = explain(json!({"a b": text, "-x": text, "": text, "c": text}));
        for name in ["\"a b\"", "\"-x\"", "\"\""] {
            assert!(help.contains(&format!("  {name:WIDTH$} by JSON only\n")), "{name}: {help}");
        }
        let alone = explain(json!({"a b": text}));
        assert!(alone.contains("\nArguments:\n  \"a b\" ") && !alone.contains("takes no arguments"), "{alone}");
    }

    #[test]
    fn members_are_beside_their_object_and_no_line_ends_with_a_blank() {
        let schema = json!({"required": ["owner"], "properties": {
            "owner": {"type": "object", "required": ["name"], "properties": {"age": {"type": "integer"}, "name": {}}},
            "size": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}}});
        let tool: ToolDescription = serde_json::from_value(json!({"name": "t", "inputSchema": schema})).unwrap();
        let text = explained(&tool, &ToolFlags::of(&schema, &[]), "x");
        let flags: Vec<&str> = text.lines().filter(|line| line.starts_with("  --")).collect();
        let starts = ["  --owner {", "  --owner.age int", "  --owner.name any", "  --size int", "  --tags str[]"];
        assert!(flags.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{flags:#?}");
        assert!(flags[2].ends_with(" required with --owner."), "{flags:#?}");
        assert!(
            flags[4].ends_with("[] [may be repeated]") || flags[4].ends_with("    [may be repeated]"),
            "{flags:#?}"
        );
        assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    }

    #[test]
    fn paths_of_any_schema_end() {
        let own = json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}});
        assert!(paths(&own).lines().count() <= MOST_PATHS + 1);
        assert_eq!(paths(&json!(true)), "");
    }
}
