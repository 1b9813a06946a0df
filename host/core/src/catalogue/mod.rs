//! What one server offers, as it said it: tools, resources, templates, prompts.
//!
//! Entries come from an untrusted server, one by one: a bad one is left out and reported, it never takes the others
//! with it. Each keeps its definition as raw JSON, so that nothing a server said is lost on the way to a guest.

mod entries;
mod gaps;
mod pinned;
mod prompt;
mod tool;

use std::{collections::BTreeMap, sync::Arc};

use footbridge_proto::{json, wire::Implementation};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::limits::ServerLimits;
pub use entries::Entries;
pub use gaps::{Gaps, ListKind};
pub use pinned::{ChangedTool, INSTRUCTIONS, Instructions, Origin, SERVER, TOOL, VERBATIM};
pub use prompt::{Prompt, PromptArgument};
pub use tool::PROMOTED;
pub use tool::Tool;

/// All that a server offers at one moment, compared with nothing yet: no guest is answered from it. Replaced as a whole
/// when the server says that it changed.
#[derive(Debug, Default)]
pub struct Offered {
    /// Shared with what comes of it, so that it is there once.
    entries: Arc<Entries>,
    bytes: usize,
    origin: Option<Arc<Origin>>,
    gaps: Gaps,
    instructions: Option<Arc<Instructions>>,
    implementation: Option<Arc<Implementation>>,
}

/// Why an entry of a listing is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadEntry {
    /// It lacks what makes it usable.
    #[error("it is not an object with a \"{0}\" of 1 to 1,024 bytes")]
    NoKey(&'static str),
    /// JSON that parsers read differently.
    #[error("its JSON is refused: {0}")]
    Json(#[from] json::JsonError),
    /// Input or output schema beyond the limit.
    #[error("its \"{0}\" is over {1} bytes")]
    SchemaTooLarge(&'static str, usize),
    /// The input schema is not an object.
    #[error("its \"inputSchema\" is not an object")]
    NoSchema,
    /// It is not what a prompt is.
    #[error("it is not an object with a \"name\" and, if any, a list of \"arguments\" that have names")]
    NoPrompt,
    /// An entry before it has the same key.
    #[error("an entry before it has the same name")]
    Repeated,
    /// Its name stands for something else.
    #[error("its name is what the server's instructions are pinned by")]
    Reserved,
    /// All entries together are larger than a server's may be.
    #[error("the server's entries have more than {0} bytes together")]
    TooMuch(usize),
    /// More entries than a server may have.
    #[error("the server has more than {0} of them")]
    TooMany(usize),
}

/// Longest name or URI of an entry, bytes.
const MAX_KEY: usize = 1024;

/// Longest name, title or version of a server's program, characters. They are not pinned, since a version changes with
/// each update: so there is no room in them to tell a guest anything.
const MAX_NAME: usize = 64;

impl Offered {
    /// Nothing yet, of a server that is reached like this.
    #[must_use]
    pub fn of(origin: Arc<Origin>) -> Self {
        Self { origin: Some(origin), ..Self::default() }
    }

    /// How the server is reached, as one canonical text; empty where that is not known.
    #[must_use]
    pub fn origin(&self) -> String {
        self.origin.as_ref().map(|origin| origin.text()).unwrap_or_default()
    }

    /// What is missing from what there is.
    #[must_use]
    pub fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    /// The same, to add to.
    pub fn gaps_mut(&mut self) -> &mut Gaps {
        &mut self.gaps
    }

    /// Whether the other is the same, letter for letter.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        let digest = |of: &Self| of.instructions.as_ref().map(|said| said.digest());
        self.entries.is_same_as(&other.entries)
            && self.gaps == other.gaps
            && digest(self) == digest(other)
            && self.implementation == other.implementation
    }

    /// What the server says of itself to whoever uses it.
    #[must_use]
    pub fn instructions(&self) -> Option<&Arc<Instructions>> {
        self.instructions.as_ref()
    }

    /// Sets that; what is longer than a description may be is cut.
    pub fn set_instructions(&mut self, text: &str, limits: &ServerLimits) {
        let mut text = text.trim().to_owned();
        tool::cut(&mut text, limits.description_bytes);
        let instructions = || Arc::new(Instructions::new(text.clone(), self.origin.as_deref()));
        self.instructions = (!text.is_empty()).then(instructions);
    }

    /// Which program the server says that it is.
    #[must_use]
    pub fn implementation(&self) -> Option<&Arc<Implementation>> {
        self.implementation.as_ref()
    }

    /// Sets that. Of each text the beginning of the first line is kept, and nothing is where it has no name.
    pub fn set_implementation(&mut self, said: &Implementation) {
        let short = |text: &str| -> String { text.lines().next().unwrap_or_default().chars().take(MAX_NAME).collect() };
        let title = said.title.as_deref().map(short).filter(|title| !title.is_empty());
        let kept = Implementation { name: short(&said.name), title, version: short(&said.version) };
        self.implementation = (!kept.name.is_empty()).then(|| Arc::new(kept));
    }

    /// What there is.
    #[must_use]
    pub fn entries(&self) -> &Arc<Entries> {
        &self.entries
    }

    /// Adds a tool of a listing.
    ///
    /// # Errors
    /// [`BadEntry`] when it is left out.
    pub fn add_tool(&mut self, raw: &RawValue, limits: &ServerLimits) -> Result<(), BadEntry> {
        self.account(raw, limits)?;
        let tool = Tool::parse(raw, limits, self.origin.as_deref())?;
        add(&mut self.own().tools, tool.name().into(), Arc::new(tool), limits)
    }

    /// Adds a resource of a listing.
    ///
    /// # Errors
    /// [`BadEntry`] when it is left out.
    pub fn add_resource(&mut self, raw: Box<RawValue>, limits: &ServerLimits) -> Result<(), BadEntry> {
        self.account(&raw, limits)?;
        add(&mut self.own().resources, key_of(&raw, "uri")?, raw.into(), limits)
    }

    /// Adds a resource template of a listing.
    ///
    /// # Errors
    /// [`BadEntry`] when it is left out.
    pub fn add_template(&mut self, raw: Box<RawValue>, limits: &ServerLimits) -> Result<(), BadEntry> {
        self.account(&raw, limits)?;
        add(&mut self.own().templates, key_of(&raw, "uriTemplate")?, raw.into(), limits)
    }

    /// Adds a prompt of a listing.
    ///
    /// # Errors
    /// [`BadEntry`] when it is left out.
    pub fn add_prompt(&mut self, raw: Box<RawValue>, limits: &ServerLimits) -> Result<(), BadEntry> {
        self.account(&raw, limits)?;
        let prompt = Prompt::parse(raw)?;
        add(&mut self.own().prompts, prompt.name().into(), Arc::new(prompt), limits)
    }

    /// Has of the resources, templates or prompts what there was before and is not there now, for a listing that broke off:
    /// whether they are gone is not known. Tools are not kept.
    pub fn keep(&mut self, kind: ListKind, before: &Entries, limits: &ServerLimits) {
        // What is there again takes no room; what is over a limit is left out.
        let has = Arc::clone(&self.entries);
        match kind {
            ListKind::Tools => {}
            ListKind::Resources => before
                .resources()
                .filter(|(uri, _)| !has.has_resource(uri))
                .for_each(|(_, raw)| drop(self.add_resource(raw.to_owned(), limits))),
            ListKind::Templates => before
                .templates()
                .filter(|(uri, _)| !has.has_template(uri))
                .for_each(|(_, raw)| drop(self.add_template(raw.to_owned(), limits))),
            ListKind::Prompts => {
                before
                    .prompts()
                    .filter(|prompt| has.prompt(prompt.name()).is_none())
                    .for_each(|prompt| drop(self.add_prompt(prompt.definition().to_owned(), limits)));
            }
        }
    }

    /// To add to. Nobody shares what is still being listed; if anybody did, they would keep what they have.
    fn own(&mut self) -> &mut Entries {
        Arc::make_mut(&mut self.entries)
    }

    fn account(&mut self, raw: &RawValue, limits: &ServerLimits) -> Result<(), BadEntry> {
        let bytes = self.bytes.saturating_add(raw.get().len());
        if bytes > limits.catalogue_bytes {
            return Err(BadEntry::TooMuch(limits.catalogue_bytes));
        }
        self.bytes = bytes;
        Ok(())
    }
}

fn add<T>(
    entries: &mut BTreeMap<Arc<str>, Arc<T>>,
    key: Arc<str>,
    entry: Arc<T>,
    limits: &ServerLimits,
) -> Result<(), BadEntry>
where
    T: ?Sized,
{
    if entries.contains_key(&key) {
        return Err(BadEntry::Repeated);
    }
    if entries.len() >= limits.entries {
        return Err(BadEntry::TooMany(limits.entries));
    }
    entries.insert(key, entry);
    Ok(())
}

/// What an entry is found by.
fn key_of(raw: &RawValue, key: &'static str) -> Result<Arc<str>, BadEntry> {
    json::check(raw.get().as_bytes(), json::MAX_BODY_DEPTH)?;
    let value: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).map_err(|_| BadEntry::NoKey(key))?;
    let name = value.get(key).and_then(|v| serde_json::from_str::<String>(v.get()).ok());
    let name = name.filter(|n| (1..=MAX_KEY).contains(&n.len())).ok_or(BadEntry::NoKey(key))?;
    Ok(name.into())
}

/// One page of a listing, as raw entries.
#[derive(Debug, Deserialize)]
pub struct Page {
    /// The entries, whatever the listing is of.
    #[serde(alias = "tools", alias = "resources", alias = "resourceTemplates", alias = "prompts", default)]
    pub entries: Vec<Box<RawValue>>,
    /// Where the next page starts; absent on the last.
    #[serde(rename = "nextCursor", default)]
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests;
