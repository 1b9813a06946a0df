//! Which server a call is for. With one server that is said by the path. Where all servers are one it is said by the name
//! of a tool or prompt, or found among what the session sees; a resource is its server's that lists it, or that has the
//! template it is of.
//!
//! What is of no server goes on all the same, and is refused and recorded like every name that does not exist.

use std::{sync::Arc, time::Duration};

use super::{endpoint::Endpoint, names, request::McpCall};
use crate::{
    dialect::{CallAction, CallKey, CallOf},
    lookups, search,
};
use footbridge_calls::{
    auth::Principal,
    call::Stages,
    catalogue::Visible,
    request::{CallRequest, Completed, Target},
};

/// The call of a client: by what it can be ended, and whether its client hears that it waits for a person.
pub(super) fn call(
    endpoint: Endpoint,
    call: McpCall,
    wait: Duration,
    key: Option<CallKey>,
    hears_waiting: bool,
) -> CallAction {
    let call = match endpoint.server {
        Some(server) => CallOf::Known(of_server(server, call)),
        None => match call {
            McpCall::Tool { ref name, .. } | McpCall::Prompt { ref name, .. } if !names::has_digest(name) => {
                let (server, name) = names::split(name);
                let (server, name) = (server.to_owned(), name.to_owned());
                CallOf::Known(of_server(server, renamed(call, name)))
            }
            call => CallOf::Sought(Box::new(move |stages, principal| {
                Box::pin(async move { sought(&stages, &principal, call, wait).await })
            })),
        },
    };
    CallAction { call, meta: None, key, hears_waiting, logs: None, kept: None }
}

fn of_server(server: String, call: McpCall) -> CallRequest {
    let (target, arguments) = match call {
        McpCall::Tool { name, arguments } => (Target::Tool(name), arguments),
        McpCall::Resource { uri } => (Target::Resource(uri), None),
        McpCall::Prompt { name, arguments } => (Target::Prompt(name), arguments),
        McpCall::Completion { about, params } => (Target::Completion(about), Some(params)),
    };
    CallRequest { server, target, arguments, meta: None, held: None }
}

/// The same of what its server calls it.
fn renamed(call: McpCall, name: String) -> McpCall {
    match call {
        McpCall::Tool { arguments, .. } => McpCall::Tool { name, arguments },
        McpCall::Resource { .. } => McpCall::Resource { uri: name },
        McpCall::Prompt { arguments, .. } => McpCall::Prompt { name, arguments },
        McpCall::Completion { about, params } => {
            let about = match about {
                Completed::Prompt { .. } => Completed::Prompt { name },
                Completed::Template { .. } => Completed::Template { uri: name },
            };
            McpCall::Completion { about, params }
        }
    }
}

async fn sought(stages: &Arc<Stages>, principal: &Principal, call: McpCall, wait: Duration) -> CallRequest {
    // Without a server named there is no failure.
    let within = search::within(stages, principal, None, wait).await.unwrap_or_default();
    let named = Named::of(&call);
    let bytes = lookups::bytes(&within);
    match lookups::through(stages, principal, bytes, move || named.origin(&within)).await {
        Ok(Some((server, name))) => of_server(server, renamed(call, name)),
        // Where it could not be looked up, it is of no server either.
        Ok(None) | Err(_) => of_server(String::new(), call),
    }
}

/// What a call names, where all servers are one.
enum Named {
    Tool(String),
    Resource(String),
    Prompt(String),
    Template(String),
}

impl Named {
    fn of(call: &McpCall) -> Self {
        match call {
            McpCall::Tool { name, .. } => Self::Tool(name.clone()),
            McpCall::Resource { uri } => Self::Resource(uri.clone()),
            McpCall::Prompt { name, .. } | McpCall::Completion { about: Completed::Prompt { name }, .. } => {
                Self::Prompt(name.clone())
            }
            McpCall::Completion { about: Completed::Template { uri }, .. } => Self::Template(uri.clone()),
        }
    }

    /// Whose it is.
    fn origin(&self, within: &[Visible]) -> Option<Origin> {
        match self {
            Self::Tool(name) => tool(within, name),
            Self::Resource(uri) => resource(within, uri),
            Self::Prompt(name) => prompt(within, name),
            Self::Template(uri) => template(within, uri),
        }
    }
}

/// The server of a tool, and what it calls it.
pub(super) async fn tool_named(
    stages: &Stages,
    principal: &Principal,
    endpoint: Endpoint,
    name: &str,
    wait: Duration,
) -> Origin {
    if let Some(server) = endpoint.server {
        return (server, name.to_owned());
    }
    if !names::has_digest(name) {
        let (server, name) = names::split(name);
        return (server.to_owned(), name.to_owned());
    }
    let within = search::within(stages, principal, None, wait).await.unwrap_or_default();
    let named = Named::Tool(name.to_owned());
    let bytes = lookups::bytes(&within);
    let found = lookups::through(stages, principal, bytes, move || named.origin(&within)).await;
    found.ok().flatten().unwrap_or_default()
}

/// A server, and what it calls what was asked for.
pub(super) type Origin = (String, String);

fn tool(within: &[Visible], name: &str) -> Option<Origin> {
    within.iter().find_map(|visible| {
        let tool = visible.entries().tools().find(|tool| names::joined(visible.server(), tool.name()) == name)?;
        Some((visible.server().to_string(), tool.name().to_owned()))
    })
}

fn prompt(within: &[Visible], name: &str) -> Option<Origin> {
    if !names::has_digest(name) {
        let (server, name) = names::split(name);
        return Some((server.to_owned(), name.to_owned()));
    }
    within.iter().find_map(|visible| {
        let mut prompts = visible.entries().prompts();
        let prompt = prompts.find(|prompt| names::joined(visible.server(), prompt.name()) == name)?;
        Some((visible.server().to_string(), prompt.name().to_owned()))
    })
}

/// What stands between a server and a URI, where several servers have it.
const OF: char = '+';

/// A URI that says whose it is.
pub(super) fn qualified(server: &str, uri: &str) -> String {
    format!("{server}{OF}{uri}")
}

/// Whether a URI begins as one does that says whose it is, so that it could be taken for another's.
pub(super) fn looks_qualified(within: &[Visible], uri: &str) -> bool {
    within.iter().any(|visible| rest_of(visible, uri).is_some())
}

/// What a URI is of this server, where it names that in front.
fn rest_of<'a>(visible: &Visible, uri: &'a str) -> Option<&'a str> {
    uri.strip_prefix(visible.server().as_str())?.strip_prefix(OF)
}

/// The servers that a URI may name in front, and what it is of them; the longest name first.
fn named<'a>(within: &'a [Visible], uri: &'a str) -> impl Iterator<Item = (&'a Visible, &'a str)> {
    let mut named: Vec<_> = within.iter().filter_map(|visible| Some((visible, rest_of(visible, uri)?))).collect();
    named.sort_by_key(|(_, rest)| rest.len());
    named.into_iter()
}

fn origin(visible: &Visible, name: &str) -> Origin {
    (visible.server().to_string(), name.to_owned())
}

/// How much of a URI is the beginning of a template of this server; none where it begins like none of them.
fn fits(visible: &Visible, uri: &str) -> Option<usize> {
    let starts = visible.entries().templates().map(|(template, _)| template.split('{').next().unwrap_or_default());
    starts.filter(|start| uri.starts_with(start)).map(str::len).max()
}

/// The server of a resource. What names one in front is that one's, if it has it, whatever others list: no server can put
/// a resource of its own in the place of another's.
fn resource(within: &[Visible], uri: &str) -> Option<Origin> {
    let has = |(visible, rest): &(&Visible, &str)| visible.entries().has_resource(rest);
    let fitting = |(visible, rest): &(&Visible, &str)| fits(visible, rest).is_some();
    if let Some((visible, rest)) = named(within, uri).find(has).or_else(|| named(within, uri).find(fitting)) {
        return Some(origin(visible, rest));
    }
    if let Some(visible) = within.iter().find(|visible| visible.entries().has_resource(uri)) {
        return Some(origin(visible, uri));
    }
    if let Some((visible, rest)) = named(within, uri).next() {
        return Some(origin(visible, rest));
    }
    let fitting = within.iter().filter_map(|visible| Some((fits(visible, uri)?, visible)));
    // Of several that fit equally well the first by name.
    if let Some((_, visible)) = fitting.rev().max_by_key(|(length, _)| *length) {
        return Some(origin(visible, uri));
    }
    let mut with_resources = within.iter().filter(|visible| {
        let entries = visible.entries();
        entries.resources().len() + entries.templates().len() > 0
    });
    match (with_resources.next(), with_resources.next()) {
        (Some(only), None) => Some(origin(only, uri)),
        _ => None,
    }
}

/// The server of a template, which is found as a resource is.
fn template(within: &[Visible], uri: &str) -> Option<Origin> {
    let has = |(visible, rest): &(&Visible, &str)| visible.entries().has_template(rest);
    if let Some((visible, rest)) = named(within, uri).find(has) {
        return Some(origin(visible, rest));
    }
    let listed = within.iter().find(|visible| visible.entries().has_template(uri)).map(|visible| (visible, uri));
    listed.or_else(|| named(within, uri).next()).map(|(visible, name)| origin(visible, name))
}
