//! The checks of a request's head, one for each step of the wire's table. Pure: head in, refusal out.

use footbridge_core::hosts;
use http::{HeaderMap, HeaderName, Method, header, request::Parts};

use super::refusal::Refusal;

/// Where a page says from where it asks (Fetch Metadata).
static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The path that is asked for; none where something is asked for through us.
pub(crate) fn path(head: &Parts) -> &str {
    if head.uri.authority().is_some() { "" } else { head.uri.path() }
}

/// Whether it only asks whether we are here.
pub(crate) fn asks_for_health(head: &Parts) -> bool {
    path(head) == "/healthz" && (head.method == Method::GET || head.method == Method::HEAD)
}

/// What comes before everything else: names, and who may have sent it.
pub(crate) fn check_origin(head: &Parts, allowed_hosts: &[String]) -> Result<(), Refusal> {
    if head.headers.keys().any(|name| name.as_str().contains('_')) {
        return Err(Refusal::HeaderName);
    }
    let host = host(&head.headers).ok_or(Refusal::BadHost)?;
    if !host_is_allowed(host, allowed_hosts) {
        return Err(Refusal::Host);
    }
    if head.headers.contains_key(header::ORIGIN) || head.headers.contains_key(header::REFERER) {
        return Err(Refusal::WebPage);
    }
    if !head.headers.get_all(&SEC_FETCH_SITE).iter().all(|v| v == "none" || v == "same-origin") {
        return Err(Refusal::CrossSite);
    }
    Ok(())
}

/// How the body is framed: whatever it is, its length is said first.
pub(crate) fn check_framing(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.contains_key(header::TRANSFER_ENCODING) {
        return Err(Refusal::Chunked);
    }
    Ok(())
}

/// That it is a POST.
pub(crate) fn check_post(method: &Method) -> Result<(), Refusal> {
    if method != Method::POST {
        return Err(Refusal::NotPost);
    }
    Ok(())
}

/// That the body is JSON, as it is.
pub(crate) fn check_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_json = |value: &header::HeaderValue| {
        let media_type = value.to_str().ok().and_then(|text| text.split(';').next());
        media_type.is_some_and(|text| text.trim().eq_ignore_ascii_case("application/json"))
    };
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    if !matches!((types.next(), types.next()), (Some(value), None) if is_json(value)) {
        return Err(Refusal::NotJson);
    }
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(Refusal::Encoded);
    }
    Ok(())
}

/// The name or address in the one `Host` that a request must have, where it is one (RFC 9112, 3.2).
fn host(headers: &HeaderMap) -> Option<&str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return None };
    let host = host.to_str().ok()?;
    let end = match host.rfind(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(end);
    let has_port = port.is_empty() || port == ":" || port.strip_prefix(':').is_some_and(|p| p.parse::<u16>().is_ok());
    (has_port && hosts::is_uri_host(name)).then_some(name)
}

/// A page that got a name to resolve to loopback (DNS rebinding) sends its own name here.
fn host_is_allowed(name: &str, allowed: &[String]) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || hosts::address(name).is_some_and(|ip| ip.is_loopback())
        || allowed.iter().any(|a| a.eq_ignore_ascii_case(name))
}

/// The token that a request shows: its one `Authorization` header, `Bearer` (in this case, with one space) and the token.
pub(crate) fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut shown = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(header), None) = (shown.next(), shown.next()) else { return None };
    header.as_bytes().strip_prefix(b"Bearer ")
}

#[cfg(test)]
mod tests {
    use http::Request;

    use http::HeaderValue;

    use super::*;

    fn head(method: &str, uri: &str) -> Parts {
        Request::builder().method(method).uri(uri).body(()).unwrap().into_parts().0
    }

    fn status(headers: &[(&'static str, &'static str)]) -> u16 {
        let mut head = head("POST", "/");
        for (name, value) in headers {
            head.headers.append(*name, HeaderValue::from_static(value));
        }
        check_origin(&head, &["bridge.test".to_owned()]).map_or_else(|refusal| refusal.status().as_u16(), |()| 0)
    }

    #[test]
    fn only_loopback_hosts_and_those_allowed_pass() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:7179",
            "127.9.9.9:1",
            "localhost",
            "LocalHost:80",
            "[::1]:7179",
            "[::1]",
            "bridge.test:1",
            "localhost:",
        ] {
            assert_eq!(status(&[("host", host)]), 0, "{host}");
        }
        for host in [
            "example.org",
            "10.0.0.1",
            "localhost.example.org",
            "127.0.0.1.nip.io",
            "[::2]",
            "0.0.0.0",
            "%6cocalhost",
            "b%C3%BCcher.example:80",
        ] {
            assert_eq!(status(&[("host", host)]), 403, "{host}");
        }
    }

    #[test]
    fn a_host_that_is_missing_repeated_or_none_is_a_bad_request() {
        assert_eq!(status(&[]), 400);
        assert_eq!(status(&[("host", "localhost"), ("host", "localhost")]), 400);
        for host in [
            "",
            ":80",
            "localhost:x",
            "localhost:65536",
            "localhost:-1",
            "localhost:80:80",
            "user@localhost",
            "localhost/",
            "local host",
            "localhost, localhost",
            "localhost%",
            "localhost%2",
            "::1",
            "[::1",
            "[localhost]",
            "[::1]x",
            "http://localhost",
        ] {
            assert_eq!(status(&[("host", host)]), 400, "{host}");
        }
    }

    #[test]
    fn web_pages_are_refused() {
        let with = |name, value| status(&[("host", "localhost"), (name, value)]);
        assert_eq!(with("origin", "http://localhost"), 403);
        assert_eq!(with("referer", "http://localhost/"), 403);
        assert_eq!(with("sec-fetch-site", "cross-site"), 403);
        assert_eq!(with("sec-fetch-site", "same-origin"), 0);
        assert_eq!(with("x_y", "z"), 400);
    }

    #[test]
    fn paths_are_as_they_are_written_and_ours_alone() {
        for (uri, expected) in [
            ("/rpc?x=1", "/rpc"),
            ("/?x", "/"),
            ("//", "//"),
            ("/../", "/../"),
            ("http://localhost/", ""),
            ("http://evil.test/rpc", ""),
        ] {
            assert_eq!(path(&head("POST", uri)), expected, "{uri}");
        }
        assert_eq!(path(&head("CONNECT", "localhost:80")), "");
        let health = |method: &str, uri: &str| asks_for_health(&head(method, uri));
        assert!(health("GET", "/healthz") && health("HEAD", "/healthz?x"));
        assert!(!health("POST", "/healthz") && !health("GET", "/healthz/") && !health("GET", "/"));
    }

    #[test]
    fn only_json_with_a_length_goes_on() {
        let status = |headers: &[(&'static str, &'static str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, value.parse().unwrap());
            }
            let checked = check_framing(&map).and_then(|()| check_json(&map));
            checked.map_or_else(|refusal| refusal.status().as_u16(), |()| 200)
        };
        assert_eq!(status(&[("content-type", "application/json")]), 200);
        assert_eq!(status(&[("content-type", "Application/JSON; charset=utf-8")]), 200);
        assert_eq!(status(&[]), 415);
        assert_eq!(status(&[("content-type", "text/plain")]), 415);
        assert_eq!(status(&[("content-type", "application/json"), ("content-type", "text/plain")]), 415);
        assert_eq!(status(&[("content-type", "application/json"), ("content-encoding", "gzip")]), 415);
        assert_eq!(status(&[("transfer-encoding", "chunked")]), 400);
    }

    #[test]
    fn only_the_exact_header_shows_a_token() {
        let shown = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, HeaderValue::from_static(value));
            }
            token(&headers).map(<[u8]>::to_vec)
        };
        assert_eq!(shown(&["Bearer fbt_right"]).unwrap(), b"fbt_right");
        for none in [
            &[][..],
            &[""],
            &["bearer fbt_right"],
            &["fbt_right"],
            &["Bearer fbt_right", "Bearer fbt_right"],
            &["Bearer x", "Bearer fbt_right"],
            &["Basic fbt_right"],
        ] {
            assert_eq!(shown(none), None, "{none:?}");
        }
        assert_eq!(shown(&["Bearer  fbt_right "]).unwrap(), b" fbt_right ", "which is no token");
    }
}
