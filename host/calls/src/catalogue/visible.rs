//! What a session may see of a server. Whatever a guest asks is looked up here alone, so what is hidden and what does
//! not exist are not found in the same way and in the same time.

use std::{collections::BTreeMap, sync::Arc};

use footbridge_core::{
    catalogue::{ChangedTool, Entries, Gaps, Instructions, ListKind, Prompt, Tool},
    names::ServerName,
};

use crate::cause::Cause;

/// Names of tools or prompts that are listed for an unknown one: they come from a server, and could be megabytes.
const MAX_DISCOVERED: usize = 100;

/// Tools that are not what was pinned, by name.
pub(super) type Changed = BTreeMap<Arc<str>, ChangedTool>;

/// What a session's rules leave of what a server offers, as if there were no more. Guests are answered from it, and it
/// comes out of a [`Vetted`](super::Vetted) alone. Clones share what is in it.
#[derive(Debug, Clone)]
pub struct Visible {
    server: ServerName,
    entries: Arc<Entries>,
    changed: Arc<Changed>,
    gaps: Arc<Gaps>,
    instructions: Option<Arc<Instructions>>,
    /// Whether only listed resources can be read.
    listed_only: bool,
}

impl Visible {
    pub(super) fn new(server: ServerName, entries: Arc<Entries>, changed: Arc<Changed>, listed_only: bool) -> Self {
        Self { server, entries, changed, gaps: Arc::default(), instructions: None, listed_only }
    }

    /// The same, from which this is missing.
    pub(super) fn lacking(self, gaps: Arc<Gaps>) -> Self {
        Self { gaps, ..self }
    }

    /// The same, of which its server says this.
    pub(super) fn with_instructions(self, instructions: Option<Arc<Instructions>>) -> Self {
        Self { instructions, ..self }
    }

    /// What its server says of itself to whoever uses it, in its own words; none where that is not what was pinned, or
    /// some of the server is hidden.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref().map(Instructions::text)
    }

    /// Whose it is.
    #[must_use]
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// What can be seen and used.
    #[must_use]
    pub fn entries(&self) -> &Arc<Entries> {
        &self.entries
    }

    /// What is missing from a listing, a line each. Where nothing of it is there to be seen, that is the answer.
    ///
    /// # Errors
    /// The server failed to list any.
    pub fn partial(&self, kind: ListKind) -> Result<Vec<String>, Cause> {
        let entries = &self.entries;
        let count = match kind {
            ListKind::Tools => entries.tools().len() + self.changed.len(),
            ListKind::Resources => entries.resources().len(),
            ListKind::Templates => entries.templates().len(),
            ListKind::Prompts => entries.prompts().len(),
        };
        match self.gaps.why_cut(kind) {
            Some(why) if count == 0 => Err(Cause::NotListed { server: self.server.clone(), kind, why: why.to_owned() }),
            _ => Ok(self.gaps.of(kind)),
        }
    }

    /// The tools whose definition is not the one that was pinned, by name, as they were pinned. They cannot be called.
    pub fn changed(&self) -> impl ExactSizeIterator<Item = (&str, &ChangedTool)> {
        self.changed.iter().map(|(name, tool)| (&**name, tool))
    }

    /// The tool with exactly this name.
    ///
    /// # Errors
    /// There is none, or it is not what was pinned. Nothing of what its server says of it now is in the cause.
    pub fn tool(&self, name: &str) -> Result<&Arc<Tool>, Cause> {
        if let Some(tool) = self.entries.tool(name) {
            return Ok(tool);
        }
        let (server, tool) = (self.server.clone(), name.to_owned());
        if self.changed.contains_key(name) {
            return Err(Cause::NotAsPinned { server, tool });
        }
        let discovered = self.entries.tools().map(|tool| tool.name().to_owned()).take(MAX_DISCOVERED).collect();
        Err(Cause::UnknownTool { server, tool, discovered })
    }

    /// The prompt with exactly this name.
    pub(crate) fn prompt(&self, name: &str) -> Result<&Arc<Prompt>, Cause> {
        self.entries.prompt(name).ok_or_else(|| self.no_such_prompt(name))
    }

    /// The cause for a prompt that the server does not have.
    pub(crate) fn no_such_prompt(&self, name: &str) -> Cause {
        let discovered = self.entries.prompts().map(|prompt| prompt.name().to_owned()).take(MAX_DISCOVERED).collect();
        Cause::UnknownPrompt { server: self.server.clone(), prompt: name.to_owned(), discovered }
    }

    /// Whether the server may be asked for a resource. It may serve more than it lists, by its templates or unlisted,
    /// so one that lists anything is asked for everything; but not where some of its resources are hidden.
    pub(crate) fn may_have_resource(&self, uri: &str) -> bool {
        let entries = &self.entries;
        let lists_any = entries.resources().len() + entries.templates().len() > 0;
        if self.listed_only { entries.has_resource(uri) } else { lists_any }
    }
}

/// The cause for a resource that a server does not have.
pub(crate) fn no_such_resource(server: &ServerName, uri: &str) -> Cause {
    Cause::UnknownResource { server: server.clone(), uri: uri.to_owned() }
}
