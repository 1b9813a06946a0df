//! Conditions on the arguments of a call.
//!
//! Each looks at one value and says yes, no, or that it cannot be evaluated: the value is missing, or of another type
//! than the condition is about. What that means is up to the rule: it fails one that allows or asks, and holds for one
//! that denies.

use std::{borrow::Cow, cmp::Ordering};

use footbridge_proto::text::needs_escape;
use regex::{Regex, RegexBuilder};
use serde_json::{Number, Value, json};

use super::{
    globs::{self, Glob},
    spelling::{META, readings},
};

/// One condition: where to look, and what must hold there.
#[derive(Debug, Clone)]
pub struct Condition {
    at: Pointer,
    test: Test,
}

/// Where a value is in the arguments: a JSON pointer (RFC 6901), as the names and numbers that lead there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer(Vec<String>);

/// What must hold of a value.
#[derive(Debug, Clone)]
pub enum Test {
    /// It is this.
    Equals(Value),
    /// It is one of these.
    OneOf(Vec<Value>),
    /// It is a text that one of these patterns matches.
    Glob(Vec<Glob>),
    /// It is a path that one of these patterns matches, once it is normal.
    Path(Vec<Glob>),
    /// It is a text that matches.
    Regex(Regex),
    /// It is a number from the first to the second, both included.
    Range(Option<Number>, Option<Number>),
    /// It is a text of so many characters, a list of so many items, or an object of so many members.
    Length(usize, usize),
    /// It is there, or it is not.
    Present(bool),
}

/// Why a pointer is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no JSON pointer: write \"/city\", \"/options/0\", or \"\" for all arguments; ~ is ~0 and / is ~1")]
pub struct BadPointer(String);

impl Pointer {
    /// Reads a pointer.
    ///
    /// # Errors
    /// [`BadPointer`].
    pub fn new(text: &str) -> Result<Self, BadPointer> {
        let starts = text.is_empty() || text.starts_with('/');
        let escapes = text.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
        if !starts || !escapes {
            return Err(BadPointer(text.to_owned()));
        }
        Ok(Self(text.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect()))
    }

    fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |value, part| match value {
            Value::Object(members) => members.get(part),
            Value::Array(items) => items.get(index(part)?),
            _ => None,
        })
    }
}

/// A number without a sign or a zero in front.
fn index(part: &str) -> Option<usize> {
    let plain = part == "0" || !part.starts_with(['0', '+']);
    part.parse().ok().filter(|_| plain)
}

/// Largest program of a compiled regex, bytes.
const MAX_REGEX: usize = 1 << 20;

/// A regex that takes linear time. With `whole` it must match the whole text, otherwise a part of it is enough.
///
/// # Errors
/// When it does not compile, or is too large.
pub(crate) fn regex(text: &str, whole: bool) -> Result<Regex, regex::Error> {
    let compile = |text: &str| RegexBuilder::new(text).size_limit(MAX_REGEX).dfa_size_limit(MAX_REGEX).build();
    // By itself first: what is put around it must not make a regex of something that is none.
    let own = compile(text)?;
    if whole { compile(&format!(r"\A(?:{text})\z")) } else { Ok(own) }
}

impl Condition {
    /// A condition.
    #[must_use]
    pub fn new(at: Pointer, test: Test) -> Self {
        Self { at, test }
    }

    /// All that it says, for digests.
    pub(super) fn written(&self) -> Value {
        let Self { at: Pointer(at), test } = self;
        let (word, what) = match test {
            Test::Equals(value) => ("equals", sorted(value)),
            Test::OneOf(values) => ("one_of", values.iter().map(sorted).collect()),
            Test::Glob(globs) => ("glob", globs::all_written(Some(globs))),
            Test::Path(globs) => ("path", globs::all_written(Some(globs))),
            Test::Regex(regex) => ("regex", json!(regex.as_str())),
            Test::Range(least, most) => ("range", json!([least, most])),
            Test::Length(least, most) => ("length", json!([least, most])),
            Test::Present(present) => ("present", json!(present)),
        };
        json!([at, word, what])
    }

    /// As [`Self::holds`], for a rule that closes: one reading of a path that it holds for is enough, decoded, without
    /// blanks around it or what is behind `?`, `#` or, in any of its segments, `;`.
    #[must_use]
    pub(crate) fn holds_for_any_reading(&self, arguments: &Value) -> Option<bool> {
        let (Test::Path(globs), Some(text)) = (&self.test, self.at.find(arguments).and_then(Value::as_str)) else {
            return self.holds(arguments);
        };
        let each = readings(text).into_iter().filter(|reading| !reading.is_empty());
        // The text itself first, which may be empty.
        let mut all = path(globs, text);
        for one in each.map(|reading| path(globs, &reading)) {
            match one {
                Some(true) => return Some(true),
                Some(false) => {}
                None => all = all.filter(|held| *held),
            }
        }
        all
    }

    /// Whether it holds; none where it cannot be evaluated.
    #[must_use]
    pub fn holds(&self, arguments: &Value) -> Option<bool> {
        let found = self.at.find(arguments);
        if let Test::Present(present) = &self.test {
            return Some(found.is_some() == *present);
        }
        let found = found?;
        match &self.test {
            Test::Equals(value) => equals(value, found),
            Test::OneOf(values) => one_of(values, found),
            Test::Glob(globs) => Some(globs::any(globs, found.as_str()?)),
            Test::Path(globs) => path(globs, found.as_str()?),
            Test::Regex(regex) => Some(regex.is_match(found.as_str()?)),
            Test::Range(least, most) => range(least.as_ref(), most.as_ref(), found),
            Test::Length(least, most) => length(found).map(|length| (*least..=*most).contains(&length)),
            Test::Present(_) => None,
        }
    }
}

/// The same value with the members of its objects in one order.
fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    value.sort_all_objects();
    value
}

fn equals(value: &Value, found: &Value) -> Option<bool> {
    let same_type = std::mem::discriminant(value) == std::mem::discriminant(found);
    same_type.then(|| same(value, found))
}

fn one_of(values: &[Value], found: &Value) -> Option<bool> {
    let each = values.iter().filter_map(|value| equals(value, found));
    each.fold(None, |any, one| Some(any.unwrap_or(false) || one))
}

/// Whether two values are the same; numbers are compared by value, so `1` is `1.0`.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Some(Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn range(least: Option<&Number>, most: Option<&Number>, found: &Value) -> Option<bool> {
    let Value::Number(found) = found else { return None };
    let not_below = least.map_or(Some(true), |least| Some(compare(least, found)? != Ordering::Greater))?;
    let not_above = most.map_or(Some(true), |most| Some(compare(most, found)? != Ordering::Less))?;
    Some(not_below && not_above)
}

/// Compares two numbers exactly, whatever they are written as.
pub(crate) fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    let integer = |n: &Number| n.as_i64().map(i128::from).or_else(|| n.as_u64().map(i128::from));
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => against(a, b.as_f64()?),
        (None, Some(b)) => against(b, a.as_f64()?).map(Ordering::reverse),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// An integer of 64 bits against a float, without rounding the integer.
fn against(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    let whole = float.trunc();
    // Saturates, which is far beyond 64 bits.
    let order = integer.cmp(&(whole as i128));
    Some(order.then_with(|| whole.partial_cmp(&float).unwrap_or(Ordering::Equal)))
}

fn length(found: &Value) -> Option<usize> {
    match found {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        Value::Object(members) => Some(members.len()),
        _ => None,
    }
}

/// One pattern that matches is enough; without one, a pattern that cannot be compared leaves it open.
fn path(globs: &[Glob], found: &str) -> Option<bool> {
    let normal = normal_path(found)?;
    let each = globs.iter().map(|glob| {
        let rooted = glob.as_str().starts_with('/');
        let comparable = rooted == normal.starts_with('/') || glob.as_str().starts_with(META);
        comparable.then(|| glob.matches(&normal))
    });
    let mut all = Some(false);
    for one in each {
        match one {
            Some(true) => return Some(true),
            Some(false) => {}
            None => all = None,
        }
    }
    all
}

/// A path without `.`, doubled and last slashes; none with `..`, or where a server may take it for another one.
#[must_use]
pub(crate) fn normal_path(text: &str) -> Option<Cow<'_, str>> {
    let plain = text.bytes().all(|byte| (b' '..0x7f).contains(&byte) && byte != b'\\');
    let odd = |text: &str| text.contains('\\') || text.chars().any(needs_escape);
    if text.is_empty() || text.starts_with('~') || (!plain && odd(text)) {
        return None;
    }
    if text.strip_prefix('/').unwrap_or(text).split('/').all(|part| !["", ".", ".."].contains(&part)) {
        return Some(Cow::Borrowed(text));
    }
    let mut normal = String::with_capacity(text.len());
    let rooted = text.starts_with('/');
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part => {
                if rooted || !normal.is_empty() {
                    normal.push('/');
                }
                normal.push_str(part);
            }
        }
    }
    if normal.is_empty() {
        normal.push_str(if rooted { "/" } else { "." });
    }
    Some(Cow::Owned(normal))
}

#[cfg(test)]
mod tests;
