//! The tools: what each is called, takes, gives and may do.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use rmcp::{
    model::{CallToolResult, ContentBlock, Tool, ToolAnnotations},
    object,
};
use serde_json::{Map, Value, json};

use super::{
    arguments::{Arguments, BadArgument},
    clock::{self, Clock},
    notes::{self, Notes},
    weather,
};

/// Longest name of a city, characters.
const MAX_CITY: usize = 80;
/// How far one may count.
const COUNTS: RangeInclusive<u64> = 1..=600;
/// How long a step of the count may take, milliseconds, and how long it takes unless said.
const STEPS: RangeInclusive<u64> = 1..=10_000;
const STEP: u64 = 1_000;

/// What became of a call.
pub(super) enum Done {
    /// No such tool.
    Unknown,
    /// The tool says why it could not.
    Failed(String),
    /// A structured result.
    Structured(Value),
    /// A structured result, and the list of resources is another one now.
    NotesChanged(Value),
    /// It is answered when a count of `to` steps is over.
    Later {
        /// How far.
        to: u64,
        /// How long each step takes.
        step: Duration,
    },
}

/// Runs a tool.
///
/// # Errors
/// What is wrong with the arguments; nothing was done then.
pub(super) fn call(
    name: &str,
    mut args: Arguments,
    notes: &mut Notes,
    clock: &impl Clock,
) -> Result<Done, BadArgument> {
    let done = match name {
        "get_weather" => {
            let (city, units) = (args.text("city", MAX_CITY)?, args.word("units", &weather::UNITS)?);
            args.end()?;
            weather::weather(&city, units).map_or_else(|why| Done::Failed(why.to_string()), Done::Structured)
        }
        "list_cities" => {
            args.end()?;
            Done::Structured(json!({"cities": weather::CITIES}))
        }
        "now" => {
            let format = args.word("format", &clock::FORMATS)?;
            args.end()?;
            Done::Structured(json!({"now": clock::format(clock.since_epoch(), format), "zone": "UTC"}))
        }
        "add_note" => {
            let text = args.text("text", notes::MAX_TEXT)?;
            args.end()?;
            match notes.add(text) {
                Ok(id) => Done::NotesChanged(json!({"id": id, "uri": notes::uri(id)})),
                Err(why) => Done::Failed(why.to_string()),
            }
        }
        "list_notes" => {
            args.end()?;
            Done::Structured(json!({"notes": notes.listed()}))
        }
        "delete_all_notes" => {
            args.end()?;
            Done::NotesChanged(json!({"deleted": notes.delete_all()}))
        }
        "count_slowly" => {
            let (to, step) = (args.number("n", COUNTS, None)?, args.number("stepMs", STEPS, Some(STEP))?);
            args.end()?;
            Done::Later { to, step: Duration::from_millis(step) }
        }
        _ => Done::Unknown,
    };
    Ok(done)
}

/// A result that is text.
pub(super) fn text(text: String) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.is_error = None;
    result
}

/// A result that says why there is none.
pub(super) fn failure(why: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

/// A structured result, and the same as text for clients that know no structure.
pub(super) fn structured(value: Value) -> CallToolResult {
    let mut result = CallToolResult::structured(value);
    result.is_error = None;
    result
}

/// What a tool does to the world.
#[derive(Clone, Copy)]
enum Effect {
    Reads,
    Adds,
    Destroys,
}

/// All definitions, as `tools/list` shows them.
pub(super) fn definitions() -> Vec<Tool> {
    let mut tools = about_the_world();
    tools.extend(about_notes());
    tools
}

fn about_the_world() -> Vec<Tool> {
    let city = json!({
        "type": "string", "minLength": 1, "maxLength": MAX_CITY, "description": "Name of the city, in any script",
    });
    let units = json!({"type": "string", "enum": weather::UNITS, "default": weather::UNITS[0], "description": "Units of the answer"});
    let report = json!({
        "city": {"type": "string"},
        "conditions": {"type": "string"},
        "temperature": {"type": "number"},
        "temperatureUnit": {"type": "string", "enum": ["°C", "°F"]},
        "wind": {"type": "number"},
        "windUnit": {"type": "string", "enum": ["m/s", "mph"]},
        "humidityPercent": {"type": "integer", "minimum": 0, "maximum": 100},
    });
    let format = json!({"type": "string", "enum": clock::FORMATS, "default": clock::FORMATS[0], "description": "How to write it"});
    let n = json!({"type": "integer", "minimum": COUNTS.start(), "maximum": COUNTS.end(), "description": "How far to count"});
    let step = json!({
        "type": "integer", "minimum": STEPS.start(), "maximum": STEPS.end(), "default": STEP, "description": "Milliseconds a step takes",
    });
    vec![
        tool("get_weather", "Weather", "Current weather in a city (made up, always the same)", Effect::Reads)
            .takes(json!({"city": city, "units": units}), &["city"])
            .gives(report),
        tool("list_cities", "Cities", "Some cities to ask the weather of", Effect::Reads)
            .gives(json!({"cities": {"type": "array", "items": {"type": "string"}}})),
        tool("now", "Time", "Current time in UTC", Effect::Reads)
            .takes(json!({"format": format}), &[])
            .gives(json!({"now": {"type": "string"}, "zone": {"type": "string"}})),
        tool("count_slowly", "Slow count", "Count to n, one step a second, with progress", Effect::Reads)
            .takes(json!({"n": n, "stepMs": step}), &["n"]),
    ]
}

fn about_notes() -> Vec<Tool> {
    let text = json!({
        "type": "string", "minLength": 1, "maxLength": notes::MAX_TEXT, "description": "What to keep in mind",
    });
    let note = json!({
        "type": "object",
        "properties": {"id": {"type": "integer"}, "uri": {"type": "string"}, "text": {"type": "string"}},
        "required": ["id", "uri", "text"],
    });
    vec![
        tool("add_note", "Add a note", "Keep a note until the server ends", Effect::Adds)
            .takes(json!({"text": text}), &["text"])
            .gives(json!({"id": {"type": "integer"}, "uri": {"type": "string"}})),
        tool("list_notes", "Notes", "All notes with their numbers", Effect::Reads)
            .gives(json!({"notes": {"type": "array", "items": note}})),
        tool("delete_all_notes", "Delete all notes", "Delete all notes, for good", Effect::Destroys)
            .gives(json!({"deleted": {"type": "integer"}})),
    ]
}

/// A tool without arguments.
fn tool(name: &'static str, title: &str, description: &'static str, effect: Effect) -> Tool {
    let annotations = ToolAnnotations::with_title(title)
        .read_only(matches!(effect, Effect::Reads))
        .destructive(matches!(effect, Effect::Destroys))
        .idempotent(!matches!(effect, Effect::Adds))
        .open_world(false);
    let input = object!({"type": "object", "properties": {}, "additionalProperties": false});
    Tool::new(name, description, input).with_title(title).with_annotations(annotations)
}

/// What a definition says of schemas.
trait Schemas {
    fn takes(self, properties: Value, required: &[&str]) -> Self;

    /// Every property is always there.
    fn gives(self, properties: Value) -> Self;
}

impl Schemas for Tool {
    fn takes(mut self, properties: Value, required: &[&str]) -> Self {
        let input = Arc::make_mut(&mut self.input_schema);
        input.insert("properties".to_owned(), properties);
        if !required.is_empty() {
            input.insert("required".to_owned(), json!(required));
        }
        self
    }

    fn gives(self, properties: Value) -> Self {
        let required: Vec<&String> = properties.as_object().map(Map::keys).into_iter().flatten().collect();
        let output = object!({"type": "object", "properties": properties, "required": required});
        self.with_raw_output_schema(output.into())
    }
}
