//! Requests that are refused for what the host lacks, and how that is said and recorded.

use std::{fs, sync::Arc};

use footbridge::{
    config::{Variables, folders::Folders, load},
    harness::Reloaded,
};
use footbridge_calls::session::SessionSpec;
use footbridge_core::{names::ServerName, random::new_token};
use footbridge_edge::listener::{Listen, Listeners};
use footbridge_proto::endpoint::{Endpoint, TcpEndpoint};
use serde_json::Value;

use super::{
    LIMITS, Services,
    origin::KEY,
    tunnels::{asks, proxy, proxy_of},
};
use crate::{
    bridge::eventually,
    client::{Answer, Client, head},
};

#[test]
fn a_service_without_its_credential_is_refused_by_itself() {
    let services = Services::start(
        "open",
        "[services.second]\npreset = \"anthropic\"\ncredential = \"${FOOTBRIDGE_TESTS_NEVER_SET_THIS}\"\n",
    );
    let answer = services.ask("POST /s/second/v1/messages", &[], "{}");
    let error = answer.json();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(answer.status == 502 && message.contains("has no credential"), "{answer:?}");
    assert!(message.contains("footbridge services check second") && !message.contains("NEVER_SET"), "{message}");
    let (intent, outcome) = services.outcome();
    assert_eq!((&error["request_id"], &outcome["outcome"]), (&intent["id"], &"not_sent".into()));
    assert_eq!(services.get("/plain").status, 200);
}

/// The refusal of what cannot be a request names its record, which has neither token nor query.
#[test]
fn a_head_that_is_refused_is_recorded() {
    let services = Services::open();
    let token = services.door.token.clone();
    let in_query = format!("GET /s/tracker/x?k={token}");
    let note = format!("X-Note: {token}");
    for (line, headers, status, reason, name) in [
        ("GET /s/tracker/a/../b?secret=1", &[][..], 400, "bad_request", "GET /a/../b"),
        ("TRACE /s/tracker/x", &[], 405, "bad_request", "TRACE /x"),
        (&*in_query, &[], 400, "bad_request", "GET"),
        ("GET /s/tracker/x", &[&*note], 400, "bad_request", "GET"),
        ("POST /s/tracker/x", &["Content-Length: 65537"], 413, "too_large", "POST /x"),
    ] {
        let answer = services.ask(line, headers, "");
        assert_eq!(answer.status, status, "{answer:?}");
        let record = answer.json()["error"]["record"].as_str().unwrap().to_owned();
        assert!(answer.head.contains(&format!("footbridge-record: {record}")), "{answer:?}");
        let is_it = |line: &Value| line["type"] == "refused" && line["id"] == *record;
        let refused = eventually(|| services.records.lines().into_iter().find(is_it));
        assert_eq!((&refused["reason"], &refused["name"]), (&reason.into(), &name.into()), "{refused}");
        assert_eq!((&refused["server"], &refused["kind"]), (&"tracker".into(), &"http".into()), "{refused}");
        assert!(!refused.to_string().contains(&token));
        let detail = refused["detail"].as_str().expect("why, as its guest is told");
        let said = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(said.contains(detail) || detail == "over 65536 bytes (services.request_bytes)", "{refused}");
    }
    assert!(services.origin.received().is_empty());
}

/// The record that an answer of this session names.
fn refused(services: &Services, answer: &Answer) -> Value {
    let id = answer.json()["error"]["record"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned();
    let is_it = |line: &Value| line["type"] == "refused" && line["id"] == *id;
    eventually(|| services.records.lines().into_iter().find(is_it))
}

#[test]
fn why_a_service_does_not_take_a_request_is_in_the_record() {
    let services = Services::open();
    for (line, status, detail) in [
        ("GET /s/narrow/v1/x", 403, "not among the requests of the service"),
        ("GET /s/none/x", 404, "the session has no such service"),
    ] {
        let answer = services.ask(line, &[], "");
        assert_eq!((answer.status, refused(&services, &answer)["detail"].as_str()), (status, Some(detail)), "{line}");
    }
    let hides =
        "[[policies.shy.rules]]\ndecision = \"hide\"\npath = \"/v2/x\"\n[[policies.shy.rules]]\ndecision = \"allow\"\n";
    let services = Services::start("shy", hides);
    let answer = services.ask("GET /s/narrow/v2/x", &[], "");
    assert!(answer.status == 403 && answer.body.contains("none of the requests"), "{answer:?}");
    assert_eq!(refused(&services, &answer)["detail"], "hidden by the policy");
}

/// A client that sends all of an upload before it reads has its answer, and no connection that breaks under it.
#[test]
fn an_upload_that_is_refused_is_read_past_so_that_its_client_hears_why() {
    let limits = "[limits.services]\nrequest_bytes = \"32 MiB\"\nasked_bytes = \"4 KiB\"\n";
    let body = vec![b'x'; 24 << 20];
    for (policy, path, status) in
        [("open", "/s/none/x", 404), ("open", "/s/narrow/v1/x", 403), ("ask", "/s/tracker/x", 413)]
    {
        let services = Services::start(policy, limits);
        let asking = services.harness.as_ref().unwrap().approvals();
        asking.people_answer();
        let mut client = services.connect();
        let length = format!("Content-Length: {}", body.len());
        client.send(head(&format!("POST {path} HTTP/1.1"), &[&services.key(), &length]));
        client.send(&body);
        let answer = client.answer();
        assert!(answer.status == status && answer.body.contains("record"), "{path}: {answer:?}");
        assert!(services.origin.received().is_empty());
    }
}

/// Has the harness read another configuration.
pub(super) fn reload(services: &Services, text: &str) -> Reloaded {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("footbridge.toml");
    fs::write(&file, text).unwrap();
    let folders = Folders { config: place.path().to_owned(), ..Folders::find(0, |_| None).unwrap() };
    let config = load(&[file], &folders, &Variables::of_this_process()).unwrap();
    services.harness.as_ref().unwrap().reload(config)
}

#[test]
fn the_services_of_a_policy_are_those_that_it_has_by_now() {
    let policy = |services: &str| {
        format!("[policies.giving]\nservices = [{services}]\n[[policies.giving.rules]]\ndecision = \"allow\"\n")
    };
    let services = Services::start("giving", &policy("\"hidden\""));
    let is_there = |name: &str| {
        let answer = services.ask(&format!("GET /s/{name}/x"), &[], "");
        assert!((answer.status == 404) == answer.body.contains("has no service"), "{answer:?}");
        answer.status != 404
    };
    assert!(is_there("hidden") && is_there("narrow"));
    let all = "[services.hidden]\nurl = \"https://localhost:1\"\n[services.narrow]\nurl = \"https://localhost:1\"\n\
               [services.new]\nurl = \"https://localhost:1\"\n";
    let reloaded = reload(&services, &(policy("\"new\"") + all));
    assert!(is_there("new") && is_there("narrow") && !is_there("hidden"));
    let names = |all: &[ServerName]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    let changed = &reloaded.services;
    assert_eq!(
        (names(&changed.added), names(&changed.changed)),
        (vec!["new".into()], vec!["hidden".into(), "narrow".into()])
    );
    assert!(names(&changed.removed).contains(&"tracker".to_owned()), "{changed:?}");
}

#[test]
fn a_service_that_is_not_configured_any_more_is_said_to_be_gone() {
    let services = Services::open();
    let reloaded = reload(&services, "[services.narrow]\nurl = \"https://localhost:1\"\n");
    let gone: Vec<&str> = reloaded.services_gone.values().flatten().map(ServerName::as_str).collect();
    assert!(gone.contains(&"tracker") && !gone.contains(&"narrow"), "{gone:?}");
    let answer = services.get("/x");
    assert!(answer.status == 404 && answer.body.contains("is not configured any more"), "{answer:?}");
    assert_eq!(refused(&services, &answer)["detail"], "the service is not configured any more");
    let other = services.ask("GET /s/none/x", &[], "");
    assert!(other.body.contains("It has: narrow."), "{other:?}");
}

#[test]
fn a_session_without_tunnels_says_so_to_who_takes_its_port_for_a_proxy() {
    let services = Services::open();
    let (token, inside) = (new_token().unwrap(), services.runtime.enter());
    let listener = Listeners::default().bind(&Listen::at(Endpoint::Tcp(TcpEndpoint::loopback(0)))).unwrap();
    let Endpoint::Tcp(tcp) = listener.endpoint().unwrap() else { panic!("not TCP") };
    let spec = SessionSpec::new("plain".parse().unwrap(), &token, Arc::clone(&services.policy));
    services.harness.as_ref().unwrap().open(spec, vec![listener]).unwrap();
    drop(inside);
    let asks = |line: &str, headers: &[&str]| {
        let mut client = Client::connect(tcp.primary());
        client.send(head(&format!("{line} HTTP/1.1"), headers));
        client.answer()
    };
    let own = proxy_of(token.expose());
    for (line, host) in
        [("CONNECT files.example:443", "files.example:443"), ("GET http://files.example/x", "/files.example:80/x")]
    {
        let answer = asks(line, &[&own]);
        assert!(answer.status == 404 && answer.body.contains(host), "{answer:?}");
        assert!(answer.body.contains("has no tunnels") && answer.body.contains("--service tunnels"), "{answer:?}");
        assert_eq!(refused(&services, &answer)["session"], "plain");
        let stranger = asks(line, &["Host: files.example"]);
        assert!(stranger.status == 404 && stranger.body.contains("has no tunnels"), "{stranger:?}");
    }
}

#[test]
fn a_client_of_a_proxy_is_told_why_in_its_first_line() {
    let services = Services::open();
    let said = |line: &str| asks(&services, line, &[&proxy(&services)]).head;
    let refused = said("CONNECT other.test:443");
    let first = refused.lines().next().unwrap();
    assert!(first.starts_with("HTTP/1.1 403 ") && first.contains("[tunnels]") && first.contains("(record "), "{first}");
    assert!(said("GET http://127.0.0.1:1/s/tracker/x").contains("NO_PROXY"));
    let path = said(&format!("GET http://localhost:{}/a/../b", services.plain));
    assert!(path.lines().next().unwrap().contains("path"), "{path}");
}

#[test]
fn a_request_beyond_its_rate_is_told_when_it_may_be_made() {
    let services = Services::start("open", &format!("{LIMITS}per_second = 1\nburst = 1\n"));
    assert_eq!(services.get("/plain").status, 200);
    // On a machine that takes a second for one the next may be made.
    let mut passed = 1;
    let answer = eventually(|| {
        let answer = services.get("/plain");
        passed += usize::from(answer.status == 200);
        Some(answer).filter(|answer| answer.status != 200)
    });
    assert!(answer.status == 429 && answer.body.contains("services.per_second"), "{answer:?}");
    assert!(answer.head.contains("\r\nretry-after: 1\r\n"), "{}", answer.head);
    assert_eq!(answer.json()["error"]["reason"], "rate_limited", "{answer:?}");
    assert_eq!(services.origin.received().len(), passed);
}

#[test]
fn a_service_whose_name_leads_nowhere_is_told_in_the_shape_of_its_client() {
    // Whoever cannot be asked is waited for, so that this is told in a place without a network as well.
    let limits = "[limits.services]\nsilence_time = \"1h\"\nconnect_time = \"1h\"\n";
    let service = "[services.second]\npreset = \"anthropic\"\nurl = \"https://none.invalid\"\n";
    let services = Services::start("open", &format!("{limits}{service}credential = \"{KEY}\"\n"));
    let answer = services.ask("POST /s/second/v1/messages", &[], "{}");
    let error = answer.json();
    let message = error["error"]["message"].as_str().unwrap();
    assert_eq!((answer.status, &error["type"]), (502, &"error".into()), "{answer:?}");
    assert!(
        message.contains("\"second\" cannot be reached: its name cannot be resolved. Nothing was sent"),
        "{message}"
    );
    assert!(!message.contains("invalid"), "{message}");
    assert!(answer.head.contains("x-should-retry: true"), "{}", answer.head);
    let (intent, outcome) = services.outcome();
    assert_eq!((&error["request_id"], &outcome["outcome"]), (&intent["id"], &"not_sent".into()));
    assert!(outcome.get("sent").is_none(), "{outcome}");
}
