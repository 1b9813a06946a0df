//! What is not there, for this session: the one answer for what nobody has and for what is hidden.

use std::{borrow::Cow, sync::Arc};

use footbridge_proto::rpc::{ErrorObject, Reason};

use footbridge_core::{
    catalogue::{Catalogue, Prompt, Tool},
    names::ServerName,
};

/// Characters of a guest's own word that an answer repeats; nobody needs a megabyte of it back.
const MAX_REPEATED: usize = 256;

/// A guest's own word, short enough to be repeated to it.
pub fn repeated(word: &str) -> Cow<'_, str> {
    match word.char_indices().nth(MAX_REPEATED) {
        Some((at, _)) => format!("{}...", &word[..at]).into(),
        None => word.into(),
    }
}

/// The answer for a server that is not among these.
pub(super) fn no_such_server(names: &[ServerName], server: &str) -> ErrorObject {
    let names: Vec<&str> = names.iter().map(ServerName::as_str).collect();
    let connected = if names.is_empty() { "(none)".to_owned() } else { names.join(", ") };
    let server = repeated(server);
    ErrorObject::new(Reason::UnknownServer, format!("Server \"{server}\" not found. Connected: {connected}"))
}

/// Names of tools or prompts that an answer about an unknown one lists: they come from a server, and could be
/// megabytes.
const MAX_DISCOVERED: usize = 100;

/// The tool with exactly this name.
///
/// # Errors
/// The answer for the guest: there is none, or it is not what was pinned.
pub fn find_tool<'c>(catalogue: &'c Catalogue, server: &ServerName, name: &str) -> Result<&'c Arc<Tool>, ErrorObject> {
    if let Some(tool) = catalogue.tool(name) {
        return Ok(tool);
    }
    if catalogue.is_changed(name) {
        return Err(changed(server, name));
    }
    let name = repeated(name);
    let discovered: Vec<&str> = catalogue.tools().map(|t| t.name()).take(MAX_DISCOVERED).collect();
    Err(ErrorObject::new(Reason::UnknownTool, format!("Tool \"{name}\" not found on server \"{server}\""))
        .with("server", server.as_str())
        .with("tool", name.as_ref())
        .with("discoveredTools", discovered))
}

/// The answer for a tool that is not what was pinned. Nothing of what its server says of it now is in it.
fn changed(server: &ServerName, name: &str) -> ErrorObject {
    let message = format!(
        "Tool \"{name}\" on server \"{server}\" is not what it was: its definition changed, and nobody accepted the \
         change. It cannot be called until the operator does (footbridge servers pins)"
    );
    ErrorObject::new(Reason::DefinitionChanged, message).with("server", server.as_str()).with("tool", name)
}

/// The prompt with exactly this name.
pub(super) fn find_prompt<'c>(
    catalogue: &'c Catalogue,
    server: &ServerName,
    name: &str,
) -> Result<&'c Arc<Prompt>, ErrorObject> {
    catalogue.prompt(name).ok_or_else(|| no_such_prompt(catalogue, server, name))
}

/// The answer for a prompt that a server does not have.
pub(super) fn no_such_prompt(catalogue: &Catalogue, server: &ServerName, name: &str) -> ErrorObject {
    let name = repeated(name);
    let discovered: Vec<&str> = catalogue.prompts().map(|prompt| prompt.name()).take(MAX_DISCOVERED).collect();
    ErrorObject::new(Reason::UnknownPrompt, format!("Prompt \"{name}\" not found on server \"{server}\""))
        .with("server", server.as_str())
        .with("prompt", name.as_ref())
        .with("discoveredPrompts", discovered)
}

/// The answer for a resource that a server does not have.
#[must_use]
pub fn no_such_resource(server: &ServerName, uri: &str) -> ErrorObject {
    ErrorObject::new(
        Reason::UnknownResource,
        format!("Resource \"{}\" not found on server \"{server}\"", repeated(uri)),
    )
}
