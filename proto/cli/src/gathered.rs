//! A schema of arguments that is put together from others, as the one object that they describe together.
//!
//! `$ref`, `allOf`, `anyOf` and `oneOf` are looked through as far as a person needs it: what can be said, not which
//! combinations may be, which is the bridge's to say.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    ptr,
};

use serde_json::{Map, Value, json};

use crate::schema::{properties, referred, required};

/// What a schema is put together by.
const BY_PARTS: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];
/// Parts that are looked at: they may be within each other without end.
const MOST_PARTS: usize = 200;
/// Kinds of one property, and names that one part requires.
const MOST_KINDS: usize = 20;
/// Values that are put into one list.
const MOST_VALUES: usize = 500;
const MOST_NEEDED: usize = 200;

/// The schema with the properties of all its parts. Required is what it and all of `allOf` require, and what each
/// alternative does.
#[must_use]
pub fn gathered(schema: &Value) -> Cow<'_, Value> {
    if !BY_PARTS.iter().any(|key| schema.get(key).is_some()) {
        return Cow::Borrowed(schema);
    }
    let Parts { named, needed, .. } = Gathering { root: schema, left: MOST_PARTS, above: Vec::new() }.of(schema);
    let named: Map<String, Value> = named.into_iter().map(|(name, all)| (name.to_owned(), either(&all))).collect();
    let mut whole = schema.as_object().cloned().unwrap_or_default();
    whole.retain(|key, _| !BY_PARTS.contains(&key.as_str()));
    whole.extend([("type".to_owned(), json!("object")), ("properties".to_owned(), named.into())]);
    whole.insert("required".to_owned(), needed.into());
    Cow::Owned(whole.into())
}

/// What an object has.
#[derive(Default)]
struct Parts<'s> {
    /// Its properties in their order, each with all that is said of it.
    named: Vec<(&'s str, Vec<&'s Value>)>,
    /// Where in that each is.
    places: HashMap<&'s str, usize>,
    needed: Vec<&'s str>,
    /// The same, to look one up: there may be tens of thousands.
    are_needed: HashSet<&'s str>,
}

/// Schemas that are looked through.
struct Gathering<'s> {
    root: &'s Value,
    left: usize,
    /// What the one that is looked at is a part of: itself would say nothing new.
    above: Vec<&'s Value>,
}

impl<'s> Gathering<'s> {
    fn of(&mut self, schema: &'s Value) -> Parts<'s> {
        if self.left == 0 || self.above.iter().any(|above| ptr::eq(*above, schema)) {
            return Parts::default();
        }
        self.left -= 1;
        self.above.push(schema);
        let all = self.within(schema);
        self.above.pop();
        all
    }

    fn within(&mut self, schema: &'s Value) -> Parts<'s> {
        let mut all = Parts::default();
        for (name, property) in properties(schema) {
            all.add(name, property);
        }
        all.need(required(schema).take(MOST_NEEDED));
        let parts = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
        for part in referred(schema, self.root).into_iter().chain(parts("allOf")) {
            let part = self.of(part);
            all.need(part.needed.iter().copied());
            all.take(part);
        }
        for key in ["anyOf", "oneOf"] {
            let mut of_each: Option<Vec<&str>> = None;
            for part in parts(key) {
                let part = self.of(part);
                let of_this = |name: &&str| part.are_needed.contains(name);
                of_each = Some(match of_each {
                    None => part.needed.clone(),
                    Some(names) => names.into_iter().filter(of_this).collect(),
                });
                all.take(part);
            }
            all.need(of_each.unwrap_or_default());
        }
        all
    }
}

impl<'s> Parts<'s> {
    fn need(&mut self, names: impl IntoIterator<Item = &'s str>) {
        for name in names {
            if self.are_needed.insert(name) {
                self.needed.push(name);
            }
        }
    }

    fn take(&mut self, part: Self) {
        for (name, all) in part.named {
            all.into_iter().for_each(|property| self.add(name, property));
        }
    }

    /// One property more, or what it may be besides.
    fn add(&mut self, name: &'s str, property: &'s Value) {
        let at = *self.places.entry(name).or_insert(self.named.len());
        match self.named.get_mut(at) {
            None => self.named.push((name, vec![property])),
            Some((_, all)) if all.len() < MOST_KINDS && !all.contains(&property) => all.push(property),
            Some(_) => {}
        }
    }
}

/// The values of all where these are listed, as of what says which alternative is meant; else any of them.
fn either(all: &[&Value]) -> Value {
    match all {
        [only] => (*only).clone(),
        _ => match all.iter().map(|one| values(one)).collect::<Option<Vec<_>>>() {
            Some(values) if values.iter().map(Vec::len).sum::<usize>() <= MOST_VALUES => {
                let mut once: Vec<Value> = Vec::new();
                for value in values.into_iter().flatten() {
                    if !once.contains(&value) {
                        once.push(value);
                    }
                }
                json!({ "enum": once })
            }
            _ => json!({ "anyOf": all }),
        },
    }
}

fn values(schema: &Value) -> Option<Vec<Value>> {
    let only = schema.get("const").map(|only| vec![only.clone()]);
    only.or_else(|| schema.get("enum").and_then(Value::as_array).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{flags::ToolFlags, signature::arguments};

    fn names(schema: &Value) -> (Vec<String>, Vec<String>) {
        let whole = gathered(schema);
        (properties(&whole).map(|(name, _)| name.clone()).collect(), required(&whole).map(str::to_owned).collect())
    }

    #[test]
    fn what_parts_name_can_be_said_and_what_all_require_is_required() {
        let all = json!({"properties": {"a": {}}, "required": ["a"],
            "allOf": [{"$ref": "#/$defs/b"}, {"properties": {"c": {"type": "integer"}}, "required": ["c"]}],
            "$defs": {"b": {"properties": {"b": {"type": "string"}}}}});
        assert_eq!(arguments(&all), "(a: any, b?: str, c: int)");
        let one = json!({"oneOf": [
            {"properties": {"kind": {"const": "x"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
            {"properties": {"kind": {"enum": ["x", "y"]}, "y": {"type": "string"}}, "required": ["kind", "y"]}]});
        assert_eq!(arguments(&one), r#"(kind: "x"|"y", x?: str, y?: str)"#);
        let flags = ToolFlags::of(&one, &[]);
        let found: Vec<(&str, bool)> = flags.flags.iter().map(|flag| (flag.name.as_str(), flag.is_required)).collect();
        assert_eq!(found, [("kind", true), ("x", false), ("y", false)]);
    }

    #[test]
    fn what_is_within_itself_ends() {
        let own =
            json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "allOf": [{"$ref": "#"}, {"properties": {"a": true}}]});
        assert_eq!(names(&own).0, ["a"]);
        assert!(matches!(gathered(&json!({"properties": {"a": {}}})), Cow::Borrowed(_)));
        for odd in [json!({"$ref": 7}), json!({"allOf": 7}), json!({"oneOf": [true, null, 7]})] {
            assert_eq!(names(&odd), (Vec::new(), Vec::new()), "{odd}");
        }
    }
}
