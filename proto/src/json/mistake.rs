//! What is wrong with a text that is no JSON, or not the JSON that is expected, in our own words and with its place:
//! those of the library are for whoever writes programs.

use std::fmt;

use serde_json::error::Category;

use super::JsonError;

/// What may stand for a value.
const VALUE: &str = "expected a value: a text in double quotes, a number, true, false, null, { or [";
/// What may stand in no text.
const CONTROL: &str = "a line break or another control character in a text: write \\n for a line break";

/// The first mistake of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonMistake {
    /// Its line, counted from 1.
    pub line: usize,
    /// Its column, counted from 1 in characters.
    pub column: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for JsonMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, what } = self;
        write!(f, "line {line}, column {column}: {what}")
    }
}

impl JsonMistake {
    /// The first mistake of a text, of which the blanks around it were not read.
    #[must_use]
    pub fn of(text: &str, error: &serde_json::Error) -> Self {
        // Lines and columns are of the text without the blanks around it, and columns are bytes.
        let start = text.len() - text.trim_start().len();
        let line_start = match error.line() {
            0 | 1 => start,
            line => text[start..].match_indices('\n').nth(line - 2).map_or(start, |(at, _)| start + at + 1),
        };
        let what = what(text, error);
        // The library stops before a control character, and behind all else.
        let behind = usize::from(what != CONTROL);
        let at = (line_start + error.column()).saturating_sub(behind).clamp(start, text.len());
        let mut before = &text[..text.floor_char_boundary(at)];
        if what == VALUE {
            before = before.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
        }
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { line: before.matches('\n').count() + 1, column, what }
    }
}

impl JsonMistake {
    /// What is wrong with a text that other parsers take, such as a name that is there twice. One that is deeper than any
    /// body may be is refused elsewhere, by that.
    ///
    /// # Errors
    /// The mistake.
    pub fn check_strictly(text: &str) -> Result<(), Self> {
        let (at, what) = match super::check(text.as_bytes(), super::MAX_BODY_DEPTH) {
            Ok(_) => return Ok(()),
            Err(JsonError::DuplicateName(at)) => (at, "this name is there twice in its object"),
            Err(JsonError::LoneSurrogate(at)) => (at, "this escape is half of a surrogate pair"),
            Err(JsonError::Syntax(at)) => (at, "this is no JSON"),
            Err(JsonError::NotUtf8 | JsonError::TooDeep(_)) => return Ok(()),
        };
        let before = &text[..text.floor_char_boundary(at)];
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Err(Self { line: before.matches('\n').count() + 1, column, what: what.to_owned() })
    }
}

/// What is wrong, without its place.
fn what(of: &str, error: &serde_json::Error) -> String {
    if error.classify() == Category::Eof {
        return format!("it ends before the {} does", kind(of));
    }
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    let name = |before: &str| text.strip_prefix(before)?.split('`').next();
    if let Some(name) = name("missing field `") {
        return format!("\"{name}\" is missing");
    }
    if let Some(name) = name("duplicate field `") {
        return format!("\"{name}\" is there twice");
    }
    match text {
        "key must be a string" | "expected `\"`" => "expected a name in double quotes",
        "expected value" | "expected ident" => VALUE,
        "invalid escape" => "a backslash begins an escape: write \\\\ for a backslash itself",
        "invalid number" => "expected a number, as in -1, 2.5 or 1e3",
        "trailing characters" => return format!("expected nothing more after the {}", kind(of)),
        "trailing comma" => "expected another value after the comma",
        control if control.starts_with("control character") => CONTROL,
        unicode if ["code point", "surrogate", "hex escape"].iter().any(|part| unicode.contains(part)) => {
            "expected four hexadecimal digits after \\u, and two such for a character that takes a pair"
        }
        wrong if wrong.starts_with("invalid length") => "expected an object, in { and }",
        wrong if wrong.starts_with("invalid type") => match wrong.rsplit_once("expected ").map_or(wrong, |(_, e)| e) {
            "a string" => "expected a text in double quotes",
            "a boolean" => "expected true or false",
            "a sequence" => "expected a list, in [ and ]",
            object if object == "a map" || object.starts_with("struct") => "expected an object, in { and }",
            other => return format!("expected {other}"),
        },
        other => other,
    }
    .to_owned()
}

/// What the text holds, by how it begins.
fn kind(text: &str) -> &'static str {
    match text.trim_start().bytes().next() {
        Some(b'{') => "object",
        Some(b'[') => "list",
        _ => "value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_of_the_library_is_in_what_is_told_of_a_line() {
        #[derive(Debug, serde::Deserialize)]
        #[expect(dead_code, reason = "what it has to hold is read alone")]
        struct Line {
            server: String,
            tool: Option<String>,
            flag: Option<bool>,
            list: Option<Vec<String>>,
        }
        for (text, told) in [
            ("{}", "\"server\" is missing"),
            (r#"{"server": 5}"#, "expected a text in double quotes"),
            (r#"{"server": "a", "server": "b"}"#, "\"server\" is there twice"),
            ("7", "expected an object, in { and }"),
            (
                r#"{"server": "\ud800"}"#,
                "expected four hexadecimal digits after \\u, and two such for a character that takes a pair",
            ),
            (r#"{"server": "a",}"#, "expected another value after the comma"),
            ("[\"a\", null, null, null] c", "expected nothing more after the list"),
            ("[\"a\"]", "expected an object, in { and }"),
            ("[\"a\",", "it ends before the list does"),
            (r#"{"server": "a", "flag": "yes"}"#, "expected true or false"),
            (r#"{"server": "a", "list": {}}"#, "expected a list, in [ and ]"),
        ] {
            let error = serde_json::from_str::<Line>(text).unwrap_err();
            assert_eq!(JsonMistake::of(text, &error).what, told, "{text}");
        }
    }
}
