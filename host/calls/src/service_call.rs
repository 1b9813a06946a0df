//! What a guest asks of a service, as it wrote it and as it is decided about.

use std::{borrow::Cow, collections::BTreeMap};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use footbridge_core::{
    digest::{Digest, digest_text},
    gate::rules::CONNECT,
    redact::{MARK, words::names_a_secret},
    service::RequestPath,
};
use footbridge_proto::rpc::raw;
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

/// What follows the name of a request that is to become a WebSocket.
const WEBSOCKET: &str = " (websocket)";

/// What a guest asks of a service, but for headers and body.
#[derive(Debug, Clone)]
pub struct ServiceRequest {
    /// The service's name, as it wrote it.
    pub service: String,
    /// The method.
    pub method: String,
    /// The path below the service.
    pub path: RequestPath,
    /// The query, as it wrote it.
    pub query: Option<String>,
    /// The length of the body that it says; none where it says none.
    pub length: Option<u64>,
    /// Whether it is to become a WebSocket.
    pub is_websocket: bool,
}

/// What of a request was read before anybody was asked: its headers that matter, and its body.
#[derive(Debug, Clone)]
pub struct HeldRequest {
    /// Each header that goes to the service and may change what it does, by its name, and its values.
    pub headers: BTreeMap<String, Vec<String>>,
    /// The digest of its body.
    pub digest: Digest,
    /// How long it is, bytes.
    pub bytes: usize,
    /// What is shown of it.
    pub shown: ShownBody,
}

/// What is shown of a body to whoever is asked: all of a text, and of anything else no more than tells what it may be,
/// since nobody reads the rest.
#[derive(Debug, Clone)]
pub enum ShownBody {
    /// All of it.
    Text(String),
    /// All of it, as base64, and what it begins with.
    Bytes(String, GitLines),
    /// Its beginning and its end, as base64, and what it begins with.
    Ends(String, String, GitLines),
}

/// The lines of git's protocol (pkt-lines) that a body begins with, up to the last that ends such lines: of a push, which
/// refs change from what to what. None where one of them is no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitLines(Vec<String>);

impl GitLines {
    /// Those of a body.
    fn of(bytes: &[u8]) -> Self {
        let (mut lines, mut whole, mut rest) = (Vec::new(), 0, bytes);
        let is_enough =
            |lines: &Vec<String>, rest: &[u8]| lines.len() == LINES || bytes.len() - rest.len() > LINES_BYTES;
        while let Some((digits, behind)) = rest.split_at_checked(4) {
            if is_enough(&lines, rest) {
                lines.push("... and more".to_owned());
                return Self(lines);
            }
            let digits = std::str::from_utf8(digits).ok().filter(|all| all.bytes().all(|b| b.is_ascii_hexdigit()));
            let length = digits.and_then(|all| usize::from_str_radix(all, 16).ok());
            rest = match length {
                Some(0) => {
                    whole = lines.len();
                    behind
                }
                Some(length @ 5..) => {
                    let Some((line, behind)) = behind.split_at_checked(length - 4) else { break };
                    let Ok(line) = std::str::from_utf8(line) else { break };
                    lines.push(line.trim_end_matches('\n').to_owned());
                    behind
                }
                _ => break,
            };
        }
        lines.truncate(whole);
        Self(lines)
    }
}

/// Lines of git's protocol that are shown, and the bytes that they are in.
const LINES: usize = 200;
const LINES_BYTES: usize = 64 * 1024;

/// What is shown of a body that is no text, bytes: its beginning, and its end.
const HEAD: usize = 4096;
const TAIL: usize = 1024;

impl ShownBody {
    /// What is shown of this.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) if bytes.len() <= HEAD + TAIL => Self::Bytes(BASE64_STANDARD.encode(bytes), GitLines::of(bytes)),
            Err(_) => {
                let ends = [&bytes[..HEAD], &bytes[bytes.len() - TAIL..]];
                let [head, tail] = ends.map(|end| BASE64_STANDARD.encode(end));
                Self::Ends(head, tail, GitLines::of(bytes))
            }
        }
    }
}

/// A request to a service as it is decided about, shown and recorded.
#[derive(Debug)]
pub struct ServiceCall {
    request: ServiceRequest,
    /// For people and records: values of the query that look like credentials are left out.
    name: String,
    /// All of it for a person, canonical JSON.
    shown: Box<RawValue>,
    /// The same for the record, where that is not all of it: without the body's text, and without what is left out of
    /// the name.
    recorded: Option<Box<RawValue>>,
    /// How long its body is, where that was read.
    body_bytes: Option<usize>,
    /// Which one of its service's name it was resolved to.
    revision: u64,
}

impl ServiceRequest {
    /// Whether it is a tunnel.
    #[must_use]
    pub fn is_tunnel(&self) -> bool {
        self.method == CONNECT
    }

    /// The method and the path; of a tunnel its host and port.
    #[must_use]
    pub fn label(&self) -> String {
        if self.is_tunnel() {
            return self.path.as_written().trim_start_matches('/').to_owned();
        }
        let query = self.query.as_deref().map(|query| ["?", &without_credentials(query)].concat());
        let becomes = if self.is_websocket { WEBSOCKET } else { "" };
        [&self.method, " ", self.path.as_written(), query.as_deref().unwrap_or_default(), becomes].concat()
    }
}

/// A request to a service as its name says it ([`ServiceRequest::label`]), which is no tunnel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestName<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, without the query: that is no part of what rules look at.
    pub path: &'a str,
    /// Whether it is to become a WebSocket.
    pub is_websocket: bool,
}

impl<'a> RequestName<'a> {
    /// Reads one; none if it is no method with a path.
    #[must_use]
    pub fn read(name: &'a str) -> Option<Self> {
        let rest = name.strip_suffix(WEBSOCKET);
        let (method, path) = rest.unwrap_or(name).split_once(' ')?;
        Some(Self { method, path: path.split('?').next().unwrap_or(path), is_websocket: rest.is_some() })
    }
}

impl ServiceCall {
    /// A request whose body was not looked at, to the service of its name that has this number.
    pub(crate) fn new(request: ServiceRequest, revision: u64) -> Self {
        let shown = described(&request, None, true);
        let recorded = request.query.as_ref().map(|_| described(&request, None, false));
        Self { name: request.label(), request, shown, recorded, body_bytes: None, revision }
    }

    /// The same, with what was read of it.
    pub(crate) fn holding(self, held: &HeldRequest) -> Self {
        let described = |is_whole| described(&self.request, Some(held), is_whole);
        Self { shown: described(true), recorded: Some(described(false)), body_bytes: Some(held.bytes), ..self }
    }

    /// Which one of its service's name it is for: one that was changed since is another.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// What was asked.
    pub(crate) fn request(&self) -> &ServiceRequest {
        &self.request
    }

    /// Whether it is a tunnel.
    #[must_use]
    pub fn is_tunnel(&self) -> bool {
        self.request.is_tunnel()
    }

    /// Whether it is to become a WebSocket.
    #[must_use]
    pub fn is_websocket(&self) -> bool {
        self.request.is_websocket
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.request.method
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &RequestPath {
        &self.request.path
    }

    /// The query, as it was written.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.request.query.as_deref()
    }

    /// The length of the body that it says.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.request.length
    }

    /// How long its body is, where that was read before anybody was asked.
    #[must_use]
    pub(crate) fn body_bytes(&self) -> Option<usize> {
        self.body_bytes
    }

    /// The method and the path, and the query without what looks like a credential.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All of it for a person.
    #[must_use]
    pub fn shown(&self) -> &RawValue {
        &self.shown
    }

    /// All of it that a record may have.
    pub(crate) fn recorded(&self) -> &RawValue {
        self.recorded.as_ref().unwrap_or(&self.shown)
    }

    /// The digest of all that it says.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(self.shown.get())
    }
}

/// A request as canonical JSON: its members in the order of their names.
#[derive(Serialize)]
struct Described<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<&'r BTreeMap<String, Vec<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    method: &'r str,
    path: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<Cow<'r, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    websocket: Option<bool>,
}

fn described(request: &ServiceRequest, body: Option<&HeldRequest>, is_whole: bool) -> Box<RawValue> {
    let query = |query| if is_whole { Cow::Borrowed(query) } else { Cow::Owned(without_credentials(query)) };
    raw(&Described {
        body: body.map(|body| body_described(body, is_whole)),
        headers: body.map(|body| &body.headers).filter(|all| !all.is_empty()),
        length: request.length,
        method: &request.method,
        path: request.path.as_written(),
        query: request.query.as_deref().map(query),
        websocket: request.is_websocket.then_some(true),
    })
}

fn body_described(body: &HeldRequest, is_whole: bool) -> Value {
    let mut described = json!({"bytes": body.bytes, "digest": digest_text(body.digest)});
    match &body.shown {
        _ if !is_whole => {}
        ShownBody::Text(text) => described["text"] = json!(text),
        ShownBody::Bytes(all, _) => described["base64"] = json!(all),
        ShownBody::Ends(head, tail, _) => {
            (described["base64_head"], described["base64_tail"]) = (json!(head), json!(tail));
        }
    }
    if let (true, ShownBody::Bytes(_, GitLines(lines)) | ShownBody::Ends(_, _, GitLines(lines))) =
        (is_whole, &body.shown)
        && !lines.is_empty()
    {
        described["begins"] = json!(lines);
    }
    described.sort_all_objects();
    described
}

/// Words in the names of a query's values that say that the value is a credential.
const CREDENTIALS: [&str; 14] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "signature",
    "sig",
    "credential",
    "auth",
    "authorization",
    "jwt",
    "sessionid",
];

/// Names that are such by themselves, and say something else as parts of others.
const CREDENTIAL_NAMES: [&str; 9] =
    ["assertion", "bearer", "code", "hmac", "pass", "samlresponse", "session", "sid", "ticket"];

/// A query without the values that are credentials by their names.
fn without_credentials(query: &str) -> String {
    query.split('&').map(clean_pair).collect::<Vec<_>>().join("&")
}

/// What stands between two `&`. To some readers a `;` is another, to others it belongs to the value before it.
fn clean_pair(pair: &str) -> String {
    let (mut all, mut is_hidden) = (Vec::new(), false);
    for piece in pair.split(';') {
        match piece.split_once('=') {
            Some((name, _)) if names_credential(name) => {
                is_hidden = true;
                all.push(format!("{name}={MARK}"));
            }
            None if is_hidden => {}
            _ => {
                is_hidden = false;
                all.push(piece.to_owned());
            }
        }
    }
    all.join(";")
}

fn names_credential(name: &str) -> bool {
    // An encoded name is one that somebody did not want to be read.
    let name = name.to_ascii_lowercase();
    let is_one = |word: &str| {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let one = word.strip_suffix('s').unwrap_or(word);
        CREDENTIALS.iter().any(|known| word.ends_with(known) || one.ends_with(known))
    };
    name.contains('%')
        || CREDENTIAL_NAMES.contains(&&*name)
        || names_a_secret(&name)
        || name.split(|c: char| !c.is_alphanumeric()).any(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(query: Option<&str>) -> ServiceRequest {
        ServiceRequest {
            service: "s".to_owned(),
            method: "POST".to_owned(),
            path: RequestPath::read("/v1/x").unwrap(),
            query: query.map(str::to_owned),
            length: Some(7),
            is_websocket: false,
        }
    }

    #[test]
    fn a_push_begins_with_the_refs_that_it_changes() {
        let line = |text: &str| format!("{:04x}{text}", text.len() + 4);
        let update = format!("{} {} refs/heads/main", "0".repeat(40), "a".repeat(40));
        let of = |begins: String, pack: &[u8]| GitLines::of(&[begins.as_bytes(), pack].concat()).0;
        let begins = line(&format!("{update}\0 report-status\n"));
        let pack = b"PACK\x00\x00\x00\x02\xff\xfe";
        assert_eq!(of(format!("{begins}0000"), pack), [format!("{update}\0 report-status")]);
        assert_eq!(of(format!("{begins}0000{}0000", line("option")), pack).len(), 2);
        // What does not end may be less than all of them.
        assert_eq!(of(begins.clone(), pack), Vec::<String>::new());
        assert_eq!(of(format!("{begins}0001"), pack), Vec::<String>::new());
        assert_eq!(of("+005x0000".to_owned(), pack), Vec::<String>::new());
        let cut = [line("ab").as_bytes(), b"0006\xff\xfe0000"].concat();
        assert_eq!(GitLines::of(&cut).0, Vec::<String>::new(), "one is no text");
        let shown = ShownBody::of(&[format!("{begins}0000").as_bytes(), pack].concat());
        let held = HeldRequest { headers: BTreeMap::new(), digest: Digest::of("x"), bytes: 9, shown };
        assert_eq!(body_described(&held, true)["begins"][0], format!("{update}\0 report-status"));
        assert!(body_described(&held, false).get("begins").is_none(), "not in records");
    }

    #[test]
    fn values_of_a_query_go_by_their_names() {
        for (query, clean) in [
            ("beta=true&page=2", "beta=true&page=2"),
            ("api_key=abc&x=1", "api_key=[redacted]&x=1"),
            ("X-Amz-Signature=abc", "X-Amz-Signature=[redacted]"),
            ("accessToken=a=b", "accessToken=[redacted]"),
            ("%6bey=abc", "%6bey=[redacted]"),
            ("monkey", "monkey"),
            ("user[password]=a&token[]=b&page[size]=2", "user[password]=[redacted]&token[]=[redacted]&page[size]=2"),
            ("a=1;token=x;b=2", "a=1;token=[redacted];b=2"),
            ("sig=abc;def;x=1&y=2", "sig=[redacted];x=1&y=2"),
            ("country_code=CH&zipcode=1&bypass=2", "country_code=CH&zipcode=1&bypass=2"),
            (
                "pwd=a&passphrase=b&jwt=c&tokens=d&Password1=e&sessionid=f&code=g",
                "pwd=[redacted]&passphrase=[redacted]&jwt=[redacted]&tokens=[redacted]&Password1=[redacted]&sessionid=[redacted]&code=[redacted]",
            ),
        ] {
            assert_eq!(without_credentials(query), clean, "{query}");
        }
    }

    #[test]
    fn a_body_that_is_no_text_is_told_from_others_and_from_texts() {
        let shown = |bytes: &[u8]| {
            let held = HeldRequest {
                digest: Digest::of(bytes),
                bytes: bytes.len(),
                shown: ShownBody::of(bytes),
                headers: BTreeMap::new(),
            };
            ServiceCall::new(request(None), 1).holding(&held).shown().get().to_owned()
        };
        assert!(shown(b"\xff\xfe").starts_with(r#"{"body":{"base64":"//4=","bytes":2,"#));
        let long = shown(&[0xff; 9000]);
        assert!(long.starts_with(r#"{"body":{"base64_head":"////"#) && long.contains(r#","base64_tail":"////"#));
        assert!(long.len() < 8000);
        assert!(shown(br#"","base64_head":"x"#).contains(r#""text":"\",\"base64_head\":\"x""#), "a text cannot say so");
    }

    #[test]
    fn a_person_sees_all_of_it_and_the_record_no_body() {
        let text = "be\"gin".repeat(2000);
        let shown = ShownBody::of(text.as_bytes());
        let body = HeldRequest { digest: Digest::of("b"), bytes: 9000, shown, headers: BTreeMap::new() };
        let call = ServiceCall::new(request(Some("key=k")), 1).holding(&body);
        assert!(call.shown().get().contains(&json!({"text": text}).to_string()[1..]), "to the last byte");
        assert!(call.shown().get().contains("key=k"));
        assert!(!call.recorded().get().contains("gin") && !call.recorded().get().contains("key=k"));
        assert_eq!(call.name(), "POST /v1/x?key=[redacted]");
        assert_ne!(call.digest(), ServiceCall::new(request(Some("key=k")), 1).digest());
        assert_ne!(
            ServiceCall::new(request(Some("key=l")), 1).digest(),
            ServiceCall::new(request(Some("key=k")), 1).digest()
        );
        let headers = BTreeMap::from([("x-target".to_owned(), vec!["Delete".to_owned()])]);
        let other = ServiceCall::new(request(Some("key=k")), 1).holding(&HeldRequest { headers, ..body });
        assert!(
            other.shown().get().contains(r#""headers":{"x-target":["Delete"]}"#) && other.digest() != call.digest()
        );
        let socket = ServiceCall::new(ServiceRequest { is_websocket: true, ..request(Some("key=k")) }, 1);
        assert_eq!(socket.name(), "POST /v1/x?key=[redacted] (websocket)");
        for query in [None, Some("q=1"), Some("q=a?b")] {
            for is_websocket in [false, true] {
                let call = ServiceCall::new(ServiceRequest { is_websocket, ..request(query) }, 1);
                let read = RequestName { method: "POST", path: "/v1/x", is_websocket };
                assert_eq!(RequestName::read(call.name()), Some(read), "{}", call.name());
            }
        }
        assert_eq!(RequestName::read("packages.example:443"), None);
        assert_ne!(socket.digest(), ServiceCall::new(request(Some("key=k")), 1).digest());
    }
}
