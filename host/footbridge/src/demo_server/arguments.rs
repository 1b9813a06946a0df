//! The arguments of a tool call, read one by one, with errors that help a model to do better.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

/// Arguments that have not been read yet.
pub(super) struct Arguments {
    left: Map<String, Value>,
}

/// What is wrong with them, as the tool's answer says it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct BadArgument(String);

impl Arguments {
    pub(super) fn new(given: Option<Map<String, Value>>) -> Self {
        Self { left: given.unwrap_or_default() }
    }

    /// A text that must be there, of 1 to `most` characters.
    pub(super) fn text(&mut self, name: &str, most: usize) -> Result<String, BadArgument> {
        match self.left.remove(name) {
            None => Err(BadArgument(format!("\"{name}\" is missing: a text of 1 to {most} characters."))),
            Some(Value::String(text)) if (1..=most).contains(&text.chars().count()) => Ok(text),
            Some(_) => Err(BadArgument(format!("\"{name}\" is a text of 1 to {most} characters."))),
        }
    }

    /// One of a few words; the first of them where nothing is given.
    pub(super) fn word<'a>(&mut self, name: &str, words: &[&'a str]) -> Result<&'a str, BadArgument> {
        let wrong = || BadArgument(format!("\"{name}\" is one of: {}.", words.join(", ")));
        match self.left.remove(name) {
            None => words.first().copied().ok_or_else(wrong),
            Some(given) => words.iter().copied().find(|word| given.as_str() == Some(word)).ok_or_else(wrong),
        }
    }

    /// A whole number within bounds; without a default it must be there.
    pub(super) fn number(
        &mut self,
        name: &str,
        bounds: RangeInclusive<u64>,
        default: Option<u64>,
    ) -> Result<u64, BadArgument> {
        let given = match self.left.remove(name) {
            None => default,
            Some(value) => value.as_u64(),
        };
        let number = given.filter(|number| bounds.contains(number));
        number.ok_or_else(|| {
            let (least, most) = bounds.into_inner();
            BadArgument(format!("\"{name}\" is a whole number from {least} to {most}."))
        })
    }

    /// # Errors
    /// When something is left that no tool asked for.
    pub(super) fn end(self) -> Result<(), BadArgument> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(name) => Err(BadArgument(format!("Unknown argument {name:?}."))),
        }
    }
}
