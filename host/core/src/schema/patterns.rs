//! How large the patterns of a schema become once they are compiled, found out before the validator compiles them.
//!
//! A pattern runs in linear time, but linear in its own compiled size as well: a text against many large ones is work
//! as any other, and what is compiled is kept. So all of a schema's patterns are counted, each and all together have a
//! most, and the size is what `cost` counts a text by.

use std::collections::HashMap;

use regex_automata::{nfa::thompson, util::syntax};

use super::BadSchema;

/// Bytes that one compiled pattern may take.
pub(super) const MAX_PATTERN: usize = 64 * 1024;
/// Bytes that all of a schema may take.
const MAX_TOGETHER: usize = 512 * 1024;
/// Different patterns of one schema.
pub(super) const MAX_PATTERNS: usize = 200;
/// Bytes of a pattern's text: what is read of it takes a thousand times as much, before its size can be told.
const MAX_TEXT: usize = 8 * 1024;
/// Classes such as `\s` and `\d`, and control characters such as `\cJ`, in one pattern.
const MAX_CLASSES: usize = 128;
/// Bytes of a pattern times these: it is read again for each.
const MAX_READ: usize = 128 * 1024;
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

/// Whether this is a pattern of ECMAScript and of no linear time.
pub(super) fn looks(pattern: &str) -> bool {
    // Each begins so; what has none of both takes linear time if it is a pattern.
    let may_look = pattern.contains("(?") || pattern.contains('\\');
    may_look
        && pattern.len() <= MAX_LOOK
        && !has_many_classes(pattern)
        && jsonschema_regex::is_valid_ecma_regex(pattern)
        && !is_linear(pattern)
}

/// Whether it has more classes than one that people write. Each is translated by reading the whole of it again, and so is
/// each control character.
fn has_many_classes(pattern: &str) -> bool {
    let is_class = |pair: &&[u8]| pair[0] == b'\\' && b"sSdDwWc".contains(&pair[1]);
    let classes = pattern.as_bytes().windows(2).filter(is_class).count();
    classes > MAX_CLASSES || classes * pattern.len() > MAX_READ
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
