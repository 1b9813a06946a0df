//! The servers of the recorded wire vectors, with the results they were recorded with.

use serde_json::{Value, json};

const RECORDED: &str = include_str!("../../../vectors/tool-cli-0.3.0-wire.json");

/// The tools of one recorded server, in the order in which they were recorded.
pub(crate) fn tools(server: &str) -> Value {
    let recorded: Value = serde_json::from_str(RECORDED).unwrap_or_default();
    recorded["catalogue"].get(server).cloned().unwrap_or_else(|| json!([]))
}

/// The recorded result of a tool, or the message it fails with.
pub(crate) fn call(tool: &str, arguments: &Value) -> Result<Value, &'static str> {
    let said = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    match tool {
        "check_weather" => {
            let city = said("city");
            Ok(json!({
                "content": [{"type": "text", "text": format!("It is 21 in {city}")}],
                "structuredContent": {"city": city, "tempC": 21},
            }))
        }
        "alerts" => Ok(json!({"content": []})),
        "search_code" => Ok(json!({"content": [
            {"type": "text", "text": "first"},
            {"type": "text", "text": format!("second: {}", said("query"))},
            {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
        ]})),
        "delete_repo" => Ok(json!({
            "content": [{"type": "text", "text": "repository is protected"}, {"type": "text", "text": "ask an owner"}],
            "isError": true,
        })),
        _ => Err("upstream exploded"),
    }
}
