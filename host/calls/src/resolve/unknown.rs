//! What is not there, for this session: the one cause for what nobody has and for what is hidden.

use std::sync::Arc;

use footbridge_core::{
    catalogue::{Catalogue, Prompt, Tool},
    names::ServerName,
};

use crate::cause::Cause;

/// Names of tools or prompts that are listed for an unknown one: they come from a server, and could be megabytes.
const MAX_DISCOVERED: usize = 100;

/// The tool with exactly this name.
///
/// # Errors
/// There is none, or it is not what was pinned. Nothing of what its server says of it now is in the cause.
pub fn find_tool<'c>(catalogue: &'c Catalogue, server: &ServerName, name: &str) -> Result<&'c Arc<Tool>, Cause> {
    if let Some(tool) = catalogue.tool(name) {
        return Ok(tool);
    }
    let (server, tool) = (server.clone(), name.to_owned());
    if catalogue.is_changed(name) {
        return Err(Cause::NotAsPinned { server, tool });
    }
    let discovered = catalogue.tools().map(|tool| tool.name().to_owned()).take(MAX_DISCOVERED).collect();
    Err(Cause::UnknownTool { server, tool, discovered })
}

/// The prompt with exactly this name.
pub(super) fn find_prompt<'c>(
    catalogue: &'c Catalogue,
    server: &ServerName,
    name: &str,
) -> Result<&'c Arc<Prompt>, Cause> {
    catalogue.prompt(name).ok_or_else(|| no_such_prompt(catalogue, server, name))
}

/// The cause for a prompt that a server does not have.
pub(super) fn no_such_prompt(catalogue: &Catalogue, server: &ServerName, name: &str) -> Cause {
    let discovered = catalogue.prompts().map(|prompt| prompt.name().to_owned()).take(MAX_DISCOVERED).collect();
    Cause::UnknownPrompt { server: server.clone(), prompt: name.to_owned(), discovered }
}

/// The cause for a resource that a server does not have.
#[must_use]
pub fn no_such_resource(server: &ServerName, uri: &str) -> Cause {
    Cause::UnknownResource { server: server.clone(), uri: uri.to_owned() }
}
