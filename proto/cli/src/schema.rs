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

/// Whether `null` will do, too.
#[must_use]
pub fn takes_null(property: &Value, root: &Value) -> bool {
    let names_null = |schema: &Value| match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(|name| name == "null"),
        name => name.is_some_and(|name| name == "null"),
    };
    let offers_null =
        |at: &Value, key: &str| at.get(key).and_then(Value::as_array).is_some_and(|all| all.iter().any(names_null));
    let mut at = property;
    for _ in 0..MOST_STEPS {
        if names_null(at) || ["anyOf", "oneOf"].into_iter().any(|key| offers_null(at, key)) {
            return true;
        }
        match referred(at, root) {
            Some(next) => at = next,
            None => break,
        }
    }
    false
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

/// How deep examples are made, and how many items of a list.
const MOST_SAMPLED: usize = 6;
const MOST_ITEMS: u64 = 8;
/// What one example may come to, in bytes, and what a value in it counts besides its text. A schema whose members are it
/// itself would have one that no memory holds.
const MOST_BYTES: usize = 16 * 1024;
const VALUE_BYTES: usize = 32;

/// A value that fits, as far as that can be told: what the schema gives as one, or the least that its type, its limits
/// and its format ask for. Of one that would be too large, a part.
#[must_use]
pub fn sample(property: &Value, root: &Value) -> Value {
    Sample { root, left: MOST_BYTES }.of(property, 0)
}

/// An example on its way.
struct Sample<'s> {
    root: &'s Value,
    /// How much more of it there may be.
    left: usize,
}

impl<'s> Sample<'s> {
    fn of(&mut self, property: &'s Value, depth: usize) -> Value {
        self.left = self.left.saturating_sub(VALUE_BYTES);
        let at = meant(property, self.root);
        if let Some((told, bytes)) = told(property, at, self.left) {
            self.left -= bytes;
            return told.clone();
        }
        // Of several kinds the first will do.
        let choice = ["anyOf", "oneOf"].into_iter().find_map(|key| at.get(key)?.as_array()?.first());
        if let Some(choice) = choice.filter(|_| depth < MOST_SAMPLED) {
            return self.of(choice, depth + 1);
        }
        let named = at.get("type").and_then(Value::as_array).and_then(|names| names.first()).and_then(Value::as_str);
        match kind(at).or(named) {
            Some("integer" | "number") => number_within(at),
            Some("boolean") => true.into(),
            Some("array") | None if at.get("prefixItems").is_some_and(Value::is_array) && depth < MOST_SAMPLED => {
                let each = at.get("prefixItems").and_then(Value::as_array).into_iter().flatten();
                each.take(MOST_ITEMS as usize).map_while(|item| self.part(item, depth)).collect()
            }
            Some("array") => {
                let count = at.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(MOST_ITEMS);
                match at.get("items").filter(|_| depth < MOST_SAMPLED) {
                    Some(items) => (0..count).map_while(|_| self.part(items, depth)).collect(),
                    None => (0..count).map(|_| Value::Null).collect(),
                }
            }
            Some("object") => self.object(at, depth),
            None if at.get("properties").is_some() => self.object(at, depth),
            Some("null") => Value::Null,
            _ => text_of_format(at).into(),
        }
    }

    /// What is one level further in, where there is room for it.
    fn part(&mut self, property: &'s Value, depth: usize) -> Option<Value> {
        (self.left > 0).then(|| self.of(property, depth + 1))
    }

    fn object(&mut self, at: &'s Value, depth: usize) -> Value {
        // What is required and not described can be anything.
        const UNDESCRIBED: &Value = &Value::Bool(true);
        let described = |name: &str| at.get("properties").and_then(|all| all.get(name)).unwrap_or(UNDESCRIBED);
        let mut members = Map::new();
        for name in required(at).filter(|_| depth < MOST_SAMPLED) {
            self.left = self.left.saturating_sub(name.len());
            let Some(value) = self.part(described(name), depth) else { break };
            members.insert(name.to_owned(), value);
        }
        Value::Object(members)
    }
}

/// What a schema gives as a value of it, and its size, where that is not beyond this.
fn told<'s>(property: &'s Value, at: &'s Value, most: usize) -> Option<(&'s Value, usize)> {
    let given = |key: &str| property.get(key).or_else(|| at.get(key)).filter(|value| !value.is_null());
    let first = |key: &str| given(key)?.as_array()?.iter().find(|value| !value.is_null());
    let told = given("const").or_else(|| first("examples")).or_else(|| given("default")).or_else(|| first("enum"))?;
    let mut left = most;
    takes(told, &mut left)?;
    Some((told, most - left))
}

/// Takes off what a value comes to; none where that is more than is left.
fn takes(value: &Value, left: &mut usize) -> Option<()> {
    let text = value.as_str().map_or(0, str::len);
    *left = left.checked_sub(VALUE_BYTES + text)?;
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| takes(item, left)),
        Value::Object(members) => members.iter().try_for_each(|(name, member)| {
            *left = left.checked_sub(name.len())?;
            takes(member, left)
        }),
        _ => Some(()),
    }
}

fn number_within(at: &Value) -> Value {
    let limit = |key: &str| at.get(key).and_then(Value::as_f64);
    let step = limit("multipleOf").filter(|step| *step > 0.0).unwrap_or(1.0);
    let least = limit("minimum").or_else(|| limit("exclusiveMinimum").map(|least| least + step));
    let most = limit("maximum").or_else(|| limit("exclusiveMaximum").map(|most| most - step));
    let near = match (least, most) {
        (Some(least), _) if least > step => (least / step).ceil() * step,
        (_, Some(most)) if most < step => (most / step).floor() * step,
        _ => step,
    };
    if near.fract() == 0.0 && near.abs() < 1e15 { (near as i64).into() } else { near.into() }
}

fn text_of_format(at: &Value) -> String {
    let text = match at.get("format").and_then(Value::as_str) {
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("time") => "12:00:00Z",
        Some("uri" | "url") => "https://example.org/",
        Some("email") => "someone@example.org",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        Some("ipv4") => "127.0.0.1",
        Some("ipv6") => "::1",
        Some("hostname") => "example.org",
        _ => "text",
    };
    let length = |key: &str| at.get(key).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
    let least = length("minLength").unwrap_or(0).min(1_000);
    let padded = format!("{text}{}", "x".repeat(least.saturating_sub(text.len())));
    padded.chars().take(length("maxLength").unwrap_or(usize::MAX)).collect()
}
