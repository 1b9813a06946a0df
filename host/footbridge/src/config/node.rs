//! A value of a configuration with where it is written: what JSON and TOML files are read into, merged as, and shown
//! from. It knows neither of the two grammars, and nothing of what values mean.

use std::{path::Path, sync::Arc};

use footbridge_core::settings_file::Mistake;
use serde_json::Value;

/// Where something is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenAt {
    /// The file.
    pub file: Arc<Path>,
    /// The line, from 1 on.
    pub line: usize,
    /// The column in characters, from 1 on.
    pub column: usize,
}

impl WrittenAt {
    /// Something wrong here.
    pub(crate) fn mistake(&self, what: impl Into<String>) -> Mistake {
        Mistake { file: self.file.to_path_buf(), line: Some(self.line), column: Some(self.column), what: what.into() }
    }

    /// The folder of the file, which relative paths start from.
    pub(crate) fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }
}

/// A value, and where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) at: WrittenAt,
    pub(crate) value: NodeValue,
}

/// What a value is. A number is kept as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeValue {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Member>),
}

/// A member of an object: its name, and where that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) at: WrittenAt,
    pub(crate) node: Node,
}

impl Node {
    /// Its members, if it is an object.
    pub(crate) fn members(&self) -> Option<&[Member]> {
        if let NodeValue::Object(members) = &self.value { Some(members) } else { None }
    }

    /// Its elements, if it is a list.
    pub(crate) fn elements(&self) -> Option<&[Node]> {
        if let NodeValue::List(elements) = &self.value { Some(elements) } else { None }
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        if let NodeValue::Text(text) = &self.value { Some(text) } else { None }
    }

    /// The member of this name, if it is an object that has one.
    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.members()?.iter().find(|member| member.name == name)
    }

    /// Whether it is an object that names a value kept elsewhere, as `{"file": ...}` does.
    pub(crate) fn names_a_value(&self) -> bool {
        matches!(self.members(), Some([one]) if ["file", "command", "credential"].contains(&one.name.as_str())
            && one.node.members().is_none())
    }

    /// What kind of value it is, in words.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            NodeValue::Null => "null",
            NodeValue::Bool(true) => "true",
            NodeValue::Bool(false) => "false",
            NodeValue::Number(_) => "a number",
            NodeValue::Text(_) => "a text",
            NodeValue::List(_) => "a list",
            NodeValue::Object(_) => "an object",
        }
    }

    /// The same without places. A number that JSON does not know becomes a text.
    pub(crate) fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Number(number) => serde_json::from_str(number).unwrap_or_else(|_| Value::String(number.clone())),
            NodeValue::Text(text) => Value::String(text.clone()),
            NodeValue::List(elements) => Value::Array(elements.iter().map(Self::to_json).collect()),
            NodeValue::Object(members) => {
                Value::Object(members.iter().map(|member| (member.name.clone(), member.node.to_json())).collect())
            }
        }
    }
}
