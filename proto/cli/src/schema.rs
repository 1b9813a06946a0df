//! What a JSON Schema says of a value, read as far as a person or a shell needs it.
//!
//! The schema is a server's own text: references are followed within it alone, a few steps far, and what is odd reads
//! as nothing special. Whether arguments fit is the bridge's to say.

use serde_json::{Map, Value};

/// References that are followed from one place.
const MOST_STEPS: usize = 8;

/// What a schema says once references, single choices and `null` beside it are out of the way.
#[must_use]
pub fn meant<'s>(property: &'s Value, root: &'s Value) -> &'s Value {
    let mut at = property;
    for _ in 0..MOST_STEPS {
        let next = referred(at, root).or_else(|| {
            let one = |key: &str| {
                let all = at.get(key)?.as_array()?;
                let mut others = all.iter().filter(|one| kind(one) != Some("null"));
                let first = others.next()?;
                others.next().is_none().then_some(first)
            };
            ["anyOf", "oneOf", "allOf"].into_iter().find_map(one)
        });
        match next {
            Some(next) => at = next,
            None => break,
        }
    }
    at
}

/// What a reference within the same schema leads to.
#[must_use]
pub fn referred<'s>(at: &Value, root: &'s Value) -> Option<&'s Value> {
    root.pointer(at.get("$ref")?.as_str()?.strip_prefix('#')?)
}

/// The one type besides `null`, if there is one.
#[must_use]
pub fn kind(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => {
            let mut others = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            let first = others.next()?;
            others.next().is_none().then_some(first)
        }
        _ => None,
    }
}

/// The properties that a schema names, in its order.
pub fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

/// The names of what must be there.
pub fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
