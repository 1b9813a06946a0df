//! JSON text laid out anew without reading it into values: indented as `JSON.stringify(x, null, 2)` does, or on one
//! line.
//!
//! Numbers keep the text they came with, so none loses digits; strings get the fewest escapes, as the public client
//! prints them. It takes no stack for nesting. The text must be JSON (it comes out of a `RawValue`).

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
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let (mut at, mut depth) = (0, 0);
    let line = |out: &mut String, depth: usize| {
        if indent {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        }
    };
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => at += 1,
            b'{' | b'[' => {
                out.push(char::from(*byte));
                at = skip_space(bytes, at + 1);
                if let Some(close @ (b'}' | b']')) = bytes.get(at) {
                    out.push(char::from(*close));
                    at += 1;
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(char::from(*byte));
                at += 1;
            }
            b',' => {
                out.push(',');
                line(&mut out, depth);
                at += 1;
            }
            b':' => {
                out.push_str(if indent { ": " } else { ":" });
                at += 1;
            }
            b'"' => {
                let end = string_end(bytes, at);
                push_string(&mut out, &text[at..end]);
                at = end;
            }
            _ => {
                let end = at + bytes[at..].iter().take_while(|b| !b" \t\n\r,]}".contains(b)).count();
                out.push_str(&text[at..end]);
                at = end;
            }
        }
    }
    out
}

fn skip_space(bytes: &[u8], from: usize) -> usize {
    from + bytes[from..].iter().take_while(|b| b" \t\n\r".contains(b)).count()
}

/// Just after the closing quote of the string that starts at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
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
