//! What a call asks of a server, before it is known whether the server has it.

use serde::{Serialize, Serializer};

use footbridge_core::gate::Subject;

/// Every kind of call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `callTool` with a tool's name.
    Tool(String),
    /// `readResource` with a URI.
    Resource(String),
    /// `getPrompt` with a prompt's name.
    Prompt(String),
    /// `complete`.
    Completion(Completed),
}

/// What a completion is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completed {
    /// An argument of a prompt.
    Prompt {
        /// The prompt's name.
        name: String,
    },
    /// A part of a resource template.
    Template {
        /// The template, as the server lists it.
        uri: String,
    },
}

impl Completed {
    /// The prompt's name, or the template.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Prompt { name } => name,
            Self::Template { uri } => uri,
        }
    }

    /// What it is about, for rules.
    #[must_use]
    pub fn subject<'a>(&'a self, server: &'a str) -> Subject<'a> {
        match self {
            Self::Prompt { name } => Subject::completion(server, name),
            Self::Template { uri } => Subject::template_completion(server, uri),
        }
    }
}

/// As MCP writes it, with its members in the order of their names.
impl Serialize for Completed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let members = match self {
            Self::Prompt { name } => [("name", name.as_str()), ("type", PROMPT)],
            Self::Template { uri } => [("type", TEMPLATE), ("uri", uri)],
        };
        serializer.collect_map(members)
    }
}

/// What `type` says in a `ref`.
pub const PROMPT: &str = "ref/prompt";
pub const TEMPLATE: &str = "ref/resource";

impl Target {
    /// The word for it in records.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Resource(_) => "resource",
            Self::Prompt(_) => "prompt",
            Self::Completion(_) => "completion",
        }
    }

    /// The tool's or prompt's name, or the resource's URI, or the template.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Tool(name) | Self::Resource(name) | Self::Prompt(name) => name,
            Self::Completion(about) => about.name(),
        }
    }
}
