//! What a session may see of a server. Whatever a guest asks is looked up here alone, so what is hidden and what does
//! not exist are not found in the same way and in the same time.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use footbridge_core::{
    catalogue::{ChangedTool, Entries, Gaps, Instructions, ListKind, Prompt, Tool},
    digest::Digest,
    gate::{Decision, SessionRules},
    names::ServerName,
};
use footbridge_proto::wire::Implementation;
use serde_json::json;

use crate::cause::Cause;

/// Names of tools or prompts that are listed for an unknown one: they come from a server, and could be megabytes.
const MAX_DISCOVERED: usize = 100;

/// Tools that are not what was pinned, by name.
pub(super) type Changed = BTreeMap<Arc<str>, ChangedTool>;

/// What a session's rules leave of what a server offers, as if there were no more. Guests are answered from it, and it
/// comes out of a [`Vetted`](super::Vetted) alone. Clones share what is in it.
#[derive(Debug, Clone)]
pub struct Visible(Arc<Seen>);

/// What is in it.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) server: ServerName,
    pub(super) rules: SessionRules,
    pub(super) entries: Arc<Entries>,
    pub(super) changed: Arc<Changed>,
    pub(super) gaps: Arc<Gaps>,
    pub(super) instructions: Option<Arc<Instructions>>,
    pub(super) implementation: Option<Arc<Implementation>>,
    /// Whether only listed resources can be read.
    pub(super) listed_only: bool,
    /// These are made when they are asked for first: there may be megabytes of definitions.
    pub(super) catalogue: OnceLock<String>,
    pub(super) bytes: OnceLock<usize>,
}

impl Visible {
    pub(super) fn new(seen: Seen) -> Self {
        Self(Arc::new(seen))
    }

    /// What its server says of itself to whoever uses it, in its own words; none where that is not what was pinned, or
    /// some of the server is hidden.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.0.instructions.as_deref().map(Instructions::text)
    }

    /// Which program its server says that it is.
    #[must_use]
    pub fn implementation(&self) -> Option<&Implementation> {
        self.0.implementation.as_deref()
    }

    /// A text that is another one where anything of this is: 32 hexadecimal digits. It is made of what can be seen alone.
    #[must_use]
    pub fn catalogue(&self) -> &str {
        self.0.catalogue.get_or_init(|| self.fingerprint())
    }

    /// Whether [`Self::catalogue`] is there already.
    #[must_use]
    pub fn has_catalogue(&self) -> bool {
        self.0.catalogue.get().is_some()
    }

    /// How much there is to go through, bytes: what its server said of each entry.
    #[must_use]
    pub fn bytes(&self) -> usize {
        *self.0.bytes.get_or_init(|| self.entries().texts().map(str::len).sum())
    }

    /// What is decided about a call of a tool before its arguments are known, where it is not simply allowed.
    #[must_use]
    pub fn decision(&self, tool: &Tool) -> Option<Decision> {
        let Seen { rules, server, .. } = &*self.0;
        let possible = rules.outlook(&rules.tool(server.as_str(), tool.name(), tool.effects()));
        if possible.contains(&Decision::Ask) {
            return Some(Decision::Ask);
        }
        possible.iter().all(|decision| *decision == Decision::Deny).then_some(Decision::Deny)
    }

    /// Whose it is.
    #[must_use]
    pub fn server(&self) -> &ServerName {
        &self.0.server
    }

    /// What can be seen and used.
    #[must_use]
    pub fn entries(&self) -> &Arc<Entries> {
        &self.0.entries
    }

    /// What is missing from a listing, a line each. Where nothing of it is there to be seen, that is the answer.
    ///
    /// # Errors
    /// The server failed to list any.
    pub fn partial(&self, kind: ListKind) -> Result<Vec<String>, Cause> {
        let Seen { entries, changed, gaps, .. } = &*self.0;
        let count = match kind {
            ListKind::Tools => entries.tools().len() + changed.len(),
            ListKind::Resources => entries.resources().len(),
            ListKind::Templates => entries.templates().len(),
            ListKind::Prompts => entries.prompts().len(),
        };
        match gaps.why_cut(kind) {
            Some(why) if count == 0 => {
                Err(Cause::NotListed { server: self.server().clone(), kind, why: why.to_owned() })
            }
            _ => Ok(gaps.of(kind)),
        }
    }

    /// The tools whose definition is not the one that was pinned, by name, as they were pinned. They cannot be called.
    pub fn changed(&self) -> impl ExactSizeIterator<Item = (&str, &ChangedTool)> {
        self.0.changed.iter().map(|(name, tool)| (&**name, tool))
    }

    /// The tool with exactly this name.
    ///
    /// # Errors
    /// There is none, or it is not what was pinned. Nothing of what its server says of it now is in the cause.
    pub fn tool(&self, name: &str) -> Result<&Arc<Tool>, Cause> {
        if let Some(tool) = self.entries().tool(name) {
            return Ok(tool);
        }
        let (server, tool) = (self.server().clone(), name.to_owned());
        if self.0.changed.contains_key(name) {
            return Err(Cause::NotAsPinned { server, tool });
        }
        let discovered = self.entries().tools().map(|tool| tool.name().to_owned()).take(MAX_DISCOVERED).collect();
        Err(Cause::UnknownTool { server, tool, discovered })
    }

    /// The prompt with exactly this name.
    pub(crate) fn prompt(&self, name: &str) -> Result<&Arc<Prompt>, Cause> {
        self.entries().prompt(name).ok_or_else(|| self.no_such_prompt(name))
    }

    /// The cause for a prompt that the server does not have.
    pub(crate) fn no_such_prompt(&self, name: &str) -> Cause {
        let discovered = self.entries().prompts().map(|prompt| prompt.name().to_owned()).take(MAX_DISCOVERED).collect();
        Cause::UnknownPrompt { server: self.server().clone(), prompt: name.to_owned(), discovered }
    }

    /// Whether the server may be asked for a resource. It may serve more than it lists, by its templates or unlisted,
    /// so one that lists anything is asked for everything; but not where some of its resources are hidden.
    pub(crate) fn may_have_resource(&self, uri: &str) -> bool {
        let entries = self.entries();
        let lists_any = entries.resources().len() + entries.templates().len() > 0;
        if self.0.listed_only { entries.has_resource(uri) } else { lists_any }
    }

    /// A digest of all that guests are answered from it.
    fn fingerprint(&self) -> String {
        let Seen { entries, changed, gaps, instructions, implementation, .. } = &*self.0;
        let kinds = [ListKind::Tools, ListKind::Resources, ListKind::Templates, ListKind::Prompts];
        let around = json!({
            "counts": entries.counts(),
            "decisions": entries.tools().map(|tool| self.decision(tool).map(Decision::as_str)).collect::<Vec<_>>(),
            "changed": changed.keys().map(|name| &**name).collect::<Vec<_>>(),
            "gaps": kinds.map(|kind| gaps.of(kind)),
            "instructions": instructions.as_deref().map(Instructions::text),
            "implementation": implementation.as_deref(),
        });
        let digests = entries.texts().map(Digest::of).chain([Digest::of(around.to_string())]);
        let all: Vec<u8> = digests.flat_map(|digest| *digest.as_bytes()).collect();
        let mut text = Digest::of(all).to_string();
        text.truncate(32);
        text
    }
}

/// The cause for a resource that a server does not have.
pub(crate) fn no_such_resource(server: &ServerName, uri: &str) -> Cause {
    Cause::UnknownResource { server: server.clone(), uri: uri.to_owned() }
}
