//! Arguments and times as they are typed.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use footbridge_proto::{json::JsonMistake, vars::MAX_TIMEOUT_MS, wire::MOST_REQUEST_BYTES};
use serde_json::value::RawValue;

use crate::blocking::Blocking;

/// Characters of an object without an end that is given back, as the public command does with each.
const SHOWN: usize = 5;
/// Milliseconds of each unit of time; the longer one of two that end alike comes first.
const UNITS: [(&str, f64); 4] = [("ms", 1.0), ("s", 1_000.0), ("m", 60_000.0), ("", 1.0)];

/// Why typed arguments are none.
#[derive(Debug, thiserror::Error)]
pub enum BadTypedArguments {
    /// They are no JSON object.
    #[error("invalid JSON arguments: {0}")]
    NotAnObject(BadJson),
    /// They cannot be read.
    #[error("cannot read the arguments from standard input: {0}")]
    Stdin(io::Error),
    /// Their file cannot be read.
    #[error("cannot read the arguments from {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// They are more than a call takes.
    #[error("the arguments {0} have more than {1} bytes, which is more than can be sent: make them smaller")]
    TooLarge(String, usize),
}

/// What is wrong with arguments.
#[derive(Debug)]
pub enum BadJson {
    /// All of them: the few characters of an object without an end.
    Whole(String),
    /// The first mistake.
    At(JsonMistake),
    /// They are of another kind than an object.
    NoObject(&'static str),
}

impl fmt::Display for BadJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(text) => f.write_str(text),
            Self::At(mistake) => mistake.fmt(f),
            Self::NoObject(kind) => write!(f, "an object is needed, in {{ and }}, and this is {kind}"),
        }
    }
}

/// A time that is none.
#[derive(Debug, thiserror::Error)]
pub enum BadTimeout {
    /// It is not written as a time.
    #[error("\"{0}\" is no timeout: write 5s, 2m, 500ms or a number of milliseconds, from 1ms to 300s")]
    Written(String),
    /// It is beyond the most.
    #[error("the timeout {0} is beyond the most, 300s; a number without a unit is milliseconds")]
    TooLong(String),
}

/// The arguments' text, that of standard input for `-`, or of a file for `@FILE`, checked to be a JSON object (or null, which counts as an
/// empty one) and otherwise untouched.
///
/// # Errors
/// [`BadTypedArguments`].
pub fn arguments(typed: String) -> Result<Box<RawValue>, BadTypedArguments> {
    let text = match typed.strip_prefix('@') {
        _ if typed == "-" => stdin()?,
        Some(path) => file(Path::new(path))?,
        None => typed,
    };
    // Editors of some systems put a mark in front, which says nothing and is no part of JSON.
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    match RawValue::from_string(text.trim().to_owned()) {
        Ok(raw) if raw.get().starts_with('{') || raw.get() == "null" => {
            match JsonMistake::check_strictly(text.trim_end()) {
                Ok(()) => Ok(raw),
                Err(mistake) => Err(BadTypedArguments::NotAnObject(BadJson::At(mistake))),
            }
        }
        read => Err(BadTypedArguments::NotAnObject(mistake(text, read.err()))),
    }
}

/// All of standard input, within the limit of a request.
///
/// # Errors
/// [`BadTypedArguments`].
pub fn stdin() -> Result<String, BadTypedArguments> {
    let text = within_limit(Blocking(io::stdin().lock())).map_err(BadTypedArguments::Stdin)?;
    text.ok_or_else(|| BadTypedArguments::TooLarge("on standard input".to_owned(), MOST_REQUEST_BYTES))
}

/// All of a file, within the limit of a request.
///
/// # Errors
/// [`BadTypedArguments`].
pub fn file(path: &Path) -> Result<String, BadTypedArguments> {
    let text = File::open(path).and_then(within_limit);
    let text = text.map_err(|source| BadTypedArguments::File { path: path.to_owned(), source })?;
    text.ok_or_else(|| BadTypedArguments::TooLarge(format!("in {}", path.display()), MOST_REQUEST_BYTES))
}

/// Nothing where it is too long.
fn within_limit(input: impl Read) -> io::Result<Option<String>> {
    let limit = u64::try_from(MOST_REQUEST_BYTES).unwrap_or(u64::MAX);
    let mut text = Vec::new();
    input.take(limit + 1).read_to_end(&mut text)?;
    if text.len() > MOST_REQUEST_BYTES {
        return Ok(None);
    }
    String::from_utf8(text).map(Some).map_err(|error| io::Error::other(error.utf8_error()))
}

/// A timeout, from a millisecond to the most that there is: milliseconds unless it says otherwise, as the public
/// command has it.
///
/// # Errors
/// [`BadTimeout`].
pub fn timeout(text: &str) -> Result<Duration, BadTimeout> {
    let wrong = || BadTimeout::Written(text.to_owned());
    let split = UNITS.iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, ms)));
    let (number, ms) = split.ok_or_else(wrong)?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(wrong());
    }
    let ms: f64 = number.parse::<f64>().map_err(|_| wrong())? * ms;
    if ms < 1.0 {
        return Err(wrong());
    }
    if ms > MAX_TIMEOUT_MS as f64 {
        return Err(BadTimeout::TooLong(text.to_owned()));
    }
    Ok(Duration::from_secs_f64(ms / 1000.0))
}

fn mistake(text: String, error: Option<serde_json::Error>) -> BadJson {
    let trimmed = text.trim();
    let Some(error) = error.filter(|_| trimmed.starts_with('{')) else { return BadJson::NoObject(kind(trimmed)) };
    if text.chars().nth(SHOWN).is_none() && !text.contains('\n') && !trimmed.ends_with('}') {
        return BadJson::Whole(text);
    }
    BadJson::At(JsonMistake::of(&text, &error))
}

fn kind(text: &str) -> &'static str {
    match text.bytes().next() {
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b'-' | b'0'..=b'9') => "a number",
        None => "empty",
        _ if ["true", "false"].contains(&text) => "true or false",
        _ => "another text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_milliseconds_unless_it_says_otherwise() {
        for (text, ms) in [
            ("5s", 5_000),
            ("500ms", 500),
            ("60000", 60_000),
            ("1", 1),
            ("0.5s", 500),
            ("2m", 120_000),
            ("1.5m", 90_000),
            ("300s", 300_000),
            ("300000", 300_000),
        ] {
            assert_eq!(timeout(text).unwrap(), Duration::from_millis(ms), "{text}");
        }
        for text in ["0", "0.5", "", "s", "m", "-1", "1h", "1e3", "nan", "1.2.3", "1 s", "5S"] {
            assert!(matches!(timeout(text), Err(BadTimeout::Written(_))), "{text}");
        }
        for text in ["300001", "301s", "6m"] {
            assert!(matches!(timeout(text), Err(BadTimeout::TooLong(_))), "{text}");
        }
    }

    #[test]
    fn arguments_are_one_object_or_null() {
        assert_eq!(arguments(" {\"a\": 1.50}\n".to_owned()).unwrap().get(), "{\"a\": 1.50}");
        assert_eq!(arguments("null".to_owned()).unwrap().get(), "null");
        assert_eq!(arguments("\u{feff}{}\n".to_owned()).unwrap().get(), "{}");
        for text in ["", "[]", "1", "{", "{} {}"] {
            assert!(matches!(arguments(text.to_owned()), Err(BadTypedArguments::NotAnObject(_))), "{text}");
        }
    }

    fn refused(text: &str) -> String {
        let Err(BadTypedArguments::NotAnObject(bad)) = arguments(text.to_owned()) else { panic!("{text} was taken") };
        bad.to_string()
    }

    #[test]
    fn a_mistake_is_told_by_its_place() {
        let value = "expected a value: a text in double quotes, a number, true, false, null, { or [";
        for (text, told) in [
            (r#"{"city": "Bern", "days" 3}"#, "line 1, column 25: expected `:`"),
            (r#"  {"city": "Zürich", days: 3}"#, "line 1, column 22: expected a name in double quotes"),
            ("{\n  \"city\": \"Zürich\",\n  \"days\": 3,\n}", "line 4, column 1: expected a name in double quotes"),
            ("\n\n{\n\"a\": x\n}", &format!("line 4, column 6: {value}")),
            (r#"{"d": tomorrow}"#, &format!("line 1, column 7: {value}")),
            (r#"{"d": nö}"#, &format!("line 1, column 7: {value}")),
            ("{'city': 'Bern'}", "line 1, column 2: expected a name in double quotes"),
            (r#"{"city": "Bern""#, "line 1, column 15: it ends before the object does"),
            (r#"{"city": "Bern"} x"#, "line 1, column 18: expected nothing more after the object"),
            ("{d}", "line 1, column 2: expected a name in double quotes"),
            ("{'d': 1}", "line 1, column 2: expected a name in double quotes"),
            ("{} {}", "line 1, column 4: expected nothing more after the object"),
            ("{\"a\": -}", "line 1, column 8: expected a number, as in -1, 2.5 or 1e3"),
        ] {
            assert_eq!(refused(text), told, "{text}");
        }
        for (text, told) in [
            (r#"{"q":"a","ü":{},"q":"b"}"#, "line 1, column 17: this name is there twice in its object"),
            ("\n{\"b\": {\"c\": 1,\n  \"c\": 2}}", "line 3, column 3: this name is there twice in its object"),
            (r#"{"a": "\ud800"}"#, "line 1, column 8: this escape is half of a surrogate pair"),
        ] {
            assert_eq!(refused(text), told, "{text}");
        }
        for (text, place, word) in [
            ("{\"a\": \"one\ntwo\"}", "line 1, column 11: ", "write \\n for a line break"),
            ("{\"a\": \"one\ttwo\"}", "line 1, column 11: ", "control character"),
            (r#"{"a": "C:\Users"}"#, "line 1, column ", "write \\\\ for a backslash itself"),
            (r#"{"a": "\u12"}"#, "line 1, column ", "a backslash begins an escape"),
        ] {
            let told = refused(text);
            assert!(told.starts_with(place) && told.contains(word), "{text}: {told}");
        }
    }

    #[test]
    fn what_is_no_object_is_named_by_its_kind() {
        for (text, kind) in [
            ("[1, 2, 3, 4, 5]", "a list"),
            ("[1", "a list"),
            ("\"Bern in winter\"", "a text"),
            ("-7", "a number"),
            ("true", "true or false"),
            ("nope", "another text"),
            (" \n", "empty"),
        ] {
            assert_eq!(refused(text), format!("an object is needed, in {{ and }}, and this is {kind}"), "{text}");
        }
    }

    #[test]
    fn only_a_short_object_without_an_end_is_given_back() {
        for text in ["{nope", "{", "{\"a\""] {
            assert_eq!(refused(text), text);
        }
        let long = format!("{{\"a\": \"{}\", b}}", "x".repeat(200_000));
        assert_eq!(refused(&long), "line 1, column 200011: expected a name in double quotes");
    }

    #[test]
    fn objects_and_null_are_taken_as_they_are() {
        for text in ["{}", " {\"n\": 1.50}\n", "null"] {
            assert_eq!(arguments(text.to_owned()).unwrap().get(), text.trim());
        }
    }
}
