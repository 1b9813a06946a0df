//! An argument of a tool as a flag: its name, what it takes, and the JSON of what was typed of it.

use footbridge_proto::text::Escaped;
use serde_json::{Value, value::RawValue};

use super::{
    BadFlag,
    value::{FlagValue, MOST_SHOWN, and_null, plain, word},
};
use crate::{
    schema::{kind, meant, sample, takes_null},
    shell_word::quoted,
    signature::type_of,
};

/// An argument that is a flag.
#[derive(Debug, Clone, PartialEq)]
pub struct Flag {
    /// What is typed behind the two dashes.
    pub name: String,
    /// Where in the arguments it is.
    pub(super) path: Vec<String>,
    /// What one word of it is.
    pub word: FlagValue,
    /// Whether the word `null` says that there is none: it could be nothing else that it takes.
    pub takes_null: bool,
    /// Whether it may be repeated.
    pub is_list: bool,
    /// Whether a call needs it.
    pub is_required: bool,
    /// The object that cannot be without it, where it is a member of one.
    pub(super) needed_with: Option<String>,
    /// The places of the names that lead there among those beside them: members are beside their object.
    pub(super) order: Vec<usize>,
    /// What the schema says of it, and what it is where it is left out.
    pub shown: String,
    /// Its type, as signatures have it.
    pub kind: String,
    /// A word for an example.
    sample: String,
}

/// An argument as it was typed: where it is, and its JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedFlag {
    /// The names that lead there.
    pub path: Vec<String>,
    /// Its JSON.
    pub json: String,
}

/// Where a property is among those of a schema.
#[derive(Debug, Clone, Default)]
pub(super) struct FlagPlace {
    pub(super) path: Vec<String>,
    order: Vec<usize>,
    /// Whether what it is in needs it.
    pub(super) is_needed: bool,
}

impl FlagPlace {
    pub(super) fn member(&self, name: &str, at: usize, is_needed: bool) -> Self {
        let (mut path, mut order) = (self.path.clone(), self.order.clone());
        path.push(name.to_owned());
        order.push(at);
        Self { path, order, is_needed }
    }
}

pub(super) fn flag(name: String, place: &FlagPlace, property: &Value, schema: &Value, values: &mut usize) -> Flag {
    let at = meant(property, schema);
    let (word, is_list) = match kind(at) {
        Some("array") => {
            let items = at.get("items").map(|items| word(items, schema, values));
            (items.unwrap_or(FlagValue::Json { or_text: true }), true)
        }
        _ => (word(at, schema, values), false),
    };
    let can_be_null = takes_null(property, schema);
    let (word, takes_null) = match word {
        // Of a list the word alone, unless that is one of its items.
        FlagValue::OneOf(ref values) if is_list => {
            let is_item = values.iter().any(|(word, _)| word == "null");
            (word, can_be_null && !is_item)
        }
        word if is_list => (word, can_be_null),
        FlagValue::OneOf(values) if can_be_null => (FlagValue::OneOf(and_null(values)), false),
        FlagValue::Integer | FlagValue::Number | FlagValue::Boolean | FlagValue::Object => (word, can_be_null),
        word => (word, false),
    };
    let text = |key: &str| property.get(key).or_else(|| at.get(key));
    let mut shown = text("description").and_then(Value::as_str).map(short).unwrap_or_default();
    if let Some(default) = text("default").filter(|default| !default.is_null()) {
        let default = short(&plain(default));
        shown.push_str(&format!("{}[default: {default}]", if shown.is_empty() { "" } else { " " }));
    }
    let mut sample = sample(property, schema);
    // One word of a list; it is needed where the list is.
    if let Some(items) = sample.as_array().filter(|_| is_list) {
        let least = || at.get("items").map_or(Value::Null, |items| crate::schema::sample(items, schema));
        sample = if items.len() > 1 { sample } else { items.first().cloned().unwrap_or_else(least) };
    }
    let (kind, sample) = (type_of(property, schema), plain(&sample));
    let FlagPlace { path, order, is_needed } = place.clone();
    let object = path[..path.len() - 1].join(".");
    let (is_required, needed_with) = (is_needed && object.is_empty(), is_needed.then_some(object));
    let needed_with = needed_with.filter(|object| !object.is_empty());
    Flag { name, path, word, takes_null, is_list, is_required, needed_with, order, shown, kind, sample }
}

impl Flag {
    /// The object that cannot be without it, where it is a member of one.
    #[must_use]
    pub(crate) fn needed_with(&self) -> Option<&str> {
        self.needed_with.as_deref()
    }

    /// Has it say this, too.
    pub(super) fn note(&mut self, text: &str) {
        if !self.shown.contains(text) {
            self.shown.push_str(&format!("{}{text}", if self.shown.is_empty() { "" } else { " " }));
        }
    }

    /// Whether it is yes or no, and needs no word behind it.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.word == FlagValue::Boolean && !self.is_list
    }

    /// What it takes, where that is one of a few words.
    #[must_use]
    pub fn choices(&self) -> Vec<String> {
        let words: Vec<&str> = match &self.word {
            FlagValue::OneOf(values) => values.iter().map(|(typed, _)| typed.as_str()).collect(),
            FlagValue::Boolean => ["true", "false"].into_iter().chain(self.takes_null.then_some("null")).collect(),
            _ => Vec::new(),
        };
        words.into_iter().map(str::to_owned).collect()
    }

    /// What was typed of it, as JSON. One that takes one value has one: of several any could be meant.
    ///
    /// # Errors
    /// [`BadFlag::Value`].
    pub fn typed(&self, values: &[String]) -> Result<TypedFlag, BadFlag> {
        let last = values.last().map_or("", |it| it);
        let json = match last {
            _ if !self.is_list && values.len() > 1 => {
                Err(format!("it is given {} times, and takes one value", values.len()))
            }
            "null" if self.takes_null && (!self.is_list || values.len() == 1) => Ok("null".to_owned()),
            _ if self.is_list => self.list(values),
            word => self.word.json(word),
        };
        let json = json.map_err(|why| BadFlag::Value(self.name.clone(), why))?;
        Ok(TypedFlag { path: self.path.clone(), json })
    }

    /// A JSON list counts as its items.
    fn list(&self, values: &[String]) -> Result<String, String> {
        let mut items = Vec::new();
        for value in values {
            match serde_json::from_str::<Vec<&RawValue>>(value) {
                Ok(several) => items.extend(several.into_iter().map(|one| one.get().to_owned())),
                Err(_) => items.push(self.word.json(value)?),
            }
        }
        Ok(format!("[{}]", items.join(",")))
    }

    pub(super) fn example(&self) -> String {
        if self.is_switch() {
            format!("--{}", self.name)
        } else {
            let value = quoted(&short(&self.sample));
            // What begins like a flag is none only behind its sign.
            let sign = if value.trim_start_matches('\'').starts_with('-') { '=' } else { ' ' };
            format!("--{}{sign}{value}", self.name)
        }
    }
}

fn short(text: &str) -> String {
    let escaped = Escaped(text).to_string();
    match escaped.char_indices().nth(MOST_SHOWN) {
        Some((at, _)) => format!("{}...", &escaped[..at]),
        None => escaped,
    }
}
