//! JSON text laid out anew without reading it into values: indented as `JSON.stringify(x, null, 2)` does, or on one
//! line.
//!
//! Numbers keep the text they came with, so none loses digits; strings get the fewest escapes, as the public client
//! prints them. It takes no stack for nesting. The text must be JSON (it comes out of a `RawValue`).

use std::fmt;

use footbridge_proto::json::{MAX_RESULT_DEPTH, Part, Scanner, Tokens};
use serde_json::value::RawValue;

/// Two blanks a level, a member a line, empty containers as `{}` and `[]`. It is written as it is made: indentation may
/// be many times the text. What is nested deeper than any result may be is written as it came.
///
/// # Errors
/// When `out` takes no more.
pub fn write_indented(raw: &RawValue, out: &mut dyn fmt::Write) -> fmt::Result {
    if is_deep(raw.get()) { out.write_str(raw.get()) } else { lay_out(raw.get(), true, out) }
}

/// No white space at all.
#[must_use]
pub fn one_line(raw: &RawValue) -> String {
    let mut out = String::with_capacity(raw.get().len());
    // Nothing fails in memory.
    let _ = lay_out(raw.get(), false, &mut out);
    out
}

fn is_deep(text: &str) -> bool {
    let mut scanner = Scanner::default();
    text.bytes().any(|byte| {
        scanner.step(byte);
        scanner.depth() > MAX_RESULT_DEPTH
    })
}

fn lay_out(text: &str, indent: bool, out: &mut dyn fmt::Write) -> fmt::Result {
    let mut depth = 0_usize;
    let line =
        |out: &mut dyn fmt::Write, depth: usize| if indent { write!(out, "\n{:1$}", "", depth * 2) } else { Ok(()) };
    let mut tokens = Tokens::of(text).peekable();
    while let Some((kind, place)) = tokens.next() {
        let token = &text[place];
        match kind {
            Part::Open => {
                out.write_str(token)?;
                if let Some((_, close)) = tokens.next_if(|(kind, _)| *kind == Part::Close) {
                    out.write_str(&text[close])?;
                } else {
                    depth += 1;
                    line(out, depth)?;
                }
            }
            Part::Close => {
                depth = depth.saturating_sub(1);
                line(out, depth)?;
                out.write_str(token)?;
            }
            Part::Comma => {
                out.write_str(",")?;
                line(out, depth)?;
            }
            Part::Colon => out.write_str(if indent { ": " } else { ":" })?,
            Part::StringStart => write_string(out, token)?,
            _ => out.write_str(token)?,
        }
    }
    Ok(())
}

/// A string with the fewest escapes; one that no Unicode text can hold (half a surrogate pair) stays as it is.
fn write_string(out: &mut dyn fmt::Write, quoted: &str) -> fmt::Result {
    if !quoted.contains('\\') {
        return out.write_str(quoted);
    }
    let plain: Option<String> = serde_json::from_str(quoted).ok();
    match plain.and_then(|text| serde_json::to_string(&text).ok()) {
        Some(text) => out.write_str(&text),
        None => out.write_str(quoted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn indented(raw: &RawValue) -> String {
        let mut out = String::new();
        write_indented(raw, &mut out).unwrap();
        out
    }

    #[test]
    fn what_is_nested_deeper_than_a_result_may_be_stays_as_it_is() {
        let nested = |n: usize| format!("{}{}", "[ ".repeat(n), "]".repeat(n));
        let (deepest, deeper) = (nested(MAX_RESULT_DEPTH), nested(MAX_RESULT_DEPTH + 1));
        assert_eq!(indented(&raw(&deepest)).lines().count(), 2 * MAX_RESULT_DEPTH - 1);
        assert_eq!(indented(&raw(&deeper)), deeper);
    }

    #[test]
    fn indented_as_javascript_does() {
        let text = r#"{ "a":[1, {"b" : {}} ,[ ]],"c":"x,{}\"y", "d":null}"#;
        let expected = "{\n  \"a\": [\n    1,\n    {\n      \"b\": {}\n    },\n    []\n  ],\n  \"c\": \"x,{}\\\"y\",\n  \"d\": null\n}";
        assert_eq!(indented(&raw(text)), expected);
        assert_eq!(one_line(&raw(text)), r#"{"a":[1,{"b":{}},[]],"c":"x,{}\"y","d":null}"#);
    }

    #[test]
    fn numbers_keep_their_text_and_strings_lose_needless_escapes() {
        let text = r#"[12345678901234567890123, 1.50, -0, "\u00fc\/\u0001\ud83c\udf88", "\ud800"]"#;
        assert_eq!(one_line(&raw(text)), "[12345678901234567890123,1.50,-0,\"ü/\\u0001🎈\",\"\\ud800\"]");
    }

    #[test]
    fn nesting_takes_no_stack() {
        let text = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(one_line(&raw(&text)), text);
    }
}
