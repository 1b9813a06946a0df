//! A URI as servers may read it.
//!
//! Who reads one may decode `%73`, walk `..` and lower the case of a scheme, and who decides must not be the one who
//! does not. So a URI has two readings, as written and decoded. What lets a call through has to match both, exactly. What
//! stops one needs only one, and takes every spelling of it that some server takes for the same: with more slashes or
//! fewer, a host that says nothing, blanks around it, something behind `?`, `#` or, in any of its segments, `;`, and a
//! path for a `file:` URI. One with `..`, a backslash, or more than one layer of encoding is not plain: it lets nothing
//! through by a pattern, and every pattern stops it. Neither is one whose scheme or host lenient readers take for
//! another: in quotes or brackets, behind `url:`, a host that is not ASCII or a number, a port with a zero in front.

use std::sync::OnceLock;

use super::{
    globs::Glob,
    spelling::{decode, has_plain_start, one_spelling, readings, with_lower_authority, without_file_host},
};

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
        let plain = whole
            && !seen.contains('\\')
            && !seen.contains('%')
            && !has_dots(seen)
            && !has_controls(seen)
            && has_plain_start(seen);
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
            "<file:///other/x>",
            "<URL:file:///srv/x>",
            "url:file:///srv/x",
            "URL:srv",
            "\"file:///srv/x\"",
            "'file:///srv/x'",
            "%3Cfile:///srv/x%3E",
            "file :///srv/x",
            "fi\u{ff4c}e:///srv/x",
            "(file:///srv/x)",
            "https://example.org:0443/x",
            "https://example.org:00/x",
            "https://example.org:4_43/x",
            "https://example.org:\u{661}/x",
            "https://\u{ff45}xample.org/x",
            "https://example\u{3002}org/x",
            "https://ex\u{e4}mple.org/x",
            "https://ex%61mple.org\u{ff0f}/x",
            "https://example.org..//x",
            "https://.example.org/x",
            "http://2130706433/x",
            "http://0x7f.1/x",
            "http://127.1/x",
            "http://127.0.0.1./x",
            "http://0177.0.0.1/x",
            "http://127.0.0.256/x",
            "http://[::ffff:127.0.0.1]/x",
            "http://[0:0:0:0:0:0:0:1]/x",
            "http://a@127.1:80/x",
            "http:///127.1/x",
            "http:127.1/x",
            "https://exa mple.org/x",
        ] {
            assert_eq!(both(uri, "file:///srv/**"), (false, true), "{uri}");
            assert_eq!(both(uri, "file:///other/**"), (false, true), "{uri}");
        }
        for uri in [
            "http://127.0.0.1/x",
            "http://127.0.0.1:8080/x",
            "http://[::1]:80/x",
            "https://1.example.org/x",
            "note:ä",
            "note://1/x",
            "postgres://a@db/x",
            "C:/x",
            "notes/a: b",
            "notes://\u{4e16}\u{754c}/x",
            "http://3com/x",
            "/x:y/<z>",
            "\u{e4}/b",
            "https://a_b.example.org/x",
        ] {
            assert!(!both(uri, "other:///srv/**").1 && both(uri, "**").0, "{uri}");
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

    #[test]
    fn what_closes_takes_parameters_off_each_segment() {
        for uri in [
            "file:///secret;v=1/x",
            "file:///secret;/x;v=1?y",
            "file:///secret%3Bv=1/x",
            "file:///secret;%2fv/x",
            "file:///%73ecret;%2fv/x#y",
            "secret;v/x;w",
        ] {
            assert_eq!(both(uri, "file:///secret/x"), (false, true), "{uri}");
            assert_eq!(both(uri, "file:///other/**"), (false, false), "{uri}");
        }
    }
}
