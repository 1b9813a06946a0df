//! What a server asks a person while it runs a call (MCP elicitation): read strictly, and what fits as an answer.
//!
//! A form has a message and flat fields of primitive types; a question of mode `url` has an address, which is shown
//! and never opened. Whatever else it is, it is declined without asking anybody: above all what looks as if it asked
//! for a secret.

use std::collections::BTreeMap;

use footbridge_proto::json;
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use super::field::Field;
use crate::approval::QuestionInfo;
use crate::provider::MAX_QUESTION;
use footbridge_core::schema::{Check, InputSchema};

/// Longest message, bytes.
const MAX_MESSAGE: usize = 8 * 1024;
/// Most fields.
const MAX_FIELDS: usize = 64;
/// Deepest nesting that a question of the protocol has, with room to spare.
const MAX_DEPTH: usize = 16;

/// Most characters of a server's words in a reason, which the log has.
const MAX_SHOWN: usize = 64;

/// A question that can be shown.
#[derive(Debug)]
pub(super) struct Form {
    message: String,
    asks: Asks,
}

#[derive(Debug)]
enum Asks {
    /// Consent to an address.
    Url(Url),
    Fields(Vec<Field>, Box<InputSchema>),
}

/// Why nobody is asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadForm {
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    #[error("its mode {0:?} is not known")]
    Mode(String),
    #[error("its field {0:?} is no text, number, choice or yes and no")]
    Field(String),
    #[error("its field {0:?} looks as if it asked for a secret")]
    Secret(String),
    #[error("its address is none of http: or https:, or holds a user name")]
    Url,
    #[error("it is longer than a person reads")]
    TooLong,
}

/// What somebody answers with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// Names of fields and their values, as they were typed.
    Fields(Vec<(String, String)>),
    /// A JSON object.
    Content(Value),
}

/// An answer that does not fit what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(pub(super) String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default)]
    mode: Option<String>,
    message: String,
    #[serde(default)]
    requested_schema: Option<Value>,
    #[serde(default)]
    url: Option<String>,
}

impl Form {
    /// Reads the parameters of `elicitation/create`, and gives their canonical text too.
    pub(super) fn read(params: &str) -> Result<(Self, String), BadForm> {
        if params.len() > MAX_QUESTION {
            return Err(BadForm::TooLong);
        }
        let unreadable = |why: &dyn ToString| BadForm::Unreadable(short(&why.to_string(), 4 * MAX_SHOWN));
        json::check(params.as_bytes(), MAX_DEPTH).map_err(|error| unreadable(&error))?;
        let mut value: Value = serde_json::from_str(params).map_err(|error| unreadable(&error))?;
        json::sort_members(&mut value);
        let canonical = value.to_string();
        let written: Written = serde_json::from_value(value).map_err(|error| unreadable(&error))?;
        if written.message.len() > MAX_MESSAGE {
            return Err(BadForm::TooLong);
        }
        let asks = match written.mode.as_deref() {
            None | Some("form") => fields(written.requested_schema.as_ref())?,
            Some("url") => Asks::Url(address(written.url.as_deref())?),
            Some(other) => return Err(BadForm::Mode(short(other, MAX_SHOWN))),
        };
        Ok((Self { message: written.message, asks }, canonical))
    }

    /// The content of an answer, if it fits: what is left out has its default. A question about an address has none.
    ///
    /// # Errors
    /// [`Unfit`], which says what does not fit.
    pub(super) fn content(&self, given: &Given) -> Result<Option<Value>, Unfit> {
        let (fields, schema) = match &self.asks {
            Asks::Fields(fields, schema) => (fields, schema),
            Asks::Url(_) if is_nothing(given) => return Ok(None),
            Asks::Url(_) => return Err(Unfit("this question is about an address: it takes no fields".to_owned())),
        };
        let mut content = match given {
            Given::Fields(given) => typed(fields, given)?,
            Given::Content(Value::Object(content)) => content.clone(),
            Given::Content(_) => return Err(Unfit("the content has to be a JSON object".to_owned())),
        };
        for field in fields {
            if let (None, Some(default)) = (content.get(&field.name), &field.default) {
                content.insert(field.name.clone(), default.clone());
            }
        }
        if let Some(name) = content.keys().find(|name| !fields.iter().any(|field| field.name == **name)) {
            return Err(unknown_field(fields, name));
        }
        for field in fields {
            match content.get(&field.name) {
                Some(value) => field.check(value).map_err(|why| Unfit(format!("field {:?}: {why}", field.name)))?,
                None if field.required => {
                    let name = &field.name;
                    return Err(Unfit(format!("field {name:?} is missing: give it with --field {name:?}=VALUE")));
                }
                None => {}
            }
        }
        let mut content = Value::Object(content);
        json::sort_members(&mut content);
        match schema.check(&content) {
            Check::Fits => Ok(Some(content)),
            Check::Violations(found) => {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                Err(Unfit(format!("it does not fit what was asked: {}", found.join("; "))))
            }
            Check::TooCostly => Err(Unfit("it costs too much to check".to_owned())),
            Check::NotNow => Err(Unfit("there is no thread to check it at the moment: try again".to_owned())),
        }
    }

    /// As commands read it.
    pub(super) fn info(&self) -> QuestionInfo {
        let (url, fields) = match &self.asks {
            Asks::Url(url) => (Some(url.to_string()), Vec::new()),
            Asks::Fields(fields, _) => (None, fields.iter().map(Field::info).collect()),
        };
        QuestionInfo { message: self.message.clone(), url, fields }
    }
}

/// A text of at most so many characters, which says where it was cut.
fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn is_nothing(given: &Given) -> bool {
    match given {
        Given::Fields(fields) => fields.is_empty(),
        Given::Content(content) => content.as_object().is_some_and(Map::is_empty),
    }
}

fn fields(schema: Option<&Value>) -> Result<Asks, BadForm> {
    let unreadable = |why: &str| BadForm::Unreadable(short(why, 4 * MAX_SHOWN));
    let schema = schema.ok_or_else(|| unreadable("it has no requestedSchema"))?;
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.ok_or_else(|| unreadable("its schema has no properties"))?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(unreadable("its schema is not of an object"));
    }
    if properties.len() > MAX_FIELDS {
        return Err(BadForm::TooLong);
    }
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let mut fields = Vec::new();
    for (name, written) in properties {
        let field =
            Field::read(name, written, is_required(name)).ok_or_else(|| BadForm::Field(short(name, MAX_SHOWN)))?;
        if field.is_secret() {
            return Err(BadForm::Secret(short(name, MAX_SHOWN)));
        }
        fields.push(field);
    }
    let schema = InputSchema::compile(schema).map_err(|error| unreadable(&error.to_string()))?;
    Ok(Asks::Fields(fields, Box::new(schema)))
}

/// The address of a question, if a person can tell where it leads.
fn address(url: Option<&str>) -> Result<Url, BadForm> {
    let url = url.and_then(|url| Url::parse(url).ok()).ok_or(BadForm::Url)?;
    let is_plain = url.username().is_empty() && url.password().is_none() && url.has_host();
    if is_plain && matches!(url.scheme(), "http" | "https") { Ok(url) } else { Err(BadForm::Url) }
}

/// An object of typed texts.
fn typed(fields: &[Field], given: &[(String, String)]) -> Result<Map<String, Value>, Unfit> {
    let mut texts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, text) in given {
        texts.entry(name).or_default().push(text);
    }
    let mut content = Map::new();
    for (name, texts) in texts {
        let field = fields.iter().find(|field| field.name == name).ok_or_else(|| unknown_field(fields, name))?;
        let value = field.value(&texts).map_err(|why| Unfit(format!("field {name:?}: {why}")))?;
        content.insert(name.to_owned(), value);
    }
    Ok(content)
}

fn unknown_field(fields: &[Field], name: &str) -> Unfit {
    let known: Vec<String> = fields.iter().map(|field| format!("{:?}", field.name)).collect();
    Unfit(format!("there is no field {name:?}: there are {}", known.join(", ")))
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;
