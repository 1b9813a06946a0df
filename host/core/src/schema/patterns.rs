//! How large the patterns of a schema become once they are compiled, found out before the validator compiles them.
//!
//! A pattern runs in linear time, but linear in its own compiled size as well: a text against many large ones is work
//! as any other, and what is compiled is kept. So all of a schema's patterns are counted, each and all together have a
//! most, and the size is what `cost` counts a text by.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use regex_automata::{nfa::thompson, util::syntax};
use serde_json::{Map, Value};

use super::BadSchema;

/// Bytes that one compiled pattern may take.
pub(super) const MAX_PATTERN: usize = 64 * 1024;
/// Bytes that all of a schema may take.
const MAX_TOGETHER: usize = 512 * 1024;
/// Different patterns of one schema.
const MAX_PATTERNS: usize = 200;
/// Bytes of a pattern's text: what is read of it takes a thousand times as much, before its size can be told.
const MAX_TEXT: usize = 8 * 1024;
/// Classes such as `\s` and `\d` in one pattern.
const MAX_CLASSES: usize = 128;
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
/// Members that stand for another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Members that hold for what others beside them say nothing of.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// The schema without the patterns that texts have to match and that look ahead or back: none of them takes linear time,
/// and whoever wrote one has to check it. A pattern of names stays, since it says which schema a member has. What is left
/// refuses nothing that fits the schema: where one stands, or may by a reference, below `not` and the like, the whole of
/// that goes, with what holds for what that says nothing of, and schemas that refer to it.
pub(super) fn without_looks(schema: &Value) -> Cow<'_, Value> {
    let (mut other, mut seen) = (schema.clone(), HashMap::new());
    each_schema(&mut other, &mut |members| {
        // Of more than a schema may have, no more are looked at.
        if let Some(Value::String(pattern)) = members.get("pattern").filter(|_| seen.len() <= MAX_PATTERNS) {
            seen.entry(pattern.clone()).or_insert_with_key(|pattern| looks(pattern));
        }
    });
    let looks: HashSet<String> = seen.into_iter().filter(|(_, looks)| *looks).map(|(pattern, _)| pattern).collect();
    if looks.is_empty() {
        return Cow::Borrowed(schema);
    }
    let mut wider = Wider { looks: &looks, has_turned: false };
    wider.widen(&mut other);
    if wider.has_turned {
        each_schema(&mut other, &mut |members| members.retain(|name, _| !UNEVALUATED.contains(&name.as_str())));
        leave_out_dangling(&mut other);
    }
    Cow::Owned(other)
}

/// What makes a schema wider.
struct Wider<'a> {
    looks: &'a HashSet<String>,
    /// Whether anything went by which what fits less fits more.
    has_turned: bool,
}

impl Wider<'_> {
    /// Leaves out what has to be. Whether there was anything, or may be by what is referred to.
    fn widen(&mut self, schema: &mut Value) -> bool {
        let members = match schema {
            Value::Object(members) => members,
            Value::Array(items) => return items.iter_mut().fold(false, |any, item| self.widen(item) | any),
            _ => return false,
        };
        let has_most = members.contains_key("maxContains");
        let (mut may_look, mut gone) = (false, Vec::new());
        for (name, value) in members.iter_mut().filter(|(name, _)| !VALUES.contains(&name.as_str())) {
            let name = name.as_str();
            let is_look = name == "pattern" && value.as_str().is_some_and(|pattern| self.looks.contains(pattern));
            let below = match value {
                Value::Object(named) if NAMED.contains(&name) => {
                    named.values_mut().fold(false, |any, below| self.widen(below) | any)
                }
                other => self.widen(other),
            };
            let turns = below && TURNING.contains(&name) && (name != "contains" || has_most);
            self.has_turned |= turns;
            may_look |= below || is_look || REFERENCES.contains(&name);
            if is_look || turns {
                gone.push(name.to_owned());
            }
        }
        let is_without_if = gone.iter().any(|name| name == "if");
        let goes = |name: &str| gone.iter().any(|one| one == name) || is_without_if && matches!(name, "then" | "else");
        members.retain(|name, _| !goes(name));
        may_look
    }
}

/// Does this with the members of each schema in a schema, from the outside.
fn each_schema(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match schema {
        Value::Object(members) => {
            change(members);
            for (name, value) in members.iter_mut().filter(|(name, _)| !VALUES.contains(&name.as_str())) {
                match value {
                    Value::Object(named) if NAMED.contains(&name.as_str()) => {
                        named.values_mut().for_each(|below| each_schema(below, change));
                    }
                    other => each_schema(other, change),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_schema(item, change)),
        _ => {}
    }
}

/// Leaves out of schemas that refer to what is there no more all but what is referred to in them.
fn leave_out_dangling(schema: &mut Value) {
    let mut targets = HashSet::new();
    each_schema(schema, &mut |members| targets.extend(target(members).map(str::to_owned)));
    targets.retain(|target| schema.pointer(target).is_none());
    each_schema(schema, &mut |members| {
        if target(members).is_some_and(|target| targets.contains(target)) {
            members.retain(|name, _| matches!(name.as_str(), "$defs" | "definitions"));
        }
    });
}

/// Where in the same schema one refers to, as a pointer.
fn target(members: &Map<String, Value>) -> Option<&str> {
    members.get("$ref")?.as_str()?.strip_prefix('#').filter(|pointer| pointer.starts_with('/'))
}

/// Whether this is a pattern of ECMAScript and of no linear time.
fn looks(pattern: &str) -> bool {
    // Each begins so; what has none of both takes linear time if it is a pattern.
    let may_look = pattern.contains("(?") || pattern.contains('\\');
    may_look
        && pattern.len() <= MAX_LOOK
        && !has_many_classes(pattern)
        && jsonschema_regex::is_valid_ecma_regex(pattern)
        && !is_linear(pattern)
}

/// Whether it has more classes than one that people write. Each is translated by reading the whole of it again.
fn has_many_classes(pattern: &str) -> bool {
    let is_class = |pair: &&[u8]| pair[0] == b'\\' && b"sSdDwW".contains(&pair[1]);
    pattern.as_bytes().windows(2).filter(is_class).count() > MAX_CLASSES
}

fn is_linear(pattern: &str) -> bool {
    jsonschema_regex::to_rust_regex(pattern).is_ok_and(|translated| syntax::parse(&translated).is_ok())
}

/// None for what is no pattern of linear time, and for one that is too large.
fn compiled(pattern: &str) -> Option<usize> {
    let text = Some(pattern).filter(|pattern| pattern.len() <= MAX_TEXT && !has_many_classes(pattern))?;
    let translated = jsonschema_regex::to_rust_regex(text).ok()?;
    let mut compiler = thompson::Compiler::new();
    compiler.configure(thompson::Config::new().nfa_size_limit(Some(MAX_PATTERN)));
    Some(compiler.build(&translated).ok()?.memory_usage())
}
