//! A tool in this process: its definition, what a handler gets, and what it gives.

use std::{fmt::Display, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;

use crate::events::{Events, LogLevel};

/// What a tool says of itself. Guests see all of it.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    members: Map<String, Value>,
}

impl ToolDefinition {
    /// A tool that takes any object. Its name has 1 to 1,024 bytes.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let members = Map::from_iter([
            ("name".to_owned(), Value::String(name.into())),
            ("inputSchema".to_owned(), json!({"type": "object"})),
        ]);
        Self { members }
    }

    /// What it does, for whoever chooses between tools.
    #[must_use]
    pub fn description(self, text: impl Into<String>) -> Self {
        self.with("description", Value::String(text.into()))
    }

    /// The JSON Schema of its arguments. They are checked before the handler runs.
    #[must_use]
    pub fn input_schema(self, schema: Value) -> Self {
        self.with("inputSchema", schema)
    }

    /// The JSON Schema of its structured results.
    #[must_use]
    pub fn output_schema(self, schema: Value) -> Self {
        self.with("outputSchema", schema)
    }

    /// Any other member of an MCP tool, such as `title`, `annotations` or `_meta`.
    #[must_use]
    pub fn with(mut self, member: &str, value: Value) -> Self {
        self.members.insert(member.to_owned(), value);
        self
    }

    pub(super) fn name(&self) -> &str {
        self.members.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn to_raw(&self) -> serde_json::Result<Box<RawValue>> {
        serde_json::value::to_raw_value(&self.members)
    }
}

/// What a handler gets besides its arguments.
#[derive(Debug, Clone)]
pub struct ToolContext {
    pub(super) cancel: CancellationToken,
    pub(super) events: Events,
    pub(super) tool: Arc<str>,
}

impl ToolContext {
    /// The tool's name.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Ends when nobody waits for the result any more. A handler that goes on is dropped 2 s later.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// Whether nobody waits for the result any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Tells whoever watches how far the call is, and how far it will go.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.events.progress(progress, total, message);
    }

    /// Tells whoever watches a line about the call.
    pub fn log(&self, level: LogLevel, message: &str) {
        self.events.log(level, message);
    }
}

/// What a tool gives back.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    content: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

impl ToolResult {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().and_text(text)
    }

    /// A value: structured if it is an object, and its text for clients that know no structured results.
    #[must_use]
    pub fn json(value: Value) -> Self {
        let text = Self::text(value.to_string());
        Self { structured_content: value.is_object().then_some(value), ..text }
    }

    /// The tool failed: why, and what to do next. Guests read it.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// One more text.
    #[must_use]
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.and(json!({"type": "text", "text": text.into()}))
    }

    /// One more image, of a type such as `image/png`.
    #[must_use]
    pub fn and_image(self, bytes: &[u8], mime_type: &str) -> Self {
        self.and(json!({"type": "image", "data": STANDARD.encode(bytes), "mimeType": mime_type}))
    }

    /// One more block of content, as MCP has them.
    #[must_use]
    pub fn and(mut self, block: Value) -> Self {
        self.content.push(block);
        self
    }
}

/// A handler's error becomes a result with `isError`. Guests read its text, so it holds no path and no credential.
impl<E: Display> From<Result<Self, E>> for ToolResult {
    fn from(result: Result<Self, E>) -> Self {
        result.unwrap_or_else(|error| Self::error(error.to_string()))
    }
}
