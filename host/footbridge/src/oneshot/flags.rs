//! A tool's input schema as flags: what a shell can say in words is one, and the rest is said in JSON.
//!
//! Flags are for texts, numbers, yes or no, one of a few values, and several of these by repetition, whether written
//! directly, behind a `$ref`, or beside `null`. The schema is the server's own text: names that no flag can have are
//! left to JSON, and everything shown is escaped. It checks only what makes a word into JSON; whether the arguments fit
//! is the stages' to say.

use clap::{Arg, ArgAction, ArgMatches, builder::PossibleValuesParser};
use footbridge_proto::text::{Escaped, needs_escape};
use serde_json::{Map, Value};

/// Most properties that become flags.
const MOST_FLAGS: usize = 200;
/// References that are followed from one property.
const MOST_STEPS: usize = 8;
/// Longest name of a flag, and longest text that is shown of a property.
const MOST_NAME: usize = 64;
const MOST_SHOWN: usize = 300;
/// More values than this are not listed.
const MOST_LISTED: usize = 20;
/// Under which heading they stand.
const HEADING: &str = "Arguments of the tool";

/// What one word of a flag is.
#[derive(Debug, Clone, PartialEq)]
enum Word {
    Text,
    Integer,
    Number,
    Boolean,
    /// One of these: as it is typed, and as JSON.
    OneOf(Vec<(String, Value)>),
}

/// A property that is a flag.
#[derive(Debug, Clone, PartialEq)]
struct Flag {
    property: String,
    word: Word,
    /// Whether it may be repeated.
    is_list: bool,
    shown: String,
    /// A word for an example, if the schema has one.
    sample: Option<String>,
}

/// A property that is said in JSON alone, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
struct InJson {
    property: String,
    why: &'static str,
}

/// What of a tool's arguments can be typed as flags.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ToolFlags {
    flags: Vec<Flag>,
    in_json: Vec<InJson>,
    required: Vec<String>,
}

/// An argument as it was typed: the property, and its JSON.
pub(crate) type TypedFlag = (String, String);

impl ToolFlags {
    /// Of a schema; `taken` are names of options that are not the tool's.
    pub(crate) fn of(schema: &Value, taken: &[String]) -> Self {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let mut found = Self::default();
        for (name, property) in properties {
            let fits = if found.flags.len() >= MOST_FLAGS {
                Err("there are too many")
            } else {
                flag_name(name, taken).and_then(|()| flag(name, property, schema))
            };
            match fits {
                Ok(flag) => found.flags.push(flag),
                Err(why) => found.in_json.push(InJson { property: name.clone(), why }),
            }
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        found.required = required.filter_map(Value::as_str).map(str::to_owned).collect();
        found
    }

    /// The flags, for a command line.
    pub(crate) fn args(&self) -> Vec<Arg> {
        let names: Vec<&str> = self.flags.iter().map(|flag| flag.property.as_str()).collect();
        self.flags.iter().enumerate().map(|(at, flag)| flag.arg(at, &names, self.is_required(&flag.property))).collect()
    }

    fn is_required(&self, property: &str) -> bool {
        self.required.iter().any(|name| name == property)
    }

    /// What was typed of them.
    pub(crate) fn typed(&self, matches: &ArgMatches) -> Vec<TypedFlag> {
        let of = |(at, flag): (usize, &Flag)| {
            let words: Vec<String> = matches.get_many::<String>(&id(at))?.map(|word| flag.word.json(word)).collect();
            let json = if flag.is_list { format!("[{}]", words.join(",")) } else { words.last()?.clone() };
            Some((flag.property.clone(), json))
        };
        self.flags.iter().enumerate().filter_map(of).collect()
    }

    /// What is required and not among these, each as it can be given.
    pub(crate) fn missing(&self, given: impl Fn(&str) -> bool) -> Vec<String> {
        let missing = self.required.iter().filter(|name| !given(name));
        let as_given = |name: &String| match self.flags.iter().any(|flag| flag.property == *name) {
            true => format!("--{name}"),
            false => format!("{} (with --json)", Escaped(name)),
        };
        missing.map(as_given).collect()
    }

    /// Lines about what is said in JSON.
    pub(crate) fn in_json(&self) -> Vec<String> {
        let line = |one: &InJson| {
            let required = if self.is_required(&one.property) { ", required" } else { "" };
            format!("  {} ({}{required})", Escaped(&one.property), one.why)
        };
        self.in_json.iter().map(line).collect()
    }

    /// The words of an example, without the tool's name.
    pub(crate) fn example(&self) -> String {
        let needed: Vec<&Flag> = self.flags.iter().filter(|flag| self.is_required(&flag.property)).collect();
        let shown = if needed.is_empty() { self.flags.iter().take(1).collect() } else { needed };
        let mut words: Vec<String> = shown.iter().map(|flag| flag.example()).collect();
        let json: Vec<String> = self
            .in_json
            .iter()
            .filter(|one| self.is_required(&one.property))
            .map(|one| format!("{}: ...", Value::from(Escaped(&one.property).to_string())))
            .collect();
        if !json.is_empty() {
            words.push(format!("--json '{{{}}}'", json.join(", ").replace('\'', "'\\''")));
        }
        words.join(" ")
    }

    /// The names of all flags, for completion.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.flags.iter().map(|flag| flag.property.as_str())
    }

    /// What a flag takes, where that is one of a few words.
    pub(crate) fn choices(&self, name: &str) -> Vec<String> {
        let flag = self.flags.iter().find(|flag| flag.property == name || dashed(&flag.property) == name);
        match flag.map(|flag| &flag.word) {
            Some(Word::OneOf(values)) => values.iter().map(|(typed, _)| typed.clone()).collect(),
            Some(Word::Boolean) => vec!["true".to_owned(), "false".to_owned()],
            _ => Vec::new(),
        }
    }
}

/// Where a flag's matches are; its own name could be that of an option.
fn id(at: usize) -> String {
    format!("argument {at}")
}

fn dashed(name: &str) -> String {
    name.replace('_', "-")
}

fn flag_name(name: &str, taken: &[String]) -> Result<(), &'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if taken.iter().any(|option| option == name) {
        return Err("an option has its name");
    }
    let fits = (1..=MOST_NAME).contains(&name.len()) && name.chars().all(is_plain) && !name.starts_with('-');
    if fits { Ok(()) } else { Err("no flag can have its name") }
}

fn flag(name: &str, property: &Value, schema: &Value) -> Result<Flag, &'static str> {
    let meant = meant(property, schema);
    let (word, is_list) = match kind(meant) {
        Some("array") => {
            let items = meant.get("items").map(|items| self::meant(items, schema));
            let word = items.and_then(word).ok_or("a list of what is no single word")?;
            (word, true)
        }
        Some("object") => return Err("an object"),
        _ => (word(meant).ok_or("of several kinds")?, false),
    };
    let text = |key: &str| property.get(key).or_else(|| meant.get(key));
    let mut shown = text("description").and_then(Value::as_str).map(short).unwrap_or_default();
    if let Some(default) = text("default").filter(|default| !default.is_null()) {
        let default = short(&plain(default));
        shown.push_str(&format!("{}[default: {default}]", if shown.is_empty() { "" } else { " " }));
    }
    let sample = text("examples").and_then(|examples| examples.get(0)).or_else(|| text("default"));
    let sample = sample.filter(|sample| !sample.is_null() && !sample.is_object() && !sample.is_array()).map(plain);
    Ok(Flag { property: name.to_owned(), word, is_list, shown, sample })
}

/// What a schema says once references, single choices and `null` beside it are out of the way.
fn meant<'s>(property: &'s Value, schema: &'s Value) -> &'s Value {
    let mut at = property;
    for _ in 0..MOST_STEPS {
        let next = referred(at, schema).or_else(|| {
            let one = |key: &str| {
                let all = at.get(key)?.as_array()?;
                let mut others = all.iter().filter(|one| kind(one) != Some("null"));
                let first = others.next()?;
                others.next().is_none().then_some(first)
            };
            ["anyOf", "oneOf", "allOf"].into_iter().find_map(one)
        });
        match next {
            Some(next) => at = next,
            None => break,
        }
    }
    at
}

/// What a reference within the same schema leads to.
fn referred<'s>(at: &Value, schema: &'s Value) -> Option<&'s Value> {
    schema.pointer(at.get("$ref")?.as_str()?.strip_prefix('#')?)
}

/// The one type besides `null`, if there is one.
fn kind(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => {
            let mut others = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            let first = others.next()?;
            others.next().is_none().then_some(first)
        }
        _ => None,
    }
}

/// What single word a schema takes.
fn word(schema: &Value) -> Option<Word> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return one_of(values).or_else(|| (kind(schema) == Some("string")).then_some(Word::Text));
    }
    match kind(schema)? {
        "string" => Some(Word::Text),
        "integer" => Some(Word::Integer),
        "number" => Some(Word::Number),
        "boolean" => Some(Word::Boolean),
        _ => None,
    }
}

/// One of these values, if each is one word and can be told from the others.
fn one_of(values: &[Value]) -> Option<Word> {
    let mut found: Vec<(String, Value)> = Vec::new();
    for value in values.iter().filter(|value| !value.is_null()) {
        let typed = plain(value);
        let is_word = !value.is_object() && !value.is_array() && !typed.chars().any(needs_escape);
        if !is_word || typed.len() > MOST_SHOWN || found.iter().any(|(other, _)| *other == typed) {
            return None;
        }
        found.push((typed, value.clone()));
    }
    (!found.is_empty()).then_some(Word::OneOf(found))
}

/// A value as it is typed.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn short(text: &str) -> String {
    let escaped = Escaped(text).to_string();
    match escaped.char_indices().nth(MOST_SHOWN) {
        Some((at, _)) => format!("{}...", &escaped[..at]),
        None => escaped,
    }
}

impl Word {
    /// What was typed, as JSON. It was checked by then.
    fn json(&self, typed: &str) -> String {
        match self {
            Self::Text => Value::from(typed).to_string(),
            Self::Integer | Self::Number | Self::Boolean => typed.to_owned(),
            Self::OneOf(values) => {
                let value = values.iter().find(|(word, _)| word == typed);
                value.map_or_else(|| Value::from(typed).to_string(), |(_, value)| value.to_string())
            }
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Text => "TEXT",
            Self::Integer => "INTEGER",
            Self::Number => "NUMBER",
            Self::Boolean => "BOOL",
            Self::OneOf(_) => "VALUE",
        }
    }

    fn sample(&self) -> String {
        match self {
            Self::Text => "...".to_owned(),
            Self::Integer | Self::Number => "1".to_owned(),
            Self::Boolean => "true".to_owned(),
            Self::OneOf(values) => values.first().map(|(typed, _)| typed.clone()).unwrap_or_default(),
        }
    }
}

impl Flag {
    fn arg(&self, at: usize, names: &[&str], required: bool) -> Arg {
        let mut shown = self.shown.clone();
        let mut add = |text: &str| shown.push_str(&format!("{}{text}", if shown.is_empty() { "" } else { " " }));
        if required {
            add("[required]");
        }
        if self.is_list {
            add("[may be repeated]");
        }
        let arg = Arg::new(id(at)).long(self.property.clone()).help(shown).help_heading(HEADING);
        let arg = arg.value_name(self.word.name());
        let arg = arg.action(if self.is_list { ArgAction::Append } else { ArgAction::Set });
        let dashed = dashed(&self.property);
        let arg = if dashed != self.property && !names.contains(&dashed.as_str()) { arg.alias(dashed) } else { arg };
        match &self.word {
            Word::Text => arg.value_parser(clap::value_parser!(String)),
            Word::Integer => arg.value_parser(integer).allow_negative_numbers(true),
            Word::Number => arg.value_parser(number).allow_negative_numbers(true),
            Word::Boolean if self.is_list => arg.value_parser(PossibleValuesParser::new(["true", "false"])),
            Word::Boolean => {
                let arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true");
                arg.value_parser(PossibleValuesParser::new(["true", "false"]))
            }
            Word::OneOf(values) => {
                let words = PossibleValuesParser::new(values.iter().map(|(typed, _)| typed.clone()));
                arg.value_parser(words).hide_possible_values(values.len() > MOST_LISTED)
            }
        }
    }

    fn example(&self) -> String {
        if self.word == Word::Boolean && !self.is_list {
            return format!("--{}", self.property);
        }
        let sample = self.sample.clone().unwrap_or_else(|| self.word.sample());
        format!("--{} {}", self.property, quoted(&short(&sample)))
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+=,-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn integer(typed: &str) -> Result<String, &'static str> {
    let digits = typed.strip_prefix('-').unwrap_or(typed);
    let fits =
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if fits { Ok(typed.to_owned()) } else { Err("it takes a whole number, such as 5") }
}

fn number(typed: &str) -> Result<String, &'static str> {
    let starts = typed.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let fits = starts && serde_json::from_str::<serde_json::Number>(typed).is_ok() && typed.trim() == typed;
    if fits { Ok(typed.to_owned()) } else { Err("it takes a number, such as 2.5") }
}

#[cfg(test)]
mod tests {
    use clap::Command;
    use serde_json::json;

    use super::*;

    fn typed(schema: &Value, words: &[&str]) -> Result<Value, String> {
        let flags = ToolFlags::of(schema, &["json".to_owned()]);
        let command = Command::new("t").no_binary_name(true).args(flags.args());
        command.clone().debug_assert();
        let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
        let members: Vec<String> =
            flags.typed(&matches).into_iter().map(|(name, raw)| format!("{}:{raw}", json!(name))).collect();
        Ok(serde_json::from_str(&format!("{{{}}}", members.join(","))).unwrap())
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "$defs": {"Unit": {"type": "string", "enum": ["metric", "imperial"]}},
            "properties": {
                "city": {"type": "string", "description": "Which \u{1b}[2J", "examples": ["Bern"]},
                "days": {"type": "integer", "default": 3},
                "share": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                "dry_run": {"type": ["boolean", "null"]},
                "unit": {"$ref": "#/$defs/Unit"},
                "level": {"enum": [1, 2, "max"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "units": {"type": "array", "items": {"allOf": [{"$ref": "#/$defs/Unit"}]}},
                "filter": {"type": "object"},
                "rows": {"type": "array", "items": {"type": "array"}},
                "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "json": {"type": "string"},
                "a b": {"type": "string"},
                "-x": {"type": "string"},
            },
            "required": ["city", "filter"],
        })
    }

    #[test]
    fn words_become_json_of_the_kind_that_the_schema_asks_for() {
        let words = [
            "--city",
            "Bern",
            "--days",
            "-3",
            "--share",
            "2.50",
            "--dry-run",
            "--unit=metric",
            "--level",
            "2",
            "--tags",
            "a",
            "--tags",
            "1",
            "--units",
            "imperial",
        ];
        assert_eq!(
            typed(&schema(), &words).unwrap(),
            json!({"city": "Bern", "days": -3, "share": 2.50, "dry_run": true, "unit": "metric", "level": 2,
                "tags": ["a", "1"], "units": ["imperial"]})
        );
        assert_eq!(
            typed(&schema(), &["--dry_run=false", "--level", "max"]).unwrap(),
            json!({"dry_run": false, "level": "max"})
        );
        let large = ToolFlags::of(&json!({"properties": {"n": {"type": "integer"}}}), &[]);
        let matches = Command::new("t").args(large.args()).get_matches_from(["t", "--n", "12345678901234567890123"]);
        assert_eq!(large.typed(&matches), [("n".to_owned(), "12345678901234567890123".to_owned())]);
    }

    #[test]
    fn words_that_do_not_fit_are_named_with_what_does() {
        for (words, says) in [
            (["--unit", "metrik"], "similar value exists: 'metric'"),
            (["--units", "x"], "[possible values: metric, imperial]"),
            (["--days", "2.5"], "whole number"),
            (["--days", "007"], "whole number"),
            (["--share", "NaN"], "a number, such as"),
            (["--dry_run", "maybe"], "unexpected"),
            (["--citty", "x"], "similar argument exists: '--city'"),
            (["--filter", "x"], "unexpected argument"),
        ] {
            let error = typed(&schema(), &words).unwrap_err();
            assert!(error.contains(says), "{words:?}: {error}");
        }
    }

    #[test]
    fn what_no_flag_can_say_is_named_with_its_reason() {
        let flags = ToolFlags::of(&schema(), &["json".to_owned()]);
        let lines = flags.in_json().join("\n");
        for line in [
            "filter (an object, required)",
            "rows (a list of what is no single word)",
            "either (of several kinds)",
            "json (an option has its name)",
            "a b (no flag can have its name)",
            "-x (no flag can have its name)",
        ] {
            assert!(lines.contains(line), "{line}: {lines}");
        }
        assert_eq!(flags.missing(|_| false), ["--city", "filter (with --json)"]);
        assert_eq!(flags.missing(|name| name == "city"), ["filter (with --json)"]);
        assert_eq!(flags.example(), "--city Bern --json '{\"filter\": ...}'");
    }

    #[test]
    fn nothing_of_a_schema_steers_a_terminal_and_odd_ones_do_no_harm() {
        let flags = ToolFlags::of(&schema(), &[]);
        let help = Command::new("t").args(flags.args()).render_long_help().to_string();
        assert!(!help.contains('\u{1b}') && help.contains("\\u{1b}"), "{help}");
        let many: Map<String, Value> = (0..300).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        assert_eq!(ToolFlags::of(&json!({"properties": many}), &[]).names().count(), MOST_FLAGS);
        for odd in [
            json!(null),
            json!({"properties": 7}),
            json!({"properties": {"a": true, "b": null, "c": {"$ref": "#/properties/c"}}}),
            json!({"properties": {"a": {"type": "array"}, "b": {"enum": []}, "c": {"enum": [[1], {}]}}, "required": "a"}),
            json!({"properties": {"a": {"enum": ["1", 1]}, "b": {"enum": ["\u{202e}"]}, "c": {"type": "new"}}}),
        ] {
            let flags = ToolFlags::of(&odd, &[]);
            assert_eq!(flags.names().count(), 0, "{odd}: {flags:?}");
            let _ = (flags.example(), flags.missing(|_| false), flags.in_json());
        }
    }
}
