//! A prompt as its server said it, and what it takes.

use footbridge_proto::json;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BadEntry, MAX_KEY};

/// One prompt.
#[derive(Debug)]
pub struct Prompt {
    name: String,
    raw: Box<RawValue>,
    arguments: Vec<PromptArgument>,
}

/// One argument of a prompt. Its value is a text (MCP 2025-11-25, prompts).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Whether the prompt cannot be got without it.
    #[serde(default)]
    pub required: bool,
}

impl Prompt {
    pub(super) fn parse(raw: Box<RawValue>) -> Result<Self, BadEntry> {
        #[derive(Deserialize)]
        struct Said {
            name: String,
            #[serde(default)]
            arguments: Option<Vec<PromptArgument>>,
        }
        json::check(raw.get().as_bytes(), json::MAX_BODY_DEPTH)?;
        let said: Said = serde_json::from_str(raw.get()).map_err(|_| BadEntry::NoPrompt)?;
        if !(1..=MAX_KEY).contains(&said.name.len()) {
            return Err(BadEntry::NoKey("name"));
        }
        Ok(Self { name: said.name, raw, arguments: said.arguments.unwrap_or_default() })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All that its server said of it.
    #[must_use]
    pub fn definition(&self) -> &RawValue {
        &self.raw
    }

    /// What it takes.
    #[must_use]
    pub fn arguments(&self) -> &[PromptArgument] {
        &self.arguments
    }
}
