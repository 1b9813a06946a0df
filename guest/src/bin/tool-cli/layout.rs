//! JSON text laid out anew without reading it into values: indented as `JSON.stringify(x, null, 2)` does, or on one
//! line.
//!
//! Numbers keep the text they came with, so none loses digits; strings get the fewest escapes, as the public client
//! prints them. It takes no stack for nesting. The text must be JSON (it comes out of a `RawValue`).

use footbridge_proto::json::{Part, Tokens};
use serde_json::value::RawValue;

/// Two blanks a level, a member a line, empty containers as `{}` and `[]`.
pub(crate) fn indented(raw: &RawValue) -> String {
    lay_out(raw.get(), true)
}

/// No white space at all.
pub(crate) fn one_line(raw: &RawValue) -> String {
    lay_out(raw.get(), false)
}

fn lay_out(text: &str, indent: bool) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut depth = 0_usize;
    let line = |out: &mut String, depth: usize| {
        if indent {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        }
    };
    let mut tokens = Tokens::of(text).peekable();
    while let Some((kind, place)) = tokens.next() {
        let token = &text[place];
        match kind {
            Part::Open => {
                out.push_str(token);
                if let Some((_, close)) = tokens.next_if(|(kind, _)| *kind == Part::Close) {
                    out.push_str(&text[close]);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            Part::Close => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push_str(token);
            }
            Part::Comma => {
                out.push(',');
                line(&mut out, depth);
            }
            Part::Colon => out.push_str(if indent { ": " } else { ":" }),
            Part::StringStart => push_string(&mut out, token),
            _ => out.push_str(token),
        }
    }
    out
}

/// A string with the fewest escapes; one that no Unicode text can hold (half a surrogate pair) stays as it is.
fn push_string(out: &mut String, quoted: &str) {
    if !quoted.contains('\\') {
        out.push_str(quoted);
        return;
    }
    let plain: Option<String> = serde_json::from_str(quoted).ok();
    match plain.and_then(|text| serde_json::to_string(&text).ok()) {
        Some(text) => out.push_str(&text),
        None => out.push_str(quoted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
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
