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

/// A value that fits, as far as that can be told: what the schema gives as one, or the least that its type, its limits
/// and its format ask for.
#[must_use]
pub fn sample(property: &Value, root: &Value) -> Value {
    sampled(property, root, 0)
}

fn sampled(property: &Value, root: &Value, depth: usize) -> Value {
    let at = meant(property, root);
    let given = |key: &str| property.get(key).or_else(|| at.get(key)).filter(|value| !value.is_null());
    let first = |key: &str| given(key)?.as_array()?.iter().find(|value| !value.is_null());
    let told = given("const").or_else(|| first("examples")).or_else(|| given("default")).or_else(|| first("enum"));
    if let Some(told) = told {
        return told.clone();
    }
    // Of several kinds the first will do.
    let choice = ["anyOf", "oneOf"].into_iter().find_map(|key| at.get(key)?.as_array()?.first());
    if let Some(choice) = choice.filter(|_| depth < MOST_SAMPLED) {
        return sampled(choice, root, depth + 1);
    }
    let named = at.get("type").and_then(Value::as_array).and_then(|names| names.first()).and_then(Value::as_str);
    match kind(at).or(named) {
        Some("integer" | "number") => number_within(at),
        Some("boolean") => true.into(),
        Some("array") | None if at.get("prefixItems").is_some_and(Value::is_array) && depth < MOST_SAMPLED => {
            let each = at.get("prefixItems").and_then(Value::as_array).into_iter().flatten();
            each.take(MOST_ITEMS as usize).map(|item| sampled(item, root, depth + 1)).collect()
        }
        Some("array") => {
            let count = at.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(MOST_ITEMS);
            let items = at.get("items").filter(|_| depth < MOST_SAMPLED);
            (0..count).map(|_| items.map_or(Value::Null, |items| sampled(items, root, depth + 1))).collect()
        }
        Some("object") => object(at, root, depth),
        None if at.get("properties").is_some() => object(at, root, depth),
        Some("null") => Value::Null,
        _ => text_of_format(at).into(),
    }
}

fn object(at: &Value, root: &Value, depth: usize) -> Value {
    // What is required and not described can be anything.
    let undescribed = Value::Bool(true);
    let member = |name: &str| {
        let property = at.get("properties").and_then(|all| all.get(name)).unwrap_or(&undescribed);
        (depth < MOST_SAMPLED).then(|| (name.to_owned(), sampled(property, root, depth + 1)))
    };
    Value::Object(required(at).filter_map(member).collect())
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
