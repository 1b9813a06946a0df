//! One tool as its server defined it, and what it takes of that definition.

use footbridge_proto::{
    json::{self, Members},
    rpc, wire,
};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{BadEntry, INSTRUCTIONS, MAX_KEY, Origin, TOOL, VERBATIM, pinned::PinnedText};
use crate::{
    digest::Digest,
    gate::Effects,
    limits::ServerLimits,
    schema::{BadSchema, InputSchema},
};

/// A tool as its server defined it.
#[derive(Debug)]
pub struct Tool {
    name: String,
    description: Option<String>,
    structured: bool,
    promoted: bool,
    task_only: bool,
    definition: Box<RawValue>,
    /// Where in the definition what its server said begins, behind the name and what stands for a description.
    rest_at: usize,
    pinned: PinnedText,
    effects: Effects,
}

/// What marks a parameter that the stateless revision wants repeated in a header.
pub const PROMOTED: &str = "\"x-mcp-header\"";

/// The order in which `describeTool` shows the members that every client knows.
const SHOWN_FIRST: [&str; 5] = ["name", "description", "inputSchema", "outputSchema", "annotations"];

impl Tool {
    pub(super) fn parse(raw: &RawValue, limits: &ServerLimits, origin: Option<&Origin>) -> Result<Self, BadEntry> {
        let text = json::check(raw.get().as_bytes(), json::MAX_BODY_DEPTH)?;
        let given: Members<'_> = serde_json::from_str(text).map_err(|_| BadEntry::NoKey("name"))?;
        let name = given.text("name").filter(|n| (1..=MAX_KEY).contains(&n.len())).ok_or(BadEntry::NoKey("name"))?;
        if name == INSTRUCTIONS {
            return Err(BadEntry::Reserved);
        }
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
        let definition = shown_definition(&given, description.as_deref());
        Ok(Self {
            rest_at: rest_at(&definition, description.is_some()),
            structured: given.is_object("outputSchema"),
            promoted: raw.get().contains(PROMOTED),
            task_only: required_task(&given).is_some(),
            definition,
            pinned: pinned_text(&given, origin),
            effects: Effects::from_annotations(given.get("annotations")),
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

    /// All that its server said of it, in the order that `describeTool` shows. One that its server runs as a task alone
    /// can be called by anybody here, and says so.
    #[must_use]
    pub fn definition(&self) -> &RawValue {
        &self.definition
    }

    /// Writes what its server said of it, under this name: nothing is added to it.
    pub fn write_as(&self, name: &str, text: &mut String) {
        text.push_str(NAME_FIRST);
        text.push_str(rpc::raw(&name).get());
        text.push_str(self.definition.get().get(self.rest_at..).unwrap_or("}"));
    }

    /// Whether some of its arguments are repeated in HTTP headers, as the stateless revision has it.
    #[must_use]
    pub fn is_promoted(&self) -> bool {
        self.promoted
    }

    /// Whether its server runs it as a task alone.
    #[must_use]
    pub fn is_task_only(&self) -> bool {
        self.task_only
    }

    /// The canonical text of its definition: all that its server said of it, and how that server is reached. This is
    /// what a person accepts, and what [`Self::digest`] is of.
    #[must_use]
    pub fn pinned(&self) -> &str {
        &self.pinned.text
    }

    /// Digest of its definition.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.pinned.digest
    }

    /// What it can do, by its annotations.
    #[must_use]
    pub fn effects(&self) -> Effects {
        self.effects
    }

    /// Compiles its input schema. This may take long.
    ///
    /// # Errors
    /// [`BadSchema`] when it is not one that arguments can be checked against.
    pub fn compile_schema(&self) -> Result<InputSchema, BadSchema> {
        InputSchema::compile(&self.input_schema()?)
    }

    /// The same of one whose provider checks its arguments, too; see [`InputSchema::compile_first`]. Providers that do not,
    /// as of programs, offer no tool whose schema needs that.
    ///
    /// # Errors
    /// As [`Self::compile_schema`].
    pub fn compile_schema_first(&self) -> Result<InputSchema, BadSchema> {
        InputSchema::compile_first(&self.input_schema()?)
    }

    fn input_schema(&self) -> Result<Value, BadSchema> {
        let broken = || BadSchema::Invalid("it cannot be read".to_owned());
        let members: Members<'_> = serde_json::from_str(self.definition.get()).map_err(|_| broken())?;
        let schema = members.get("inputSchema").ok_or_else(broken)?;
        serde_json::from_str(schema.get()).map_err(|_| broken())
    }
}

/// What each definition begins with.
const NAME_FIRST: &str = "{\"name\":";

/// Where in a definition the members begin that come behind the name, and behind what stands for a description that
/// there is not.
fn rest_at(definition: &RawValue, is_described: bool) -> usize {
    let text = definition.get();
    let mut values =
        serde_json::Deserializer::from_str(text.get(NAME_FIRST.len()..).unwrap_or_default()).into_iter::<&RawValue>();
    // It was written a moment ago, so there is a name.
    let name = values.next().and_then(Result::ok).map_or(0, |name| name.get().len());
    let rest = NAME_FIRST.len() + name;
    let stand_in = format!(",\"description\":{}", rpc::raw(&wire::NO_DESCRIPTION).get());
    if is_described { rest } else { rest + stand_in.len() }
}

/// What `execution` says of tasks, where it demands one.
fn required_task<'a>(given: &Members<'a>) -> Option<&'a RawValue> {
    #[derive(Deserialize)]
    struct Execution<'a> {
        #[serde(borrow, rename = "taskSupport")]
        task: &'a RawValue,
    }
    let Execution { task } = serde_json::from_str(given.get("execution")?.get()).ok()?;
    serde_json::from_str::<String>(task.get()).is_ok_and(|said| said == "required").then_some(task)
}

/// `execution` of a tool that its server runs as a task alone, for those who call it here: it is run as one for them.
fn shown_execution(given: &Members<'_>) -> Option<Box<RawValue>> {
    let (task, execution) = (required_task(given)?.get(), given.get("execution")?.get());
    let start = task.as_ptr() as usize - execution.as_ptr() as usize;
    let (before, behind) = (&execution[..start], &execution[start + task.len()..]);
    RawValue::from_string(format!("{before}\"optional\"{behind}")).ok()
}

/// The definition as `describeTool` shows it: the known members first, the others after, each as it was written.
fn shown_definition(given: &Members<'_>, description: Option<&str>) -> Box<RawValue> {
    let description = rpc::raw(&description.unwrap_or(wire::NO_DESCRIPTION));
    let execution = shown_execution(given);
    let mut members: Vec<(&str, &RawValue)> = Vec::new();
    for key in SHOWN_FIRST {
        let value =
            if key == "description" { Some(&*description) } else { given.get(key).filter(|v| v.get() != "null") };
        members.extend(value.map(|value| (key, value)));
    }
    let rest = given.0.iter().filter(|(key, _)| !SHOWN_FIRST.contains(&key.as_str()));
    members.extend(rest.map(|(key, value)| match (key.as_str(), &execution) {
        (key @ "execution", Some(shown)) => (key, &**shown),
        (key, _) => (key, *value),
    }));
    let written = members.iter().map(|(key, value)| format!("{}:{}", Value::from(*key), value.get()));
    let text = format!("{{{}}}", written.collect::<Vec<_>>().join(","));
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The definition as it is pinned. Every member is in it, also those that nobody knows: `describeTool` shows them to
/// guests, and what a guest reads must be what somebody accepted.
fn pinned_text(given: &Members<'_>, origin: Option<&Origin>) -> PinnedText {
    let (mut tool, mut verbatim) = (Map::new(), Map::new());
    for (key, raw) in &given.0 {
        match serde_json::from_str(raw.get()) {
            Ok(value) if json::measured(raw.get()).inexact.is_none() => drop(tool.insert(key.clone(), value)),
            // Its value would not keep a number of it, and two texts would have one digest.
            _ => drop(verbatim.insert(key.clone(), raw.get().into())),
        }
    }
    let parts = [(TOOL, tool), (VERBATIM, verbatim)].into_iter().filter(|(_, members)| !members.is_empty());
    PinnedText::of(origin, parts.map(|(key, members)| (key, Value::Object(members))))
}

/// Cuts a text at a character boundary and says so.
pub(super) fn cut(text: &mut String, limit: usize) {
    if text.len() > limit {
        let mut at = limit;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        text.truncate(at);
        text.push_str(" [cut: the description is too long]");
    }
}
