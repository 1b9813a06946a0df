//! What a call asks of a server, before it is known whether the server has it.

/// Every kind of call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `callTool` with a tool's name.
    Tool(String),
    /// `readResource` with a URI.
    Resource(String),
    /// `getPrompt` with a prompt's name.
    Prompt(String),
}

impl Target {
    /// The word for it in records.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Resource(_) => "resource",
            Self::Prompt(_) => "prompt",
        }
    }

    /// The tool's or prompt's name, or the resource's URI.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Tool(name) | Self::Resource(name) | Self::Prompt(name) => name,
        }
    }
}
