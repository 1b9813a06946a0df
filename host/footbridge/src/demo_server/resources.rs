//! Notes as MCP resources.

use rmcp::{
    ErrorData,
    model::{
        ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
        ResourceTemplate,
    },
};

use super::notes::Notes;

/// How many characters of a note its listing shows.
const PREVIEW: usize = 60;

const MIME_TYPE: &str = "text/plain";

/// Answers `resources/list`.
pub(super) fn list(notes: &Notes) -> ListResourcesResult {
    let listed = notes.iter().map(|(id, uri, text)| {
        Resource::new(uri, format!("note-{id}"))
            .with_title(format!("Note {id}"))
            .with_description(preview(text))
            .with_mime_type(MIME_TYPE)
            .with_size(text.len() as u64)
    });
    ListResourcesResult::with_all_items(listed.collect())
}

/// Answers `resources/templates/list`.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let note = ResourceTemplate::new("note:///{id}", "note")
        .with_title("A note")
        .with_description("A note by its number, as add_note gave it.")
        .with_mime_type(MIME_TYPE);
    ListResourceTemplatesResult::with_all_items(vec![note])
}

/// Answers `resources/read`.
pub(super) fn read(notes: &Notes, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let missing = || ErrorData::resource_not_found(format!("Resource not found: {uri}"), None);
    let contents = ResourceContents::text(notes.read(uri).ok_or_else(missing)?, uri).with_mime_type(MIME_TYPE);
    Ok(ReadResourceResult::new(vec![contents]))
}

fn preview(text: &str) -> String {
    let line: String = text.lines().next().unwrap_or_default().chars().take(PREVIEW).collect();
    if line.len() < text.len() { format!("{line}…") } else { line }
}
