//! A URI as servers may read it.
//!
//! Who reads one may decode `%73`, walk `..` and lower the case of a scheme, and who decides must not be the one who
//! does not. So a URI has two readings, as written and decoded. What lets a call through has to match both, exactly. What
//! stops one needs only one, and takes every spelling of it that some server takes for the same: with more slashes or
//! fewer, a host that says nothing, blanks around it, something behind `?`, `#` or `;`, and a path for a `file:` URI. One
//! with `..`, a backslash, or more than one layer of encoding is not plain: it lets nothing through by a pattern, and
//! every pattern stops it.

use std::sync::OnceLock;

use super::globs::{Glob, META};

/// A URI, read in both ways.
#[derive(Debug, Clone)]
pub(super) struct Uri {
    written: String,
    decoded: Option<String>,
    plain: bool,
    /// Made once something that closes asks.
    spellings: OnceLock<Vec<String>>,
}

impl Uri {
    /// Reads a URI.
    #[must_use]
    pub(super) fn read(text: &str) -> Self {
        let written = with_lower_authority(text);
        let (decoded, whole) = if written.contains('%') {
            let (bytes, whole) = decode(&written);
            match String::from_utf8(bytes) {
                Ok(decoded) => (Some(decoded), whole),
                Err(_) => (None, false),
            }
        } else {
            (None, true)
        };
        let seen = decoded.as_deref().unwrap_or(&written);
        let plain = whole && !seen.contains('\\') && !seen.contains('%') && !has_dots(seen) && !has_controls(seen);
        Self { written, decoded, plain, spellings: OnceLock::new() }
    }

    /// Whether a pattern lets it through.
    #[must_use]
    pub(super) fn fits(&self, globs: &[Glob]) -> bool {
        let fits = |text: &str| super::globs::any(globs, text);
        self.plain && fits(&self.written) && self.decoded.as_deref().is_none_or(fits)
    }

    /// Whether a pattern stops it.
    #[must_use]
    pub(super) fn is_caught_by(&self, globs: &[Glob]) -> bool {
        let caught = |text: &str| super::globs::any(globs, text);
        !self.plain
            || caught(&self.written)
            || self.decoded.as_deref().is_some_and(caught)
            || self.spellings().iter().any(|text| globs.iter().any(|glob| glob.matches_spelling(text)))
    }

    /// All that readers may take it for, each spelled as [`one_spelling`] has it.
    fn spellings(&self) -> &[String] {
        self.spellings.get_or_init(|| {
            let mut all = Vec::new();
            for text in readings(&self.written) {
                for text in [one_spelling(&text, false), without_file_host(&text)] {
                    if !all.contains(&text) {
                        all.push(text);
                    }
                }
            }
            all
        })
    }
}

/// A text as written and decoded, without blanks at its edges, whole and up to where a reader may end it.
pub(super) fn readings(text: &str) -> Vec<String> {
    const ENDS: [&[char]; 4] = [&[], &['#'], &['#', '?'], &['#', '?', ';']];
    let (decoded, _) = decode(text);
    let mut all: Vec<String> = Vec::new();
    for text in [text, &*String::from_utf8_lossy(&decoded)] {
        for ends in ENDS {
            let end = text.find(ends).unwrap_or(text.len());
            let reading = text[..end].trim();
            if !all.iter().any(|other| other == reading) {
                all.push(reading.to_owned());
            }
        }
    }
    all
}

/// A pattern in the spelling that URIs are compared in where it stops them.
pub(super) fn spelling_of_pattern(pattern: &str) -> String {
    let special = |text: &str| text.matches(META).count();
    let (decoded, whole) = decode(pattern);
    match String::from_utf8(decoded) {
        // What an escape stands for must not become a sign of the pattern.
        Ok(decoded) if whole && special(&decoded) == special(pattern) => one_spelling(&decoded, true),
        _ => one_spelling(pattern, true),
    }
}

/// Hosts that mean this machine in a `file:` URI.
const OWN_HOSTS: [&str; 4] = ["localhost", "127.0.0.1", "[::1]", "."];

/// The scheme, one slash, and the rest with single slashes and none at its end. A host that adds nothing is left out:
/// this machine in a `file:` URI, and elsewhere a user, a default port and a last dot.
fn one_spelling(text: &str, of_pattern: bool) -> String {
    let text = with_lower_authority(text);
    let (scheme, rest) = parts(&text, of_pattern);
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.to_ascii_lowercase();
            match scheme {
                "file" if OWN_HOSTS.contains(&host.as_str()) => path.to_owned(),
                _ => format!("{}{path}", bare_host(scheme, &host)),
            }
        }
        None => rest.to_owned(),
    };
    spelled(scheme, &path)
}

/// As [`one_spelling`], by a reader that does not look at the host of a `file:` URI.
fn without_file_host(text: &str) -> String {
    let lowered = with_lower_authority(text);
    match parts(&lowered, false) {
        ("file", rest) => {
            let path = rest.strip_prefix("//").map_or(rest, |rest| &rest[rest.find('/').unwrap_or(rest.len())..]);
            spelled("file", path)
        }
        _ => one_spelling(text, false),
    }
}

fn spelled(scheme: &str, path: &str) -> String {
    let mut out = String::with_capacity(scheme.len() + path.len() + 2);
    out.push_str(scheme);
    if !scheme.is_empty() {
        out.push(':');
    }
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    if parts.peek().is_none() || !scheme.is_empty() || path.starts_with('/') {
        out.push('/');
    }
    out + &parts.collect::<Vec<_>>().join("/")
}

/// The scheme and what follows it. What has none may be a path, which readers take for that of a file; a pattern that
/// may stand for a scheme too has none.
fn parts(text: &str, of_pattern: bool) -> (&str, &str) {
    let first = text.split('/').next().unwrap_or_default();
    match first.split_once(':') {
        Some((scheme, _)) => (scheme, &text[scheme.len() + 1..]),
        None if of_pattern && first.contains(META) => ("", text),
        None => ("file", text),
    }
}

fn bare_host<'h>(scheme: &str, host: &'h str) -> &'h str {
    let host = host.rsplit('@').next().unwrap_or(host);
    let port = match scheme {
        "http" | "ws" => ":80",
        "https" | "wss" => ":443",
        _ => ":",
    };
    let host = host.strip_suffix(port).or(host.strip_suffix(':')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host)
}

/// Scheme and host in small letters: they mean the same in any case.
pub(crate) fn with_lower_authority(text: &str) -> String {
    let Some(colon) = text.find(':').filter(|at| text[..*at].bytes().all(is_scheme)) else { return text.to_owned() };
    let rest = &text[colon + 1..];
    let end = match rest.strip_prefix("//") {
        Some(authority) => colon + 3 + authority.find(['/', '?', '#']).unwrap_or(authority.len()),
        None => colon,
    };
    text[..end].to_ascii_lowercase() + &text[end..]
}

fn is_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

/// Decoded once, and whether each `%` had its two digits.
fn decode(text: &str) -> (Vec<u8>, bool) {
    let (bytes, mut out, mut whole, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), true, 0);
    while at < bytes.len() {
        let digit =
            |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(high * 16 + low);
                at += 3;
            }
            (byte, ..) => {
                whole &= byte != b'%';
                out.push(byte);
                at += 1;
            }
        }
    }
    (out, whole)
}

/// Whether it has a part that is `.` or `..`, which a reader may walk.
fn has_dots(text: &str) -> bool {
    text.split(['/', '?', '#', ':', ';']).any(|part| part == "." || part == "..")
}

fn has_controls(text: &str) -> bool {
    text.chars().any(footbridge_proto::text::needs_escape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::globs::Of;

    fn both(uri: &str, pattern: &str) -> (bool, bool) {
        let (uri, globs) = (Uri::read(uri), [Glob::new(pattern, Of::Uri).unwrap()]);
        (uri.fits(&globs), uri.is_caught_by(&globs))
    }

    #[test]
    fn a_plain_uri_is_let_through_or_stopped_by_its_pattern_alone() {
        assert_eq!(both("file:///srv/a.txt", "file:///srv/**"), (true, true));
        assert_eq!(both("FILE:///srv/a.txt", "file:///srv/**"), (true, true));
        assert_eq!(both("https://Example.ORG/a", "https://example.org/**"), (true, true));
        assert_eq!(both("https://example.org/A", "https://example.org/a"), (false, false));
        assert_eq!(both("file:///srv/a%20b", "file:///srv/a b"), (false, true));
        assert_eq!(both("file:///srv/a%20b", "file:///srv/*"), (true, true));
        assert_eq!(both("note://1", "file:///srv/**"), (false, false));
        assert_eq!(both("a..b:/x...y/.hidden", "a..b:/**"), (true, true));
    }

    #[test]
    fn what_readers_take_differently_is_stopped_by_any_pattern_and_let_through_by_none() {
        for uri in [
            "file:///srv/../etc/passwd",
            "file:///srv/%2e%2e/etc/passwd",
            "file:///srv/.%2E/etc/passwd",
            "file:///srv/..%2fetc/passwd",
            "file:///srv/./x",
            "file:///srv/%252e%252e/etc",
            "file:///srv/..\\etc",
            "file:///srv/%5c..%5cetc",
            "file:///srv/..",
            "file:///srv/..?x",
            "file:///srv/%zz",
            "file:///srv/%",
            "file:///srv/%ff",
            "file:///srv/a%00b",
            "file:///srv/a\u{202e}b",
        ] {
            assert_eq!(both(uri, "file:///srv/**"), (false, true), "{uri}");
            assert_eq!(both(uri, "file:///other/**"), (false, true), "{uri}");
        }
        for (uri, pattern) in [
            ("file:///a b", "file:///a%20b"),
            ("https://example.org/x", "https://example.org:443/x"),
            ("note:/1", "note://1"),
            ("note:1", "note://*"),
        ] {
            assert_eq!(both(uri, pattern), (false, true), "{uri} {pattern}");
        }
        // An encoded name is still the name.
        assert_eq!(both("file:///%73ecret/x", "file:///secret/**"), (false, true));
    }
    /// What is not listed is let through by none, and nothing but the one that is meant is stopped.
    #[test]
    fn what_closes_takes_every_spelling_and_what_opens_only_its_own() {
        for uri in [
            "file:////secret/x",
            "file:///secret//x",
            "file://localhost/secret/x",
            "file://LOCALHOST/secret/x",
            "file://127.0.0.1/secret/x",
            "file://elsewhere/secret/x",
            "file:/secret/x",
            "file:secret/x",
            "FILE:/secret/x",
            " file:///secret/x",
            "file:///secret/x ",
            "file:///secret/x\u{a0}",
            "%20file:///secret/x",
            "file:///secret/x%20",
            "file:///secret/x?",
            "file:///secret/x?a=b/c",
            "file:///secret/x#",
            "file:///secret/x#y",
            "file:///secret/x%23y",
            "file:///secret/x;v=1",
            "file:///secret/x/",
            "file%3A///secret/x",
            "/secret/x",
            "//localhost/secret/x",
            "secret/x",
        ] {
            assert_eq!(both(uri, "file:///secret/x"), (false, true), "{uri}");
            assert!(both(uri, "file:///secret/*").1 && both(uri, "file:///secret/**").1, "{uri}");
            assert!(both(uri, "file://localhost/secret/**").1 && both(uri, "*:///secret/x").1, "{uri}");
            assert!(both(uri, "**/x").1 && both(uri, "file:///**").1, "{uri}");
            assert_eq!(both(uri, "file:///other/**"), (false, false), "{uri}");
            assert!(!both(uri, "file:///secret").1 && !both(uri, "http://secret/**").1, "{uri}");
        }
        for uri in [
            "https://user@example.org/x",
            "https://example.org:443/x",
            "https://example.org./x",
            "https:/example.org/x",
        ] {
            assert_eq!(both(uri, "https://example.org/x"), (false, true), "{uri}");
            assert!(!both(uri, "https://example.com/**").1 && !both(uri, "https://org/**").1, "{uri}");
        }
    }
}
