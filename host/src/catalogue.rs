//! What one MCP server offers, as it said it: tools, resources, templates.
//!
//! Entries come from an untrusted server, one by one: a bad one is left out and reported, it never takes the others
//! with it. Each keeps its definition as raw JSON, so that nothing a server said is lost on the way to a guest.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use footbridge_proto::{json, rpc, wire};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use crate::{
    digest::Digest,
    gate::{Effects, SessionRules, Subject},
    limits::ServerLimits,
    schema::{BadSchema, InputSchema},
};

/// All that a server offers at one moment. Replaced as a whole when the server says that it changed.
#[derive(Debug, Default)]
pub struct Catalogue {
    tools: BTreeMap<String, Arc<Tool>>,
    resources: BTreeMap<String, Arc<RawValue>>,
    templates: BTreeMap<String, Arc<RawValue>>,
    bytes: usize,
    listed_only: bool,
}

/// A tool as its server defined it.
#[derive(Debug)]
pub struct Tool {
    name: String,
    description: Option<String>,
    structured: bool,
    definition: Box<RawValue>,
    digest: Digest,
    effects: Effects,
    schema: OnceLock<Result<InputSchema, BadSchema>>,
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
    /// Adds a tool of a listing.
    ///
    /// # Errors
    /// [`BadEntry`] when it is left out.
    pub fn add_tool(&mut self, raw: &RawValue, limits: &ServerLimits) -> Result<(), BadEntry> {
        self.account(raw, limits)?;
        let tool = Tool::parse(raw, limits)?;
        if self.tools.len() >= limits.entries {
            return Err(BadEntry::TooMany(limits.entries));
        }
        if self.tools.contains_key(&tool.name) {
            return Err(BadEntry::Repeated);
        }
        self.tools.insert(tool.name.clone(), Arc::new(tool));
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

    /// Resources by URI, each as the server gave it.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = (&str, &RawValue)> {
        self.resources.iter().map(|(uri, raw)| (uri.as_str(), &**raw))
    }

    /// Resource templates by URI template, each as the server gave it.
    pub fn templates(&self) -> impl ExactSizeIterator<Item = (&str, &RawValue)> {
        self.templates.iter().map(|(uri, raw)| (uri.as_str(), &**raw))
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
        let tools = self.tools.iter().filter(|(_, tool)| shown_tool(tool));
        let resources = self.resources.iter().filter(|(uri, _)| rules.shows(&Subject::resource(server, uri)));
        let templates = self.templates.iter().filter(|_| !listed_only);
        let keep = |(key, raw): (&String, &Arc<RawValue>)| (key.clone(), Arc::clone(raw));
        Self {
            tools: tools.map(|(name, tool)| (name.clone(), Arc::clone(tool))).collect(),
            resources: resources.map(keep).collect(),
            templates: templates.map(keep).collect(),
            bytes: self.bytes,
            listed_only,
        }
    }
}

fn add_keyed(
    entries: &mut BTreeMap<String, Arc<RawValue>>,
    key: &'static str,
    raw: Box<RawValue>,
    limits: &ServerLimits,
) -> Result<(), BadEntry> {
    json::check(raw.get().as_bytes(), json::MAX_BODY_DEPTH)?;
    let value: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).map_err(|_| BadEntry::NoKey(key))?;
    let name = value.get(key).and_then(|v| serde_json::from_str::<String>(v.get()).ok());
    let name = name.filter(|n| (1..=MAX_KEY).contains(&n.len())).ok_or(BadEntry::NoKey(key))?;
    if entries.contains_key(&name) {
        return Err(BadEntry::Repeated);
    }
    if entries.len() >= limits.entries {
        return Err(BadEntry::TooMany(limits.entries));
    }
    entries.insert(name, raw.into());
    Ok(())
}

/// What marks a parameter that the stateless revision wants repeated in a header.
pub(crate) const PROMOTED: &str = "\"x-mcp-header\"";

/// What makes a definition: the members whose change matters to whoever accepted it.
const DIGESTED: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// The order in which `describeTool` shows the members that every client knows.
const SHOWN_FIRST: [&str; 5] = ["name", "description", "inputSchema", "outputSchema", "annotations"];

/// The members of an object in their order, each as its text.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl<'a> Members<'a> {
    fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, raw)| *raw)
    }

    fn text(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    fn is_object(&self, key: &str) -> bool {
        self.get(key).is_some_and(|raw| raw.get().starts_with('{'))
    }
}

impl Tool {
    fn parse(raw: &RawValue, limits: &ServerLimits) -> Result<Self, BadEntry> {
        let text = json::check(raw.get().as_bytes(), json::MAX_BODY_DEPTH)?;
        let given: Members<'_> = serde_json::from_str(text).map_err(|_| BadEntry::NoKey("name"))?;
        let name = given.text("name").filter(|n| (1..=MAX_KEY).contains(&n.len())).ok_or(BadEntry::NoKey("name"))?;
        for part in ["inputSchema", "outputSchema"] {
            if given.get(part).is_some_and(|schema| schema.get().len() > limits.schema_bytes) {
                return Err(BadEntry::SchemaTooLarge(part, limits.schema_bytes));
            }
        }
        if !given.is_object("inputSchema") {
            return Err(BadEntry::NoSchema);
        }
        let description = given.text("description").filter(|text| !text.is_empty()).map(|mut text| {
            cut(&mut text, limits.description_bytes);
            text
        });
        Ok(Self {
            structured: given.is_object("outputSchema"),
            definition: shown_definition(&given, description.as_deref()),
            digest: definition_digest(&given),
            effects: Effects::from_annotations(given.get("annotations")),
            schema: OnceLock::new(),
            name,
            description,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its description, or what stands for a missing one.
    #[must_use]
    pub fn description(&self) -> &str {
        self.description.as_deref().unwrap_or(wire::NO_DESCRIPTION)
    }

    /// Whether its results are structured JSON.
    #[must_use]
    pub fn is_structured(&self) -> bool {
        self.structured
    }

    /// All that its server said of it, in the order that `describeTool` shows.
    #[must_use]
    pub fn definition(&self) -> &RawValue {
        &self.definition
    }

    /// Whether some of its arguments are repeated in HTTP headers, as the stateless revision has it.
    #[must_use]
    pub fn is_promoted(&self) -> bool {
        self.definition.get().contains(PROMOTED)
    }

    /// Digest of the members whose change matters.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What it can do, by its annotations.
    #[must_use]
    pub fn effects(&self) -> Effects {
        self.effects
    }

    /// Its input schema, compiled at the first call and kept.
    ///
    /// # Errors
    /// [`BadSchema`] when it is not one that arguments can be checked against.
    pub fn input_schema(&self) -> Result<&InputSchema, &BadSchema> {
        let compile = || {
            let broken = || BadSchema::Invalid("it cannot be read".to_owned());
            let members: Members<'_> = serde_json::from_str(self.definition.get()).map_err(|_| broken())?;
            let schema = members.get("inputSchema").ok_or_else(broken)?;
            InputSchema::compile(&serde_json::from_str::<Value>(schema.get()).map_err(|_| broken())?)
        };
        self.schema.get_or_init(compile).as_ref()
    }
}

/// The definition as `describeTool` shows it: the known members first, the others after, each as it was written.
fn shown_definition(given: &Members<'_>, description: Option<&str>) -> Box<RawValue> {
    let description = rpc::raw(&description.unwrap_or(wire::NO_DESCRIPTION));
    let mut members: Vec<(&str, &RawValue)> = Vec::new();
    for key in SHOWN_FIRST {
        let value =
            if key == "description" { Some(&*description) } else { given.get(key).filter(|v| v.get() != "null") };
        members.extend(value.map(|value| (key, value)));
    }
    let rest = given.0.iter().filter(|(key, _)| !SHOWN_FIRST.contains(&key.as_str()));
    members.extend(rest.map(|(key, value)| (key.as_str(), *value)));
    let written = members.iter().map(|(key, value)| format!("{}:{}", Value::from(*key), value.get()));
    let text = format!("{{{}}}", written.collect::<Vec<_>>().join(","));
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn definition_digest(given: &Members<'_>) -> Digest {
    let parsed = |key: &&str| Some(((*key).to_owned(), serde_json::from_str(given.get(key)?.get()).ok()?));
    let mut value = Value::Object(DIGESTED.iter().filter_map(parsed).collect());
    json::sort_members(&mut value);
    Digest::of(value.to_string())
}

/// Cuts a text at a character boundary and says so.
fn cut(text: &mut String, limit: usize) {
    if text.len() > limit {
        let mut at = limit;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        text.truncate(at);
        text.push_str(" [cut: the description is too long]");
    }
}

/// One page of a listing, as raw entries.
#[derive(Debug, Deserialize)]
pub struct Page {
    /// The entries, whatever the listing is of.
    #[serde(alias = "tools", alias = "resources", alias = "resourceTemplates", default)]
    pub entries: Vec<Box<RawValue>>,
    /// Where the next page starts; absent on the last.
    #[serde(rename = "nextCursor", default)]
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn add(catalogue: &mut Catalogue, text: &str) -> Result<(), BadEntry> {
        catalogue.add_tool(&raw(text), &ServerLimits::default())
    }

    #[test]
    fn a_bad_tool_is_left_out_and_the_others_stay() {
        let mut catalogue = Catalogue::default();
        assert_eq!(add(&mut catalogue, r#"{"inputSchema":{}}"#), Err(BadEntry::NoKey("name")));
        assert_eq!(add(&mut catalogue, "7"), Err(BadEntry::NoKey("name")));
        assert_eq!(add(&mut catalogue, r#"{"name":"a"}"#), Err(BadEntry::NoSchema));
        assert!(matches!(add(&mut catalogue, r#"{"name":"a","name":"b","inputSchema":{}}"#), Err(BadEntry::Json(_))));
        assert_eq!(add(&mut catalogue, r#"{"name":"a","inputSchema":{}}"#), Ok(()));
        assert_eq!(add(&mut catalogue, r#"{"name":"a","inputSchema":{}}"#), Err(BadEntry::Repeated));
        assert_eq!(catalogue.tools().len(), 1);
    }

    #[test]
    fn unknown_members_reach_describe_tool_after_the_known_ones() {
        let mut catalogue = Catalogue::default();
        add(
            &mut catalogue,
            r#"{"_meta":{"x":123456789012345678901234567890},"title":"T","name":"a","outputSchema":{"type":"object"},"inputSchema":{}}"#,
        )
        .unwrap();
        let tool = catalogue.tool("a").unwrap();
        assert_eq!(
            tool.definition().get(),
            r#"{"name":"a","description":"(no description)","inputSchema":{},"outputSchema":{"type":"object"},"_meta":{"x":123456789012345678901234567890},"title":"T"}"#
        );
        assert!(tool.is_structured());
    }

    #[test]
    fn the_digest_covers_what_matters_and_not_the_order() {
        let digest = |text: &str| Tool::parse(&raw(text), &ServerLimits::default()).unwrap().digest();
        let a = digest(r#"{"name":"a","inputSchema":{"x":1,"y":2},"_meta":{"n":1}}"#);
        assert_eq!(a, digest(r#"{"_meta":{"n":2},"inputSchema":{"y":2,"x":1},"name":"a"}"#));
        assert_ne!(a, digest(r#"{"name":"a","inputSchema":{"x":1,"y":3}}"#));
    }

    #[test]
    fn a_long_description_is_cut_and_says_so() {
        let text = format!(r#"{{"name":"a","inputSchema":{{}},"description":"{}"}}"#, "é".repeat(10_000));
        let tool = Tool::parse(&raw(&text), &ServerLimits::default()).unwrap();
        assert!(tool.description().len() < 17 * 1024 && tool.description().ends_with("too long]"));
    }

    #[test]
    fn a_page_is_read_whatever_it_lists() {
        let page: Page = serde_json::from_str(r#"{"tools":[{"name":7}],"nextCursor":"x"}"#).unwrap();
        assert_eq!((page.entries.len(), page.next_cursor.as_deref()), (1, Some("x")));
        let page: Page = serde_json::from_str(r#"{"resourceTemplates":[],"extra":1}"#).unwrap();
        assert_eq!((page.entries.len(), page.next_cursor), (0, None));
    }
}
