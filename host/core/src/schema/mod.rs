//! Checking arguments against the schema of a tool, within bounds.
//!
//! The schema comes from an untrusted server and the arguments from a hostile guest. What a check can cost at most is
//! counted before it runs (`cost`), patterns by their compiled size (`patterns`); a `$ref` that leaves the schema is
//! refused, never fetched; and deep recursion gets a stack of its own. Compiling and checking may still take a tenth of
//! a second: whoever serves others asks [`InputSchema::is_quick`] first. What was compiled is in `kept`, up to a limit.

mod cost;
mod kept;
mod looks;
mod patterns;
mod violation;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use cost::Cost;
use footbridge_proto::{json, wire::SCHEMA_DIALECTS};
use jsonschema::{Draft, PatternOptions, Validator};
pub use kept::{Compiled, KeptSchemas};
use patterns::MAX_PATTERN;
use serde_json::Value;
pub use violation::Violation;

/// Evaluations of a subschema that one check may cost; an honest one takes a few per value.
const MAX_EVALUATIONS: u64 = 2_000_000;
/// Evaluations that may run where others wait for the thread: about a millisecond.
const QUICK_EVALUATIONS: u64 = 10_000;
/// Nested evaluations that an ordinary stack holds with room to spare.
const SHALLOW: usize = 128;
/// The stack for anything deeper. Only what is touched is ever real.
const DEEP_STACK: usize = 256 * 1024 * 1024;
/// Evaluations up to which violations are named: the library collects all of them before it gives the first, and each
/// takes hundreds of bytes.
const MAX_NAMED: u64 = 20_000;
/// Violations that an answer names.
const MAX_VIOLATIONS: usize = 10;
/// Bytes of a text of the format `regex` that is looked at: names of groups are compared with each other. Longer ones
/// pass, as texts of unknown formats do.
const MAX_REGEX: usize = 1024;

/// A compiled input schema.
pub struct InputSchema {
    validator: Validator,
    cost: Cost,
}

/// Why a schema cannot be used. The text is for the guest too: it speaks of the schema alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSchema {
    /// Its `$schema` names a dialect that is not known.
    #[error("its dialect {0} is not supported")]
    Dialect(String),
    /// A reference out of the schema, or to nothing.
    #[error("its reference {0} does not lead to a place in the schema; nothing is fetched")]
    Reference(String),
    /// A reference that leads back to itself.
    #[error("one of its references leads back to itself")]
    Endless,
    /// A resource within the resource.
    #[error("it holds a \"$id\" below its top, which is not supported")]
    InnerId,
    /// More subschemas than may be.
    #[error("it has more than {0} subschemas")]
    TooLarge(usize),
    /// Its subschemas lead to each other more often than this.
    #[error("its subschemas lead to each other more than {0} times")]
    TooTangled(usize),
    /// Too many subschemas one through the other.
    #[error("more than {0} of its subschemas apply one through the other")]
    TooLong(usize),
    /// A pattern that cannot run in linear time, or is no pattern, or too large.
    #[error("its pattern {0:?} is too large, or no regular expression without look-around and back-references")]
    Pattern(String),
    /// Too many patterns.
    #[error("it has more than {0} patterns")]
    TooManyPatterns(usize),
    /// Patterns that take too much together.
    #[error("its patterns are too large together")]
    LargePatterns,
    /// It is not a valid schema.
    #[error("{0}")]
    Invalid(String),
    /// The machine has no thread for it at the moment. This says nothing of the schema.
    #[error("there is no thread to compile it at the moment")]
    NotNow,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// The arguments fit.
    Fits,
    /// What does not fit, at least one.
    Violations(Vec<Violation>),
    /// The check would cost more than it may.
    TooCostly,
    /// The machine has no thread for it at the moment.
    NotNow,
}

/// What came of work on a stack of its own.
enum OnStack<T> {
    Done(T),
    /// It met a case that nobody foresaw: that ends this work, not the harness.
    Failed,
    /// There was no thread to be had.
    NoThread,
}

impl std::fmt::Debug for InputSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InputSchema")
    }
}

impl InputSchema {
    /// Compiles a schema whose author checks it, too, as an MCP server the arguments of its tools: patterns that look ahead
    /// or back are left to that. All else is checked.
    ///
    /// # Errors
    /// [`BadSchema`].
    pub fn compile_first(schema: &Value) -> Result<Self, BadSchema> {
        Self::compile(&looks::without_looks(schema))
    }

    /// Compiles a schema.
    ///
    /// # Errors
    /// [`BadSchema`].
    pub fn compile(schema: &Value) -> Result<Self, BadSchema> {
        let draft = dialect(schema)?;
        let cost = Cost::of(schema)?;
        let validator = match on_deep_stack(|| {
            jsonschema::options()
                .with_draft(draft)
                .should_validate_formats(true)
                .with_format("regex", |text: &str| {
                    text.len() > MAX_REGEX || jsonschema_regex::is_valid_ecma_regex(text)
                })
                .with_format("uuid", is_uuid)
                .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN))
                .build(schema)
                .map_err(|error| BadSchema::Invalid(violation::message(&error)))
        }) {
            OnStack::Done(compiled) => compiled?,
            OnStack::Failed => return Err(BadSchema::Invalid("it cannot be compiled".to_owned())),
            OnStack::NoThread => return Err(BadSchema::NotNow),
        };
        Ok(Self { validator, cost })
    }

    /// The bytes that it takes, about, and on the high side.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.cost.bytes()
    }

    /// Whether arguments of so many bytes, whatever they are, are checked within about a millisecond.
    #[must_use]
    pub fn is_quick(&self, text_bytes: usize) -> bool {
        self.cost.most(text_bytes) <= QUICK_EVALUATIONS
    }

    /// Checks arguments.
    #[must_use]
    pub fn check(&self, arguments: &Value) -> Check {
        let bound = self.cost.bound(arguments);
        if bound > MAX_EVALUATIONS {
            return Check::TooCostly;
        }
        if depth(arguments) * self.cost.chain() <= SHALLOW {
            return self.evaluate(arguments, bound);
        }
        match on_deep_stack(|| self.evaluate(arguments, bound)) {
            OnStack::Done(found) => found,
            OnStack::Failed => Check::TooCostly,
            OnStack::NoThread => Check::NotNow,
        }
    }

    fn evaluate(&self, arguments: &Value, bound: u64) -> Check {
        if self.validator.is_valid(arguments) {
            return Check::Fits;
        }
        if bound > MAX_NAMED {
            return Check::Violations(vec![Violation::unnamed()]);
        }
        let errors = self.validator.iter_errors(arguments).take(MAX_VIOLATIONS);
        Check::Violations(errors.map(|error| Violation::of(&error)).collect())
    }
}

/// Runs work on a large stack.
fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> OnStack<T> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("schema".to_owned()).stack_size(DEEP_STACK);
        let spawned = builder.spawn_scoped(scope, || catch_unwind(AssertUnwindSafe(work)));
        match spawned.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(Ok(done))) => OnStack::Done(done),
            Ok(_) => OnStack::Failed,
            Err(_) => OnStack::NoThread,
        }
    })
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
    .min(json::MAX_BODY_DEPTH)
}

/// Draft 7 has no such format, but schemas of it name it.
fn is_uuid(text: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

fn dialect(schema: &Value) -> Result<Draft, BadSchema> {
    match schema.get("$schema") {
        None => Ok(Draft::Draft202012),
        Some(Value::String(uri)) => match uri.trim_end_matches('#') {
            uri if uri == SCHEMA_DIALECTS[0] => Ok(Draft::Draft202012),
            uri if uri == SCHEMA_DIALECTS[1] => Ok(Draft::Draft201909),
            uri if uri == SCHEMA_DIALECTS[2].trim_end_matches('#') => Ok(Draft::Draft7),
            uri => Err(BadSchema::Dialect(uri.chars().take(100).collect())),
        },
        Some(_) => Err(BadSchema::Invalid("its \"$schema\" is not a string".to_owned())),
    }
}

#[cfg(test)]
mod tests;
