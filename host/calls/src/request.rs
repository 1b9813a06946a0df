//! What a call asks of a server: as a guest names it, and as it is sent.

use std::{borrow::Cow, sync::Arc};

use serde::{Serialize, Serializer};

use crate::{
    meta::CallMeta,
    service_call::{ServiceCall, ServiceRequest},
};
use footbridge_core::{budget::Held, catalogue::Tool, digest::Digest, gate::Subject};
use serde_json::value::RawValue;

/// What a guest asked to be sent to a server, as it wrote it.
#[derive(Debug)]
pub struct CallRequest {
    /// The server's name.
    pub server: String,
    /// What is asked of it.
    pub target: Target,
    /// The arguments as they were written; checked JSON.
    pub arguments: Option<Box<RawValue>>,
    /// What goes to the server besides.
    pub meta: Option<CallMeta>,
    /// Their part of the budget.
    pub held: Option<Held>,
}

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
    /// A request to a service: its method and path.
    Service(String),
    /// A tunnel, by its host and port.
    Tunnel(String),
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
/// The same of a template.
pub const TEMPLATE: &str = "ref/resource";

/// The words for requests to services, and for tunnels, in records.
const HTTP: &str = "http";
const TUNNEL: &str = "tunnel";

impl Target {
    /// What a request to a service asks.
    #[must_use]
    pub(crate) fn of_service(request: &ServiceRequest) -> Self {
        if request.is_tunnel() { Self::Tunnel(request.label()) } else { Self::Service(request.label()) }
    }

    /// The word for it in records.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Resource(_) => "resource",
            Self::Prompt(_) => "prompt",
            Self::Completion(_) => "completion",
            Self::Service(_) => HTTP,
            Self::Tunnel(_) => TUNNEL,
        }
    }

    /// The tool's or prompt's name, or the resource's URI, or the template.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Tool(name) | Self::Resource(name) | Self::Prompt(name) | Self::Service(name) | Self::Tunnel(name) => {
                name
            }
            Self::Completion(about) => about.name(),
        }
    }
}

/// What is sent to a server. It is sent once, whatever happens.
#[derive(Debug)]
pub enum OutgoingRequest {
    /// `tools/call`.
    CallTool {
        /// The tool's name.
        name: String,
        /// The definition that the call was decided about.
        definition: Digest,
        /// The canonical text of its arguments, a JSON object: what was digested and recorded is what is sent. It
        /// never becomes a value again, which would cost up to 35 times as much.
        arguments: Box<RawValue>,
        /// Whether the definition wants some arguments repeated in HTTP headers.
        in_headers: bool,
        /// Whether its server runs it as a task alone.
        as_task: bool,
    },
    /// `resources/read`.
    ReadResource {
        /// The resource's URI.
        uri: String,
    },
    /// `prompts/get`.
    GetPrompt {
        /// The prompt's name.
        name: String,
        /// The canonical text of its arguments, a JSON object of strings.
        arguments: Box<RawValue>,
    },
    /// `completion/complete`.
    Complete {
        /// What it is about.
        about: Completed,
        /// The canonical text of its parameters, what it is about included.
        params: Box<RawValue>,
    },
    /// A request to a service, which no MCP server gets.
    Service(Box<ServiceCall>),
}

impl OutgoingRequest {
    /// The word for its kind in records, and what it names: a tool, a prompt, or a URI.
    #[must_use]
    pub fn named(&self) -> (&'static str, &str) {
        match self {
            Self::CallTool { name, .. } => ("tool", name),
            Self::ReadResource { uri } => ("resource", uri),
            Self::GetPrompt { name, .. } => ("prompt", name),
            Self::Complete { about, .. } => ("completion", about.name()),
            Self::Service(call) => (if call.is_tunnel() { TUNNEL } else { HTTP }, call.name()),
        }
    }

    /// The tool's or prompt's name, or the resource's URI.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.named().1
    }

    /// The definition of its tool that the call was decided about; nothing else has one.
    #[must_use]
    pub fn definition(&self) -> Option<Digest> {
        match self {
            Self::CallTool { definition, .. } => Some(*definition),
            Self::ReadResource { .. } | Self::GetPrompt { .. } | Self::Complete { .. } | Self::Service(_) => None,
        }
    }

    /// Whether its tool is still what the call was decided about, as it is by its name now.
    #[must_use]
    pub fn is_current<'t>(&self, now: impl FnOnce(&str) -> Option<&'t Arc<Tool>>) -> bool {
        self.definition().is_none_or(|decided| now(self.subject()).is_some_and(|tool| tool.digest() == decided))
    }

    /// All that a guest says with it.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        [self.subject()].into_iter().chain(self.arguments().map(RawValue::get))
    }

    /// The text of its arguments for the record: what is shown, but for requests to services, whose bodies no record has.
    #[must_use]
    pub(crate) fn recorded(&self) -> Option<&RawValue> {
        match self {
            Self::Service(call) => Some(call.recorded()),
            _ => self.arguments(),
        }
    }

    /// The canonical text of its arguments: what is digested, recorded, shown and sent. A resource has none.
    #[must_use]
    pub fn arguments(&self) -> Option<&RawValue> {
        match self {
            Self::CallTool { arguments, .. } | Self::GetPrompt { arguments, .. } => Some(arguments),
            Self::Complete { params, .. } => Some(params),
            Self::Service(call) => Some(call.shown()),
            Self::ReadResource { .. } => None,
        }
    }
}

/// Characters of a guest's own word that an answer repeats; nobody needs a megabyte of it back.
const MAX_REPEATED: usize = 256;

/// A guest's own word, short enough to be repeated to it.
#[must_use]
pub fn repeated(word: &str) -> Cow<'_, str> {
    match word.char_indices().nth(MAX_REPEATED) {
        Some((at, _)) => format!("{}...", &word[..at]).into(),
        None => word.into(),
    }
}
