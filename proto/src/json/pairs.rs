//! Halves of surrogate pairs in a text that is handed on.

use serde_json::value::RawValue;

/// What stands in place of what is no character.
const REPLACEMENT: &[u8; 4] = b"fffd";

/// The same text, where each escape of half a surrogate pair is one of U+FFFD: RFC 8259 allows the halves and says that
/// readers differ (section 8.2), and some end at them. It is as long as before.
#[must_use]
pub fn with_whole_pairs(text: Box<RawValue>) -> Box<RawValue> {
    // Nearly always, and quickly found out of a large one.
    if !text.get().contains("\\u") {
        return text;
    }
    let halves = halves(text.get().as_bytes());
    if halves.is_empty() {
        return text;
    }
    let mut bytes = text.get().as_bytes().to_vec();
    for at in halves {
        bytes[at + 2..at + 6].copy_from_slice(REPLACEMENT);
    }
    // ASCII in place of ASCII, four digits for four.
    let whole = String::from_utf8(bytes).ok().and_then(|whole| RawValue::from_string(whole).ok());
    whole.unwrap_or(text)
}

/// Where the escapes of halves begin.
fn halves(bytes: &[u8]) -> Vec<usize> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(ahead) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\\')) {
        at += ahead;
        at += match (unit(bytes, at), unit(bytes, at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (Some(0xd800..0xe000), _) => {
                found.push(at);
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
    }
    found
}

/// The code unit of the escape that begins here.
fn unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_all_else_stays() {
        for (text, whole) in [
            (r#""\ud800""#, r#""\ufffd""#),
            (r#""\uDC00 \ud83d\ude00\ud83d""#, r#""\ufffd \ud83d\ude00\ufffd""#),
            (
                r#"{"\ud800\ud800\udc00":"\\ud800 \\\ud800 \"\u00e9"}"#,
                r#"{"\ufffd\ud800\udc00":"\\ud800 \\\ufffd \"\u00e9"}"#,
            ),
            (r#"["\u0041\udfff"]"#, r#"["\u0041\ufffd"]"#),
            (r#""\udead\u0041""#, r#""\ufffd\u0041""#),
        ] {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            assert_eq!(with_whole_pairs(raw).get(), whole, "{text}");
        }
    }
}
