//! Listings and schemas as text, in the columns that scripts know.
//!
//! The layout of servers, tools and a tool in full is the recorded one of the public command; nothing may come before
//! its columns, and more may follow them. What a server says takes one line where an item does: a line break in a name
//! would pass for another item.

use std::fmt::Write as _;

use footbridge_proto::{
    text::{Escaped, EscapedLines, SafeJson},
    wire::NO_DESCRIPTION,
};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::{
    answers::{
        FoundToolList, FoundToolSummary, FullTools, ListedServers, ListedTools, PromptArgumentSummary, PromptSummary,
        ResourceSummary, ToolDescription,
    },
    layout,
    shell_word::typed_name,
    signature::{arguments, first_sentence, signature},
};

/// What is printed where there is no server.
pub const NO_SERVERS: &str = "No MCP servers connected.\n";
/// Column width of a server's name.
const SERVER_WIDTH: usize = 20;
/// Column width of a tool's name.
const TOOL_WIDTH: usize = 30;

/// All servers; `command` lists the tools of one.
#[must_use]
pub fn servers(list: &ListedServers, command: &str) -> String {
    if list.servers.is_empty() {
        return NO_SERVERS.to_owned();
    }
    let mut out = "Available servers:\n".to_owned();
    for server in &list.servers {
        let mut line = format!("  {} {} tool(s)", padded(&server.name, SERVER_WIDTH), server.tool_count);
        if !server.examples.is_empty() {
            let _ = write!(line, " (e.g. {})", Escaped(&server.examples.join(", ")));
        }
        if let Some(status) = &server.status {
            let prefix = format!("Server \"{}\" is not available: ", server.name);
            let reason = server.reason.as_deref().map(|reason| reason.strip_prefix(&prefix).unwrap_or(reason));
            let reason = reason.map_or_else(String::new, |reason| format!(": {}", Escaped(reason)));
            let _ = write!(line, " [{}{reason}]", Escaped(status));
        }
        out.push_str(&line);
        out.push('\n');
    }
    let _ = writeln!(out, "\nUse: {command} <server> to list tools");
    out
}

/// The tools of a server; `command` describes one.
#[must_use]
pub fn tools(server: &str, list: &ListedTools, command: &str) -> String {
    if list.tools.is_empty() {
        return format!("{} — no tools\n", Escaped(server));
    }
    let mut out = format!("{} — {} tool(s):\n", Escaped(server), list.tools.len());
    for tool in &list.tools {
        let description = tool.description.as_deref().unwrap_or(NO_DESCRIPTION);
        let badge = if tool.has_structured_output { " [json]" } else { "" };
        let _ = writeln!(out, "  {} {}{badge}", padded(&tool.name, TOOL_WIDTH), Escaped(description));
    }
    let _ = writeln!(out, "\nUse: {command} <server> <tool> for full schema");
    out
}

/// The tools of a server, a signature each; `command` calls one.
#[must_use]
pub fn signatures(server: &str, list: &FullTools, command: &str) -> String {
    let server = Escaped(server);
    if list.tools.is_empty() {
        return format!("{server} — no tools\n");
    }
    let mut out = format!("{server} — {} tool(s): {command} {server} TOOL ARGS\n", list.tools.len());
    for tool in &list.tools {
        let _ = writeln!(out, "{}", signature(tool, list.decisions.get(&tool.name).map(String::as_str)));
    }
    out
}

/// Tools that were found, each behind its server: the two words that `command` takes.
#[must_use]
pub fn found(list: &FoundToolList, command: &str) -> String {
    if list.tools.is_empty() {
        return format!("No tool has any of these words. {command} lists the servers\n");
    }
    let line = |found: &FoundToolSummary| {
        let server = Escaped(&found.server);
        match &found.definition {
            Some(tool) => format!("{server} {}\n", signature(tool, found.decision.as_deref())),
            None => {
                let sentence = found.tool.description.as_deref().map(first_sentence).unwrap_or_default();
                format!("{server} {} - {sentence}\n", Escaped(&found.tool.name))
            }
        }
    };
    list.tools.iter().map(line).collect()
}

/// A tool with nothing of its schema left out; `raw` is all that is known of it.
#[must_use]
pub fn whole(tool: &ToolDescription, raw: &RawValue) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Verbatim<'a> {
        #[serde(borrow, default)]
        input_schema: Option<&'a RawValue>,
        #[serde(borrow, default)]
        output_schema: Option<&'a RawValue>,
        #[serde(borrow, default)]
        annotations: Option<&'a RawValue>,
    }
    let mut out = format!("{}{}\n", Escaped(&tool.name), arguments(&tool.input_schema));
    let description = tool.description.as_deref().unwrap_or(NO_DESCRIPTION).trim();
    let _ = writeln!(out, "{}", EscapedLines(description));
    let Ok(verbatim) = serde_json::from_str::<Verbatim<'_>>(raw.get()) else { return out };
    for (what, part) in [
        ("Input schema", verbatim.input_schema),
        ("Output schema", verbatim.output_schema),
        ("Annotations", verbatim.annotations),
    ] {
        if let Some(part) = part.filter(|part| part.get() != "null") {
            let _ = writeln!(out, "{what}: {}", SafeJson(&layout::one_line(part)));
        }
    }
    out
}

/// A tool in full; `command` calls it.
#[must_use]
pub fn tool(server: &str, name: &str, tool: &ToolDescription, command: &str) -> String {
    let description = tool.description.as_deref().unwrap_or(NO_DESCRIPTION);
    let mut out = format!("{} — {description}\n\nInput schema:\n{}", Escaped(&tool.name), schema(&tool.input_schema));
    if let Some(output) = tool.output_schema.as_ref().filter(|schema| !schema.is_null()) {
        let _ = write!(out, "\nOutput schema (structured JSON output):\n{}", schema(output));
    }
    if let Some(annotations) = tool.annotations.as_ref().filter(|annotations| !annotations.is_empty()) {
        out.push_str("\nAnnotations:\n");
        for (key, value) in annotations {
            let _ = writeln!(out, "  {}: {}", Escaped(key), SafeJson(&value.to_string()));
        }
    }
    let (server, name) = (typed_name(server), typed_name(name));
    let _ = writeln!(out, "\nUse: {command} {server} {name} '{{\"key\":\"value\"}}' to call");
    out
}

/// Resources, or templates of them, of a server.
#[must_use]
pub fn resources(server: &str, what: &str, list: &[ResourceSummary]) -> String {
    if list.is_empty() {
        return format!("{} — no {what}s\n", Escaped(server));
    }
    let mut out = format!("{} — {} {what}(s):\n", Escaped(server), list.len());
    for item in list {
        let name = item.name.as_ref().map_or_else(String::new, |name| format!(" ({})", Escaped(name)));
        let kind = item.mime_type.as_ref().map_or_else(String::new, |kind| format!(" [{}]", Escaped(kind)));
        let description = item.description.as_ref().map_or_else(String::new, |text| format!(" — {}", Escaped(text)));
        let _ = writeln!(out, "  {}{name}{kind}{description}", Escaped(&item.uri));
    }
    out
}

/// Prompts of a server.
#[must_use]
pub fn prompts(server: &str, list: &[PromptSummary]) -> String {
    if list.is_empty() {
        return format!("{} — no prompts\n", Escaped(server));
    }
    let mut out = format!("{} — {} prompt(s):\n", Escaped(server), list.len());
    for prompt in list {
        let arguments: Vec<String> = prompt.arguments.iter().flatten().map(argument).collect();
        let description = prompt.description.as_deref().map(first_sentence).filter(|text| !text.is_empty());
        let description = description.map_or_else(String::new, |text| format!(" — {text}"));
        let _ = writeln!(out, "  {}({}){description}", Escaped(&prompt.name), arguments.join(", "));
    }
    out
}

fn argument(argument: &PromptArgumentSummary) -> String {
    format!("{}{}", Escaped(&argument.name), if argument.required { "" } else { "?" })
}

/// Why a listing is not all that there is, a line each, for standard error.
#[must_use]
pub fn partial(server: &str, why: &[String]) -> String {
    why.iter().map(|why| format!("Warning: {} — {}\n", Escaped(server), Escaped(why))).collect()
}

/// The properties of a JSON Schema, one a line.
fn schema(schema: &Value) -> String {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    if properties.is_empty() {
        return "  (no parameters)\n".to_owned();
    }
    let required = schema.get("required").and_then(Value::as_array);
    let mut out = String::new();
    for (name, property) in properties {
        let required = required.is_some_and(|names| names.iter().any(|n| n == name));
        let required = if required { ", required" } else { "" };
        let description = property.get("description").and_then(Value::as_str).filter(|text| !text.is_empty());
        let description = description.map_or_else(String::new, |text| format!(": {}", Escaped(text)));
        let (name, kind) = (Escaped(name), type_name(property));
        let _ = writeln!(out, "  {name} ({}{required}){description}", Escaped(&kind));
    }
    out
}

fn type_name(property: &Value) -> String {
    match property.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        _ => "unknown".to_owned(),
    }
}

/// Padded with blanks to a width in UTF-16 units, as JavaScript's `padEnd` counts.
fn padded(name: &str, width: usize) -> String {
    let name = Escaped(name).to_string();
    let missing = width.saturating_sub(name.encode_utf16().count());
    format!("{name}{}", " ".repeat(missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_still_followed_by_a_blank() {
        let list = serde_json::from_str(r#"{"servers":[{"name":"a-server-of-a-very-long-name","toolCount":1}]}"#);
        assert!(servers(&list.unwrap(), "tool-cli").contains("\n  a-server-of-a-very-long-name 1 tool(s)\n"));
    }

    #[test]
    fn a_server_that_is_not_ready_says_so_after_the_columns() {
        let list = r#"{"servers":[{"name":"s","toolCount":0,"examples":[],"status":"unavailable","new":1}]}"#;
        let text = servers(&serde_json::from_str(list).unwrap(), "tool-cli");
        assert!(text.contains("  s                    0 tool(s) [unavailable]\n"), "{text}");
        let list = r#"{"servers":[{"name":"s","toolCount":0,"status":"unavailable","reason":"Server \"s\" is not available: it\nended"}]}"#;
        let text = servers(&serde_json::from_str(list).unwrap(), "x");
        assert!(text.contains(" 0 tool(s) [unavailable: it\\nended]\n"), "{text}");
    }

    #[test]
    fn a_line_break_forges_no_line() {
        let list = r#"{"servers":[{"name":"a\n  b                    9 tool(s)","toolCount":1,"examples":["x\ny"],"status":"z\nz"}]}"#;
        assert_eq!(servers(&serde_json::from_str(list).unwrap(), "tool-cli").lines().count(), 4);
        let list =
            r#"{"tools":[{"name":"a\u001b[2K\n","description":"x\n  forged                         does all"}]}"#;
        let text = tools("s\n", &serde_json::from_str(list).unwrap(), "tool-cli");
        assert!(text.lines().count() == 4 && text.contains(r"a\u{1b}[2K\n"), "{text}");
        let list = r#"[{"uri":"a:b\n","name":"n\n","mimeType":"t\n","description":"d\u2028"}]"#;
        let list: Vec<ResourceSummary> = serde_json::from_str(list).unwrap();
        assert_eq!(resources("s", "resource", &list), "s — 1 resource(s):\n  a:b\\n (n\\n) [t\\n] — d\\u{2028}\n");
        let property = r#"{"properties":{"a\n":{"type":"s\n","description":"d\n"}}}"#;
        assert_eq!(schema(&serde_json::from_str(property).unwrap()), "  a\\n (s\\n): d\\n\n");
    }

    #[test]
    fn nothing_connected_and_nothing_offered_are_said() {
        assert_eq!(servers(&ListedServers { servers: Vec::new() }, "tool-cli"), "No MCP servers connected.\n");
        assert_eq!(resources("s", "resource", &[]), "s — no resources\n");
    }

    #[test]
    fn schemas_of_odd_shapes_do_not_fail() {
        for text in ["null", "true", "{}", r#"{"properties":[]}"#] {
            assert_eq!(schema(&serde_json::from_str(text).unwrap()), "  (no parameters)\n", "{text}");
        }
        let odd = r#"{"properties":{"a":true,"b":{"type":5},"c":{"type":["integer","null"]}},"required":"a"}"#;
        assert_eq!(schema(&serde_json::from_str(odd).unwrap()), "  a (unknown)\n  b (unknown)\n  c (integer,null)\n");
    }
}
