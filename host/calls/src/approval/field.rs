//! One field of a server's question: what it takes, and whether it looks like a secret.

use footbridge_proto::json::measured;
use serde_json::{Map, Value};

use crate::approval::FieldInfo;
use footbridge_core::redact::words::speaks_of_secrets;

/// Members of its schema that limit a value, and are shown as they are.
const LIMITS: [&str; 9] = [
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) default: Option<Value>,
    title: Option<String>,
    description: Option<String>,
    kind: Kind,
    limits: Vec<String>,
}

#[derive(Debug)]
enum Kind {
    Text(Option<String>),
    Number,
    Integer,
    Boolean,
    One(Choices),
    /// Any number of them.
    Many(Choices),
}

/// A value that a field does not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadValue {
    #[error("it takes one value")]
    Several,
    #[error("{0:?} is no number")]
    NotANumber(String),
    #[error("the number {0} would not keep its value: an integer has 64 bits, and others the digits of a double")]
    Inexact(String),
    #[error("it is true or false")]
    NotABoolean,
    #[error("{0:?} is no {1}")]
    Format(String, String),
}

/// Values to choose from, each with its title.
type Choices = Vec<(String, Option<String>)>;

impl Field {
    /// Reads a field's schema; none if it is not one of the protocol's primitive ones.
    pub(super) fn read(name: &str, schema: &Value, required: bool) -> Option<Self> {
        let schema = schema.as_object()?;
        let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
        let kind = match schema.get("type")?.as_str()? {
            "string" => match choices(schema, "oneOf")? {
                Some(choices) => Kind::One(choices),
                None => Kind::Text(text("format")),
            },
            "number" => Kind::Number,
            "integer" => Kind::Integer,
            "boolean" => Kind::Boolean,
            "array" => Kind::Many(choices(schema.get("items")?.as_object()?, "anyOf")??),
            _ => return None,
        };
        let limits = LIMITS.iter().filter_map(|key| Some(format!("{key} {}", schema.get(*key)?)));
        Some(Self {
            name: name.to_owned(),
            required,
            default: schema.get("default").filter(|value| !value.is_null()).cloned(),
            title: text("title"),
            description: text("description"),
            kind,
            limits: limits.collect(),
        })
    }

    /// Whether it looks as if a secret were asked for.
    pub(super) fn is_secret(&self) -> bool {
        let choices = match &self.kind {
            Kind::One(choices) | Kind::Many(choices) => choices.as_slice(),
            _ => &[],
        };
        let choices = choices.iter().flat_map(|(value, title)| [Some(value.as_str()), title.as_deref()]);
        let default = self.default.as_ref().and_then(Value::as_str);
        let texts = [Some(self.name.as_str()), self.title.as_deref(), self.description.as_deref(), default];
        let texts = texts.into_iter().chain(choices);
        matches!(&self.kind, Kind::Text(Some(format)) if format == "password") || texts.flatten().any(speaks_of_secrets)
    }

    /// A value from texts, as they were typed; several for a field that takes several.
    ///
    /// # Errors
    /// [`BadValue`].
    pub(super) fn value(&self, texts: &[&str]) -> Result<Value, BadValue> {
        if let Kind::Many(_) = self.kind {
            return Ok(texts.iter().copied().map(Value::from).collect());
        }
        let [text] = texts else { return Err(BadValue::Several) };
        match self.kind {
            Kind::Number | Kind::Integer => {
                let number = serde_json::from_str::<serde_json::Number>(text);
                let number = number.map_err(|_| BadValue::NotANumber((*text).to_owned()))?;
                if measured(text).inexact.is_some() {
                    return Err(BadValue::Inexact((*text).to_owned()));
                }
                Ok(number.into())
            }
            Kind::Boolean => text.parse::<bool>().map(Value::from).map_err(|_| BadValue::NotABoolean),
            Kind::Text(_) | Kind::One(_) | Kind::Many(_) => Ok(Value::from(*text)),
        }
    }

    /// What the schema's check does not look at: the formats of texts.
    ///
    /// # Errors
    /// [`BadValue`].
    pub(super) fn check(&self, value: &Value) -> Result<(), BadValue> {
        let (Kind::Text(Some(format)), Some(text)) = (&self.kind, value.as_str()) else { return Ok(()) };
        let fits = match format.as_str() {
            "email" => text.split_once('@').is_some_and(|(name, host)| {
                !name.is_empty() && !host.is_empty() && !host.contains('@') && !text.contains(char::is_whitespace)
            }),
            "uri" => url::Url::parse(text).is_ok(),
            "date" => chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok_and(|_| text.len() == 10),
            "date-time" => chrono::DateTime::parse_from_rfc3339(text).is_ok(),
            _ => true,
        };
        if fits { Ok(()) } else { Err(BadValue::Format(text.to_owned(), format.clone())) }
    }

    /// As commands read it.
    pub(super) fn info(&self) -> FieldInfo {
        let (kind, choices) = match &self.kind {
            Kind::Text(None) => ("text".to_owned(), None),
            Kind::Text(Some(format)) => (format!("text, {format}"), None),
            Kind::Number => ("number".to_owned(), None),
            Kind::Integer => ("integer".to_owned(), None),
            Kind::Boolean => ("true or false".to_owned(), None),
            Kind::One(choices) => ("one of".to_owned(), Some(choices)),
            Kind::Many(choices) => ("any of".to_owned(), Some(choices)),
        };
        let choice = |(value, title): &(String, Option<String>)| match title {
            Some(title) => format!("{value} ({title})"),
            None => value.clone(),
        };
        FieldInfo {
            name: self.name.clone(),
            takes: kind,
            choices: choices.into_iter().flatten().map(choice).collect(),
            limits: self.limits.clone(),
            required: self.required,
            default: self.default.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
        }
    }
}

/// The values that may be chosen, in either way of writing them. Nothing outside where they are badly written; nothing
/// inside where there are none.
fn choices(schema: &Map<String, Value>, titled: &str) -> Option<Option<Choices>> {
    if let Some(listed) = schema.get(titled) {
        let one = |one: &Value| {
            let title = one.get("title").and_then(Value::as_str).map(str::to_owned);
            Some((one.get("const")?.as_str()?.to_owned(), title))
        };
        return Some(Some(listed.as_array()?.iter().map(one).collect::<Option<_>>()?));
    }
    let Some(listed) = schema.get("enum") else { return Some(None) };
    let titles = schema.get("enumNames").and_then(Value::as_array);
    let one = |(at, value): (usize, &Value)| {
        let title = titles.and_then(|titles| titles.get(at)?.as_str());
        Some((value.as_str()?.to_owned(), title.map(str::to_owned)))
    };
    Some(Some(listed.as_array()?.iter().enumerate().map(one).collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_known_in_any_way_of_writing_it() {
        for name in ["password", "userPassword", "API_KEY", "api key", "access-token", "clientSecret", "PASSPHRASE"] {
            assert!(Field::read(name, &json!({"type": "string"}), true).unwrap().is_secret(), "{name}");
        }
        let described = json!({"type": "string", "description": "Paste the private keys of your wallet"});
        assert!(Field::read("value", &described, true).unwrap().is_secret());
        assert!(Field::read("x", &json!({"type": "string", "title": "Your Token"}), true).unwrap().is_secret());
        assert!(Field::read("x", &json!({"type": "string", "format": "password"}), true).unwrap().is_secret());
        let chosen = json!({"type": "string", "enum": ["a"], "enumNames": ["Type your password below"]});
        assert!(Field::read("x", &chosen, true).unwrap().is_secret());
        let filled = json!({"type": "string", "default": "your passphrase"});
        assert!(Field::read("x", &filled, true).unwrap().is_secret());
        for name in ["city", "keyboard", "tripToKenya", "compass_word", "email"] {
            assert!(!Field::read(name, &json!({"type": "string"}), true).unwrap().is_secret(), "{name}");
        }
    }

    #[test]
    fn only_primitive_fields_are_fields() {
        for schema in [
            json!({"type": "object", "properties": {}}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": ["string", "null"]}),
            json!({"type": "string", "enum": [1]}),
            json!({"type": "string", "oneOf": [{"title": "x"}]}),
            json!({"$ref": "#/x"}),
            json!(true),
        ] {
            assert!(Field::read("x", &schema, false).is_none(), "{schema}");
        }
    }
}
