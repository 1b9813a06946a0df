//! Requests that are refused for what the host lacks, and how that is said and recorded.

use serde_json::Value;

use super::{
    Services,
    tunnels::{asks, proxy},
};
use crate::bridge::eventually;

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
    }
    assert!(services.origin.received().is_empty());
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
