//! A part of JSON by its path, as `jq` writes the plain ones: `.items[].name`, `[0]`, `["a b"].c`.
//!
//! What is picked keeps the text that it came with, so that no number loses digits.

use std::collections::BTreeMap;

use footbridge_proto::text::Escaped;
use serde_json::value::RawValue;

use crate::suggest::instead;

/// Values that `[]` may come to.
const MOST_PICKED: usize = 100_000;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    /// From the end where it is negative.
    Item(i64),
    All,
}

/// A path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickPath {
    text: String,
    steps: Vec<Step>,
}

/// A path that is none.
#[derive(Debug, thiserror::Error)]
#[error(
    "\"{}\" is no path: write .name.other, .items[0], .items[].name or .[\"a b\"], as for jq",
    Escaped(.0)
)]
pub struct BadPickPath(String);

/// Why nothing was picked.
#[derive(Debug, thiserror::Error)]
pub enum NotPicked {
    /// There is nothing of this name, or no item of this number.
    #[error("--pick {0}: nothing is at {1}{2}")]
    Nothing(String, String, String),
    /// Too much is there.
    #[error("--pick {0}: it comes to more than {MOST_PICKED} values")]
    TooMany(String),
}

impl PickPath {
    /// Reads a path.
    ///
    /// # Errors
    /// [`BadPickPath`].
    pub fn new(text: &str) -> Result<Self, BadPickPath> {
        let bad = || BadPickPath(text.to_owned());
        let (mut steps, mut rest) = (Vec::new(), text.trim());
        while !rest.is_empty() {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            if let Some(inside) = rest.strip_prefix('[') {
                let (step, after) = bracket(inside).ok_or_else(bad)?;
                steps.push(step);
                rest = after;
            } else if !rest.is_empty() {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                if end == 0 {
                    return Err(bad());
                }
                steps.push(Step::Member(rest[..end].to_owned()));
                rest = &rest[end..];
                if rest == "." {
                    return Err(bad());
                }
            }
        }
        Ok(Self { text: text.to_owned(), steps })
    }

    /// What is there: one value, or with `[]` any number of them.
    ///
    /// # Errors
    /// [`NotPicked`].
    pub fn of<'r>(&self, raw: &'r RawValue) -> Result<Vec<&'r RawValue>, NotPicked> {
        let mut found = vec![raw];
        for step in &self.steps {
            let mut next = Vec::new();
            for at in found {
                next.extend(self.step(step, at)?);
                if next.len() > MOST_PICKED {
                    return Err(NotPicked::TooMany(self.text.clone()));
                }
            }
            found = next;
        }
        Ok(found)
    }

    /// Whether it may come to any number of values.
    #[must_use]
    pub(crate) fn is_of_several(&self) -> bool {
        self.steps.contains(&Step::All)
    }

    fn step<'r>(&self, step: &Step, at: &'r RawValue) -> Result<Vec<&'r RawValue>, NotPicked> {
        let nothing = |what: String, there: String| NotPicked::Nothing(self.text.clone(), what, there);
        if let Some(items) = items(at) {
            let place = match step {
                Step::All => return Ok(items),
                Step::Item(place) => *place,
                Step::Member(name) => {
                    let there = format!(": a list of {} is there, [] takes all of it", items.len());
                    return Err(nothing(Escaped(name).to_string(), there));
                }
            };
            let from_end = i64::try_from(items.len()).unwrap_or(i64::MAX).saturating_add(place);
            let index = usize::try_from(if place < 0 { from_end } else { place }).ok();
            let item = index.and_then(|index| items.get(index).copied());
            return item
                .map(|item| vec![item])
                .ok_or_else(|| nothing(format!("[{place}]"), format!(": there are {} items", items.len())));
        }
        match (members(at), step) {
            (Some(members), Step::Member(name)) => match members.get(name) {
                Some(member) => Ok(vec![*member]),
                None => {
                    let known: Vec<&str> = members.keys().map(String::as_str).collect();
                    Err(nothing(Escaped(name).to_string(), instead(name, &known, "the object is empty")))
                }
            },
            (Some(members), Step::All) => Ok(members.into_values().collect()),
            (Some(_), Step::Item(place)) => Err(nothing(format!("[{place}]"), ": an object is there".to_owned())),
            (None, _) => Err(nothing("that place".to_owned(), ": a single value is before it".to_owned())),
        }
    }
}

/// What is behind an opening bracket, and what comes after the closing one.
fn bracket(inside: &str) -> Option<(Step, &str)> {
    if inside.starts_with('"') {
        let mut names = serde_json::Deserializer::from_str(inside).into_iter::<String>();
        let name = names.next()?.ok()?;
        return Some((Step::Member(name), inside[names.byte_offset()..].strip_prefix(']')?));
    }
    let (inside, after) = inside.split_once(']')?;
    Some((if inside.is_empty() { Step::All } else { Step::Item(inside.parse().ok()?) }, after))
}

pub(crate) fn items(raw: &RawValue) -> Option<Vec<&RawValue>> {
    raw.get().starts_with('[').then(|| serde_json::from_str(raw.get()).ok())?
}

/// In the order of their names.
pub(crate) fn members(raw: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(path: &str) -> Result<Vec<String>, String> {
        let text = r#"{"a": {"b c": [1.50, {"x": 12345678901234567890123}, {"x": null}]}, "d": "t"}"#;
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        let path = PickPath::new(path).map_err(|error| error.to_string())?;
        let found = path.of(&raw).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|raw| raw.get().to_owned()).collect())
    }

    #[test]
    fn a_place_as_far_away_as_a_number_goes_is_none() {
        let raw = RawValue::from_string("[1, 2]".to_owned()).unwrap();
        for path in ["[9223372036854775807]", "[-9223372036854775808]"] {
            let why = PickPath::new(path).unwrap().of(&raw).unwrap_err().to_string();
            assert!(why.ends_with("there are 2 items"), "{why}");
        }
    }

    #[test]
    fn what_is_at_a_path_keeps_its_text() {
        for (path, found) in [
            (".d", vec!["\"t\""]),
            ("d", vec!["\"t\""]),
            (r#".a["b c"][0]"#, vec!["1.50"]),
            (r#"a.["b c"][-2].x"#, vec!["12345678901234567890123"]),
            (".a[][0]", vec!["1.50"]),
        ] {
            assert_eq!(pick(path).unwrap(), found, "{path}");
        }
        assert_eq!(pick(".").unwrap().len(), 1);
        assert_eq!(pick(".a[][]").unwrap().len(), 3);
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is() {
        for (path, says) in [
            (".dd", "nothing is at dd; did you mean \"d\"?"),
            (".a.x", "nothing is at x: there are b c"),
            (r#".a["b c"][7]"#, "nothing is at [7]: there are 3 items"),
            (r#".a["b c"].x"#, "a list of 3 is there, [] takes all of it"),
            (".d.x", "a single value is before it"),
            (".a[0]", "an object is there"),
            ("..a", "is no path"),
            ("a.", "is no path"),
            ("a[", "is no path"),
            ("a[x]", "is no path"),
            ("a[1:]", "is no path"),
        ] {
            let error = pick(path).unwrap_err();
            assert!(error.contains(says), "{path}: {error}");
        }
    }
}
