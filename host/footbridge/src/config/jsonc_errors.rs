//! What is wrong with a text that is no JSON with comments, and where, for whoever wrote it.
//!
//! Two mistakes show far behind their place: a text that is not ended in its line takes in what follows, and an object
//! that is not ended takes the brace of the one around it. The first is found by looking at texts alone, the second by
//! how lines are indented.

use jsonc_parser::errors::{ParseError, ParseErrorKind as Kind};

/// A mistake at a byte of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextMistake {
    pub(super) at: usize,
    pub(super) what: String,
}

impl TextMistake {
    /// The first one, if there is any; `parsed` is what the parser found.
    pub(super) fn first(text: &str, parsed: Option<&ParseError>) -> Option<Self> {
        let seen = Looked::at(text);
        let is_unended = |error: &&ParseError| matches!(error.kind(), Kind::UnterminatedObject);
        if seen.mistake.is_none()
            && let Some(error) = parsed.filter(is_unended)
        {
            return Some(seen.unended_object(error, text));
        }
        let found = parsed.map(|error| Self { at: error.range().start, what: worded(error, text) });
        match (seen.mistake, found) {
            (Some(of_text), Some(found)) if found.at < of_text.at && !parsed.is_some_and(is_late) => Some(found),
            (of_text, found) => of_text.or(found),
        }
    }
}

/// Whether the place of a mistake is where something began that was ended nowhere.
fn is_late(error: &ParseError) -> bool {
    matches!(error.kind(), Kind::UnterminatedObject | Kind::UnterminatedArray)
}

/// What a look at texts, comments and braces alone finds.
#[derive(Debug, Default)]
struct Looked {
    /// A character that no text may have.
    mistake: Option<TextMistake>,
    /// Where the first object begins that its lines end, by their indentation, and no brace.
    unended: Option<usize>,
}

/// An object or list that is not ended yet.
#[derive(Debug, Clone, Copy)]
struct Opened {
    at: usize,
    line: usize,
    indent: usize,
}

impl Looked {
    fn at(text: &str) -> Self {
        let bytes = text.as_bytes();
        let (mut seen, mut opened) = (Self::default(), Vec::<Opened>::new());
        let (mut at, mut line, mut line_start, mut is_first) = (0, 1, 0, true);
        // How far what is first in the line is indented, a comment too.
        let mut first_indent = None;
        while let Some(byte) = bytes.get(at) {
            let indent = at - line_start;
            match byte {
                b'\n' => (line, line_start, is_first, first_indent) = (line + 1, at + 1, true, None),
                b' ' | b'\t' | b'\r' => {}
                b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                    first_indent.get_or_insert(indent);
                    let end = comment_end(bytes, at);
                    line += bytes[at..end].iter().filter(|byte| **byte == b'\n').count();
                    at = end;
                    continue;
                }
                _ => {
                    if is_first {
                        seen.looks_at_first(*byte, indent, line, opened.last());
                    }
                    let line_indent = *first_indent.get_or_insert(indent);
                    match byte {
                        b'"' => match text_end(bytes, at) {
                            Ok(end) => at = end - 1,
                            Err(what) => {
                                seen.mistake = Some(TextMistake { at, what: format!("it does not parse: {what}") });
                                return seen;
                            }
                        },
                        b'{' | b'[' => opened.push(Opened { at, line, indent: line_indent }),
                        b'}' | b']' => drop(opened.pop()),
                        _ => {}
                    }
                    is_first = false;
                }
            }
            at += 1;
        }
        seen
    }

    /// Looks at the first character of a line: a name that stands as far left as the line in which its object begins
    /// does not belong to it, nor does a brace that stands further left.
    fn looks_at_first(&mut self, byte: u8, indent: usize, line: usize, within: Option<&Opened>) {
        let Some(within) = within.filter(|within| within.line != line) else { return };
        let is_outside = match byte {
            b'"' => indent <= within.indent && within.indent > 0,
            b'}' => indent < within.indent,
            _ => false,
        };
        if is_outside && self.unended.is_none() {
            self.unended = Some(within.at);
        }
    }

    fn unended_object(&self, error: &ParseError, text: &str) -> TextMistake {
        let what = "it does not parse: this object is not ended: \"}\" is missing";
        match self.unended {
            Some(at) => TextMistake { at, what: format!("{what}, as its lines are indented") },
            None => {
                let last = text.trim_end().matches('\n').count() + 1;
                TextMistake {
                    at: error.range().start,
                    what: format!("{what}, here or in one within; line {last} is the last"),
                }
            }
        }
    }
}

/// Behind the comment that begins here.
fn comment_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let end = match bytes.get(at + 1) {
        Some(b'*') => rest.windows(2).skip(2).position(|two| two == b"*/").map(|found| found + 4),
        _ => rest.iter().position(|byte| *byte == b'\n'),
    };
    at + end.unwrap_or(rest.len())
}

/// Behind the text that begins here, or what is wrong with it.
fn text_end(bytes: &[u8], start: usize) -> Result<usize, &'static str> {
    let mut at = start + 1;
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at += 2,
            None => return Err("this text is not ended: \" is missing"),
            Some(b'\n' | b'\r') => {
                return Err(
                    "this text is not ended in its line: \" is missing, or \\n where it is to have a line break",
                );
            }
            Some(0..=0x1f) => return Err("this text has a control character, as a tab is: write it as \\t or \\u0000"),
            Some(_) => at += 1,
        }
    }
}

/// What is wrong, and what is expected instead.
fn worded(error: &ParseError, text: &str) -> String {
    let rest = text.get(error.range().start..).unwrap_or_default();
    let rest = rest.trim_start_matches([' ', '\t', '\r']);
    let found = match rest.chars().next() {
        None => "the end of the file".to_owned(),
        Some('\n') => "the end of the line".to_owned(),
        Some('"') => "a text".to_owned(),
        Some(found) => format!("{found:?}").replace('\'', "\""),
    };
    let expected = match error.kind() {
        Kind::ExpectedColonAfterObjectKey => format!("expected \":\" after the name, not {found}"),
        Kind::ExpectedObjectValue => "expected a value after \":\"".to_owned(),
        Kind::ExpectedComma => format!("expected \",\" between two values, not {found}"),
        Kind::ExpectedStringObjectProperty | Kind::UnexpectedTokenInObject => {
            format!("expected a name in double quotes, or \"}}\", not {found}")
        }
        Kind::MultipleRootJsonValues => format!("expected nothing more after the value, not {found}"),
        Kind::SingleQuotedStringsNotAllowed => "texts and names are in double quotes".to_owned(),
        Kind::UnterminatedArray => "this list is not ended: \"]\" is missing".to_owned(),
        Kind::UnterminatedObject => "this object is not ended: \"}\" is missing".to_owned(),
        Kind::UnterminatedCommentBlock => "this comment is not ended: \"*/\" is missing".to_owned(),
        Kind::NestingDepthExceeded => "it is nested too deep".to_owned(),
        Kind::UnexpectedCloseBrace
        | Kind::UnexpectedCloseBracket
        | Kind::UnexpectedColon
        | Kind::UnexpectedComma
        | Kind::UnexpectedToken
        | Kind::UnexpectedWord => {
            format!(
                "expected a value (a text in double quotes, a number, true, false, null, \"{{\" or \"[\"), not {found}"
            )
        }
        other => of_a_text(&other.to_string()),
    };
    format!("it does not parse: {expected}")
}

/// What is wrong within a text or a number.
fn of_a_text(told: &str) -> String {
    if told.starts_with("Invalid escape") {
        return "a backslash in a text begins an escape: write \\\\ for a backslash itself, as in C:\\\\Users"
            .to_owned();
    }
    let mut chars = told.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
