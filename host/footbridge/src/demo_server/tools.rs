//! The tools: what each is called, takes, gives and may do.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{
    arguments::{Arguments, Wrong},
    clock::{self, Clock},
    notes::{self, Notes},
    weather,
};

/// Longest name of a city, characters.
const MAX_CITY: usize = 80;
/// How far one may count.
const COUNTS: (u64, u64) = (1, 600);
/// How long a step of the count may take, milliseconds, and how long it takes unless said.
const STEPS: (u64, u64) = (1, 10_000);
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
pub(super) fn call(name: &str, mut args: Arguments, notes: &mut Notes, clock: &impl Clock) -> Result<Done, Wrong> {
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
pub(super) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A result that says why there is none.
pub(super) fn failure(why: &str) -> Value {
    json!({"content": [{"type": "text", "text": why}], "isError": true})
}

/// A structured result, and the same as text for clients that know no structure.
pub(super) fn structured(value: &Value) -> Value {
    json!({"content": [{"type": "text", "text": value.to_string()}], "structuredContent": value})
}

/// What a tool does to the world, as its annotations say it.
#[derive(Clone, Copy)]
enum Effect {
    Reads,
    Adds,
    Destroys,
}

impl Effect {
    fn annotations(self, title: &str) -> Value {
        json!({
            "title": title,
            "readOnlyHint": matches!(self, Self::Reads),
            "destructiveHint": matches!(self, Self::Destroys),
            "idempotentHint": !matches!(self, Self::Adds),
            "openWorldHint": false,
        })
    }
}

/// All definitions, as `tools/list` shows them.
pub(super) fn definitions() -> Vec<Value> {
    let mut tools = about_the_world();
    tools.extend(about_notes());
    tools
}

fn about_the_world() -> Vec<Value> {
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
    let n = json!({"type": "integer", "minimum": COUNTS.0, "maximum": COUNTS.1, "description": "How far to count"});
    let step = json!({
        "type": "integer", "minimum": STEPS.0, "maximum": STEPS.1, "default": STEP, "description": "Milliseconds a step takes",
    });
    vec![
        Tool::new("get_weather", "Weather", "Current weather in a city (made up, always the same)", Effect::Reads)
            .takes(json!({"city": city, "units": units}), &["city"])
            .gives(report),
        Tool::new("list_cities", "Cities", "Some cities to ask the weather of", Effect::Reads)
            .gives(json!({"cities": {"type": "array", "items": {"type": "string"}}})),
        Tool::new("now", "Time", "Current time in UTC", Effect::Reads)
            .takes(json!({"format": format}), &[])
            .gives(json!({"now": {"type": "string"}, "zone": {"type": "string"}})),
        Tool::new("count_slowly", "Slow count", "Count to n, one step a second, with progress", Effect::Reads)
            .takes(json!({"n": n, "stepMs": step}), &["n"]),
    ]
    .into_iter()
    .map(Tool::definition)
    .collect()
}

fn about_notes() -> Vec<Value> {
    let text = json!({
        "type": "string", "minLength": 1, "maxLength": notes::MAX_TEXT, "description": "What to keep in mind",
    });
    let note = json!({
        "type": "object",
        "properties": {"id": {"type": "integer"}, "uri": {"type": "string"}, "text": {"type": "string"}},
        "required": ["id", "uri", "text"],
    });
    vec![
        Tool::new("add_note", "Add a note", "Keep a note until the server ends", Effect::Adds)
            .takes(json!({"text": text}), &["text"])
            .gives(json!({"id": {"type": "integer"}, "uri": {"type": "string"}})),
        Tool::new("list_notes", "Notes", "All notes with their numbers", Effect::Reads)
            .gives(json!({"notes": {"type": "array", "items": note}})),
        Tool::new("delete_all_notes", "Delete all notes", "Delete all notes, for good", Effect::Destroys)
            .gives(json!({"deleted": {"type": "integer"}})),
    ]
    .into_iter()
    .map(Tool::definition)
    .collect()
}

/// A definition in the making.
struct Tool {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    effect: Effect,
    input: Value,
    output: Option<Value>,
}

impl Tool {
    fn new(name: &'static str, title: &'static str, description: &'static str, effect: Effect) -> Self {
        let input = json!({"type": "object", "properties": {}, "additionalProperties": false});
        Self { name, title, description, effect, input, output: None }
    }

    fn takes(mut self, properties: Value, required: &[&str]) -> Self {
        self.input["properties"] = properties;
        if !required.is_empty() {
            self.input["required"] = json!(required);
        }
        self
    }

    /// Every property is always there.
    fn gives(mut self, properties: Value) -> Self {
        let required: Vec<&String> = properties.as_object().map(Map::keys).into_iter().flatten().collect();
        self.output = Some(json!({"type": "object", "properties": properties, "required": required}));
        self
    }

    fn definition(self) -> Value {
        let mut definition = json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input,
        });
        if let Some(output) = self.output {
            definition["outputSchema"] = output;
        }
        definition["annotations"] = self.effect.annotations(self.title);
        definition
    }
}
