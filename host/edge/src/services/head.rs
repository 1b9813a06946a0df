//! What a head asks of a service, by its path, or as of a proxy. Pure: head in, request or refusal out.

use std::{borrow::Cow, net::Ipv6Addr};

use footbridge_calls::{request::repeated, service::ServiceRequest};
use footbridge_core::service::RequestPath;
use footbridge_services::{TUNNELS, may_hold_key};
use http::{HeaderMap, HeaderName, Method, header, request::Parts};

use super::RefusedHead;
use crate::http::head::path;

/// What the paths of services begin with.
const PREFIX: &str = "/s/";

/// Whether a path is one of a service.
pub(crate) fn is_service_path(head: &Parts) -> bool {
    path(head).starts_with(PREFIX)
}

/// Whether it asks for a tunnel, or for an address of another host, as of a proxy.
pub(crate) fn is_of_proxy(head: &Parts) -> bool {
    head.uri.authority().is_some()
}

/// A head that names a service.
pub(crate) struct ServiceHead<'a> {
    head: &'a Parts,
    /// The name, as it was written.
    pub(crate) service: &'a str,
    /// The path below it, as it was written; for a proxy, host and port come first. None where that is not to be read.
    below: Option<Cow<'a, str>>,
}

impl<'a> ServiceHead<'a> {
    /// Of a head whose path is one of a service, or that is one of a proxy.
    pub(crate) fn of(head: &'a Parts) -> Self {
        if is_of_proxy(head) {
            return Self { head, service: TUNNELS, below: below_host(head).map(Cow::Owned) };
        }
        let rest = path(head).strip_prefix(PREFIX).unwrap_or_default();
        let (service, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        // Hosts are named as of a proxy alone, where they are read as hosts.
        let is_readable = service != TUNNELS;
        let below = if below.is_empty() { "/" } else { below };
        Self { head, service, below: is_readable.then_some(Cow::Borrowed(below)) }
    }

    /// What the head can show as its token, in the order in which that is looked at.
    pub(crate) fn credentials(&self) -> Vec<Cow<'a, [u8]>> {
        if !is_of_proxy(self.head) {
            return footbridge_services::credentials(&self.head.headers);
        }
        let shown = self.head.headers.get_all(header::PROXY_AUTHORIZATION).iter();
        shown.filter_map(|value| footbridge_services::authorized_by(value.as_bytes())).collect()
    }

    /// The method.
    pub(super) fn method(&self) -> &Method {
        &self.head.method
    }

    /// The path below the service's name, as far as it can be read.
    pub(super) fn path(&self) -> &str {
        self.below.as_deref().unwrap_or_default()
    }

    /// Whether it asks as of a proxy.
    pub(super) fn is_of_proxy(&self) -> bool {
        is_of_proxy(self.head)
    }

    /// Whether it asks for a tunnel.
    pub(crate) fn is_tunnel(&self) -> bool {
        self.head.method == Method::CONNECT && is_of_proxy(self.head)
    }

    /// Whether its body comes once it is asked for.
    pub(crate) fn waits_to_send(&self) -> bool {
        let expected = self.head.headers.get(header::EXPECT);
        expected.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
    }

    /// Whether the token stands where it would leak: in the address, or in a header that crosses.
    pub(crate) fn leaks(&self, token: &[u8]) -> bool {
        let is_in = |bytes: &[u8]| !token.is_empty() && bytes.windows(token.len()).any(|window| window == token);
        let has = |bytes: &[u8]| is_in(bytes) || bytes.contains(&b'%') && is_in(&decoded(bytes));
        let target = self.head.uri.path_and_query().map(|target| target.as_str()).unwrap_or_default();
        // A name is looked up, in lower case, before anything is connected.
        let authority = self.head.uri.authority().map(|authority| authority.as_str().as_bytes()).unwrap_or_default();
        let is_asked_for =
            !token.is_empty() && authority.windows(token.len()).any(|window| window.eq_ignore_ascii_case(token));
        let of_proxy = is_of_proxy(self.head);
        let others = self.head.headers.iter().filter(|(name, _)| !may_hold_key(name, of_proxy));
        others.into_iter().any(|(_, value)| has(value.as_bytes())) || has(target.as_bytes()) || is_asked_for
    }

    /// What a record may have of a head that is refused: never the token, or a query.
    pub(super) fn recorded(&self, why: RefusedHead) -> String {
        let method = self.head.method.as_str();
        let below = self.below.as_deref().filter(|_| why != RefusedHead::TokenLeaks);
        repeated(&below.map_or_else(|| method.to_owned(), |below| format!("{method} {below}"))).into_owned()
    }

    /// The request.
    pub(crate) fn request(&self, limit: usize) -> Result<ServiceRequest, RefusedHead> {
        let method = &self.head.method;
        let is_refused =
            *method == Method::TRACE || method == "TRACK" || *method == Method::CONNECT && !self.is_tunnel();
        // To HTTP `delete` is another method than DELETE, and to many origins the same.
        if is_refused || method.as_str().bytes().any(|byte| byte.is_ascii_lowercase()) {
            return Err(RefusedHead::Method);
        }
        let below = self.below.as_deref().ok_or(RefusedHead::Address)?;
        let length = length(&self.head.headers)?;
        let is_chunked = self.head.headers.contains_key(header::TRANSFER_ENCODING);
        if self.is_tunnel() && (is_chunked || length.is_some_and(|length| length > 0)) {
            return Err(RefusedHead::TunnelBody);
        }
        if length.is_some_and(|length| length > limit as u64) {
            return Err(RefusedHead::TooLarge(limit));
        }
        Ok(ServiceRequest {
            service: self.service.to_owned(),
            method: self.head.method.as_str().to_owned(),
            path: RequestPath::read(below).map_err(RefusedHead::Path)?,
            query: self.head.uri.query().map(str::to_owned),
            length,
            is_websocket: self.is_websocket(),
        })
    }

    /// Whether it asks to become a WebSocket (RFC 6455, 4.1).
    pub(crate) fn is_websocket(&self) -> bool {
        let all = |name: HeaderName| self.head.headers.get_all(name).iter().collect::<Vec<_>>();
        let names = |name: HeaderName, word: &[u8]| {
            let words = all(name).into_iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
            words.map(<[u8]>::trim_ascii).any(|one| one.eq_ignore_ascii_case(word))
        };
        let has_body = |name: HeaderName| all(name).iter().any(|value| value.as_bytes() != b"0");
        self.head.method == Method::GET
            && !is_of_proxy(self.head)
            && self.head.version == http::Version::HTTP_11
            && matches!(&all(header::UPGRADE)[..], [one] if one.as_bytes().eq_ignore_ascii_case(b"websocket"))
            && names(header::CONNECTION, b"upgrade")
            && all(header::SEC_WEBSOCKET_KEY).len() == 1
            && !has_body(header::CONTENT_LENGTH)
            && !has_body(header::TRANSFER_ENCODING)
    }
}

/// The path of a request to a proxy: host, port, and what is asked of it, if anything.
fn below_host(head: &Parts) -> Option<String> {
    let authority = head.uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let host = authority.host().to_ascii_lowercase();
    let whole = authority.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
    if !is_host(&host) || !whole.eq_ignore_ascii_case(authority.as_str()) {
        return None;
    }
    match (head.method == Method::CONNECT, head.uri.scheme_str()) {
        (true, None) => Some(format!("/{host}:{}", authority.port_u16()?)),
        (false, Some("http")) => {
            let port = if authority.port().is_some() { authority.port_u16()? } else { 80 };
            Some(format!("/{host}:{port}{}", head.uri.path()))
        }
        _ => None,
    }
}

/// Whether it is a name or an address, and nothing that others could read as more than that.
fn is_host(host: &str) -> bool {
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match bracketed {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
    }
}

/// The length that a body says. One that is chunked is that and no more: another coding would go on as what it codes. What
/// reads heads takes a length beside chunks away, and one that is said again alike, and ends the connection behind chunks.
fn length(headers: &HeaderMap) -> Result<Option<u64>, RefusedHead> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => {}
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => return Ok(None),
        _ => return Err(RefusedHead::Framing),
    }
    let Some(length) = headers.get(header::CONTENT_LENGTH) else { return Ok(None) };
    let length = length.to_str().ok().and_then(|text| text.parse().ok());
    length.map(Some).ok_or(RefusedHead::Framing)
}

/// Percent-decoded as far as it goes.
fn decoded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
        match (byte, digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(decoded)) => {
                out.push(decoded);
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_name_and_a_path_below_it_are_read() {
        for (uri, service, path) in [
            ("/s/git/a/b.git/info/refs?service=git-upload-pack", "git", "/a/b.git/info/refs"),
            ("/s/git", "git", "/"),
            ("/s/git/", "git", "/"),
            ("/s/git/s/other/x", "git", "/s/other/x"),
        ] {
            let head = head("GET", uri, &[]);
            assert!(is_service_path(&head));
            let asked = ServiceHead::of(&head);
            let request = asked.request(10).unwrap();
            assert_eq!((asked.service, request.path.as_written()), (service, path), "{uri}");
        }
        for uri in ["/s", "/S/git/x", "//s/git/x", "/x/s/git", "http://a.test/s/git/x"] {
            assert!(!is_service_path(&head("GET", uri, &[])), "{uri}");
        }
    }

    #[test]
    fn a_request_to_a_proxy_names_host_and_port_first() {
        for (method, uri, path) in [
            ("CONNECT", "A.test:443", Some("/a.test:443")),
            ("GET", "http://a.test/x?y=1", Some("/a.test:80/x")),
            ("GET", "http://a.test:8080", Some("/a.test:8080/")),
            ("CONNECT", "a.test", None),
            ("GET", "https://a.test/x", None),
            ("GET", "http://me:pw@a.test/x", None),
            ("CONNECT", "me@a.test:443", None),
            ("CONNECT", "[::1]:443", Some("/[::1]:443")),
            ("CONNECT", "[::1].a.test:443", None),
            ("GET", "http://[::1].a.test/x", None),
            ("GET", "http://127.0.0.1:1[].a.test:80/x", None),
            ("GET", "/s/tunnels/a.test:80/x", None),
            ("GET", "/s/tunnels/[::1].a.test:80/x", None),
        ] {
            let head = head(method, uri, &[]);
            let request = ServiceHead::of(&head).request(10).ok();
            let asked = request.map(|request| (request.service, request.path.as_written().to_owned()));
            assert_eq!(asked, path.map(|path| (TUNNELS.to_owned(), path.to_owned())), "{method} {uri}");
        }
        let basic = ("proxy-authorization", "Basic c2Vzc2lvbjpmYnRfYWJj");
        let head = head("CONNECT", "a.test:443", &[basic, ("authorization", "Bearer other")]);
        assert_eq!(ServiceHead::of(&head).credentials(), [&b"fbt_abc"[..]]);
        assert!(!ServiceHead::of(&head).leaks(b"fbt_abc"));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let why = |method: &str, uri: &str, headers: &[(&str, &str)]| {
            ServiceHead::of(&head(method, uri, headers)).request(10).unwrap_err().status().as_u16()
        };
        assert_eq!(why("GET", "/s/git/a/../b", &[]), 400);
        assert_eq!(why("GET", "/s/git//a", &[]), 400);
        assert_eq!((why("TRACE", "/s/git/a", &[]), why("TRACK", "/s/git/a", &[])), (405, 405));
        assert_eq!(why("POST", "/s/git/a", &[("content-length", "11")]), 413);
        assert_eq!(why("POST", "/s/git/a", &[("content-length", "x")]), 400);
        assert_eq!(why("CONNECT", "a.test:443", &[("content-length", "1")]), 400);
        for codings in [&["gzip, chunked"][..], &["gzip", "chunked"], &["chunked", "chunked"], &["identity"]] {
            let headers: Vec<(&str, &str)> = codings.iter().map(|coding| ("transfer-encoding", *coding)).collect();
            assert_eq!(why("POST", "/s/git/a", &headers), 400, "{codings:?}");
        }
    }

    #[test]
    fn a_websocket_is_asked_for_in_full() {
        let whole = [("upgrade", "WebSocket"), ("connection", "keep-alive, Upgrade"), ("sec-websocket-key", "k")];
        let asks = |method: &str, headers: &[(&str, &str)]| {
            ServiceHead::of(&head(method, "/s/a/x", headers)).request(10).unwrap().is_websocket
        };
        assert!(asks("GET", &whole));
        assert!(!asks("POST", &whole));
        for left in 0..3 {
            let mut part = whole.to_vec();
            part.remove(left);
            assert!(!asks("GET", &part), "{part:?}");
        }
        for more in [("content-length", "1"), ("upgrade", "h2c"), ("sec-websocket-key", "l")] {
            assert!(!asks("GET", &[&whole[..], &[more]].concat()), "{more:?}");
        }
    }

    #[test]
    fn a_token_anywhere_but_in_the_place_of_a_key_leaks() {
        for (uri, header, leaks) in [
            ("/s/a/x", ("x-api-key", "fbt_abc"), false),
            ("/s/a/x", ("authorization", "Bearer fbt_abc"), false),
            ("/s/a/fbt_abc", ("x-api-key", "fbt_abc"), true),
            ("/s/a/x?key=fbt%5Fabc", ("x-api-key", "fbt_abc"), true),
            ("/s/a/x", ("x-other", "a fbt_abc"), true),
            ("/s/a/x", ("cookie", "k=fbt_abc"), true),
            ("http://host.example/x", ("x-other", "a"), false),
            ("http://fbt_abc.host.example/x", ("x-other", "a"), true),
            ("http://x-FBT_ABC.host.example/x", ("x-other", "a"), true),
        ] {
            let head = head("GET", uri, &[header]);
            assert_eq!(ServiceHead::of(&head).leaks(b"fbt_abc"), leaks, "{uri} {header:?}");
        }
    }
}
