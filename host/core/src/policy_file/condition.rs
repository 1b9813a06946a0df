//! Conditions on arguments, from how they are written to what is evaluated.

use serde::Deserialize;
use serde_json::Number;
use toml::Value;

use super::{Reader, words::Words};
use crate::{
    gate::{
        Says,
        conditions::{Condition, Pointer, Test, compare, regex},
        globs::Of,
    },
    settings_file::Mistake,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenCondition {
    at: String,
    #[serde(default)]
    equals: Option<Value>,
    #[serde(default)]
    one_of: Option<Vec<Value>>,
    #[serde(default)]
    glob: Option<Words<String>>,
    #[serde(default)]
    path: Option<Words<String>>,
    #[serde(default)]
    regex: Option<String>,
    #[serde(default)]
    range: Option<Bounds<Value>>,
    #[serde(default)]
    length: Option<Bounds<usize>>,
    #[serde(default)]
    present: Option<bool>,
}

/// The least and the most, both included.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound = "T: Deserialize<'de>")]
struct Bounds<T> {
    #[serde(default = "Option::default")]
    min: Option<T>,
    #[serde(default = "Option::default")]
    max: Option<T>,
}

impl Reader<'_> {
    /// The conditions of a rule that says this.
    pub(super) fn conditions(&self, says: Says, written: Vec<Value>) -> Result<Vec<Condition>, Vec<Mistake>> {
        if says == Says::Hide && !written.is_empty() {
            let what = "\"hide\" takes no conditions on arguments: what is hidden is hidden before they are looked at";
            return Err(vec![self.below(&["arguments"]).wrong(what)]);
        }
        let (mut conditions, mut mistakes) = (Vec::new(), Vec::new());
        for (index, written) in written.into_iter().enumerate() {
            match self.below(&["arguments", &index.to_string()]).condition(says, written) {
                Ok(condition) => conditions.push(condition),
                Err(found) => mistakes.extend(found),
            }
        }
        if mistakes.is_empty() { Ok(conditions) } else { Err(mistakes) }
    }

    fn condition(&self, says: Says, written: Value) -> Result<Condition, Vec<Mistake>> {
        let written: WrittenCondition = self.file.read(&self.at, self.table(written)?)?;
        let at = Pointer::new(&written.at).map_err(|bad| vec![self.below(&["at"]).wrong(bad.to_string())])?;
        let mut tests = self.tests(says, written)?;
        match (tests.pop(), tests.is_empty()) {
            (Some(test), true) => Ok(Condition::new(at, test)),
            _ => {
                let what =
                    "a condition has \"at\" and one of equals, one_of, glob, path, regex, range, length, present";
                Err(vec![self.wrong(what)])
            }
        }
    }

    /// Every test that is written, each compiled.
    fn tests(&self, says: Says, written: WrittenCondition) -> Result<Vec<Test>, Vec<Mistake>> {
        let mut tests = Vec::new();
        if let Some(value) = written.equals {
            tests.push(Test::Equals(self.below(&["equals"]).value(value)?));
        }
        if let Some(values) = written.one_of {
            let reader = self.below(&["one_of"]);
            if values.is_empty() {
                return Err(vec![reader.wrong("an empty list never matches")]);
            }
            tests.push(Test::OneOf(values.into_iter().map(|value| reader.value(value)).collect::<Result<_, _>>()?));
        }
        if let Some(patterns) = written.glob {
            tests.push(Test::Glob(self.below(&["glob"]).globs(&patterns.0, Of::Text)?));
        }
        if let Some(patterns) = written.path {
            tests.push(Test::Path(self.below(&["path"]).globs(&patterns.0, Of::Path)?));
        }
        if let Some(text) = written.regex {
            // A forgotten anchor must not open the gate.
            let whole = says != Says::Deny;
            let bad = |error: regex::Error| vec![self.below(&["regex"]).wrong(no_regex(&text, &error))];
            tests.push(Test::Regex(regex(&text, whole).map_err(bad)?));
        }
        if let Some(bounds) = written.range {
            tests.push(self.below(&["range"]).range(bounds)?);
        }
        if let Some(Bounds { min, max }) = written.length {
            let (least, most) = (min.unwrap_or(0), max.unwrap_or(usize::MAX));
            if (min.is_none() && max.is_none()) || least > most {
                return Err(vec![self.below(&["length"]).wrong(BAD_BOUNDS)]);
            }
            tests.push(Test::Length(least, most));
        }
        tests.extend(written.present.map(Test::Present));
        Ok(tests)
    }

    fn range(&self, Bounds { min, max }: Bounds<Value>) -> Result<Test, Vec<Mistake>> {
        let number = |value: Option<Value>| match value.map(|value| self.value(value)).transpose()? {
            Some(serde_json::Value::Number(number)) => Ok(Some(number)),
            Some(_) => Err(vec![self.wrong("\"min\" and \"max\" are numbers")]),
            None => Ok(None),
        };
        let (min, max): (Option<Number>, Option<Number>) = (number(min)?, number(max)?);
        let crossed = |(min, max): (&Number, &Number)| compare(min, max).is_none_or(std::cmp::Ordering::is_gt);
        if (min.is_none() && max.is_none()) || min.as_ref().zip(max.as_ref()).is_some_and(crossed) {
            return Err(vec![self.wrong(BAD_BOUNDS)]);
        }
        Ok(Test::Range(min, max))
    }

    /// A value of TOML as JSON has it. Numbers that are none are not there.
    fn value(&self, value: Value) -> Result<serde_json::Value, Vec<Mistake>> {
        match value {
            Value::Float(float) if !float.is_finite() => Err(vec![self.wrong("JSON has no such number")]),
            // As a call would have it.
            Value::Datetime(date) => Ok(date.to_string().into()),
            Value::Array(items) => {
                let items: Result<Vec<_>, _> = items.into_iter().map(|item| self.value(item)).collect();
                items.map(serde_json::Value::Array)
            }
            Value::Table(members) => {
                let members = members.into_iter().map(|(key, value)| Ok((key, self.value(value)?)));
                members.collect::<Result<serde_json::Map<_, _>, _>>().map(serde_json::Value::Object)
            }
            Value::String(text) => Ok(text.into()),
            Value::Integer(number) => Ok(number.into()),
            Value::Float(number) => Ok(number.into()),
            Value::Boolean(truth) => Ok(truth.into()),
        }
    }
}

const BAD_BOUNDS: &str = "write \"min\", \"max\" or both, and \"min\" not above \"max\": otherwise it never matches";

/// What is wrong with a regex, in one line: the library draws it with several.
fn no_regex(text: &str, error: &regex::Error) -> String {
    let why = error.to_string();
    let why = why.rsplit_once("error: ").map_or(why.as_str(), |(_, why)| why);
    format!("\"{text}\" is no regex: {}", why.trim())
}
