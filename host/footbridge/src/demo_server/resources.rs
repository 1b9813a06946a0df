//! Notes as MCP resources.

use serde_json::{Map, Value, json};

use super::{message::RpcError, notes::Notes};

/// How many characters of a note its listing shows.
const PREVIEW: usize = 60;

/// Answers `resources/list`.
pub(super) fn list(notes: &Notes) -> Value {
    let listed = notes.iter().map(|(id, uri, text)| {
        json!({
            "uri": uri,
            "name": format!("note-{id}"),
            "title": format!("Note {id}"),
            "description": preview(text),
            "mimeType": "text/plain",
            "size": text.len(),
        })
    });
    json!({"resources": listed.collect::<Vec<_>>()})
}

/// Answers `resources/templates/list`.
pub(super) fn templates() -> Value {
    json!({"resourceTemplates": [{
        "uriTemplate": "note:///{id}",
        "name": "note",
        "title": "A note",
        "description": "A note by its number, as add_note gave it.",
        "mimeType": "text/plain",
    }]})
}

/// Answers `resources/read`.
pub(super) fn read(notes: &Notes, params: &Map<String, Value>) -> Result<Value, RpcError> {
    let Some(uri) = params.get("uri").and_then(Value::as_str) else {
        return Err(RpcError::invalid_params("\"uri\" is missing"));
    };
    let text = notes.read(uri).ok_or_else(|| RpcError::resource_not_found(uri))?;
    Ok(json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}))
}

fn preview(text: &str) -> String {
    let line: String = text.lines().next().unwrap_or_default().chars().take(PREVIEW).collect();
    if line.len() < text.len() { format!("{line}…") } else { line }
}
