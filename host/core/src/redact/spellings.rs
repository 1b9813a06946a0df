//! The ways in which programs write a text down: JSON, base64, percent and hexadecimal.
//!
//! Not among them: a text in parts, compressed or encrypted, base64 broken into lines, hexadecimal with separators, or
//! one encoding in another one.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};

/// All spellings of a text, itself too.
pub(super) fn all(plain: &str) -> Vec<String> {
    let mut found = vec![plain.to_owned()];
    found.extend(in_json(plain));
    found.extend(in_base64(plain.as_bytes()));
    found.extend(in_percent(plain));
    found.push(plain.bytes().map(|byte| format!("{byte:02x}")).collect());
    found.push(plain.bytes().map(|byte| format!("{byte:02X}")).collect());
    found
}

/// How encoders write it inside JSON: they differ in slashes, in what is not ASCII, and in what HTML would read; some
/// escape everything, and some write JSON in a text of JSON.
fn in_json(plain: &str) -> Vec<String> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let minimal = quoted(plain);
    let twice = quoted(&minimal);
    let minimal = &minimal[1..minimal.len() - 1];
    // Without the quotes of the outer text, and those of the inner one with their backslashes.
    let mut found = vec![minimal.to_owned(), twice[3..twice.len() - 3].to_owned()];
    for html in [false, true] {
        for slash in [false, true] {
            for upper in [false, true] {
                let escapes = Escapes { html, slash, upper };
                found.push(minimal.chars().map(|c| escapes.spelled(c)).collect());
                found.push(minimal.chars().map(|c| escapes.spelled_ascii(c)).collect());
            }
        }
    }
    for upper in [false, true] {
        found.push(plain.encode_utf16().map(|code| unit(code, upper)).collect());
    }
    found
}

/// What an encoder of JSON escapes that it need not, and whether its digits are in upper case.
#[derive(Clone, Copy)]
struct Escapes {
    html: bool,
    slash: bool,
    upper: bool,
}

impl Escapes {
    fn spelled(self, c: char) -> String {
        match c {
            '<' | '>' | '&' | '\'' if self.html => unit(u16::try_from(u32::from(c)).unwrap_or_default(), self.upper),
            '/' if self.slash => "\\/".to_owned(),
            c => c.to_string(),
        }
    }

    fn spelled_ascii(self, c: char) -> String {
        if c.is_ascii() {
            return self.spelled(c);
        }
        c.encode_utf16(&mut [0; 2]).iter().map(|code| unit(*code, self.upper)).collect()
    }
}

fn unit(code: u16, upper: bool) -> String {
    if upper { format!("\\u{code:04X}") } else { format!("\\u{code:04x}") }
}

/// Base64 of both alphabets, with and without padding, and what it has in common wherever it stands in a longer text.
fn in_base64(bytes: &[u8]) -> Vec<String> {
    let mut found = vec![STANDARD.encode(bytes), URL_SAFE.encode(bytes)];
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        found.push(engine.encode(bytes));
        for before in 0..3 {
            let text = engine.encode([&[0; 2][..before], bytes].concat());
            // Its first characters hold bits of what is before it, and the last one those of what follows.
            let start = (before * 8).div_ceil(6);
            let end = (before + bytes.len()) * 8 / 6;
            found.push(text[start..end].to_owned());
        }
    }
    let slashes: Vec<String> =
        found.iter().filter(|text| text.contains('/')).map(|text| text.replace('/', "\\/")).collect();
    found.extend(slashes);
    found
}

/// Percent encoding: encoders differ in what they leave as it is, and in the case of digits.
fn in_percent(plain: &str) -> Vec<String> {
    const LEFT: [&str; 6] = ["-._~", "-_.!~*'()", "-._~/", "-_.!~*'();/?:@&=+$,#", "*-._", ""];
    let mut found = Vec::new();
    for left in LEFT {
        for (upper, plus) in [(false, false), (true, false), (false, true), (true, true)] {
            let one = |byte: u8| match byte {
                b' ' if plus => "+".to_owned(),
                _ if byte.is_ascii_alphanumeric() || left.contains(char::from(byte)) && byte.is_ascii() => {
                    char::from(byte).to_string()
                }
                _ if upper => format!("%{byte:02X}"),
                _ => format!("%{byte:02x}"),
            };
            found.push(plain.bytes().map(one).collect());
        }
    }
    for upper in [false, true] {
        let one = |byte: u8| if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
        found.push(plain.bytes().map(one).collect());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_common_to_base64_at_an_offset_is_all_of_it_but_the_edges() {
        let secret = b"correct horse";
        let found = in_base64(secret);
        for before in ["", "a", "ab", "abc", "abcd"] {
            for after in ["", "y", "yz"] {
                let text = STANDARD.encode([before.as_bytes(), secret, after.as_bytes()].concat());
                let core = found.iter().filter(|one| text.contains(one.as_str())).map(String::len).max();
                assert!(core.is_some_and(|length| length + 2 >= secret.len() * 8 / 6), "{before} {after} {core:?}");
            }
        }
    }
}
