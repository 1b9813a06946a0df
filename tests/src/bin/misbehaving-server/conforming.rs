//! The mode that does what MCP's conformance suite asks of a server, which its scenarios find by their names.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::wire::{Wire, text};

/// One red pixel, and no sound.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
/// Between two things that are told while a tool runs.
const PAUSE: Duration = Duration::from_millis(50);

/// Tools without arguments.
const PLAIN: [&str; 12] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_error_handling",
    "test_tool_with_progress",
    "test_logging_tool",
    "test_streaming_elicitation",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
];

/// How often its tools and prompts have changed.
static CHANGES: AtomicUsize = AtomicUsize::new(0);

/// Answers what is not about all servers; false where it is none of this mode's.
pub(crate) fn answer(message: &Value, wire: &Wire) -> io::Result<bool> {
    let (id, params) = (&message["id"], &message["params"]);
    let result = match message["method"].as_str().unwrap_or_default() {
        "tools/list" => json!({"tools": tools()}),
        "tools/call" => called(params, wire)?,
        "resources/list" => json!({"resources": [
            {"uri": "test://static-text", "name": "Text", "description": "A text", "mimeType": "text/plain"},
            {"uri": "test://static-binary", "name": "Binary", "description": "A pixel", "mimeType": "image/png"},
        ]}),
        "resources/templates/list" => json!({"resourceTemplates": [
            {"uriTemplate": "test://template/{id}/data", "name": "Data", "description": "By its id"},
        ]}),
        "resources/read" => {
            let uri = params["uri"].as_str().unwrap_or_default();
            let Some(content) = content(uri) else {
                wire.error(id, -32002, "Resource not found")?;
                return Ok(true);
            };
            json!({ "contents": [content] })
        }
        "prompts/list" => json!({"prompts": prompts()}),
        "prompts/get" => filled(params),
        "completion/complete" => json!({"completion": {"values": ["paris", "park"], "total": 2, "hasMore": false}}),
        "logging/setLevel" => json!({}),
        _ => return Ok(false),
    };
    wire.result(id, &result)?;
    Ok(true)
}

/// What it says that it can do.
pub(crate) fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": true}, "resources": {}, "prompts": {"listChanged": true}, "completions": {}, "logging": {},
    })
}

fn tools() -> Vec<Value> {
    let plain = |name: &&str| json!({"name": name, "description": name, "inputSchema": {"type": "object"}});
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {
            "name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"}, "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    });
    let of_schema = json!({"name": "json_schema_2020_12_tool", "description": "Of JSON Schema", "inputSchema": schema});
    let changed = format!("changed_{}", CHANGES.load(Ordering::Relaxed));
    PLAIN.iter().map(plain).chain([of_schema, plain(&changed.as_str())]).collect()
}

fn called(params: &Value, wire: &Wire) -> io::Result<Value> {
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    Ok(match params["name"].as_str().unwrap_or_default() {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => json!({ "content": [image] }),
        "test_audio_content" => json!({"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]}),
        "test_embedded_resource" => json!({"content": [{"type": "resource", "resource": {
            "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content.",
        }}]}),
        "test_multiple_content_types" => json!({"content": [
            {"type": "text", "text": "Multiple content types test:"}, image,
            {"type": "resource", "resource": {"uri": "test://mixed-content-resource", "mimeType": "application/json",
                "text": "{\"test\":\"data\",\"value\":123}"}},
        ]}),
        name @ ("test_trigger_tool_change" | "test_trigger_prompt_change") => {
            CHANGES.fetch_add(1, Ordering::Relaxed);
            let kind = if name.contains("tool_change") { "tools" } else { "prompts" };
            wire.send(&json!({"jsonrpc": "2.0", "method": format!("notifications/{kind}/list_changed")}))?;
            text("changed")
        }
        "test_tool_with_logging" | "test_logging_tool" => {
            for data in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                let params = json!({"level": "info", "data": data});
                wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}))?;
                thread::sleep(PAUSE);
            }
            text("Logged three lines")
        }
        "test_tool_with_progress" => {
            for done in [0, 50, 100] {
                let params = json!({
                    "progressToken": params["_meta"]["progressToken"], "progress": done, "total": 100,
                });
                wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))?;
                thread::sleep(PAUSE);
            }
            text("Told of progress")
        }
        "test_error_handling" => {
            let mut result = text("This tool intentionally returns an error for testing");
            result["isError"] = json!(true);
            result
        }
        _ => text("called"),
    })
}

fn content(uri: &str) -> Option<Value> {
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    Some(match (uri, id) {
        ("test://static-text", _) => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        ("test://static-binary", _) => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        (_, Some(id)) => {
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
        _ => return None,
    })
}

fn prompts() -> Value {
    let required = |name: &str| json!({"name": name, "description": name, "required": true});
    json!([
        {"name": "test_simple_prompt", "description": "Simple"},
        {"name": "test_prompt_with_arguments", "description": "Filled in", "arguments": [required("arg1"), required("arg2")]},
        {"name": "test_prompt_with_embedded_resource", "description": "Embeds", "arguments": [required("resourceUri")]},
        {"name": "test_prompt_with_image", "description": "Shows"},
        {"name": format!("changed_{}", CHANGES.load(Ordering::Relaxed)), "description": "Changes"},
    ])
}

fn filled(params: &Value) -> Value {
    let arguments = &params["arguments"];
    let said = |content: Value| json!({"role": "user", "content": content});
    let says = |text: &str| said(json!({"type": "text", "text": text}));
    let messages = match params["name"].as_str().unwrap_or_default() {
        "test_prompt_with_arguments" => {
            let [first, second] = ["arg1", "arg2"].map(|name| arguments[name].as_str().unwrap_or_default());
            vec![says(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => vec![
            said(json!({"type": "resource", "resource": {"uri": arguments["resourceUri"], "mimeType": "text/plain",
                "text": "Embedded resource content for testing."}})),
            says("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![
            said(json!({"type": "image", "data": PNG, "mimeType": "image/png"})),
            says("Please analyze the image above."),
        ],
        _ => vec![says("This is a simple prompt for testing.")],
    };
    json!({ "messages": messages })
}
