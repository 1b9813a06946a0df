//! The head of a request: what of it crosses, and what is put in. What goes upstream is built anew from its parts.

use std::{borrow::Cow, collections::BTreeMap};

use footbridge_core::redact::words::speaks_of_secrets;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header};
use hyper::body::{Body as _, Incoming};

use crate::{
    spec::ServiceSpec,
    upload::{Tally, Upload, UploadBounds, Uploaded},
};

/// Headers and body of a request, as a guest sent them.
#[derive(Debug)]
pub struct Parcel {
    /// The method.
    pub method: Method,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Upload,
}

impl Parcel {
    /// Of a request whose body has not been read.
    #[must_use]
    pub fn new(method: Method, headers: HeaderMap, body: Incoming) -> Self {
        Self { method, headers, body: Upload::new(body) }
    }

    /// The headers that cross and may change what the service does, for whoever is asked about the request: each by its
    /// name. What differs from one attempt to the next and changes nothing is left out, or nobody could agree to it once.
    pub(crate) fn headers_that_matter(&self) -> BTreeMap<String, Vec<String>> {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in without(self.headers.clone(), stays).iter().filter(|(name, _)| matters(name.as_str())) {
            all.entry(name.as_str().to_owned()).or_default().push(shown(value));
        }
        all
    }

    /// Keeps the headers that go to the service as its guest said them, and says whether that takes trailers.
    pub(crate) fn keep_own_headers(&mut self) -> bool {
        let takes_trailers = takes_trailers(&self.headers);
        self.headers = without(std::mem::take(&mut self.headers), stays);
        takes_trailers
    }

    /// The request to the service, of which its own headers are kept by now, and what counts its body.
    pub(crate) fn into_request(
        self,
        takes_trailers: bool,
        spec: &ServiceSpec,
        uri: Uri,
        bounds: UploadBounds,
    ) -> Option<(Request<Box<Uploaded>>, std::sync::Arc<Tally>)> {
        let (body, tally) = self.body.into_body(bounds)?;
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = uri;
        *request.version_mut() = Version::HTTP_11;
        *request.headers_mut() = crossing(self.headers, takes_trailers, spec);
        // Without that word, what one of these has of unknown length is taken for nothing. HTTP/2 leaves it out.
        let has_seldom_one = matches!(*request.method(), Method::GET | Method::HEAD);
        if has_seldom_one && !request.body().is_end_stream() && request.body().size_hint().exact().is_none() {
            request.headers_mut().insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        Some((request, tally))
    }
}

/// Headers that can hold a credential, besides those whose name speaks of a secret. None of them crosses.
pub(crate) const CREDENTIALS: [&str; 15] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "private-token",
    "job-token",
    "deploy-token",
    "x-auth-token",
    "x-access-token",
    "x-auth-key",
    "x-functions-key",
    "ocp-apim-subscription-key",
    "cookie",
    "cookie2",
];

/// Headers of one connection alone (RFC 9110, 7.6.1), and those that are made anew.
const OF_ONE_HOP: [&str; 13] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
    "expect",
    "host",
    "content-length",
    "via",
];

/// Headers by which somebody on the way says who asks: nothing about the guest is said, nor believed.
const OF_THE_WAY: [&str; 16] = [
    "proxy",
    "forwarded",
    "x-forwarded",
    "x-real-ip",
    "x-client-ip",
    "client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "fastly-client-ip",
    "x-cluster-client-ip",
    "remote-user",
    "x-remote-user",
    "x-webauth-user",
    "x-authenticated-user",
    "x-remote-group",
];

/// Headers by which a request would be another one than was decided about, or another user's, at origins that obey them.
const OVERRIDES: [&str; 7] = [
    "x-http-method",
    "x-http-verb",
    "x-envoy-original-path",
    "x-waws-unencoded-url",
    "x-host",
    "x-middleware-subrequest",
    "sudo",
];

/// How the names of more such headers begin.
const STARTS: [&str; 12] = [
    "x-forwarded-",
    "x-original-",
    "x-rewrite-",
    "x-accel-",
    "x-remote-",
    "x-goog-authenticated-",
    "x-ms-client-principal",
    "x-ssl-client-",
    "ssl-client-",
    "cf-access-",
    "tailscale-",
    "impersonate-",
];

/// Whether a header stays behind for its name alone. To gateways of the kind of CGI, `_` is `-`.
fn stays(name: &str) -> bool {
    let plain = if name.contains('_') { Cow::Owned(name.replace('_', "-")) } else { Cow::Borrowed(name) };
    [&CREDENTIALS[..], &OF_ONE_HOP, &OF_THE_WAY, &OVERRIDES].iter().any(|all| all.contains(&&*plain))
        || STARTS.iter().any(|start| plain.starts_with(start))
        || plain.contains("-override")
        || speaks_of_secrets(name)
}

/// Headers that say who asks, in which form an answer is liked, or which attempt and trace a request is of. They change
/// nothing of what is done.
const OF_NO_MATTER: [&str; 31] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "user-agent",
    "date",
    "dnt",
    "priority",
    "cache-control",
    "pragma",
    "traceparent",
    "tracestate",
    "baggage",
    "b3",
    "sentry-trace",
    "request-id",
    "x-request-id",
    "x-client-request-id",
    "x-correlation-id",
    "x-amzn-trace-id",
    "amz-sdk-invocation-id",
    "amz-sdk-request",
    "x-amz-date",
    "x-ms-date",
    "x-ms-client-request-id",
    "x-cloud-trace-context",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-extensions",
    "idempotency-key",
    "x-idempotency-key",
];

/// How the names of more such headers begin.
const OF_NO_MATTER_STARTS: [&str; 5] = ["x-stainless-", "sec-fetch-", "sec-ch-", "x-b3-", "x-datadog-"];

fn matters(name: &str) -> bool {
    !OF_NO_MATTER.contains(&name) && !OF_NO_MATTER_STARTS.iter().any(|start| name.starts_with(start))
}

/// Where clients put a key by itself.
static KEYS: [HeaderName; 4] = [
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("private-token"),
];

/// Whether clients put a key into a header of this name. What is of a proxy is so to one alone.
#[must_use]
pub fn may_hold_key(name: &HeaderName, of_proxy: bool) -> bool {
    name == header::AUTHORIZATION || KEYS.contains(name) || of_proxy && name == header::PROXY_AUTHORIZATION
}

/// The credentials that a head shows, in the order in which they are looked at: what may be the session's token.
#[must_use]
pub fn credentials(headers: &HeaderMap) -> Vec<Cow<'_, [u8]>> {
    let mut shown = Vec::new();
    for value in headers.get_all(header::AUTHORIZATION) {
        shown.extend(authorized_by(value.as_bytes()));
    }
    for name in &KEYS {
        shown.extend(headers.get_all(name).iter().map(|value| Cow::Borrowed(value.as_bytes())));
    }
    shown
}

/// What stands behind the scheme of an `Authorization`. Clients of GitHub write `token` for `Bearer`.
#[must_use]
pub fn authorized_by(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some(blank) = value.iter().position(|byte| *byte == b' ') else { return Some(value.into()) };
    let (scheme, rest) = (&value[..blank], &value[blank + 1..]);
    if scheme.eq_ignore_ascii_case(b"basic") {
        password(rest).map(Cow::Owned)
    } else if [&b"bearer"[..], b"token"].iter().any(|one| scheme.eq_ignore_ascii_case(one)) {
        Some(rest.into())
    } else {
        Some(value.into())
    }
}

/// The password of Basic authentication.
fn password(basic: &[u8]) -> Option<Vec<u8>> {
    use base64::Engine as _;
    let pair = base64::engine::general_purpose::STANDARD.decode(basic).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

/// Takes out the headers whose names are of those, and those that `Connection` takes for this hop alone.
pub(crate) fn without(mut headers: HeaderMap, is_one: impl Fn(&str) -> bool) -> HeaderMap {
    let values = headers.get_all(header::CONNECTION).iter();
    let named: Vec<&[u8]> = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).collect();
    let is_named = |name: &str| named.iter().any(|one| one.trim_ascii().eq_ignore_ascii_case(name.as_bytes()));
    let those = headers.keys().filter(|name| is_one(name.as_str()) || is_named(name.as_str()));
    for name in those.cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
    headers
}

/// A header's value as a text that no other value has: what is no visible ASCII, and what introduces it, is escaped.
fn shown(value: &HeaderValue) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.as_bytes() {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(char::from(*byte)),
            other => text.push_str(&format!("\\x{other:02x}")),
        }
    }
    text
}

/// Whether a guest takes what stands behind a body.
fn takes_trailers(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::TE).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case("trailers"))
}

/// What goes to the service: these headers of its guest's, and its credential.
fn crossing(mut out: HeaderMap, takes_trailers: bool, spec: &ServiceSpec) -> HeaderMap {
    if takes_trailers {
        // `Connection` does not name it: in HTTP/2 that would take it away again, and whether it is that is not known yet.
        out.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    if spec.usage || spec.credential.is_some() {
        // What is compressed says nothing of its use, and a credential in it would not be seen.
        out.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if let Some((name, value)) = &spec.credential {
        let mut value = value.clone();
        value.set_sensitive(true);
        out.insert(name.clone(), value);
    }
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use footbridge_core::service::ServiceRules;

    use super::*;
    use crate::{ErrorShape, ServiceOrigin};

    pub(crate) fn spec() -> ServiceSpec {
        let value = HeaderValue::from_static("the real key");
        ServiceSpec {
            name: "s".parse().unwrap(),
            origin: ServiceOrigin::read("https://a.test", false).unwrap(),
            credential: Some((HeaderName::from_static("x-api-key"), value)),
            secrets: Vec::new(),
            lacks_credential: None,
            authorities: Vec::new(),
            allow_private: false,
            proxy: None,
            rules: Arc::new(ServiceRules::default()),
            shape: ErrorShape::Plain,
            usage: true,
            environment: Default::default(),
            git: Default::default(),
        }
    }

    fn sent(given: &HeaderMap, spec: &ServiceSpec) -> HeaderMap {
        crossing(without(given.clone(), stays), takes_trailers(given), spec)
    }

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in all {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn neither_credentials_nor_what_is_of_one_hop_crosses() {
        let given = headers(&[
            ("x-api-key", "fbt_x"),
            ("authorization", "Bearer fbt_x"),
            ("cookie", "a=b"),
            ("private-token", "x"),
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("transfer-encoding", "chunked"),
            ("content-length", "7"),
            ("host", "127.0.0.1"),
            ("upgrade", "websocket"),
            ("te", "trailers, deflate"),
            ("x-http-method-override", "DELETE"),
            ("x-original-url", "/admin"),
            ("x-amz-security-token", "x"),
            ("x-auth-key", "x"),
            ("idempotency-key", "7"),
            ("x-forwarded-for", "10.0.0.1"),
            ("forwarded", "for=1"),
            ("accept-encoding", "gzip"),
            ("anthropic-beta", "b"),
            ("content-type", "application/json"),
            ("anthropic-beta", "c"),
        ]);
        let out = sent(&given, &spec());
        let mut names: Vec<String> =
            out.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap())).collect();
        names.sort();
        let expected = [
            "accept-encoding=identity",
            "anthropic-beta=b",
            "anthropic-beta=c",
            "content-type=application/json",
            "idempotency-key=7",
            "te=trailers",
            "x-api-key=the real key",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn what_connection_names_stays_whatever_stands_beside_it() {
        let mut given = headers(&[("x-mine", "1"), ("x-other", "2")]);
        given.insert("connection", HeaderValue::from_bytes(b"X-Mine, \xff").unwrap());
        let out = sent(&given, &spec());
        assert!(!out.contains_key("x-mine") && out.contains_key("x-other"), "{out:?}");
    }

    #[test]
    fn what_connection_names_takes_no_credential_of_the_host_away() {
        for named in ["close, X-Api-Key", "x-api-key"] {
            let out = sent(&headers(&[("connection", named), ("x-api-key", "fbt_x")]), &spec());
            assert_eq!(out.get_all("x-api-key").iter().collect::<Vec<_>>(), ["the real key"], "{named}");
            assert!(!out.contains_key("connection"), "{named}: {out:?}");
        }
    }

    #[test]
    fn neither_crosses_what_makes_another_request_of_it_or_says_who_asks() {
        for name in [
            "x-http-method-override",
            "x-http-method",
            "x-method-override",
            "x-original-method",
            "x-original-url",
            "x-original-uri",
            "x-original-host",
            "x-override-url",
            "x-rewrite-url",
            "x-rewrite-path",
            "x-http-path-override",
            "x-http-host-override",
            "x-envoy-original-path",
            "x-waws-unencoded-url",
            "x-host",
            "x_original_url",
            "content_length",
            "sudo",
            "impersonate-user",
            "impersonate-extra-scopes",
            "remote-user",
            "true-client-ip",
            "cf-connecting-ip",
            "x-cluster-client-ip",
            "x-forwarded-host",
            "proxy",
            "x-http-verb",
            "x-accel-redirect",
            "x-middleware-subrequest",
            "x-goog-authenticated-user-email",
            "x-ms-client-principal-name",
            "cf-access-authenticated-user-email",
            "tailscale-user-login",
            "x-ssl-client-s-dn",
        ] {
            assert!(!sent(&headers(&[(name, "x")]), &spec()).contains_key(name), "{name}");
        }
        for name in ["x-request-id", "x-original", "overrides", "openai-organization", "x-goog-user-project", "x_mine"]
        {
            assert!(sent(&headers(&[(name, "x")]), &spec()).contains_key(name), "{name}");
        }
    }

    #[test]
    fn no_two_values_of_a_header_are_shown_alike() {
        let bytes = |value: &[u8]| shown(&HeaderValue::from_bytes(value).unwrap());
        assert_eq!(bytes(b"\"abc\", 'x'"), "\"abc\", 'x'");
        assert_eq!(bytes(b"/caf\xc3\xa9"), "/caf\\xc3\\xa9");
        assert_eq!(bytes(b"/caf\\xc3\\xa9"), "/caf\\\\xc3\\\\xa9");
    }

    #[test]
    fn a_guest_chooses_how_answers_are_encoded_only_where_nothing_is_looked_for_in_them() {
        let given = headers(&[("accept-encoding", "gzip")]);
        let encoding = |spec: &ServiceSpec| sent(&given, spec)[header::ACCEPT_ENCODING].clone();
        assert_eq!(encoding(&ServiceSpec { usage: false, ..spec() }), "identity");
        assert_eq!(encoding(&ServiceSpec { credential: None, ..spec() }), "identity");
        assert_eq!(encoding(&ServiceSpec { usage: false, credential: None, ..spec() }), "gzip");
    }

    #[test]
    fn a_token_is_looked_for_where_clients_put_keys() {
        for (name, value, token) in [
            ("authorization", "Bearer t", "t"),
            ("authorization", "Basic dXNlcjp0OnU=", "t:u"),
            ("authorization", "t", "t"),
            ("authorization", "token t", "t"),
            ("authorization", "BEARER t", "t"),
            ("x-api-key", "t", "t"),
            ("api-key", "t", "t"),
            ("x-goog-api-key", "t", "t"),
            ("private-token", "t", "t"),
        ] {
            assert_eq!(credentials(&headers(&[(name, value)])), [token.as_bytes()], "{name} {value}");
        }
        for (name, value) in [("cookie", "t"), ("authorization", "Basic !"), ("authorization", "Basic dQ==")] {
            assert!(credentials(&headers(&[(name, value)])).is_empty(), "{name} {value}");
        }
    }
}
