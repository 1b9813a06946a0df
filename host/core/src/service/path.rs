//! The path of a request to a service, as it was written and as it is matched.

use std::{borrow::Cow, fmt};

use footbridge_proto::text::needs_escape;

/// A path that is read in one way only: as written it goes to the service, decoded it is matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath {
    written: String,
    /// None where nothing in it is encoded.
    decoded: Option<String>,
}

/// Why a path is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// It does not begin with a `/`.
    #[error("a path begins with \"/\"")]
    Start,
    /// It has a segment that is `.` or `..`, encoded or not, also in front of parameters (`..;x`).
    #[error("a path has no segment \".\" or \"..\", nor one before a \";\"")]
    Dots,
    /// It has an empty segment other than the last.
    #[error("a path has no empty segment")]
    Empty,
    /// It has a slash or backslash that is encoded, or in full width or another one's looks, or a backslash.
    #[error("a path has no encoded slash and no backslash")]
    Slash,
    /// It has a control or invisible character, or what is none of UTF-8.
    #[error("a path has no control or invisible characters")]
    Character,
    /// It has a `%` that encodes nothing.
    #[error("a \"%\" is followed by two hexadecimal digits")]
    Encoding,
    /// It says twice encoded what it means.
    #[error("a path is encoded once at most")]
    EncodedTwice,
}

impl RequestPath {
    /// Reads a path without its query.
    ///
    /// # Errors
    /// [`BadPath`], where readers could differ about it.
    pub fn read(written: &str) -> Result<Self, BadPath> {
        let Some(rest) = written.strip_prefix('/') else { return Err(BadPath::Start) };
        let mut segments = rest.split('/').peekable();
        let mut decoded = written.contains('%').then(|| String::with_capacity(written.len()));
        while let Some(segment) = segments.next() {
            let is_last = segments.peek().is_none();
            if segment.is_empty() && !is_last {
                return Err(BadPath::Empty);
            }
            let segment = decoded_segment(segment)?;
            if let Some(decoded) = &mut decoded {
                decoded.push('/');
                decoded.push_str(&segment);
            }
        }
        Ok(Self { written: written.to_owned(), decoded })
    }

    /// As it was written.
    #[must_use]
    pub fn as_written(&self) -> &str {
        &self.written
    }

    /// Decoded, for matching.
    #[must_use]
    pub fn decoded(&self) -> &str {
        self.decoded.as_deref().unwrap_or(&self.written)
    }
}

impl fmt::Display for RequestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// A backslash, and what becomes a slash or one where text is brought into its compatible form (NFKC) or to ASCII by looks.
const SLASHES: [char; 7] = ['\\', '\u{ff0f}', '\u{ff3c}', '\u{fe68}', '\u{2044}', '\u{2215}', '\u{29f8}'];

fn decoded_segment(segment: &str) -> Result<Cow<'_, str>, BadPath> {
    let text = if segment.contains('%') { Cow::Owned(decoded(segment)?) } else { Cow::Borrowed(segment) };
    // Some servers take parameters off a segment before they read it (RFC 3986, 3.3).
    let name = text.split(';').next().unwrap_or_default();
    // And some leave out blanks at its end.
    let dots = name.trim_end();
    // Of others than ASCII's any number: not all readers have as many of them.
    let is_few = |dots: &str| dots.chars().count() <= 2 || !dots.is_ascii();
    if !dots.is_empty() && dots.chars().all(is_dot) && is_few(dots) || dots == "\u{2025}" {
        return Err(BadPath::Dots);
    }
    if name.is_empty() && !text.is_empty() {
        return Err(BadPath::Empty);
    }
    if text.contains(SLASHES) {
        return Err(BadPath::Slash);
    }
    if text.chars().any(needs_escape) {
        return Err(BadPath::Character);
    }
    let hex = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_hexdigit);
    if text.bytes().enumerate().any(|(at, byte)| byte == b'%' && hex(at + 1) && hex(at + 2)) {
        return Err(BadPath::EncodedTwice);
    }
    Ok(text)
}

/// A dot, or what becomes one where text is brought into its compatible form (NFKC), or read as a name of a host (IDNA).
fn is_dot(c: char) -> bool {
    matches!(c, '.' | '\u{ff0e}' | '\u{2024}' | '\u{fe52}' | '\u{3002}' | '\u{ff61}')
}

/// Percent-decoded, each of which must stand for a byte.
fn decoded(segment: &str) -> Result<String, BadPath> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok()).ok_or(BadPath::Encoding)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(BadPath::Encoding);
        }
        let byte = u8::from_str_radix(digits, 16).map_err(|_| BadPath::Encoding)?;
        if matches!(byte, b'/' | b'\\') {
            return Err(BadPath::Slash);
        }
        bytes.push(byte);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| BadPath::Character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_path_is_kept_as_written_and_matched_decoded() {
        for (written, decoded) in [
            ("/", "/"),
            ("/v1/messages", "/v1/messages"),
            ("/simple/a/", "/simple/a/"),
            ("/a%20b/%C3%A9", "/a b/é"),
            ("/%76%31/x", "/v1/x"),
            ("/a..b/...", "/a..b/..."),
            ("/a;v=1/..a;b/x;", "/a;v=1/..a;b/x;"),
            ("/100%25", "/100%"),
            ("/wiki/Apple_Inc.", "/wiki/Apple_Inc."),
            ("/%E6%96%87%E3%80%82/x", "/文。/x"),
            ("/a%20/Acme%20Inc./b", "/a /Acme Inc./b"),
        ] {
            let path = RequestPath::read(written).unwrap();
            assert_eq!((path.as_written(), path.decoded()), (written, decoded));
        }
    }

    #[test]
    fn what_two_readers_could_take_for_two_paths_is_refused() {
        for (written, why) in [
            ("", BadPath::Start),
            ("v1", BadPath::Start),
            ("*", BadPath::Start),
            ("/a/../b", BadPath::Dots),
            ("/a/.", BadPath::Dots),
            ("/a/%2e%2E/b", BadPath::Dots),
            ("/a/.%2e", BadPath::Dots),
            ("/v2/..;/admin", BadPath::Dots),
            ("/v2/..;x=1/admin", BadPath::Dots),
            ("/v2/%2e%2e%3b/admin", BadPath::Dots),
            ("/v2/.;/admin", BadPath::Dots),
            ("/v2/%ef%bc%8e%ef%bc%8e/admin", BadPath::Dots),
            ("/v2/%e2%80%a5/admin", BadPath::Dots),
            ("/v2/..%ef%bc%8fadmin", BadPath::Slash),
            ("/v2/%2e%2e%e2%81%84admin", BadPath::Slash),
            ("/v2/..%e2%88%95admin", BadPath::Slash),
            ("/v2/..%e2%a7%b8admin", BadPath::Slash),
            ("/v2/..%e3%80%82/admin", BadPath::Dots),
            ("/v2/%e3%80%82%e3%80%82/admin", BadPath::Dots),
            ("/v2/%ef%bd%a1%ef%bd%a1%20;a/admin", BadPath::Dots),
            ("/v2/..%20/admin", BadPath::Dots),
            ("/v2/.%20%20;a/admin", BadPath::Dots),
            ("/v2/;/admin", BadPath::Empty),
            ("//a", BadPath::Empty),
            ("/a//b", BadPath::Empty),
            ("/a%2fb", BadPath::Slash),
            ("/a%5Cb", BadPath::Slash),
            ("/a\\b", BadPath::Slash),
            ("/a%00", BadPath::Character),
            ("/a%0d%0ab", BadPath::Character),
            ("/a%e2%80%ae", BadPath::Character),
            ("/a%ff", BadPath::Character),
            ("/a%", BadPath::Encoding),
            ("/a%4", BadPath::Encoding),
            ("/a%+1", BadPath::Encoding),
            ("/a%zz", BadPath::Encoding),
            ("/a%252e%252e/b", BadPath::EncodedTwice),
        ] {
            assert_eq!(RequestPath::read(written), Err(why), "{written}");
        }
    }
}
