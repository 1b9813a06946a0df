//! Entries of a catalogue by their keys, and what can be looked up in them.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::value::RawValue;

use super::{Prompt, Tool};
use crate::gate::{SessionRules, Subject};

/// Tools, resources, templates and prompts. Whether they are what a server offers, what of it is as it was pinned, or
/// what of that a session may see, is said by the type that has them.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    pub(super) tools: BTreeMap<Arc<str>, Arc<Tool>>,
    pub(super) resources: BTreeMap<Arc<str>, Arc<RawValue>>,
    pub(super) templates: BTreeMap<Arc<str>, Arc<RawValue>>,
    pub(super) prompts: BTreeMap<Arc<str>, Arc<Prompt>>,
}

impl Entries {
    /// Tools by name.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Arc<Tool>> {
        self.tools.values()
    }

    /// The tool with exactly this name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// Resources by URI, each as the server gave it.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = (&str, &RawValue)> {
        self.resources.iter().map(|(uri, raw)| (&**uri, &**raw))
    }

    /// Whether a resource is listed, exactly as it is written here.
    #[must_use]
    pub fn has_resource(&self, uri: &str) -> bool {
        self.resources.contains_key(uri)
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

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        // Taken apart, so that the compiler asks for a kind of entry that comes to be: whether anything is hidden is
        // known by this.
        let Self { tools, resources, templates, prompts } = self;
        tools.len() + resources.len() + templates.len() + prompts.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the other has the same ones, letter for letter.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.counts() == other.counts() && self.texts().eq(other.texts())
    }

    /// How many there are of each kind.
    #[must_use]
    pub fn counts(&self) -> [usize; 4] {
        [self.tools.len(), self.prompts.len(), self.resources.len(), self.templates.len()]
    }

    /// What the server said of each, kind by kind.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let tools = self.tools.values().map(|tool| tool.definition());
        let prompts = self.prompts.values().map(|prompt| prompt.definition());
        let others = self.resources.values().chain(self.templates.values());
        tools.chain(prompts).chain(others.map(|raw| &**raw)).map(RawValue::get)
    }

    /// These without some tools. Where none is left out it is the same ones, not a copy.
    #[must_use]
    pub fn without_tools(self: &Arc<Self>, left_out: impl Fn(&str) -> bool) -> Arc<Self> {
        if !self.tools.keys().any(|name| left_out(name)) {
            return Arc::clone(self);
        }
        let tools = part(&self.tools, |name, _| !left_out(name));
        Arc::new(Self { tools, ..(**self).clone() })
    }

    /// What these rules leave to be seen of what this server offers. Where that is all it is the same ones, not a copy.
    ///
    /// Where they may hide resources there are no templates: what is not listed would be asked of the server, and the
    /// time that takes would tell it from what is hidden.
    #[must_use]
    pub fn seen_by(self: &Arc<Self>, rules: &SessionRules, server: &str) -> Arc<Self> {
        let listed_only = rules.hides_resources_of(server);
        let seen = Self {
            tools: part(&self.tools, |name, tool| rules.shows(&rules.tool(server, name, tool.effects()))),
            resources: part(&self.resources, |uri, _| rules.shows(&Subject::resource(server, uri))),
            templates: part(&self.templates, |_, _| !listed_only),
            prompts: part(&self.prompts, |name, _| rules.shows(&Subject::prompt(server, name))),
        };
        if seen.len() == self.len() { Arc::clone(self) } else { Arc::new(seen) }
    }
}

fn part<T: ?Sized>(all: &BTreeMap<Arc<str>, Arc<T>>, keep: impl Fn(&str, &T) -> bool) -> BTreeMap<Arc<str>, Arc<T>> {
    let kept = all.iter().filter(|(key, entry)| keep(key, entry));
    kept.map(|(key, entry)| (Arc::clone(key), Arc::clone(entry))).collect()
}
