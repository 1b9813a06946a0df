//! The checks of a request's head, in the order of the wire's table. Pure: head in, refusal out.

use std::net::IpAddr;

use footbridge_proto::rpc::{ErrorCode, ErrorObject, Reason};
use http::{HeaderMap, Method, StatusCode, header, request::Parts};

/// Why a head is refused, with what the guest is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) body: RefusalBody,
    /// Whether nothing more may be read from this connection.
    pub(crate) close: bool,
}

/// What a refusal says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RefusalBody {
    /// `{"error": "..."}`, which is not JSON-RPC.
    Short(&'static str),
    /// A JSON-RPC error with a null id.
    Rpc(ErrorObject),
}

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Rpc,
    Health,
}

fn short(status: StatusCode, text: &'static str) -> Refusal {
    Refusal { status, body: RefusalBody::Short(text), close: false }
}

/// An early JSON-RPC refusal.
pub(crate) fn rpc(status: StatusCode, message: &str) -> Refusal {
    let error = ErrorObject::with_code(ErrorCode::InvalidRequest, Reason::BadRequest, message);
    Refusal { status, body: RefusalBody::Rpc(error), close: false }
}

/// What comes before the token: names, origin, path and method.
pub(crate) fn before_auth(head: &Parts, allowed_hosts: &[String]) -> Result<Route, Refusal> {
    if head.headers.keys().any(|name| name.as_str().contains('_')) {
        return Err(Refusal { close: true, ..short(StatusCode::BAD_REQUEST, "Header names with _ are refused") });
    }
    if !host_is_allowed(&head.headers, allowed_hosts) {
        return Err(short(StatusCode::FORBIDDEN, "Host not allowed"));
    }
    if head.headers.contains_key(header::ORIGIN) || head.headers.contains_key(header::REFERER) {
        return Err(short(StatusCode::FORBIDDEN, "Requests from web pages are refused"));
    }
    if !head.headers.get_all("sec-fetch-site").iter().all(|v| v == "none" || v == "same-origin") {
        return Err(short(StatusCode::FORBIDDEN, "Cross-site requests are refused"));
    }
    let path = if head.uri.authority().is_some() { "" } else { head.uri.path() };
    match path {
        "/healthz" if head.method == Method::GET || head.method == Method::HEAD => Ok(Route::Health),
        "/" | "/rpc" if head.method != Method::POST => Err(rpc(StatusCode::METHOD_NOT_ALLOWED, "Only POST accepted")),
        "/" | "/rpc" => Ok(Route::Rpc),
        _ => Err(short(StatusCode::NOT_FOUND, "Not found")),
    }
}

/// What comes after the token: how the body is framed and what it is.
pub(crate) fn before_body(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.contains_key(header::TRANSFER_ENCODING) {
        let refusal = short(StatusCode::BAD_REQUEST, "Transfer-Encoding is refused: send Content-Length");
        return Err(Refusal { close: true, ..refusal });
    }
    let is_json = |value: &header::HeaderValue| {
        let media_type = value.to_str().ok().and_then(|text| text.split(';').next());
        media_type.is_some_and(|text| text.trim().eq_ignore_ascii_case("application/json"))
    };
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    if !matches!((types.next(), types.next()), (Some(value), None) if is_json(value)) {
        return Err(short(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json"));
    }
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(short(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Encoding is refused"));
    }
    Ok(())
}

/// A page that got a name to resolve to loopback (DNS rebinding) sends its own name here.
fn host_is_allowed(headers: &HeaderMap, allowed: &[String]) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Ok(host) = host.to_str() else { return false };
    let Some(name) = without_port(host) else { return false };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|ip| ip.is_loopback())
        || allowed.iter().any(|a| a.eq_ignore_ascii_case(name))
}

fn without_port(host: &str) -> Option<&str> {
    let end = match host.rfind(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(end);
    let fits = port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.parse::<u16>().is_ok());
    fits.then_some(name)
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

    fn status(method: &str, uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut builder = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        let head = builder.body(()).unwrap().into_parts().0;
        match before_auth(&head, &["bridge.test".to_owned()]) {
            Ok(Route::Rpc) => 0,
            Ok(Route::Health) => 1,
            Err(refusal) => refusal.status.as_u16(),
        }
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
        ] {
            assert_eq!(status("POST", "/", &[("host", host)]), 0, "{host}");
        }
        for host in [
            "example.org",
            "10.0.0.1",
            "localhost.example.org",
            "127.0.0.1.nip.io",
            "",
            "localhost:x",
            "[::2]",
            "0.0.0.0",
        ] {
            assert_eq!(status("POST", "/", &[("host", host)]), 403, "{host}");
        }
        assert_eq!(status("POST", "/", &[]), 403);
        assert_eq!(status("POST", "/", &[("host", "localhost"), ("host", "localhost")]), 403);
    }

    #[test]
    fn web_pages_are_refused_before_anything_else() {
        let with = |name: &str, value: &str| status("GET", "/nowhere", &[("host", "localhost"), (name, value)]);
        assert_eq!(with("origin", "http://localhost"), 403);
        assert_eq!(with("referer", "http://localhost/"), 403);
        assert_eq!(with("sec-fetch-site", "cross-site"), 403);
        assert_eq!(with("sec-fetch-site", "same-origin"), 404);
    }

    #[test]
    fn paths_come_before_methods() {
        let on = |method: &str, uri: &str| status(method, uri, &[("host", "localhost")]);
        assert_eq!((on("POST", "/"), on("POST", "/rpc?x=1"), on("POST", "/?x")), (0, 0, 0));
        assert_eq!((on("GET", "/"), on("DELETE", "/rpc"), on("POST", "/healthz")), (405, 405, 404));
        assert_eq!((on("GET", "/healthz"), on("HEAD", "/healthz")), (1, 1));
        for uri in ["/x", "//", "/rpc/", "/./", "/../", "http://localhost/", "http://evil.test/rpc", "/mcp"] {
            assert_eq!(on("POST", uri), 404, "{uri}");
        }
        assert_eq!(on("CONNECT", "localhost:80"), 404);
    }

    #[test]
    fn only_json_with_a_length_goes_on() {
        let status = |headers: &[(&'static str, &'static str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, value.parse().unwrap());
            }
            before_body(&map).map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
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
