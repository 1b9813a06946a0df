//! Requests that become WebSockets: where a service says so, with the real key, and as a call like any other.

use std::{io::Read as _, time::Duration};

use footbridge_calls::{approval::Answer as Decided, operator::Operator};
use serde_json::{Value, json};

use super::{
    Services,
    origin::{KEY, TlsOrigin},
    refusals::reload,
};
use crate::{
    bridge::eventually,
    client::{Answer, Client, head},
};

/// The key of RFC 6455's example; the origin knows what goes with it.
const ASKS: [&str; 5] = [
    "Upgrade: websocket",
    "Connection: keep-alive, Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Extensions: permessage-deflate",
];

/// A service `second` that takes WebSockets.
fn services(policy: &str, more: &str) -> Services {
    let service = |origin: &TlsOrigin, ca: &str| {
        format!(
            "[services.second]\nurl = \"https://localhost:{}/api\"\nheader = \"x-api-key\"\ncredential = \"{KEY}\"\n\
             ca_file = \"{ca}\"\nwebsocket = true\n{more}",
            origin.port
        )
    };
    Services::start_with(policy, service)
}

fn begin(services: &Services, path: &str) -> Client {
    let mut client = services.connect();
    let key = services.key();
    let headers: Vec<&str> = ASKS.into_iter().chain([&*key, "Sec-WebSocket-Protocol: chat"]).collect();
    client.send(head(&format!("GET /s/{path} HTTP/1.1"), &headers));
    client
}

fn refused(services: &Services, path: &str) -> Answer {
    begin(services, path).answer()
}

/// One that is open.
fn opened(services: &Services) -> Client {
    let mut client = begin(services, "second/websocket");
    let answer = client.head().unwrap().to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 101 "), "{answer}");
    for part in ["upgrade: websocket", "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=", "-protocol: chat"] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    client
}

#[test]
fn one_that_waits_for_a_person_is_told_nothing_before_its_own_answer() {
    let shape = "preset = \"anthropic\"\nrequests = [\"GET /websocket\"]\n[limits.edge]\nheartbeat_time = \"50ms\"\n";
    let services = services("ask", shape);
    let approvals = services.harness.as_ref().unwrap().approvals().clone();
    approvals.people_answer();
    let (mut client, key) = (services.connect(), services.key());
    let headers: Vec<&str> = ASKS.into_iter().chain([&*key, "Accept: text/event-stream"]).collect();
    client.send(head("GET /s/second/websocket HTTP/1.1", &headers));
    let pending = eventually(|| approvals.list().into_iter().next());
    // Long enough for a client of events to hear that it waits.
    std::thread::sleep(Duration::from_millis(500));
    let operator = Operator::ThisProcess { uid: 0 };
    approvals.answer(pending.id.parse().unwrap(), Decided::Allow { remember: false }, &operator, "test").unwrap();
    let answer = client.head().unwrap();
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
}

/// A frame of a client, whose mask changes nothing.
fn say(client: &mut Client, text: &str) {
    let length = 0x80 | u8::try_from(text.len()).unwrap();
    client.send([&[0x81, length, 0, 0, 0, 0], text.as_bytes()].concat());
}

/// The next message.
fn hear(client: &Client) -> String {
    let mut head = [0; 2];
    client.stream().read_exact(&mut head).unwrap();
    let mut text = vec![0; head[1].into()];
    client.stream().read_exact(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn outcome(services: &Services) -> Value {
    eventually(|| services.records.lines().into_iter().find(|line| line["type"] == "outcome"))
}

#[test]
fn a_websocket_passes_both_ways_and_is_recorded() {
    let services = services("open", "");
    let mut client = opened(&services);
    let asked = services.origin.received().remove(0).head.to_ascii_lowercase();
    assert!(asked.contains(&format!("x-api-key: {KEY}")) && asked.contains("sec-websocket-protocol: chat"), "{asked}");
    assert!(!asked.contains("extensions") && !asked.contains("fbt_"), "{asked}");
    for text in ["hello", "again"] {
        say(&mut client, text);
        assert_eq!(hear(&client), text);
    }
    say(&mut client, "key?");
    assert_eq!(hear(&client), "[redacted]****************");
    say(&mut client, KEY);
    assert_eq!(hear(&client), KEY, "an echo tells nothing");
    client.finish();
    client.must_end();
    let intent = services.records.lines().into_iter().find(|line| line["type"] == "intent").unwrap();
    assert_eq!((&intent["kind"], &intent["name"]), (&json!("http"), &json!("GET /websocket (websocket)")));
    assert_eq!(intent["effects"], json!(["write", "egress"]));
    let outcome = outcome(&services);
    assert_eq!((&outcome["outcome"], &outcome["status"], &outcome["redacted"]), (&json!("ok"), &json!(101), &json!(1)));
    assert!(outcome["sent"].as_u64() > Some(50) && outcome["received"].as_u64() > Some(50), "{outcome}");
    assert!(outcome["first_byte_ms"].is_u64(), "{outcome}");
}

#[test]
fn who_takes_none_who_does_not_agree_and_who_is_denied_open_none() {
    let services = services("open", "reads = [\"GET /ticker\"]\n");
    let none = refused(&services, "tracker/websocket");
    assert!(none.status == 403 && none.body.contains("websocket = true"), "{none:?}");
    let other = refused(&services, "second/websocket?wrong");
    assert!(other.status == 502 && other.json()["error"]["record"].is_string(), "{other:?}");
    let unasked = services.ask("POST /s/second/websocket", &[], "hello");
    assert_eq!(unasked.status, 502, "{unasked:?}");
    let outcomes = || services.records.lines().into_iter().filter(|line| line["type"] == "outcome");
    let recorded = eventually(|| outcomes().nth(1));
    assert_eq!((&recorded["outcome"], &recorded["sent"]), (&json!("unknown"), &json!(5)), "what went is recorded");
    let plain = refused(&services, "second/plain");
    assert_eq!((plain.status, &*plain.body), (200, "ok"), "an ordinary answer is one");
    assert_eq!(services.origin.received().len(), 3);
    let careful = Services::start_with("ask", |origin, ca| {
        format!(
            "[services.second]\nurl = \"https://localhost:{}/api\"\nca_file = \"{ca}\"\nwebsocket = true\n",
            origin.port
        )
    });
    // A GET may be made, and what it would become may not.
    assert_eq!(careful.ask("GET /s/second/plain", &[], "").status, 200);
    assert_eq!(refused(&careful, "second/websocket").status, 403);
    assert_eq!(careful.origin.received().len(), 1);
}

#[test]
fn where_tokens_are_counted_no_model_is_talked_to_by_a_websocket() {
    let models = Services::start_with("open", |origin, ca| {
        format!(
            "[limits.budget]\ntokens = 5\n[services.second]\npreset = \"openai\"\nurl = \"https://localhost:{}/api\"\n\
             credential = \"{KEY}\"\nca_file = \"{ca}\"\nwebsocket = true\n\
             requests = [\"GET /v1/realtime\"]\n",
            origin.port
        )
    });
    let answer = refused(&models, "second/v1/realtime");
    assert!(answer.status >= 400 && answer.body.contains("budget.tokens"), "{answer:?}");
    assert!(models.origin.received().is_empty());
}

#[test]
fn a_websocket_of_a_model_ends_where_its_session_gets_a_budget_of_tokens() {
    let models = services("open", "preset = \"openai\"\nrequests = [\"GET /websocket\"]\n");
    let mut client = opened(&models);
    say(&mut client, "hi");
    assert_eq!(hear(&client), "hi");
    let reloaded = reload(
        &models,
        "[limits.budget]\ntokens = 5\n[services.second]\npreset = \"openai\"\nurl = \"https://localhost:1\"\n\
         websocket = true\nrequests = [\"GET /websocket\"]\n",
    );
    assert_eq!(reloaded.budgets.len(), 1);
    say(&mut client, "more");
    client.must_end();
    let spent = outcome(&models);
    assert_eq!(spent["outcome"], "budget_spent", "{spent}");
    assert!(spent["detail"].as_str().unwrap().contains("budget.tokens"), "{spent}");
}

#[test]
fn what_its_service_does_not_take_any_more_ends_a_websocket() {
    let services = services("open", "");
    let mut client = opened(&services);
    say(&mut client, "hi");
    assert_eq!(hear(&client), "hi");
    let _none = reload(&services, "[services.second]\nurl = \"https://localhost:1\"\n");
    client.must_end();
    let ended = outcome(&services);
    assert!(ended["detail"].as_str().unwrap().contains("does not let it pass any more"), "{ended}");
}

#[test]
fn silence_budgets_and_the_end_of_the_harness_end_a_websocket() {
    let silent = services("open", "");
    let mut client = opened(&silent);
    client.must_end();
    let outcome_of = outcome(&silent);
    assert!(outcome_of["detail"].as_str().unwrap().contains("nothing passed"), "{outcome_of}");
    let poor = services("open", "[limits.budget]\nservice_bytes = 40\n");
    let mut client = opened(&poor);
    say(&mut client, &"x".repeat(100));
    client.must_end();
    let spent = outcome(&poor);
    assert_eq!((&spent["outcome"], &spent["sent"]), (&"budget_spent".into(), &0.into()), "{spent}");
    let ended = services("open", "");
    let mut client = opened(&ended);
    say(&mut client, "hi");
    assert_eq!(hear(&client), "hi");
    drop(ended);
    client.must_end();
}
