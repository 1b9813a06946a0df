//! What the body of an answer is, by its head: a stream of events, text, encoded.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue, header};

use crate::usage::Unread;

/// Whether a body is a stream of events, whose length nobody said.
pub(crate) fn is_events(headers: &HeaderMap) -> bool {
    let media = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let begins = media.get(..EVENTS.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(EVENTS.as_bytes()));
    begins && !headers.contains_key(header::CONTENT_LENGTH)
}

/// What a stream of events is.
const EVENTS: &str = "text/event-stream";

/// Codings of bodies (RFC 9110, 8.4.1, and IANA's list).
const CODINGS: [&str; 10] =
    ["gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd", "dcb", "dcz", "aes128gcm"];

/// Whether a body is not encoded: no header says so. A coding that nobody knows is none.
pub(crate) fn is_as_it_is(headers: &HeaderMap) -> bool {
    let all = headers.get_all(header::CONTENT_ENCODING).iter();
    let is_one = |name: &[u8]| CODINGS.iter().any(|coding| name.eq_ignore_ascii_case(coding.as_bytes()));
    !all.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).any(|name| is_one(name.trim_ascii()))
}

/// What surely is no text: whole kinds, and the rest by their names, or by how those end.
const MEDIA_KINDS: [&str; 4] = ["image/", "audio/", "video/", "font/"];
const GRPC: &str = "application/grpc";
const BINARY: [&str; 16] = [
    "application/octet-stream",
    "binary/octet-stream",
    "application/pdf",
    "application/wasm",
    "application/java-archive",
    "application/zip",
    "application/x-tar",
    "application/x-bzip2",
    "application/x-xz",
    "application/zstd",
    "application/x-7z-compressed",
    "application/x-git-upload-pack-result",
    "application/x-protobuf",
    "application/vnd.debian.binary-package",
    "application/x-rpm",
    "application/x-python-wheel",
];
const BINARY_ENDS: [&str; 6] = ["gzip", "+zip", "+zstd", "protobuf", "+proto", "+cbor"];

/// Whether a body may be text, by what its head says: whatever is not said once and plainly to be something else.
pub(crate) fn is_text(headers: &HeaderMap) -> bool {
    let Some(media) = media_type(headers) else { return true };
    let is_svg = media == "image/svg+xml";
    let is_binary = is_media(&media)
        || media.starts_with(GRPC)
        || BINARY.contains(&&*media)
        || BINARY_ENDS.iter().any(|end| media.ends_with(end));
    is_svg || !is_binary
}

/// Why what it says of itself cannot be read, where that is so.
pub(crate) fn unread(headers: &HeaderMap) -> Option<Unread> {
    if !is_as_it_is(headers) {
        return Some(Unread::Encoded);
    }
    let is_of_media = || media_type(headers).is_some_and(|media| is_media(&media));
    (!is_text(headers)).then(|| if is_of_media() { Unread::Media } else { Unread::Binary })
}

fn is_media(media: &str) -> bool {
    MEDIA_KINDS.iter().any(|kind| media.starts_with(kind))
}

/// The type, if it is said once and plainly, without what comes behind it.
fn media_type(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let mut said = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(media), None) = (said.next(), said.next()) else { return None };
    let media = media.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let media = std::str::from_utf8(media).ok()?;
    let is_lower = !media.bytes().any(|byte| byte.is_ascii_uppercase());
    Some(if is_lower { Cow::Borrowed(media) } else { Cow::Owned(media.to_ascii_lowercase()) })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_what_a_client_would_decode_is_encoded() {
        for (said, as_it_is) in [("gzip", false), ("identity, BR", false), ("utf-8", true), ("none", true), ("", true)]
        {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(said));
            assert_eq!(is_as_it_is(&headers), as_it_is, "{said}");
        }
    }

    #[test]
    fn only_what_is_surely_no_text_is_not_looked_through() {
        let is = |said: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for one in said {
                headers.append(header::CONTENT_TYPE, HeaderValue::from_static(one));
            }
            is_text(&headers)
        };
        for text in [
            &[][..],
            &[""],
            &["text/plain"],
            &["application/yaml"],
            &["application/jsonl"],
            &["application/toml"],
            &["application/json-seq"],
            &["application/graphql"],
            &["application/vnd.docker.distribution.manifest.v2+json"],
            &["multipart/mixed; boundary=a"],
            &["image/svg+xml"],
            &["image/png", "text/plain"],
            &["image/png", "image/png"],
            &["nonsense"],
        ] {
            assert!(is(text), "{text:?}");
        }
        for binary in [
            "image/png",
            "Video/MP4; codecs=a",
            "application/octet-stream",
            "application/x-gzip",
            "application/vnd.oci.image.layer.v1.tar+gzip",
            "application/zip",
        ] {
            assert!(!is(&[binary]), "{binary}");
        }
    }

    #[test]
    fn why_an_answer_is_not_read_is_known() {
        for (media, coding, why) in [
            ("application/json", "identity", None),
            ("image/svg+xml", "identity", None),
            ("application/json", "gzip", Some(Unread::Encoded)),
            ("application/x-protobuf", "identity", Some(Unread::Binary)),
            ("Audio/MPEG", "identity", Some(Unread::Media)),
        ] {
            let mut headers = HeaderMap::new();
            headers.append(header::CONTENT_TYPE, HeaderValue::from_static(media));
            headers.append(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
            assert_eq!(unread(&headers), why, "{media}");
        }
    }
}
