//! Services as a hostile guest and a hostile origin meet over them: what crosses, what does not, and what is recorded.

mod budgets;
mod changes;
mod crowds;
mod early;
mod ends;
mod guesses;
mod heads;
mod http2;
mod lengths;
mod origin;
mod proxies;
mod refusals;
mod tunnels;
mod waiting;
mod websockets;

use std::{collections::BTreeSet, fmt::Write as _, fs, io::Read as _, sync::Arc};

use footbridge::{
    config::{Config, Variables, folders::Folders, load},
    harness::Harness,
};
use footbridge_calls::{approval::Answer as Decided, operator::Operator, session::SessionSpec};
use footbridge_core::{gate::Policy, names::ServerName, random::new_token};
use footbridge_edge::listener::{Listen, Listener, Listeners};
use footbridge_processes::launch::Launcher;
use footbridge_proto::{
    approval::ApprovalStatus,
    endpoint::{Endpoint, TcpEndpoint},
};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::{
    bridge::{Door, LONG, Records, eventually},
    client::{Answer, Client, head},
};
use origin::{KEY, TlsOrigin, tls};

/// A harness with services at an origin, and one session that may use them.
struct Services {
    runtime: Runtime,
    harness: Option<Harness>,
    records: Records,
    origin: TlsOrigin,
    /// The port of an origin without TLS.
    plain: u16,
    policy: Arc<Policy>,
    door: Door,
}

/// What the configuration says besides the services, where a test says nothing else.
const LIMITS: &str = "[limits.services]\nsilence_time = \"2s\"\nrequest_bytes = \"64 KiB\"\nasked_bytes = \"4 KiB\"\n";

impl Services {
    fn start(policy: &str, more: &str) -> Self {
        Self::start_with(policy, |_, _| more.to_owned())
    }

    /// The same; what the configuration says more may name the origin and the file of its authority.
    fn start_with(policy: &str, more: impl FnOnce(&TlsOrigin, &str) -> String) -> Self {
        let origin = TlsOrigin::start();
        let folder = tempfile::tempdir().unwrap();
        let (authority, other) = (folder.path().join("ca.pem"), folder.path().join("other.pem"));
        fs::write(&authority, &origin.authority).unwrap();
        fs::write(&other, tls(&[]).0).unwrap();
        let more = more(&origin, &authority.display().to_string());
        let limits = if more.contains("[limits.services]") { "" } else { LIMITS };
        let mut text = format!("{limits}{more}\n");
        for (name, ca, rest) in [
            ("tracker", &authority, "requests = [\"* /**\"]"),
            ("narrow", &authority, "requests = [\"GET /v2/**\", \"POST /v2/issues\"]"),
            ("stranger", &other, ""),
        ] {
            let (port, ca) = (origin.port, ca.display());
            writeln!(
                text,
                "[services.{name}]\nurl = \"https://localhost:{port}/api\"\nheader = \"x-api-key\"\n\
                 credential = \"{KEY}\"\nca_file = \"{ca}\"\n{rest}"
            )
            .unwrap();
        }
        let (port, ca, plain) = (origin.port, authority.display(), tunnels::plain_origin());
        if !more.contains("[tunnels]") {
            let allowed = format!("allow = [\"localhost:{port}\"]\nplain = [\"localhost:{plain}\"]");
            writeln!(text, "[tunnels]\n{allowed}\nallow_private = true").unwrap();
        }
        writeln!(
            text,
            "[services.model]\npreset = \"anthropic\"\nurl = \"https://localhost:{port}/api\"\ncredential = \"{KEY}\"\n\
             ca_file = \"{ca}\"\n[services.hidden]\nurl = \"https://localhost:{port}\"\n\
             [services.closed]\nurl = \"https://localhost:1\"\n[services.bare]\nurl = \"https://localhost:{plain}\"\n"
        )
        .unwrap();
        let file = folder.path().join("footbridge.toml");
        fs::write(&file, text).unwrap();
        let folders = Folders { config: folder.path().to_owned(), ..Folders::find(0, |_| None).unwrap() };
        let config: Config = load(&[file], &folders, &Variables::of_this_process()).unwrap();
        let policy = config.policies.get(policy).unwrap();
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let inside = runtime.enter();
        let records = Records::default();
        let harness = Harness::start(config, records.clone(), Launcher::default(), None, None).unwrap();
        let door = opened(&harness, "test", &policy);
        drop(inside);
        Self { runtime, harness: Some(harness), records, origin, plain, policy, door }
    }

    /// Where another session is let in.
    fn another(&self) -> Door {
        let _inside = self.runtime.enter();
        opened(self.harness.as_ref().unwrap(), "another", &self.policy)
    }

    fn open() -> Self {
        Self::start("open", "")
    }

    /// Lets another session in there, and gives its token.
    fn also_at(&self, endpoint: Endpoint) -> String {
        let _inside = self.runtime.enter();
        let listener = Listeners::default().bind(&Listen::at(endpoint)).unwrap();
        opened_at(self.harness.as_ref().unwrap(), "elsewhere", &self.policy, listener)
    }

    /// The header that opens, as an SDK sends it.
    fn key(&self) -> String {
        format!("x-api-key: {}", self.door.token)
    }

    fn connect(&self) -> Client {
        Client::connect(self.door.address)
    }

    /// Sends a head with the key, and a body whose length it says.
    fn ask(&self, line: &str, headers: &[&str], body: &str) -> Answer {
        let (key, length) = (self.key(), format!("Content-Length: {}", body.len()));
        let mut all: Vec<&str> = headers.to_vec();
        all.push(&key);
        if !body.is_empty() {
            all.push(&length);
        }
        let mut client = self.connect();
        client.send(head(&format!("{line} HTTP/1.1"), &all) + body);
        client.answer()
    }

    fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET /s/tracker{path}"), &[], "")
    }

    /// The record of the only intent and its outcome.
    fn outcome(&self) -> (Value, Value) {
        let find = |kind: &str| self.records.lines().into_iter().find(|line| line["type"] == kind);
        let outcome = eventually(|| find("outcome"));
        (find("intent").unwrap(), outcome)
    }
}

/// A session of this name that may use all services but one.
fn opened(harness: &Harness, name: &str, policy: &Arc<Policy>) -> Door {
    let listener = Listeners::default().bind(&Listen::at(Endpoint::Tcp(TcpEndpoint::loopback(0)))).unwrap();
    let Endpoint::Tcp(tcp) = listener.endpoint().unwrap() else { panic!("not TCP") };
    Door { address: tcp.primary(), token: opened_at(harness, name, policy, listener) }
}

fn opened_at(harness: &Harness, name: &str, policy: &Arc<Policy>, listener: Listener) -> String {
    let token = new_token().unwrap();
    let names = ["tracker", "narrow", "stranger", "model", "closed", "bare", "tunnels", "second"];
    let services: BTreeSet<ServerName> = names.iter().map(|name| name.parse().unwrap()).collect();
    let spec = SessionSpec { services, ..SessionSpec::new(name.parse().unwrap(), &token, Arc::clone(policy)) };
    harness.open(spec, vec![listener]).unwrap();
    token.expose().to_owned()
}

impl Drop for Services {
    fn drop(&mut self) {
        if let Some(harness) = self.harness.take() {
            // A record that a test breaks is its own to look at.
            let _recorded = self.runtime.block_on(harness.stop());
        }
    }
}

/// Sends a head whose answer has no length, and gives its head and the client.
fn begun(services: &Services, path: &str) -> (Client, String) {
    let mut client = services.connect();
    client.send(head(&format!("GET /s/tracker{path} HTTP/1.1"), &[&services.key()]));
    let begun = client.head().unwrap();
    (client, begun)
}

#[test]
fn a_request_goes_with_the_real_key_and_its_record_has_no_body() {
    let services = Services::open();
    let headers =
        ["anthropic-beta: b", "Cookie: a=b", "X-Forwarded-For: 1.2.3.4", "Connection: keep-alive, X-Mine", "X-Mine: 1"];
    let answer = services.ask("POST /s/tracker/echo?page=2&api_key=abc", &headers, "hello");
    assert_eq!(answer.status, 200);
    let [received] = &services.origin.received()[..] else { panic!("not one request") };
    assert!(received.head.starts_with("POST /api/echo?page=2&api_key=abc HTTP/1.1\r\n"), "{}", received.head);
    let lower = received.head.to_ascii_lowercase();
    assert!(lower.contains(&format!("\r\nhost: localhost:{}\r\n", services.origin.port)), "{lower}");
    assert!(lower.contains(&format!("\r\nx-api-key: {KEY}\r\n")) && lower.contains("\r\nanthropic-beta: b\r\n"));
    for gone in ["fbt_", "cookie", "x-forwarded-for", "x-mine"] {
        assert!(!lower.contains(gone), "{gone}: {lower}");
    }
    assert_eq!(received.body, b"hello");
    let (intent, outcome) = services.outcome();
    assert_eq!((&intent["kind"], &intent["server"]), (&"http".into(), &"tracker".into()));
    assert_eq!(intent["name"], "POST /echo?page=2&api_key=[redacted]");
    assert_eq!((&intent["length"], &intent["effects"]), (&5.into(), &serde_json::json!(["write", "egress"])));
    assert_eq!((&outcome["outcome"], &outcome["status"], &outcome["sent"]), (&"ok".into(), &200.into(), &5.into()));
    assert_eq!(outcome["id"], intent["id"]);
    assert!(outcome["first_byte_ms"].is_u64(), "{outcome}");
    let digest = footbridge_core::digest::digest_text(footbridge_core::digest::Digest::of("hello"));
    assert_eq!(outcome["sent_digest"], digest);
    assert!(!serde_json::to_string(&services.records.lines()).unwrap().contains("hello"));
}

#[test]
fn a_guest_that_names_the_credential_in_connection_does_not_take_it_away() {
    let services = Services::open();
    let answer = services.ask("GET /s/tracker/plain", &["Connection: close, x-api-key"], "");
    assert_eq!(answer.status, 200);
    let [received] = &services.origin.received()[..] else { panic!("not one request") };
    let lower = received.head.to_ascii_lowercase();
    assert!(lower.contains(&format!("\r\nx-api-key: {KEY}\r\n")) && !lower.contains("fbt_"), "{lower}");
    assert!(!lower.contains("\r\nconnection:"), "{lower}");
}

#[test]
fn neither_the_credential_nor_cookies_come_back() {
    let services = Services::open();
    let answer = services.get("/echo");
    assert!(!answer.head.contains(KEY) && !answer.body.contains(KEY), "{answer:?}");
    assert!(answer.body.contains("x-api-key: [redacted]"), "{}", answer.body);
    for gone in ["x-echo", "set-cookie", "alt-svc"] {
        assert!(!answer.head.to_ascii_lowercase().contains(gone), "{gone}: {}", answer.head);
    }
    assert_eq!(services.outcome().1["redacted"], 2);
}

#[test]
fn redirections_are_not_followed_and_stay_within_the_prefix() {
    let services = Services::open();
    let inside = services.get("/inside");
    assert!(inside.status == 302 && inside.head.contains("location: /s/tracker/echo?x=1\r\n"), "{}", inside.head);
    let private = services.get("/private");
    assert!(private.head.contains("location: http://169.254.169.254/latest\r\n"), "{}", private.head);
    assert_eq!(services.origin.received().len(), 2);
}

#[test]
fn an_event_passes_before_the_next_one_is_made() {
    let services = Services::open();
    let (mut client, begun) = begun(&services, "/events");
    assert!(begun.contains("content-type: text/event-stream"), "{begun}");
    assert_eq!(client.chunk().unwrap(), "data: one\n\n");
    services.origin.go_on.send(()).unwrap();
    assert_eq!(client.chunk().unwrap(), "data: two\n\n");
    services.origin.go_on.send(()).unwrap();
    assert!(client.chunk().is_none());
    let (_, outcome) = services.outcome();
    assert_eq!((&outcome["outcome"], &outcome["received"]), (&"ok".into(), &22.into()));
}

#[test]
fn what_could_be_the_key_is_not_kept_back_for_longer_than_its_reader_would_wait() {
    let services = Services::open();
    let (mut client, _) = begun(&services, "/like");
    let mut came = String::new();
    while came.len() < 5 {
        came += &client.chunk().unwrap();
    }
    assert_eq!(came, "the-r");
    drop(client);
    assert_eq!(services.outcome().1["detail"], "its client left before the end of the answer");
}

#[test]
fn an_origin_that_misbehaves_ends_its_request_alone() {
    let services = Services::open();
    for (path, status) in [("/never", 504), ("/interim", 502), ("/endless", 502), ("/old", 502), ("/split", 502)] {
        let answer = services.get(path);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        let error = &answer.json()["error"];
        assert!(error["record"].is_string() && error["message"].as_str().unwrap().contains("tracker"), "{error}");
    }
    let hop = services.get("/hop");
    assert!(hop.body == "ok" && !hop.head.contains("x-secret-hop") && !hop.head.contains("keep-alive"), "{}", hop.head);
    let zip = services.get("/zip");
    assert!(zip.body == "\u{1}zz" && zip.head.contains("content-encoding: gzip"), "{zip:?}");
    let named = services.get("/named");
    let head = named.head.to_ascii_lowercase();
    assert!(!head.contains(&origin::KEY.to_ascii_lowercase()) && !head.contains("forged"), "{named:?}");
    assert!(named.body.starts_with("[redacted]") && !named.body.contains(origin::KEY), "{named:?}");
    let identity = services.get("/identity").body;
    assert!(identity.starts_with("[redacted]") && !identity.contains(origin::KEY), "{identity}");
    assert_eq!(services.get("/plain").body, "ok");
    // The length that a body says itself is the one that holds.
    let (mut client, both) = begun(&services, "/both");
    assert!(client.chunk().unwrap() == "hello" && !both.contains("content-length"), "{both}");
}

#[test]
fn an_answer_that_breaks_off_is_never_whole() {
    for path in ["/half", "/reset"] {
        let services = Services::open();
        let (mut client, _) = begun(&services, path);
        let mut rest = String::new();
        while let Some(Some(chunk)) = (path == "/half").then(|| client.try_chunk()).flatten() {
            rest.push_str(&chunk);
        }
        if path == "/half" {
            assert_eq!(rest, "data:");
        } else {
            // Of 1000 bytes 4 come, and then the connection ends.
            let mut came = Vec::new();
            let _cut = client.stream().read_to_end(&mut came);
            assert!(came.len() <= 4, "{came:?}");
        }
        assert_eq!(services.outcome().1["outcome"], "unknown", "{path}");
    }
}

#[test]
fn a_guest_that_leaves_cancels_upstream() {
    let services = Services::open();
    let mut client = services.connect();
    client.send(head("POST /s/tracker/never HTTP/1.1", &[&services.key(), "Content-Length: 5"]) + "hello");
    eventually(|| (!services.origin.received().is_empty()).then_some(()));
    drop(client);
    services.origin.left.lock().unwrap().recv_timeout(LONG).unwrap();
    let (client, _) = begun(&services, "/half");
    drop(client);
    services.origin.left.lock().unwrap().recv_timeout(LONG).unwrap();
    let outcomes = || services.records.lines().into_iter().filter(|line| line["type"] == "outcome").collect::<Vec<_>>();
    let all = eventually(|| Some(outcomes()).filter(|all| all.len() == 2));
    assert!(all.iter().all(|outcome| outcome["outcome"] == "unknown"), "{all:?}");
    // What had left by then is in the record, though there was no answer.
    let digest = footbridge_core::digest::digest_text(footbridge_core::digest::Digest::of("hello"));
    let posted = all.iter().find(|outcome| outcome["detail"] == "cancelled").unwrap();
    assert_eq!((&posted["sent"], &posted["sent_digest"]), (&5.into(), &digest.into()), "{posted}");
    assert!(posted.get("status").is_none(), "{posted}");
}

#[test]
fn a_guest_that_leaves_before_there_is_a_connection_has_sent_nothing() {
    // Its backlog takes connections, and nobody shakes hands.
    let unheard = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = unheard.local_addr().unwrap().port();
    let services = Services::start("open", &format!("[services.second]\nurl = \"https://localhost:{port}\"\n"));
    let mut client = services.connect();
    client.send(head("POST /s/second/x HTTP/1.1", &[&services.key(), "Content-Length: 5"]) + "hello");
    let (_begun, _) = unheard.accept().unwrap();
    drop(client);
    let (_, outcome) = services.outcome();
    assert_eq!((&outcome["outcome"], &outcome["detail"]), (&"not_sent".into(), &"cancelled".into()), "{outcome}");
    assert!(outcome.get("sent").is_none(), "{outcome}");
}

#[test]
fn bodies_are_bounded_whether_they_say_their_length_or_not() {
    let services = Services::open();
    let mut client = services.connect();
    client.send(head("POST /s/tracker/x HTTP/1.1", &[&services.key(), "Content-Length: 65537"]));
    let answer = client.answer();
    assert!(answer.status == 413 && answer.body.contains("services.request_bytes"), "{answer:?}");
    assert!(services.origin.received().is_empty());
    let mut client = services.connect();
    client.send(head("POST /s/tracker/x HTTP/1.1", &[&services.key(), "Transfer-Encoding: chunked"]));
    let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    // It may have had enough before all of it came.
    let _sent = (0..6).all(|_| client.try_send(&chunk));
    assert_eq!(client.answer().status, 413);
    let answer = services.ask("POST /s/tracker/early", &[], &"y".repeat(60_000));
    assert_eq!((answer.status, &*answer.body), (413, "much"));
    let mut client = services.connect();
    let chunked = [services.key(), "Transfer-Encoding: chunked".to_owned()];
    client.send(head("POST /s/tracker/ok HTTP/1.1", &[&chunked[0], &chunked[1]]) + "5\r\nhello\r\n0\r\n\r\n");
    assert_eq!(client.answer().body, "ok");
}

#[test]
fn what_is_not_asked_rightly_never_leaves() {
    let services = Services::open();
    let token = services.door.token.clone();
    let in_query = format!("GET /s/tracker/x?k={token}");
    let in_header = format!("X-Note: {token}");
    for (line, headers, status) in [
        ("GET /s/tracker/a/../b", &[][..], 400),
        ("GET /s/tracker/a%2fb", &[], 400),
        ("GET /s/tracker//b", &[], 400),
        ("GET /s/tracker/%2e%2e/b", &[], 400),
        ("GET /s/none/x", &[], 404),
        ("GET /s/hidden/x", &[], 404),
        ("GET /s/narrow/v1/x", &[], 403),
        ("POST /s/narrow/v2/x", &[], 403),
        ("TRACE /s/tracker/x", &[], 405),
        ("delete /s/tracker/x", &[], 405),
        ("Post /s/tracker/x", &[], 405),
        (&in_query, &[], 400),
        ("GET /s/tracker/x", &[&*in_header], 400),
        ("GET /s/tracker/x", &["X_Api_Key: a"], 400),
        ("GET /s/tracker/x", &["Host: other.test"], 400),
        ("GET /s/tracker/x", &["Origin: http://page.test"], 403),
    ] {
        let answer = services.ask(line, headers, "");
        assert_eq!(answer.status, status, "{line} {headers:?}: {answer:?}");
    }
    let wrong =
        format!("GET /s/tracker/x HTTP/1.1\r\nHost: localhost\r\nx-api-key: {}x\r\n\r\n", &token[..token.len() - 1]);
    let mut client = services.connect();
    client.send(wrong);
    assert_eq!(client.answer().status, 401);
    let mut client = services.connect();
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert!(client.try_answer().is_none_or(|answer| answer.status >= 400));
    assert!(services.origin.received().is_empty(), "{:?}", services.origin.received());
    assert_eq!(services.ask("GET /s/narrow/v2/x", &[], "").status, 200);
}

#[test]
fn a_service_that_cannot_be_reached_says_why_and_nothing_was_sent() {
    let services = Services::open();
    for (name, why, may_pass) in [
        ("stranger", "its certificate is of an authority that is not trusted here", false),
        ("bare", "connecting to it took too long", true),
        ("closed", "it does not take connections", true),
    ] {
        let answer = services.ask(&format!("GET /s/{name}/x"), &[], "");
        let error = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(answer.status == 502 && error.contains(why) && error.contains("Nothing was sent"), "{error}");
        assert!(!error.contains("localhost"), "{error}");
        assert!(answer.head.contains(&format!("x-should-retry: {may_pass}")), "{name}: {}", answer.head);
    }
    assert!(services.origin.received().is_empty());
    let (_, outcome) = services.outcome();
    assert_eq!(outcome["outcome"], "not_sent");
    assert_eq!(
        outcome["detail"],
        "Service \"stranger\" cannot be reached: its certificate is of an authority that is not trusted here, and not in the service's ca_file; the operator can put that one's certificate there, which is not the server's own"
    );
}

#[test]
fn errors_of_a_model_have_its_apis_shape_and_its_use_is_recorded() {
    let services = Services::open();
    let answer = services.ask("POST /s/model/v1/files", &[], "{}");
    let error = answer.json();
    assert_eq!(
        (answer.status, &error["type"], &error["error"]["type"]),
        (400, &"error".into(), &"invalid_request_error".into())
    );
    assert!(error["request_id"].is_string() && answer.head.contains("x-should-retry: false"), "{answer:?}");
    assert_eq!(services.ask("POST /s/model/v1/messages", &[], "{}").status, 200);
    let (intent, outcome) = services.outcome();
    assert_eq!(intent["effects"], serde_json::json!(["read", "egress"]));
    assert_eq!(
        (&outcome["model"], &outcome["tokens_in"], &outcome["tokens_out"]),
        (&"m-1".into(), &11.into(), &5.into())
    );
}

/// Rules by service, method and path.
const RULES: &str = "[policies.careful]\n[[policies.careful.rules]]\nid = \"no-admin\"\ndecision = \"deny\"\n\
service = \"tracker\"\npath = \"/admin/**\"\n[[policies.careful.rules]]\nid = \"posts\"\ndecision = \"ask\"\n\
service = \"*\"\nmethod = \"POST\"\n[[policies.careful.rules]]\nid = \"rest\"\ndecision = \"allow\"\nkind = \"http\"\n";

#[test]
fn rules_decide_by_service_method_and_path() {
    let services = Services::start("careful", RULES);
    assert_eq!(services.get("/plain").status, 200);
    for path in ["/admin", "/admin/x", "/%61dmin/x"] {
        let answer = services.get(path);
        assert!(answer.status == 403 && answer.body.contains("denied_by_policy"), "{path}: {answer:?}");
    }
    // Nobody can be asked yet.
    assert_eq!(services.ask("POST /s/tracker/x", &[], "hi").status, 403);
    assert_eq!(services.origin.received().len(), 1);
    let refused = services.records.lines().into_iter().find(|line| line["type"] == "refused").unwrap();
    assert_eq!((&refused["rule"], &refused["kind"]), (&"no-admin".into(), &"http".into()));
}

/// A request whose headers say what it does is another one with others, and the same one in another attempt.
fn agrees_to_one_request_and_not_to_its_like_with_other_headers(services: &Services) {
    let approvals = services.harness.as_ref().unwrap().approvals().clone();
    let target = |target: &str| format!("X-Amz-Target: Svc.{target}");
    let [lists, deletes] = [target("ListThings"), target("DeleteEverything")];
    std::thread::scope(|scope| {
        let asks = |target, attempt| {
            move || services.ask("POST /s/tracker/x", &[target, attempt, "User-Agent: an agent", "Accept: */*"], "{}")
        };
        let first = scope.spawn(asks(&lists, "X-Stainless-Retry-Count: 0"));
        let pending = eventually(|| approvals.list().into_iter().next());
        let shown = approvals.show(pending.id.parse().unwrap()).unwrap().arguments;
        assert!(shown.contains(r#""x-amz-target":["Svc.ListThings"]"#) && !shown.contains("an agent"), "{shown}");
        let operator = Operator::ThisProcess { uid: 0 };
        let answers = |id: &str, answer| approvals.answer(id.parse().unwrap(), answer, &operator, "test").unwrap();
        answers(&pending.id, Decided::Allow { remember: true });
        assert_eq!(first.join().unwrap().status, 200);
        assert_eq!(asks(&lists, "X-Stainless-Retry-Count: 1")().status, 200, "nobody is asked again");
        let other = scope.spawn(asks(&deletes, "X-Stainless-Retry-Count: 0"));
        let pending = eventually(|| approvals.list().into_iter().find(|one| one.state == ApprovalStatus::Pending));
        answers(&pending.id, Decided::Deny);
        assert_eq!(other.join().unwrap().status, 403);
    });
}

#[test]
fn a_person_sees_the_body_and_exactly_that_is_sent() {
    let services = Services::start("careful", RULES);
    let approvals = services.harness.as_ref().unwrap().approvals().clone();
    approvals.people_answer();
    let body = format!("{{\"title\":\"{}\"}}", "x".repeat(3000));
    let answered = std::thread::scope(|scope| {
        let asked = scope.spawn(|| services.ask("POST /s/tracker/x?y=1", &[], &body));
        let pending = eventually(|| approvals.list().into_iter().next());
        assert_eq!((&*pending.kind, &*pending.name), ("http", "POST /x?y=1"));
        let shown = approvals.show(pending.id.parse().unwrap()).unwrap();
        assert!(shown.arguments.contains("\\\"title\\\""), "{}", shown.arguments);
        assert!(services.origin.received().is_empty());
        let operator = Operator::ThisProcess { uid: 0 };
        approvals.answer(pending.id.parse().unwrap(), Decided::Allow { remember: false }, &operator, "test").unwrap();
        asked.join().unwrap()
    });
    assert_eq!(answered.status, 200);
    assert_eq!(services.origin.received()[0].body, body.as_bytes());
    let (intent, _) = services.outcome();
    assert_eq!((&intent["decision"], &intent["rule"]), (&"ask".into(), &"posts".into()));
    agrees_to_one_request_and_not_to_its_like_with_other_headers(&services);
    let long = services.ask("POST /s/tracker/x", &[], &"z".repeat(5000));
    assert!(long.status == 413 && long.body.contains("services.asked_bytes"), "{long:?}");
}
