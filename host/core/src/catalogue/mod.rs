//! What one MCP server offers, as it said it: tools, resources, templates, prompts.
//!
//! Entries come from an untrusted server, one by one: a bad one is left out and reported, it never takes the others
//! with it. Each keeps its definition as raw JSON, so that nothing a server said is lost on the way to a guest.

mod pinned;
mod prompt;
mod tool;
mod views;

use std::{collections::BTreeMap, sync::Arc};

use footbridge_proto::json;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    gate::{SessionRules, Subject},
    limits::ServerLimits,
};
pub use pinned::{ChangedTool, Origin};
pub use pinned::{SERVER, TOOL, VERBATIM};
pub use prompt::{Prompt, PromptArgument};
pub use tool::PROMOTED;
pub use tool::Tool;

/// All that a server offers at one moment. Replaced as a whole when the server says that it changed.
#[derive(Debug, Default)]
pub struct Catalogue {
    tools: BTreeMap<Arc<str>, Arc<Tool>>,
    resources: BTreeMap<Arc<str>, Arc<RawValue>>,
    templates: BTreeMap<Arc<str>, Arc<RawValue>>,
    prompts: BTreeMap<Arc<str>, Arc<Prompt>>,
    bytes: usize,
    listed_only: bool,
    origin: Option<Arc<Origin>>,
    /// Tools that are not what was pinned, by what was: they are not among the others.
    changed: BTreeMap<Arc<str>, Arc<ChangedTool>>,
    views: views::Views,
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
    /// All entries together are larger than a server's may be.
    #[error("the server's entries have more than {0} bytes together")]
    TooMuch(usize),
    /// More entries than a server may have.
    #[error("the server has more than {0} of them")]
    TooMany(usize),
}

/// Longest name or URI of an entry, bytes.
const MAX_KEY: usize = 1024;

impl Catalogue {
    /// Empty, of a server that is reached like this.
    #[must_use]
    pub fn of(origin: Arc<Origin>) -> Self {
        Self { origin: Some(origin), ..Self::default() }
    }

    /// Adds a tool of a listing.
    ///
    /// # Errors
    /// [`BadEntry`] when it is left out.
    pub fn add_tool(&mut self, raw: &RawValue, limits: &ServerLimits) -> Result<(), BadEntry> {
        self.account(raw, limits)?;
        let tool = Tool::parse(raw, limits, self.origin.as_deref())?;
        if self.tools.len() >= limits.entries {
            return Err(BadEntry::TooMany(limits.entries));
        }
        if self.tools.contains_key(tool.name()) {
            return Err(BadEntry::Repeated);
        }
        self.tools.insert(tool.name().into(), Arc::new(tool));
        Ok(())
    }

    /// Adds a resource of a listing.
    ///
    /// # Errors
    /// [`BadEntry`] when it is left out.
    pub fn add_resource(&mut self, raw: Box<RawValue>, limits: &ServerLimits) -> Result<(), BadEntry> {
        self.account(&raw, limits)?;
        add_keyed(&mut self.resources, "uri", raw, limits)
    }

    /// Adds a resource template of a listing.
    ///
    /// # Errors
    /// [`BadEntry`] when it is left out.
    pub fn add_template(&mut self, raw: Box<RawValue>, limits: &ServerLimits) -> Result<(), BadEntry> {
        self.account(&raw, limits)?;
        add_keyed(&mut self.templates, "uriTemplate", raw, limits)
    }

    /// Adds a prompt of a listing.
    ///
    /// # Errors
    /// [`BadEntry`] when it is left out.
    pub fn add_prompt(&mut self, raw: Box<RawValue>, limits: &ServerLimits) -> Result<(), BadEntry> {
        self.account(&raw, limits)?;
        let prompt = Prompt::parse(raw)?;
        if self.prompts.len() >= limits.entries {
            return Err(BadEntry::TooMany(limits.entries));
        }
        if self.prompts.contains_key(prompt.name()) {
            return Err(BadEntry::Repeated);
        }
        self.prompts.insert(prompt.name().into(), Arc::new(prompt));
        Ok(())
    }

    fn account(&mut self, raw: &RawValue, limits: &ServerLimits) -> Result<(), BadEntry> {
        self.bytes = self.bytes.saturating_add(raw.get().len());
        if self.bytes > limits.catalogue_bytes { Err(BadEntry::TooMuch(limits.catalogue_bytes)) } else { Ok(()) }
    }

    /// Tools by name.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Arc<Tool>> {
        self.tools.values()
    }

    /// The tool with exactly this name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// The tools whose definition is not the one that was pinned, by name, as they were pinned. They cannot be called.
    pub fn changed(&self) -> impl ExactSizeIterator<Item = (&str, &ChangedTool)> {
        self.changed.iter().map(|(name, tool)| (&**name, &**tool))
    }

    /// Whether a tool of this name is there with another definition than the one that was pinned.
    #[must_use]
    pub fn is_changed(&self, name: &str) -> bool {
        self.changed.contains_key(name)
    }

    /// The same, in which these tools cannot be called.
    #[must_use]
    pub fn with_changed(&self, changed: BTreeMap<String, Arc<ChangedTool>>) -> Self {
        let kept = self.tools.iter().filter(|(name, _)| !changed.contains_key(&***name));
        Self {
            tools: kept.map(|(name, tool)| (name.clone(), Arc::clone(tool))).collect(),
            resources: self.resources.clone(),
            templates: self.templates.clone(),
            prompts: self.prompts.clone(),
            bytes: self.bytes,
            listed_only: self.listed_only,
            origin: self.origin.clone(),
            changed: changed.into_iter().map(|(name, tool)| (name.into(), tool)).collect(),
            views: views::Views::default(),
        }
    }

    /// Whether the server gave the same entries, letter for letter.
    pub fn is_same_as(&self, other: &Self) -> bool {
        fn texts(catalogue: &Catalogue) -> impl Iterator<Item = &str> {
            let tools = catalogue.tools.values().map(|tool| tool.definition());
            let prompts = catalogue.prompts.values().map(|prompt| prompt.definition());
            let others = catalogue.resources.values().chain(catalogue.templates.values());
            tools.chain(prompts).chain(others.map(|raw| &**raw)).map(RawValue::get)
        }
        let counts = |of: &Self| (of.tools.len(), of.prompts.len(), of.resources.len(), of.templates.len());
        counts(self) == counts(other) && texts(self).eq(texts(other))
    }

    /// Resources by URI, each as the server gave it.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = (&str, &RawValue)> {
        self.resources.iter().map(|(uri, raw)| (&**uri, &**raw))
    }

    /// Resource templates by URI template, each as the server gave it.
    pub fn templates(&self) -> impl ExactSizeIterator<Item = (&str, &RawValue)> {
        self.templates.iter().map(|(uri, raw)| (&**uri, &**raw))
    }

    /// Whether a resource template is listed, exactly as it is written here.
    #[must_use]
    pub fn has_template(&self, template: &str) -> bool {
        self.templates.contains_key(template)
    }

    /// Prompts by name.
    pub fn prompts(&self) -> impl ExactSizeIterator<Item = &Arc<Prompt>> {
        self.prompts.values()
    }

    /// The prompt with exactly this name.
    #[must_use]
    pub fn prompt(&self, name: &str) -> Option<&Arc<Prompt>> {
        self.prompts.get(name)
    }

    /// Whether its server may be asked for a resource. It may serve more than it lists, by its templates or unlisted,
    /// so one that lists anything is asked for everything; but not where some of its resources are hidden.
    #[must_use]
    pub fn may_have_resource(&self, uri: &str) -> bool {
        let lists_any = self.resources.len() + self.templates.len() > 0;
        if self.listed_only { self.resources.contains_key(uri) } else { lists_any }
    }

    /// What these rules leave to be seen of it, as if there were no more.
    ///
    /// Where they may hide resources, only those that are listed can be read, and there are no templates: what is not
    /// listed would be asked of the server, and the time that takes would tell it from what is hidden.
    #[must_use]
    pub fn seen_by(&self, rules: &SessionRules, server: &str) -> Self {
        let listed_only = rules.hides_resources_of(server);
        let shown_tool = |tool: &Tool| rules.shows(&rules.tool(server, tool.name(), tool.effects()));
        let shown_changed = |name: &str, tool: &ChangedTool| rules.shows(&rules.tool(server, name, tool.effects()));
        let tools = self.tools.iter().filter(|(_, tool)| shown_tool(tool));
        let resources = self.resources.iter().filter(|(uri, _)| rules.shows(&Subject::resource(server, uri)));
        let templates = self.templates.iter().filter(|_| !listed_only);
        let prompts = self.prompts.iter().filter(|(name, _)| rules.shows(&Subject::prompt(server, name)));
        let keep_changed = |(name, tool): (&Arc<str>, &Arc<ChangedTool>)| (name.clone(), Arc::clone(tool));
        let keep = |(key, raw): (&Arc<str>, &Arc<RawValue>)| (key.clone(), Arc::clone(raw));
        Self {
            tools: tools.map(|(name, tool)| (name.clone(), Arc::clone(tool))).collect(),
            resources: resources.map(keep).collect(),
            templates: templates.map(keep).collect(),
            prompts: prompts.map(|(name, prompt)| (name.clone(), Arc::clone(prompt))).collect(),
            changed: self.changed.iter().filter(|(name, tool)| shown_changed(name, tool)).map(keep_changed).collect(),
            bytes: self.bytes,
            listed_only,
            origin: self.origin.clone(),
            views: views::Views::default(),
        }
    }
}

fn add_keyed(
    entries: &mut BTreeMap<Arc<str>, Arc<RawValue>>,
    key: &'static str,
    raw: Box<RawValue>,
    limits: &ServerLimits,
) -> Result<(), BadEntry> {
    json::check(raw.get().as_bytes(), json::MAX_BODY_DEPTH)?;
    let value: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).map_err(|_| BadEntry::NoKey(key))?;
    let name = value.get(key).and_then(|v| serde_json::from_str::<String>(v.get()).ok());
    let name = name.filter(|n| (1..=MAX_KEY).contains(&n.len())).ok_or(BadEntry::NoKey(key))?;
    if entries.contains_key(&*name) {
        return Err(BadEntry::Repeated);
    }
    if entries.len() >= limits.entries {
        return Err(BadEntry::TooMany(limits.entries));
    }
    entries.insert(name.into(), raw.into());
    Ok(())
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
