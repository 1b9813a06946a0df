//! The head of an answer: what of it crosses.

use footbridge_calls::service::{BegunAnswer, OpenExchange};
use footbridge_core::redact::Redactor;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, uri::Authority};

use crate::{
    answer_body::AnswerBody,
    credential::has_credential,
    passing::is_dropped,
    request::without,
    spec::{ServiceOrigin, ServiceSpec},
    websocket::WebSocket,
};

/// An answer of a service: its head as it crosses, and its body.
#[derive(Debug)]
pub struct ServiceAnswer {
    /// The status.
    pub status: StatusCode,
    /// What crosses of its headers.
    pub headers: HeaderMap,
    /// What comes behind its head.
    pub body: ServiceBody,
}

impl BegunAnswer for ServiceAnswer {
    fn recorded_by(&mut self, exchange: OpenExchange) {
        match &mut self.body {
            ServiceBody::Passes(body) => body.recorded_by(exchange),
            ServiceBody::WebSocket(websocket) => websocket.recorded_by(exchange),
        }
    }
}

/// What comes behind the head of an answer.
#[derive(Debug)]
pub enum ServiceBody {
    /// Its body.
    Passes(Box<AnswerBody>),
    /// Messages both ways: it became a WebSocket.
    WebSocket(Box<WebSocket>),
}

/// What of the headers of an answer crosses.
pub(crate) fn crossing(headers: HeaderMap, spec: &ServiceSpec, redactor: &Redactor) -> HeaderMap {
    let is_chunked = headers.contains_key(header::TRANSFER_ENCODING);
    let mut out = without_credential(without(headers, is_dropped), redactor);
    // How long a chunked body is it says itself.
    match length(&out).filter(|_| !is_chunked) {
        Some(length) => out.insert(header::CONTENT_LENGTH, length.into()),
        None => out.remove(header::CONTENT_LENGTH),
    };
    if let Some(location) = out.get(header::LOCATION).and_then(|value| rewritten(value, spec)) {
        out.insert(header::LOCATION, location);
    }
    out
}

/// The headers that do not hold the credential.
fn without_credential(headers: HeaderMap, redactor: &Redactor) -> HeaderMap {
    let is_without = |(name, value): &(&HeaderName, &HeaderValue)| !has_credential(name, value, redactor);
    let before = headers.iter().take_while(is_without).count();
    if before == headers.len() {
        return headers;
    }
    let rest = headers.iter().skip(before + 1).filter(is_without);
    headers.iter().take(before).chain(rest).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The length that headers say, where it is one: said twice alike, it is written once (RFC 9110, 8.6).
fn length(headers: &HeaderMap) -> Option<u64> {
    let all = headers.get_all(header::CONTENT_LENGTH).iter();
    let mut all = all.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).map(|one| {
        let digits =
            std::str::from_utf8(one.trim_ascii()).ok().filter(|one| one.bytes().all(|b| b.is_ascii_digit()))?;
        digits.parse::<u64>().ok()
    });
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

/// A redirection within the service, as its guest has to ask for it.
fn rewritten(location: &HeaderValue, spec: &ServiceSpec) -> Option<HeaderValue> {
    // Whoever asks as of a proxy knows the hosts themselves.
    spec.origin.authority.as_ref()?;
    let text = location.to_str().ok()?;
    let path = match below_authority(text, &spec.origin) {
        Some("") => "/",
        Some(path) => path,
        None => text,
    };
    // What begins with two slashes names another host.
    if !path.starts_with('/') || path.starts_with("//") {
        return None;
    }
    let below = path.strip_prefix(&spec.origin.base)?;
    let fits = below.is_empty() || below.starts_with(['/', '?', '#']);
    // Where it leads by its dots is the client's to find out, and would be refused.
    let whole = below.split(['?', '#']).next().unwrap_or_default();
    let climbs = whole.split('/').any(|part| part == "..");
    (fits && !climbs).then(|| HeaderValue::from_str(&format!("/s/{}{below}", spec.name)).ok())?
}

/// What stands behind an origin in an address of it; none where that is of another one.
fn below_authority<'t>(text: &'t str, origin: &ServiceOrigin) -> Option<&'t str> {
    let own = origin.authority.as_ref()?;
    let (scheme, default) = if origin.is_tls { ("https", 443) } else { ("http", 80) };
    let (said, rest) = text.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let authority: Authority = authority.parse().ok().filter(|_| !authority.contains('@'))?;
    let port = |authority: &Authority| authority.port_u16().unwrap_or(default);
    let is_own = said.eq_ignore_ascii_case(scheme)
        && authority.host().eq_ignore_ascii_case(own.host())
        && port(&authority) == port(own);
    is_own.then_some(path)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use footbridge_core::{secret::Secret, service::ServiceRules};

    use super::*;
    use crate::ErrorShape;

    fn spec(url: &str) -> ServiceSpec {
        ServiceSpec {
            name: "tracker".parse().unwrap(),
            origin: ServiceOrigin::read(url, false).unwrap(),
            credential: None,
            secrets: Vec::new(),
            lacks_credential: None,
            authorities: Vec::new(),
            allow_private: false,
            proxy: None,
            rules: Arc::new(ServiceRules::default()),
            shape: ErrorShape::Plain,
            usage: false,
            environment: Default::default(),
            git: Default::default(),
        }
    }

    #[test]
    fn a_redirection_within_the_service_goes_to_its_prefix() {
        let spec = spec("https://a.test/api");
        for (location, expected) in [
            ("https://a.test/api/v2", Some("/s/tracker/v2")),
            ("/api/v2?x=1", Some("/s/tracker/v2?x=1")),
            ("https://a.test/api", Some("/s/tracker")),
            ("https://a.test/other", None),
            ("/api/../admin", None),
            ("/api/v2?x=/../", Some("/s/tracker/v2?x=/../")),
            ("https://a.test.evil/api/v2", None),
            ("https://b.test/api/v2", None),
            ("HTTPS://A.Test/api/v2", Some("/s/tracker/v2")),
            ("https://a.test:443/api/v2", Some("/s/tracker/v2")),
            ("https://a.test:444/api/v2", None),
            ("http://a.test/api/v2", None),
            ("https://me@a.test/api/v2", None),
            ("/api/v2?at=https://b.test/x", Some("/s/tracker/v2?at=https://b.test/x")),
            ("//b.test/api", None),
            ("/apis", None),
            ("v2", None),
        ] {
            let value = HeaderValue::from_static(location);
            assert_eq!(rewritten(&value, &spec).as_ref().map(|v| v.to_str().unwrap()), expected, "{location}");
        }
        let of_tunnels = ServiceSpec { origin: ServiceOrigin::of_tunnels(), ..spec };
        for location in ["/debian/dists/", "http://a.test/x"] {
            assert_eq!(rewritten(&HeaderValue::from_static(location), &of_tunnels), None, "its client knows the host");
        }
    }

    #[test]
    fn a_length_is_one_number_or_none() {
        for (said, expected) in [
            (&["5"][..], Some(5)),
            (&["5, 5"], Some(5)),
            (&["5", " 5 "], Some(5)),
            (&["5, 6"], None),
            (&["5", "6"], None),
            (&["+5"], None),
            (&["-1"], None),
            (&["99999999999999999999"], None),
            (&[""], None),
            (&[], None),
        ] {
            let all = said.iter().map(|one| (header::CONTENT_LENGTH, HeaderValue::from_static(one)));
            let mut headers = HeaderMap::new();
            for (name, value) in all {
                headers.append(name, value);
            }
            assert_eq!(length(&headers), expected, "{said:?}");
        }
    }

    #[test]
    fn a_value_with_the_credential_stays_behind_and_the_others_of_its_name_cross() {
        for values in [["a", "s3cret-value", "b"], ["s3cret-value", "a", "b"], ["a", "b", "s3cret-value"]] {
            let mut headers = HeaderMap::new();
            for (name, value) in [("server", "x")].into_iter().chain(values.map(|value| ("x-echo", value))) {
                headers.append(name, HeaderValue::from_static(value));
            }
            headers.append("x-last", HeaderValue::from_static("y"));
            let redactor = Redactor::new(&[Secret::new("s3cret-value")]);
            let out = crossing(headers, &spec("https://a.test"), &redactor);
            let left: Vec<&str> = out.get_all("x-echo").iter().map(|value| value.to_str().unwrap()).collect();
            assert_eq!((left, redactor.replaced()), (vec!["a", "b"], 1), "{values:?}");
            assert!(out.len() == 4 && out["server"] == "x" && out["x-last"] == "y", "{out:?}");
        }
    }

    #[test]
    fn cookies_hops_and_credentials_stay_behind() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("set-cookie", "a=b"),
            ("alt-svc", "h3=\":443\""),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("x-echo", "key=s3cret-value!"),
            ("content-type", "text/plain"),
            ("content-length", "7"),
            ("vary", "a"),
            ("vary", "b"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let redactor = Redactor::new(&[Secret::new("s3cret-value")]);
        let out = crossing(headers, &spec("https://a.test"), &redactor);
        let mut names: Vec<&str> = out.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!((names, redactor.replaced()), (vec!["content-type", "vary", "vary"], 1));
    }
}
