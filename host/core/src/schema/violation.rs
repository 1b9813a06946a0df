//! What of arguments does not fit a schema, in the members that clients know from Ajv: where, by which keyword, and in
//! words. Everything in it is cut: places and values are a guest's, keywords and what they hold a server's.

use std::{borrow::Cow, fmt};

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Characters of a message, and of a place.
const MAX_MESSAGE: usize = 300;
/// Characters of a value in a message: what is wrong with the value comes after it.
const MAX_VALUE: usize = 80;
/// Bytes of what a keyword holds, as JSON.
const MAX_PARAMS: usize = 1024;

/// One thing that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// Where in the arguments, as a JSON pointer; empty for all of them.
    pub instance_path: String,
    /// Where in the schema, as a pointer behind a `#`.
    pub schema_path: String,
    /// The keyword that is broken.
    pub keyword: String,
    /// What the keyword holds, by names of its own: `missingProperty`, `limit` and so on.
    pub params: Map<String, Value>,
    /// What is wrong.
    pub message: String,
}

impl Violation {
    pub(super) fn of(error: &ValidationError<'_>) -> Self {
        Self {
            instance_path: cut(&error.instance_path().to_string(), MAX_MESSAGE).into_owned(),
            schema_path: cut(&format!("#{}", error.schema_path()), MAX_MESSAGE).into_owned(),
            keyword: cut(error.kind().keyword(), MAX_VALUE).into_owned(),
            params: params(error.kind()),
            message: message(error),
        }
    }

    /// Something of arguments in which there is too much to say what.
    pub(super) fn unnamed() -> Self {
        Self {
            instance_path: String::new(),
            schema_path: "#".to_owned(),
            keyword: "schema".to_owned(),
            params: Map::new(),
            message: "something in it does not fit; there is too much of it to say what".to_owned(),
        }
    }
}

/// On one line, with its place in front.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.instance_path.is_empty() { "/" } else { &self.instance_path };
        write!(f, "{place}: {}", self.message)
    }
}

/// What is wrong, with the value short.
pub(super) fn message(error: &ValidationError<'_>) -> String {
    let value = error.instance().to_string();
    let cut_value = cut(&value, MAX_VALUE);
    let text = if cut_value == value { error.to_string() } else { error.masked_with(cut_value).to_string() };
    cut(&text, MAX_MESSAGE).into_owned()
}

fn params(kind: &Kind) -> Map<String, Value> {
    let limit = |comparison: &str, limit: &Value| json!({"comparison": comparison, "limit": limit});
    let value = match kind {
        Kind::Required { property } => json!({ "missingProperty": property }),
        Kind::Type { kind: TypeKind::Single(name) } => json!({ "type": name.to_string() }),
        Kind::Type { kind: TypeKind::Multiple(names) } => {
            json!({ "type": names.iter().map(|name| name.to_string()).collect::<Vec<_>>() })
        }
        Kind::AdditionalProperties { unexpected } => json!({ "additionalProperty": unexpected.first() }),
        Kind::UnevaluatedProperties { unexpected } => json!({ "unevaluatedProperty": unexpected.first() }),
        Kind::Enum { options } => json!({ "allowedValues": **options }),
        Kind::Constant { expected_value } => json!({ "allowedValue": **expected_value }),
        Kind::Format { format } => json!({ "format": format }),
        Kind::Pattern { pattern } => json!({ "pattern": pattern }),
        Kind::Minimum { limit: n } => limit(">=", n),
        Kind::Maximum { limit: n } => limit("<=", n),
        Kind::ExclusiveMinimum { limit: n } => limit(">", n),
        Kind::ExclusiveMaximum { limit: n } => limit("<", n),
        Kind::MultipleOf { multiple_of } => json!({ "multipleOf": multiple_of }),
        Kind::MinItems { limit } | Kind::MaxItems { limit } => json!({ "limit": limit }),
        Kind::MinLength { limit } | Kind::MaxLength { limit } => json!({ "limit": limit }),
        Kind::MinProperties { limit } | Kind::MaxProperties { limit } => json!({ "limit": limit }),
        _ => Value::Null,
    };
    match value {
        Value::Object(members) if Value::Object(members.clone()).to_string().len() <= MAX_PARAMS => members,
        _ => Map::new(),
    }
}

/// The beginning of a text that is longer than this, and dots.
fn cut(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters).and_then(|(at, _)| text.get(..at)) {
        Some(beginning) => Cow::Owned(format!("{beginning}...")),
        None => Cow::Borrowed(text),
    }
}
