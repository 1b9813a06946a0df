//! How large the patterns of a schema become once they are compiled, found out before the validator compiles them.
//!
//! A pattern runs in linear time, but linear in its own compiled size as well: a text against many large ones is work
//! as any other, and what is compiled is kept. So all of a schema's patterns are counted, each and all together have a
//! most, and the size is what `cost` counts a text by.

use std::{borrow::Cow, collections::HashMap};

use regex_automata::{nfa::thompson, util::syntax};
use serde_json::Value;

use super::BadSchema;

/// Bytes that one compiled pattern may take.
pub(super) const MAX_PATTERN: usize = 64 * 1024;
/// Bytes that all of a schema may take.
const MAX_TOGETHER: usize = 512 * 1024;
/// Different patterns of one schema.
const MAX_PATTERNS: usize = 200;
/// Bytes of a pattern's text: what is read of it takes a thousand times as much, before its size can be told.
const MAX_TEXT: usize = 8 * 1024;
/// Characters of a pattern that an error repeats.
const MAX_SHOWN: usize = 60;

/// The patterns of one schema that were seen, each with the bytes that it takes.
#[derive(Default)]
pub(super) struct Patterns<'a> {
    seen: HashMap<&'a str, usize>,
    together: usize,
}

impl<'a> Patterns<'a> {
    /// The bytes that a pattern takes, compiled as the validator does.
    pub(super) fn size(&mut self, pattern: &'a str) -> Result<usize, BadSchema> {
        if let Some(size) = self.seen.get(pattern) {
            return Ok(*size);
        }
        if self.seen.len() == MAX_PATTERNS {
            return Err(BadSchema::TooManyPatterns(MAX_PATTERNS));
        }
        let size = compiled(pattern).ok_or_else(|| BadSchema::Pattern(pattern.chars().take(MAX_SHOWN).collect()))?;
        self.together += size;
        if self.together > MAX_TOGETHER {
            return Err(BadSchema::LargePatterns);
        }
        self.seen.insert(pattern, size);
        Ok(size)
    }

    /// How many there are, and the bytes that they take together.
    pub(super) fn total(&self) -> (usize, usize) {
        (self.seen.len(), self.together)
    }
}

/// Bytes of a pattern that is looked at for being one that looks ahead or back: names of groups in it are compared with each
/// other.
const MAX_LOOK: usize = 1024;
/// Members of a schema whose values are values, not schemas.
const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];
/// Members whose members are schemas, by names that say nothing.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// Members by which what fits less fits more: what they hold cannot be made wider.
const TURNING: [&str; 4] = ["not", "oneOf", "if", "contains"];

/// The schema without the patterns that texts have to match and that look ahead or back: none of them takes linear time,
/// and whoever wrote one has to check it. A pattern of names stays, since it says which schema a member has. What is left
/// refuses nothing that fits the schema: where one stands below `not` and the like, the whole of that goes.
pub(super) fn without_looks(schema: &Value) -> Cow<'_, Value> {
    if !has_looks(schema) {
        return Cow::Borrowed(schema);
    }
    let mut other = schema.clone();
    leave_out_looks(&mut other);
    Cow::Owned(other)
}

fn has_looks(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, value)| {
            is_look(name, value) || schemas(name, value).is_some_and(|mut below| below.any(has_looks))
        }),
        Value::Array(items) => items.iter().any(has_looks),
        _ => false,
    }
}

/// The schemas of a member of a schema; none of one that holds values.
fn schemas<'a>(name: &str, value: &'a Value) -> Option<Box<dyn Iterator<Item = &'a Value> + 'a>> {
    match value {
        _ if VALUES.contains(&name) => None,
        Value::Object(members) if NAMED.contains(&name) => Some(Box::new(members.values())),
        other => Some(Box::new(std::iter::once(other))),
    }
}

/// Whether a schema has such a pattern, or may have one by what it refers to.
fn may_look(schema: &Value) -> bool {
    fn refers(schema: &Value) -> bool {
        let is_reference = |name: &str| matches!(name, "$ref" | "$dynamicRef" | "$recursiveRef");
        match schema {
            Value::Object(members) => members.iter().any(|(name, value)| is_reference(name) || refers(value)),
            Value::Array(items) => items.iter().any(refers),
            _ => false,
        }
    }
    has_looks(schema) || refers(schema)
}

fn leave_out_looks(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let has_most = members.contains_key("maxContains");
            let turns = |name: &str| TURNING.contains(&name) && (name != "contains" || has_most);
            let goes = |name: &str, value: &Value| is_look(name, value) || turns(name) && may_look(value);
            let is_without_if = members.get("if").is_some_and(may_look);
            members.retain(|name, value| {
                !(goes(name, value) || is_without_if && matches!(name.as_str(), "then" | "else"))
            });
            for (name, value) in members.iter_mut().filter(|(name, _)| !VALUES.contains(&name.as_str())) {
                match value {
                    Value::Object(named) if NAMED.contains(&name.as_str()) => {
                        named.values_mut().for_each(leave_out_looks)
                    }
                    other => leave_out_looks(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_looks),
        _ => {}
    }
}

/// Whether this member is a pattern that is one of ECMAScript and of no linear time.
fn is_look(name: &str, value: &Value) -> bool {
    let Some(pattern) = value.as_str().filter(|text| name == "pattern" && text.len() <= MAX_LOOK) else { return false };
    // Each begins so; what has none of both takes linear time if it is a pattern.
    let may_look = pattern.contains("(?") || pattern.contains('\\');
    may_look && jsonschema_regex::is_valid_ecma_regex(pattern) && !is_linear(pattern)
}

fn is_linear(pattern: &str) -> bool {
    jsonschema_regex::to_rust_regex(pattern).is_ok_and(|translated| syntax::parse(&translated).is_ok())
}

/// None for what is no pattern of linear time, and for one that is too large.
fn compiled(pattern: &str) -> Option<usize> {
    let text = Some(pattern).filter(|pattern| pattern.len() <= MAX_TEXT)?;
    let translated = jsonschema_regex::to_rust_regex(text).ok()?;
    let mut compiler = thompson::Compiler::new();
    compiler.configure(thompson::Config::new().nfa_size_limit(Some(MAX_PATTERN)));
    Some(compiler.build(&translated).ok()?.memory_usage())
}
