//! The shapes of answers as a client reads them.
//!
//! More lenient than what a bridge writes (`footbridge_proto::wire`): both generations of bridges and words of a
//! later version must pass. What is not needed is not looked at; what is needed and of another type is an error.

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

/// Result of `listServers`.
#[derive(Debug, Deserialize)]
pub struct ServerList {
    /// In the bridge's order.
    pub servers: Vec<Server>,
}

/// One server.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// Its name.
    pub name: String,
    /// How many tools it has.
    pub tool_count: u64,
    /// Some of their names.
    #[serde(default)]
    pub examples: Vec<String>,
    /// Why it cannot be used right now, such as `starting` or `unavailable`.
    #[serde(default)]
    pub status: Option<String>,
}

/// Result of `listTools`.
#[derive(Debug, Deserialize)]
pub struct ToolList {
    /// In the bridge's order.
    pub tools: Vec<ToolSummary>,
}

/// One tool.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSummary {
    /// Its name.
    pub name: String,
    /// What it says of itself.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether its results are structured JSON.
    #[serde(default)]
    pub has_structured_output: bool,
}

/// Result of `describeTool`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it says of itself.
    #[serde(default)]
    pub description: Option<String>,
    /// What arguments it takes.
    #[serde(default)]
    pub input_schema: Value,
    /// What structured results look like.
    #[serde(default)]
    pub output_schema: Option<Value>,
    /// Hints about what it does.
    #[serde(default)]
    pub annotations: Option<Map<String, Value>>,
}

/// Result of `callTool`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    /// Blocks, each as its text.
    #[serde(default)]
    pub content: Vec<Box<RawValue>>,
    /// Whether the tool reports an error.
    #[serde(default)]
    pub is_error: bool,
    /// The result as JSON, where the tool gives one.
    #[serde(default)]
    pub structured_content: Option<Box<RawValue>>,
}

/// One block of a [`CallResult`], as far as printing it needs to know.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Block {
    /// `text`, `image`, `audio`, `resource` or another.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text of a text block.
    #[serde(default)]
    pub text: Option<String>,
    /// The base64 of an image or audio block.
    #[serde(default)]
    pub data: Option<String>,
    /// What the data is.
    #[serde(default)]
    pub mime_type: Option<String>,
    /// The contents of an embedded resource.
    #[serde(default)]
    pub resource: Option<Content>,
}

/// Result of `readResource`.
#[derive(Debug, Deserialize)]
pub struct ResourceContents {
    /// The resource's parts, each as its text.
    pub contents: Vec<Box<RawValue>>,
}

/// One part of a resource.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Content {
    /// Which one.
    #[serde(default)]
    pub uri: String,
    /// What it is.
    #[serde(default)]
    pub mime_type: Option<String>,
    /// Its text.
    #[serde(default)]
    pub text: Option<String>,
    /// Its bytes in base64.
    #[serde(default)]
    pub blob: Option<String>,
}

/// Result of `listResources`.
#[derive(Debug, Deserialize)]
pub struct ResourceList {
    /// In the bridge's order.
    pub resources: Vec<ResourceSummary>,
}

/// Result of `listResourceTemplates`.
#[derive(Debug, Deserialize)]
pub struct TemplateList {
    /// In the bridge's order.
    pub templates: Vec<ResourceSummary>,
}

/// One resource or resource template.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSummary {
    /// Its uri, or the template of its uris.
    #[serde(alias = "uriTemplate")]
    pub uri: String,
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
    /// What it is.
    #[serde(default)]
    pub mime_type: Option<String>,
    /// What it says of itself.
    #[serde(default)]
    pub description: Option<String>,
}
