//! What may have been meant by a name that is none, or by arguments that do not fit: a line for whoever reads standard
//! error, behind the bridge's own words.

use footbridge_cli::{
    gathered::gathered,
    schema::properties,
    signature::arguments,
    suggest::{closest, instead},
};
use footbridge_guest::answers::{ListedPrompts, ListedServers};
use footbridge_proto::{rpc::Reason, text::Escaped, wire::method};
use serde_json::{Value, json};

use crate::{
    asked::{Asked, described},
    failure::Failure,
    words::{SUBCOMMANDS, VERBS},
};

/// What a step named of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NamedThing {
    /// Nothing.
    Nothing,
    /// A tool.
    Tool(String),
    /// A prompt.
    Prompt(String),
}

/// The names that a step was typed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedNames {
    /// The server's.
    pub(crate) server: String,
    /// What of it.
    pub(crate) thing: NamedThing,
    /// Whether the server was the first word, where a subcommand may have been meant.
    pub(crate) is_first: bool,
}

impl TypedNames {
    /// Names behind no subcommand.
    pub(crate) fn of_tool(server: &str, tool: Option<&str>) -> Self {
        let thing = tool.map_or(NamedThing::Nothing, |tool| NamedThing::Tool(tool.to_owned()));
        Self { server: server.to_owned(), thing, is_first: true }
    }

    /// Names behind a subcommand.
    pub(crate) fn behind_subcommand(server: &str, thing: NamedThing) -> Self {
        Self { server: server.to_owned(), thing, is_first: false }
    }
}

/// Adds what there is to say to a failure that is about a server, and perhaps a tool or a prompt of it.
pub(crate) fn hinted(asked: &mut Asked, names: &TypedNames, failure: Failure) -> Failure {
    match failure {
        Failure::Client { source, call, .. } if asked.hints => {
            let hint = source.object().and_then(|error| {
                let data = error.data.clone().unwrap_or_default();
                match (error.reason(), &names.thing) {
                    (Some(Reason::UnknownServer), _) => of_server(asked, names),
                    (Some(Reason::UnknownTool), NamedThing::Tool(tool)) => of_tool(tool, &data),
                    (Some(Reason::UnknownPrompt), NamedThing::Prompt(prompt)) => {
                        of_prompt(asked, &names.server, prompt)
                    }
                    (Some(Reason::InvalidArguments), NamedThing::Tool(tool)) => {
                        of_arguments(asked, &names.server, tool, &data)
                    }
                    _ => None,
                }
            });
            Failure::Client { source, call, hint }
        }
        other => other,
    }
}

fn of_server(asked: &mut Asked, names: &TypedNames) -> Option<String> {
    let typed = names.server.as_str();
    if names.is_first && matches!(typed, "read" | "resources") {
        return Some(
            "resources are listed by: tool-cli resource list SERVER, and read by: tool-cli resource read SERVER URI"
                .to_owned(),
        );
    }
    if names.is_first && VERBS.contains(&typed) {
        return Some(format!(
            "\"{typed}\" is left out here: tool-cli lists servers, tool-cli SERVER its tools, and tool-cli SERVER TOOL ARGS calls \
             one"
        ));
    }
    let (_, list) = asked.get::<ListedServers>(method::LIST_SERVERS, &json!({})).ok()?;
    let known: Vec<&str> = list.servers.iter().map(|server| server.name.as_str()).collect();
    let words = SUBCOMMANDS.iter().filter(|_| names.is_first).copied();
    let meant = closest(typed, &known.iter().copied().chain(words).collect::<Vec<_>>());
    Some(match meant.filter(|meant| !known.contains(meant)) {
        Some(word) => format!("No server has this name; did you mean tool-cli {word}?"),
        None => format!("No server has this name{}", instead(typed, &known, "none is connected")),
    })
}

fn of_prompt(asked: &mut Asked, server: &str, prompt: &str) -> Option<String> {
    let (_, list) = asked.get::<ListedPrompts>(method::LIST_PROMPTS, &json!({ "server": server })).ok()?;
    let known: Vec<&str> = list.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    Some(format!("No prompt has this name{}", instead(prompt, &known, "the server has none")))
}

fn of_tool(tool: &str, data: &Value) -> Option<String> {
    let known: Vec<&str> = data["discoveredTools"].as_array()?.iter().filter_map(Value::as_str).collect();
    Some(format!("No tool has this name{}", instead(tool, &known, "the server has none")))
}

fn of_arguments(asked: &mut Asked, server: &str, tool: &str, data: &Value) -> Option<String> {
    let (_, full) = described(asked, server, tool).ok()?;
    let mut hint = format!("{} takes {}", Escaped(tool), arguments(&full.input_schema));
    let schema = gathered(&full.input_schema);
    let known: Vec<&str> = properties(&schema).map(|(name, _)| name.as_str()).collect();
    for violation in data["validationErrors"].as_array().into_iter().flatten() {
        let name = violation["params"]["additionalProperty"].as_str();
        if let Some((name, meant)) = name.and_then(|name| Some((name, closest(name, &known)?))) {
            hint.push_str(&format!("\n  for \"{}\", did you mean \"{}\"?", Escaped(name), Escaped(meant)));
        }
    }
    Some(hint)
}
