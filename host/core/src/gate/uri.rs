//! A URI as servers may read it.
//!
//! Who reads one may decode `%73`, walk `..` and lower the case of a scheme, and who decides must not be the one who
//! does not. So a URI has two readings, as written and decoded. What lets a call through has to match both; what stops
//! one needs only one. One with `..`, a backslash, or more than one layer of encoding is not plain: it lets nothing
//! through by a pattern, and every pattern stops it.

use super::globs::Glob;

/// A URI, read in both ways.
#[derive(Debug, Clone)]
pub(super) struct Uri {
    written: String,
    decoded: Option<String>,
    plain: bool,
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
        Self { written, decoded, plain }
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
        !self.plain || caught(&self.written) || self.decoded.as_deref().is_some_and(caught)
    }
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
        let (uri, globs) = (Uri::read(uri), [Glob::new(pattern, Of::Path).unwrap()]);
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
        // An encoded name is still the name.
        assert_eq!(both("file:///%73ecret/x", "file:///secret/**"), (false, true));
    }
}
