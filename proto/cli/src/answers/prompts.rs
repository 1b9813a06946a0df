//! Prompts, completions and found tools as a client reads them: what only Footbridge has.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Block, ToolDescription, ToolSummary};

/// Result of `searchTools`.
#[derive(Debug, Deserialize)]
pub struct FoundToolList {
    /// The best match first.
    pub tools: Vec<FoundToolSummary>,
}

/// One tool in the result of `searchTools`.
#[derive(Debug, Deserialize)]
pub struct FoundToolSummary {
    /// The server that has it.
    pub server: String,
    /// The tool.
    #[serde(flatten)]
    pub tool: ToolSummary,
    /// All that is known of it, where that was asked for.
    #[serde(default)]
    pub definition: Option<ToolDescription>,
    /// What is decided about a call where it is not simply allowed: `ask` or `deny`.
    #[serde(default)]
    pub decision: Option<String>,
}

/// Result of `listPrompts`.
#[derive(Debug, Deserialize)]
pub struct ListedPrompts {
    /// In the bridge's order.
    pub prompts: Vec<PromptSummary>,
}

/// One prompt in the result of `listPrompts`.
#[derive(Debug, Deserialize)]
pub struct PromptSummary {
    /// Its name.
    pub name: String,
    /// What people call it.
    #[serde(default)]
    pub title: Option<String>,
    /// What it says of itself.
    #[serde(default)]
    pub description: Option<String>,
    /// What it takes.
    #[serde(default)]
    pub arguments: Option<Vec<PromptArgumentSummary>>,
}

/// One argument of a prompt; its value is a text.
#[derive(Debug, Deserialize)]
pub struct PromptArgumentSummary {
    /// Its name.
    pub name: String,
    /// What it says of itself.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether the prompt cannot be got without it.
    #[serde(default)]
    pub required: bool,
}

/// Result of `getPrompt`.
#[derive(Debug, Deserialize)]
pub struct FilledPrompt {
    /// What it says of itself.
    #[serde(default)]
    pub description: Option<String>,
    /// In the server's order.
    pub messages: Vec<PromptMessage>,
}

/// One message of a prompt.
#[derive(Debug, Deserialize)]
pub struct PromptMessage {
    /// Who says it: `user` or `assistant`.
    pub role: String,
    /// What is said, as its text.
    pub content: Box<RawValue>,
}

impl PromptMessage {
    /// Its content, read.
    #[must_use]
    pub fn block(&self) -> Block {
        Block::read(&self.content)
    }
}

/// What a value may go on as, in the result of `complete`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// The best first.
    pub values: Vec<String>,
    /// How many there are in all, where the server says so.
    #[serde(default)]
    pub total: Option<u64>,
    /// Whether there are more.
    #[serde(default)]
    pub has_more: bool,
}
