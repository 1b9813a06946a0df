//! Checking arguments against the schema of a tool, within bounds.
//!
//! The schema comes from an untrusted server and the arguments from a hostile guest. What a check can cost at most is
//! counted before it runs (`cost`); patterns run in linear time; a `$ref` that leaves the schema is refused, never
//! fetched; and deep recursion gets a stack of its own.

mod cost;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use cost::Cost;
use footbridge_proto::{json, wire::SCHEMA_DIALECTS};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

/// Evaluations of a subschema that one check may cost; an honest one takes a few per value.
const MAX_EVALUATIONS: u64 = 2_000_000;
/// Bytes that one compiled pattern may take; with linear time it bounds the time as well.
const MAX_PATTERN: usize = 64 * 1024;
/// Nested evaluations that an ordinary stack holds with room to spare.
const SHALLOW: usize = 128;
/// The stack for anything deeper. Only what is touched is ever real.
const DEEP_STACK: usize = 256 * 1024 * 1024;
/// Evaluations up to which violations are named: the library collects all of them before it gives the first, and each
/// takes hundreds of bytes.
const MAX_NAMED: u64 = 20_000;
/// Violations that an answer names.
const MAX_VIOLATIONS: usize = 10;
/// Characters of one violation's message.
const MAX_MESSAGE: usize = 300;

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
    /// Too many subschemas one through the other.
    #[error("more than {0} of its subschemas apply one through the other")]
    TooLong(usize),
    /// It is not a valid schema.
    #[error("{0}")]
    Invalid(String),
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// The arguments fit.
    Fits,
    /// What does not fit, each with its place as a JSON pointer in front.
    Violations(Vec<String>),
    /// The check would cost more than it may.
    TooCostly,
}

impl std::fmt::Debug for InputSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InputSchema")
    }
}

impl InputSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// [`BadSchema`].
    pub fn compile(schema: &Value) -> Result<Self, BadSchema> {
        let draft = dialect(schema)?;
        let cost = Cost::of(schema)?;
        let compiled = on_deep_stack(|| {
            jsonschema::options()
                .with_draft(draft)
                .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN))
                .build(schema)
                .map_err(|error| BadSchema::Invalid(short(&error)))
        });
        let validator = compiled.unwrap_or_else(|| Err(BadSchema::Invalid("it cannot be compiled".to_owned())))?;
        Ok(Self { validator, cost })
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
        on_deep_stack(|| self.evaluate(arguments, bound)).unwrap_or(Check::TooCostly)
    }

    fn evaluate(&self, arguments: &Value, bound: u64) -> Check {
        if self.validator.is_valid(arguments) {
            return Check::Fits;
        }
        if bound > MAX_NAMED {
            return Check::Violations(vec![
                "/: something in it does not fit; there is too much of it to say what".into(),
            ]);
        }
        let errors = self.validator.iter_errors(arguments).take(MAX_VIOLATIONS);
        Check::Violations(errors.map(|e| format!("{}: {}", place(&e), short(&e))).collect())
    }
}

/// Runs work on a large stack. `None` if there was no thread to be had, or the work met a case that nobody foresaw:
/// that ends this check, not the harness.
fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("schema".to_owned()).stack_size(DEEP_STACK);
        builder.spawn_scoped(scope, || catch_unwind(AssertUnwindSafe(work)).ok()).ok()?.join().ok()?
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

fn place(error: &ValidationError<'_>) -> String {
    let pointer = error.instance_path().to_string();
    if pointer.is_empty() { "/".to_owned() } else { pointer }
}

fn short(error: &ValidationError<'_>) -> String {
    let text = error.to_string();
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn check(schema: Value, arguments: Value) -> Check {
        InputSchema::compile(&schema).unwrap().check(&arguments)
    }

    fn refused(schema: Value) -> BadSchema {
        InputSchema::compile(&schema).unwrap_err()
    }

    #[test]
    fn violations_name_their_place() {
        let schema = json!({"type":"object","properties":{"n":{"type":"integer"},"s":{}},"required":["s"],"additionalProperties":false});
        let Check::Violations(errors) = check(schema.clone(), json!({"n":"x","z":1})) else { panic!("fits") };
        assert!(errors.iter().any(|e| e.starts_with("/n: ") && e.contains("integer")), "{errors:?}");
        assert!(errors.iter().any(|e| e.contains("\"s\"")), "{errors:?}");
        assert!(errors.iter().any(|e| e.contains("'z'")), "{errors:?}");
        assert_eq!(check(schema, json!({"s":1,"n":1.0})), Check::Fits);
    }

    /// Definitions l0 to lN, each made of references to the next by `link`.
    fn ladder(levels: usize, link: impl Fn(Value) -> Value) -> Value {
        let mut defs = Map::new();
        for level in 0..levels {
            defs.insert(format!("l{level}"), link(json!({"$ref": format!("#/$defs/l{}", level + 1)})));
        }
        defs.insert(format!("l{levels}"), json!({"type": "string"}));
        json!({"$ref": "#/$defs/l0", "$defs": defs})
    }

    #[test]
    fn work_that_doubles_with_every_reference_is_refused() {
        for word in ["allOf", "anyOf", "oneOf"] {
            assert_eq!(check(ladder(30, |next| json!({ word: [next, next] })), json!({})), Check::TooCostly);
        }
    }

    #[test]
    fn work_that_doubles_with_every_level_of_the_value_is_refused() {
        let schema = json!({"$defs":{"t":{"allOf":[{"properties":{"x":{"$ref":"#/$defs/t"}}},{"properties":{"x":{"$ref":"#/$defs/t"}}}]}},"$ref":"#/$defs/t"});
        let nested = |depth| (0..depth).fold(json!({}), |inner, _| json!({ "x": inner }));
        assert_eq!(check(schema.clone(), nested(5)), Check::Fits);
        assert_eq!(check(schema, nested(60)), Check::TooCostly);
    }

    #[test]
    fn an_honest_recursive_schema_costs_little_at_any_depth() {
        let tree = json!({"$defs":{"t":{"type":"object","properties":{"left":{"$ref":"#/$defs/t"},"right":{"$ref":"#/$defs/t"},"all":{"type":"array","items":{"$ref":"#/$defs/t"}}},"additionalProperties":false}},"$ref":"#/$defs/t"});
        let nested = (0..60).fold(json!({}), |inner, _| json!({ "left": inner }));
        assert_eq!(check(tree.clone(), nested), Check::Fits);
        assert_eq!(check(tree, json!({"all": vec![json!({"left": {}}); 10_000]})), Check::Fits);
    }

    #[test]
    fn a_schema_that_doubles_without_cost_still_compiles_at_once() {
        let found =
            check(ladder(60, |next| json!({"properties": {"a": next.clone(), "b": next}})), json!({"a": {"b": {}}}));
        assert_eq!(found, Check::Fits);
    }

    #[test]
    fn chains_and_cycles_are_refused() {
        assert_eq!(refused(ladder(100, |next| json!({"allOf": [next]}))), BadSchema::TooLong(64));
        assert_eq!(refused(json!({"$ref": "#"})), BadSchema::Endless);
        assert_eq!(
            refused(
                json!({"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"})
            ),
            BadSchema::Endless
        );
        let below = ladder(4_000, |next| json!({"properties": {"a": next}}));
        assert_eq!(refused(below), BadSchema::TooLarge(5_000));
        let below = ladder(1_600, |next| json!({"properties": {"a": next}}));
        assert!(InputSchema::compile(&below).is_ok());
    }

    #[test]
    fn nothing_is_fetched_and_patterns_are_linear() {
        for target in ["http://127.0.0.1:1/x.json", "file:///etc/passwd", "other.json", "#/nowhere", "#nobody"] {
            assert_eq!(refused(json!({ "$ref": target })), BadSchema::Reference(target.to_owned()));
        }
        assert!(matches!(refused(json!({"pattern": "(a)\\1"})), BadSchema::Invalid(_)));
        assert!(matches!(refused(json!({"pattern": "(((a{100}){100}){100})"})), BadSchema::Invalid(_)));
        let evil = json!({"type":"string","pattern":"^(a+)+$"});
        assert!(matches!(check(evil, json!(format!("{}b", "a".repeat(50_000)))), Check::Violations(_)));
    }

    #[test]
    fn large_lists_of_unique_items_are_checked_in_reasonable_time() {
        let items: Vec<Value> = (0..60_000).map(|n| json!([n])).collect();
        assert_eq!(check(json!({"type":"array","uniqueItems":true}), Value::from(items)), Check::Fits);
    }

    #[test]
    fn a_large_list_of_violations_is_not_made() {
        let zeros = |count| json!({"a": vec![json!(0); count]});
        let schema = json!({"properties":{"a":{"items":{"type":"string"}}}});
        let Check::Violations(few) = check(schema.clone(), zeros(1_000)) else { panic!("fits") };
        let Check::Violations(many) = check(schema, zeros(500_000)) else { panic!("fits") };
        assert_eq!((few.len(), many.len()), (10, 1));
        assert!(few[0].starts_with("/a/0: ") && many[0].contains("too much of it"), "{few:?} {many:?}");
    }

    #[test]
    fn three_dialects_are_known() {
        for uri in SCHEMA_DIALECTS {
            assert!(InputSchema::compile(&json!({"$schema": uri, "type": "object"})).is_ok());
        }
        assert!(matches!(
            refused(json!({"$schema": "http://json-schema.org/draft-04/schema#"})),
            BadSchema::Dialect(_)
        ));
        assert!(matches!(refused(json!({"type": "nonsense"})), BadSchema::Invalid(_)));
        assert_eq!(refused(json!({"properties":{"a":{"$id":"x"}}})), BadSchema::InnerId);
    }
}
