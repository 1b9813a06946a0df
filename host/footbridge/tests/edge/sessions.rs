//! Sessions that end, or get another token, while somebody is inside.

use std::time::{Duration, SystemTime};

use footbridge::harness::OpenError;
use footbridge_calls::{operator::Operator, session::SessionSpec};
use footbridge_core::{digest::Digest, gate::Policy};
use footbridge_core::{names::SessionName, random::new_token};
use footbridge_edge::listener::{Listen, Listener, Listeners};
use serde_json::json;

use crate::{
    bridge::{Bridge, eventually},
    client::{Client, LIST, head, post},
};

const JSON: &str = "Content-Type: application/json";
const SLOW: &str = r#"{"jsonrpc":"2.0","id":1,"method":"callTool","params":{"server":"demo","tool":"count_slowly","arguments":{"n":2}}}"#;
const ENDLESS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"callTool","params":{"server":"demo","tool":"count_slowly","arguments":{"n":600}}}"#;

const OPERATOR: Operator = Operator::ThisProcess { uid: 7 };

fn name() -> SessionName {
    "test".parse().unwrap()
}

fn anywhere() -> Listener {
    Listeners::default().bind(&Listen::at("tcp:127.0.0.1:0".parse().unwrap())).unwrap()
}

/// A call that has reached its server.
fn sent(bridge: &Bridge, body: &str) -> Client {
    let mut client = bridge.connect();
    client.send(bridge.request(body));
    // From here on it has been admitted.
    let runs = || bridge.harness(async |harness| harness.servers().unwrap().report()[0].in_flight == 1);
    eventually(|| runs().then_some(()));
    client
}

#[test]
fn a_revoked_session_is_cut_off_and_its_calls_are_cancelled() {
    let bridge = Bridge::start();
    bridge.must_serve();
    let mut idle = bridge.connect();
    idle.send(bridge.request(LIST));
    assert_eq!(idle.answer().status, 200);
    let mut calling = bridge.connect();
    let both = "Accept: application/json, text/event-stream";
    calling.send(post(&[&bridge.authorization(), "Content-Type: application/json", both], ENDLESS));
    // A stream begins with the first thing to say, its progress: it has left.
    assert!(calling.head().is_some());
    assert!(bridge.harness(async |harness| harness.revoke(&OPERATOR, &name()).await));
    idle.must_end();
    while let Some(Some(_progress)) = calling.try_chunk() {}
    let outcome = bridge.until_recorded(|line| line["type"] == "outcome");
    assert_eq!(outcome["outcome"], "unknown", "{outcome}");
    let ended = bridge.until_recorded(|line| line["type"] == "session_ended");
    assert_eq!((&ended["session"], &ended["why"]), (&json!("test"), &json!("revoked")));
    assert!(std::net::TcpStream::connect(bridge.door.address).is_err(), "nothing listens there any more");
    assert!(bridge.harness(async |harness| harness.sessions().is_empty()));
    assert!(!bridge.harness(async |harness| harness.revoke(&OPERATOR, &name()).await));
}

#[test]
fn a_new_token_ends_the_old_one_at_once_and_lets_calls_finish() {
    let bridge = Bridge::start();
    bridge.must_serve();
    let mut kept = bridge.connect();
    kept.send(bridge.request(LIST));
    assert_eq!(kept.answer().status, 200);
    let mut calling = sent(&bridge, SLOW);
    let new = new_token().unwrap();
    assert!(bridge.harness(async |harness| harness.rotate(&name(), Digest::of(new.expose()))));
    kept.send(bridge.request(LIST));
    assert_eq!(kept.answer().status, 401, "on a connection from before, too");
    let answer = calling.answer().json();
    assert!(answer["result"]["content"].is_array(), "{answer}");
    let mut client = bridge.connect();
    client.send(post(&[&format!("Authorization: Bearer {}", new.expose()), JSON], LIST));
    assert_eq!(client.answer().status, 200);
    assert_eq!(bridge.until_recorded(|line| line["type"] == "session_rotated")["session"], "test");
}

#[test]
fn a_request_whose_last_bytes_come_after_a_new_token_is_answered_nothing() {
    let bridge = Bridge::start();
    bridge.must_serve();
    let bodies = [
        LIST,
        r#"{"jsonrpc":"2.0","id":1,"method":"listTools","params":{"server":"demo"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"callTool","params":{"server":"demo","tool":"list_notes","arguments":{}}}"#,
    ];
    let slow = bodies.map(|body| {
        let mut client = bridge.connect();
        let length = format!("Content-Length: {}", body.len());
        client.send(head("POST / HTTP/1.1", &[&bridge.authorization(), JSON, &length, "Expect: 100-continue"]));
        assert_eq!(client.answer().status, 100, "its head is read, and the token in it");
        client.send(&body[..body.len() - 1]);
        client
    });
    let new = new_token().unwrap();
    assert!(bridge.harness(async |harness| harness.rotate(&name(), Digest::of(new.expose()))));
    for mut client in slow {
        client.send("}");
        let answer = client.answer().json();
        assert_eq!(answer["error"]["data"]["reason"], "cancelled", "{answer}");
    }
}

#[test]
fn a_session_ends_when_its_time_is_over() {
    let bridge = Bridge::start();
    let token = new_token().unwrap();
    let expires = Some(SystemTime::now() + Duration::from_millis(300));
    let spec = SessionSpec { expires, ..SessionSpec::new("brief".parse().unwrap(), &token, Policy::open()) };
    bridge.harness(async |harness| {
        let listener = anywhere();
        harness.open(spec, vec![listener]).unwrap();
    });
    let ended = bridge.until_recorded(|line| line["type"] == "session_ended");
    assert_eq!((&ended["session"], &ended["why"]), (&json!("brief"), &json!("expired")));
    bridge.must_serve();
}

#[test]
fn a_name_is_one_sessions() {
    let bridge = Bridge::start();
    let taken = bridge.harness(async |harness| {
        let listener = anywhere();
        harness.open(SessionSpec::new(name(), &new_token().unwrap(), Policy::open()), vec![listener])
    });
    assert!(matches!(taken, Err(OpenError::Taken(taken)) if taken == name()));
    bridge.must_serve();
}

#[test]
fn listings_have_a_rate() {
    let bridge = Bridge::with(|limits| {
        limits.calls.listings_per_second = 1;
        limits.calls.listing_burst = 3;
    });
    let answers: Vec<_> = (0..10).map(|_| bridge.rpc("listServers", &json!({}))).collect();
    let refused = answers.iter().find(|answer| answer["error"]["code"] == -32002).unwrap();
    assert_eq!(refused["error"]["data"]["reason"], "rate_limited", "{refused}");
    assert!(answers[0]["result"]["servers"].is_array());
}
