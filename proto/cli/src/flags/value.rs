//! What one word of a flag is, by the schema of its argument, and the JSON of what was typed.

use std::collections::HashSet;

use footbridge_proto::text::{Escaped, needs_escape};
use serde_json::{Value, value::RawValue};

use crate::{
    decimal::Decimal,
    schema::{kind, meant},
    suggest::instead,
};

/// Longest text that is shown of a property, and longest word that is one of a few.
pub(super) const MOST_SHOWN: usize = 300;
/// Values that are read for the words of all flags of a tool together: each may have the same list of them.
const MOST_VALUES: usize = 150_000;

/// What one word of a flag is.
#[derive(Debug, Clone, PartialEq)]
pub enum FlagValue {
    /// Any text.
    Text,
    /// A whole number, of any size.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// One of these: as it is typed, and as JSON.
    OneOf(Vec<(String, Value)>),
    /// A JSON object.
    Object,
    /// JSON of any kind; where a text will do, what is no JSON is one.
    Json {
        /// Whether a text will do.
        or_text: bool,
    },
}

impl FlagValue {
    /// What was typed, as JSON.
    ///
    /// # Errors
    /// What it takes instead.
    pub fn json(&self, typed: &str) -> Result<String, String> {
        let wrong = |takes: &str| Err(format!("\"{}\" is not what it takes: {takes}", Escaped(typed)));
        let is_json = || serde_json::from_str::<&RawValue>(typed).is_ok();
        match self {
            Self::Text => Ok(Value::from(typed).to_string()),
            Self::Integer if is_integer(typed) => Ok(typed.to_owned()),
            Self::Integer => match decimal(typed).and_then(|number| number.whole()) {
                Some(whole) => Ok(whole),
                None => wrong("a whole number, such as 5"),
            },
            Self::Number if is_number(typed) => Ok(typed.to_owned()),
            Self::Number => wrong("a number, such as 2.5"),
            Self::Boolean if matches!(typed, "true" | "false") => Ok(typed.to_owned()),
            Self::Boolean => wrong("true or false"),
            Self::OneOf(values) => match one_of_them(values, typed) {
                Some((_, value)) => Ok(value.to_string()),
                None => {
                    let known: Vec<&str> = values.iter().map(|(word, _)| word.as_str()).collect();
                    Err(format!(
                        "\"{}\" is none of its values{}",
                        Escaped(typed),
                        instead(typed, &known, "it has none")
                    ))
                }
            },
            Self::Object if typed.trim_start().starts_with('{') && is_json() => Ok(typed.to_owned()),
            Self::Object => wrong("a JSON object, in { and }"),
            Self::Json { .. } if is_json() => Ok(typed.to_owned()),
            Self::Json { or_text: true } => Ok(Value::from(typed).to_string()),
            Self::Json { or_text: false } => wrong("JSON"),
        }
    }

    /// A word for what it takes.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Text => "TEXT",
            Self::Integer => "INTEGER",
            Self::Number => "NUMBER",
            Self::Boolean => "BOOL",
            Self::OneOf(_) => "VALUE",
            Self::Object | Self::Json { .. } => "JSON",
        }
    }
}

/// What single word a schema takes; to the values that were read those are added that are read for it.
pub(super) fn word(property: &Value, schema: &Value, read: &mut usize) -> FlagValue {
    let at = meant(property, schema);
    let only = || at.get("const").map(std::slice::from_ref);
    let of_enum = at.get("enum").and_then(Value::as_array).map(Vec::as_slice).or_else(only);
    let of_enum = of_enum.filter(|values| *read + values.len() <= MOST_VALUES);
    *read += of_enum.map_or(0, <[Value]>::len);
    let of_enum = of_enum.and_then(one_of);
    let by_kind = || match kind(at)? {
        "string" => Some(FlagValue::Text),
        "integer" => Some(FlagValue::Integer),
        "number" => Some(FlagValue::Number),
        "boolean" => Some(FlagValue::Boolean),
        "object" => Some(FlagValue::Object),
        _ => None,
    };
    let word = of_enum.or_else(by_kind);
    word.unwrap_or_else(|| FlagValue::Json { or_text: kind(at).is_none() })
}

/// One of these values, if each is one word and can be told from the others. A text that looks like another value, as
/// `"1"` beside 1, is typed in its quotes.
fn one_of(values: &[Value]) -> Option<FlagValue> {
    let mut found: Vec<(String, Value)> = Vec::new();
    let others = values.iter().filter(|value| !value.is_string() && !value.is_null());
    let others: HashSet<String> = others.map(plain).collect();
    let mut known: HashSet<String> = HashSet::new();
    for value in values.iter().filter(|value| !value.is_null()) {
        let typed = Some(plain(value)).filter(|word| !value.is_string() || !others.contains(word));
        let typed = typed.unwrap_or_else(|| value.to_string());
        let is_word = !value.is_object() && !value.is_array() && !typed.chars().any(needs_escape);
        if !is_word || typed.len() > MOST_SHOWN || !known.insert(typed.clone()) {
            return None;
        }
        found.push((typed, value.clone()));
    }
    let has_null = values.iter().any(Value::is_null) && !found.is_empty();
    let found = if has_null { and_null(found) } else { found };
    (!found.is_empty()).then_some(FlagValue::OneOf(found))
}

/// These values and `null`; a text of that name stays one.
pub(super) fn and_null(mut values: Vec<(String, Value)>) -> Vec<(String, Value)> {
    if !values.iter().any(|(word, _)| word == "null") {
        values.push(("null".to_owned(), Value::Null));
    }
    values
}

/// A value as it is typed.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The value that is typed so: its own word, or the same number in another form.
fn one_of_them<'v>(values: &'v [(String, Value)], typed: &str) -> Option<&'v (String, Value)> {
    let same = || {
        let number = decimal(typed)?;
        let is_same = |value: &Value| value.is_number() && Decimal::of(&value.to_string()).as_ref() == Some(&number);
        values.iter().find(|(_, value)| is_same(value))
    };
    values.iter().find(|(word, _)| word == typed).or_else(same)
}

fn is_integer(typed: &str) -> bool {
    let digits = typed.strip_prefix('-').unwrap_or(typed);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'))
}

fn decimal(typed: &str) -> Option<Decimal> {
    is_number(typed).then(|| Decimal::of(typed)).flatten()
}

fn is_number(typed: &str) -> bool {
    let starts = typed.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    starts && serde_json::from_str::<serde_json::Number>(typed).is_ok() && typed.trim() == typed
}
