//! Token shapes: text that is a credential by its looks, whoever made it.
//!
//! A shape is a prefix that services put before their tokens and enough of the right characters behind it. This is a
//! net under the values of configured secrets, not a promise: a password has no shape.

use std::{borrow::Cow, sync::OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};

use super::MARK;

/// What may come after a prefix, and how much of it there must be.
enum Rest {
    /// Letters, digits, `_` and `-`.
    Word(usize),
    /// As many upper-case letters and digits, and no more.
    Upper(usize),
    /// Three parts with dots between them.
    Jwt,
    /// What HTTP calls token68, with something in it that no plain word has. The prefix stays.
    Credentials(usize),
    /// Up to the end of a PEM block.
    Pem,
    /// A name, a colon and a password before an `@`.
    UserInfo,
}

const SHAPES: [(&str, Rest); 34] = [
    ("fbt_", Rest::Word(20)),
    ("sk-", Rest::Word(20)),
    ("sk_live_", Rest::Word(16)),
    ("sk_test_", Rest::Word(16)),
    ("rk_live_", Rest::Word(16)),
    ("whsec_", Rest::Word(16)),
    ("ghp_", Rest::Word(30)),
    ("gho_", Rest::Word(30)),
    ("ghu_", Rest::Word(30)),
    ("ghs_", Rest::Word(30)),
    ("ghr_", Rest::Word(30)),
    ("github_pat_", Rest::Word(20)),
    ("glpat-", Rest::Word(16)),
    ("xoxb-", Rest::Word(10)),
    ("xoxp-", Rest::Word(10)),
    ("xoxa-", Rest::Word(10)),
    ("xoxs-", Rest::Word(10)),
    ("xapp-", Rest::Word(10)),
    ("npm_", Rest::Word(30)),
    ("pypi-", Rest::Word(30)),
    ("hf_", Rest::Word(30)),
    ("dop_v1_", Rest::Word(30)),
    ("shpat_", Rest::Word(30)),
    ("AIza", Rest::Word(35)),
    ("AKIA", Rest::Upper(16)),
    ("ASIA", Rest::Upper(16)),
    ("eyJ", Rest::Jwt),
    ("Bearer ", Rest::Credentials(12)),
    ("bearer ", Rest::Credentials(12)),
    ("BEARER ", Rest::Credentials(12)),
    ("Basic ", Rest::Credentials(12)),
    ("basic ", Rest::Credentials(12)),
    ("-----BEGIN ", Rest::Pem),
    ("://", Rest::UserInfo),
];

/// The text without what has the shape of a token; borrowed when there is none.
#[must_use]
pub fn hide(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    let Some(finder) = finder() else { return Cow::Borrowed(text) };
    // Up to where nothing that begins can be a token of three parts.
    let mut no_jwt = 0;
    for found in finder.find_iter(text) {
        let (_, rest) = &SHAPES[found.pattern().as_usize()];
        if found.start() < done || matches!(rest, Rest::Jwt) && found.end() <= no_jwt {
            continue;
        }
        let Some((from, to)) = secret_part(text, found.start(), found.end(), rest) else {
            // One in the middle of a word was not looked at.
            if matches!(rest, Rest::Jwt) && begins(text.as_bytes(), found.start()) {
                no_jwt = no_jwt_before(text.as_bytes(), found.end());
            }
            continue;
        };
        out.push_str(&text[done..from]);
        out.push_str(MARK);
        done = to;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

fn finder() -> Option<&'static AhoCorasick> {
    static FINDER: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let build = || AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(SHAPES.map(|(p, _)| p)).ok();
    FINDER.get_or_init(build).as_ref()
}

/// From where to where the secret goes, if there is one behind this prefix.
fn secret_part(text: &str, start: usize, end: usize, rest: &Rest) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    if !matches!(rest, Rest::UserInfo) && !begins(bytes, start) {
        return None;
    }
    match rest {
        Rest::Word(least) => {
            let to = run(bytes, end, is_word);
            (to - end >= *least).then_some((start, to))
        }
        Rest::Upper(count) => {
            let to = run(bytes, end, |b| b.is_ascii_uppercase() || b.is_ascii_digit());
            (to - end == *count && bytes.get(to).is_none_or(|b| !is_word(*b))).then_some((start, to))
        }
        Rest::Jwt => jwt_end(bytes, end).map(|to| (start, to)),
        Rest::Credentials(least) => {
            let to = run(bytes, end, |b| is_word(b) || matches!(b, b'.' | b'~' | b'+' | b'/' | b'='));
            let odd = bytes[end..to].iter().any(|b| !b.is_ascii_lowercase());
            (to - end >= *least && odd).then_some((end, to))
        }
        Rest::Pem => pem_end(text, end).map(|to| (start, to)),
        Rest::UserInfo => {
            let stop = run(bytes, end, |b| !b.is_ascii_whitespace() && !matches!(b, b'/' | b'"' | b'?' | b'#' | b'<'));
            let at = text[end..stop].rfind('@')? + end;
            let colon = text[end..at].find(':')? + end + 1;
            (at > colon).then_some((colon, at))
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Whether a token can start here: not in the middle of a word, though behind an escape such as `\n` it can.
fn begins(bytes: &[u8], start: usize) -> bool {
    let Some(before) = start.checked_sub(1) else { return true };
    let escape = before > 0 && bytes[before - 1] == b'\\' && bytes[before].is_ascii_lowercase();
    escape || !bytes[before].is_ascii_alphanumeric()
}

fn run(bytes: &[u8], from: usize, is: impl Fn(u8) -> bool) -> usize {
    from + bytes[from..].iter().take_while(|b| is(**b)).count()
}

/// Header, payload and signature, where the first two are there.
fn jwt_end(bytes: &[u8], from: usize) -> Option<usize> {
    let header = run(bytes, from, is_word);
    let payload = (bytes.get(header) == Some(&b'.')).then(|| run(bytes, header + 1, is_word))?;
    if header - from < 8 || payload - header < 5 {
        return None;
    }
    Some(if bytes.get(payload) == Some(&b'.') { run(bytes, payload + 1, is_word) } else { payload })
}

/// Where a header that is none ends, if nothing follows it that a payload could be: one that begins within it ends there
/// too. It is not looked at again, or a text of beginnings alone would take the square of its length.
fn no_jwt_before(bytes: &[u8], from: usize) -> usize {
    let header = run(bytes, from, is_word);
    let has_payload = bytes.get(header) == Some(&b'.') && run(bytes, header + 1, is_word) >= header + 5;
    if has_payload { 0 } else { header }
}

/// A private key ends with its block; one that was cut, with the text.
fn pem_end(text: &str, from: usize) -> Option<usize> {
    let label = text[from..].find("-----").filter(|label| *label < 40)?;
    if !text[from..from + label].ends_with("PRIVATE KEY") {
        return None;
    }
    let body = from + label + 5;
    let Some(end) = text[body..].find("-----END ") else { return Some(text.len()) };
    let close = body + end + 9;
    Some(text[close..].find("-----").map_or(text.len(), |dashes| close + dashes + 5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_known_shapes_are_hidden() {
        let long = "aB3_-".repeat(9);
        for (text, expected) in [
            (format!("x fbt_{long} y"), "x [redacted] y"),
            (format!("key=sk-ant-{long}"), "key=[redacted]"),
            (format!("ghp_{}!", "a1".repeat(18)), "[redacted]!"),
            ("AKIAIOSFODNN7EXAMPLE,".to_owned(), "[redacted],"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_1 z".to_owned(), "[redacted] z"),
            ("Authorization: Bearer abcdef.123456=".to_owned(), "Authorization: Bearer [redacted]"),
            (format!("a\\nfbt_{long}"), "a\\n[redacted]"),
            ("https://me:pa:ss@host/x".to_owned(), "https://me:[redacted]@host/x"),
            ("a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b".to_owned(), "a [redacted] b"),
            ("-----BEGIN PRIVATE KEY-----\nMII".to_owned(), "[redacted]"),
        ] {
            assert_eq!(hide(&text), expected, "{text}");
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            "risk-assessment-of-long-hyphenated-words-and-more",
            "sk-short",
            "AKIAIOSFODNN7EXAMPLES1",
            "bearer authentication",
            "eyJ.b.c",
            "https://host:8080/a@b",
            "mailto://me@host",
            "-----BEGIN CERTIFICATE-----\nMII",
            "é://é:@é fbt_é",
        ] {
            assert!(matches!(hide(text), Cow::Borrowed(_)), "{text}: {}", hide(text));
        }
    }

    #[test]
    fn a_text_of_beginnings_takes_no_square_of_its_length() {
        let whole = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc";
        for (beginning, end) in [("eyJ-", ""), ("eyJ_", "."), ("eyJ-", ".abc "), ("eyJ-", &*format!(" {whole}"))] {
            let text = beginning.repeat(256 * 1024) + end;
            let hidden = hide(&text);
            assert_eq!(hidden.ends_with(MARK), end.ends_with(whole), "{beginning}{end}");
        }
        // In the middle of a word none begins, however many there are before a payload.
        for end in [".aaaa", ".aaaa.", ".eyJzdWIiOiIxIn0"] {
            let text = format!("x{}{end}", "eyJ".repeat(512 * 1024));
            assert!(matches!(hide(&text), Cow::Borrowed(_)), "{end}");
        }
        // Where a payload follows, a header that is too short does not hide the next one.
        assert_eq!(hide("eyJ.eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0"), "eyJ.[redacted]");
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_it(text in "(fbt_|sk-|eyJ|://|Bearer |-----BEGIN |PRIVATE KEY-----|@|:|\\.|\\PC){0,40}") {
            proptest::prop_assert!(hide(&text).len() <= text.len() + 10 * text.len());
        }
    }
}
