//! Budgets of services: what a session may use of them over its whole life.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use super::{Services, begun, tunnels};
use crate::{
    bridge::eventually,
    client::{Answer, head},
};

fn with(budget: &str) -> Services {
    Services::start("open", &format!("[limits.budget]\n{budget}\n"))
}

fn refused(answer: &Answer, limit: &str) {
    let error = &answer.json()["error"];
    let message = error["message"].as_str().unwrap();
    // Clients of models take 403 for a wrong key.
    let status = if limit == "budget.tokens" { 400 } else { 403 };
    assert_eq!((answer.status, message.contains(limit)), (status, true), "{answer:?}");
    assert!(message.contains("(record ") && message.contains("ask the operator"), "{message}");
    assert!(answer.head.contains("x-should-retry: false"), "{}", answer.head);
}

/// All events of a model's answer.
fn streamed(services: &Services) -> String {
    let mut client = services.connect();
    let headers = [&services.key(), "Content-Length: 2"];
    client.send(head("POST /s/model/v1/messages?stream HTTP/1.1", &headers) + "{}");
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200 "));
    std::iter::from_fn(|| client.chunk()).collect()
}

fn last(services: &Services, kind: &str) -> Value {
    let of_kind = |line: &Value| line["type"] == kind;
    eventually(|| services.records.lines().into_iter().rfind(of_kind))
}

#[test]
fn requests_are_counted_and_those_beyond_never_leave() {
    let services = with("requests = 2");
    assert_eq!((services.get("/a").status, services.get("/b").status), (200, 200));
    refused(&services.get("/c"), "budget.requests");
    assert_eq!(services.origin.received().len(), 2);
    let line = last(&services, "refused");
    assert_eq!((&line["reason"], &line["decision"]), (&json!("budget_spent"), &json!("allow")));
}

#[test]
fn tokens_end_a_stream_behind_a_whole_event_in_the_shape_of_its_client() {
    let services = with("tokens = 10");
    let streamed = streamed(&services);
    let events: Vec<&str> = streamed.split("\n\n").collect();
    let [start, error, ""] = events[..] else { panic!("{events:?}") };
    assert!(start.starts_with("event: message_start\n"), "{start}");
    let error: Value = serde_json::from_str(error.strip_prefix("event: error\ndata: ").unwrap()).unwrap();
    assert_eq!((&error["type"], &error["error"]["type"]), (&json!("error"), &json!("invalid_request_error")));
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("budget.tokens") && message.contains("ask the operator"), "{message}");
    let outcome = last(&services, "outcome");
    assert_eq!((&outcome["outcome"], &outcome["id"]), (&json!("budget_spent"), &error["request_id"]), "{outcome}");
    refused(&services.ask("POST /s/model/v1/messages", &[], "{}"), "budget.tokens");
    assert_eq!(services.origin.received().len(), 1);
}

#[test]
fn an_answer_that_is_whole_is_not_spoiled_by_what_it_says_at_its_end() {
    let services = with("tokens = 13");
    let streamed = streamed(&services);
    assert!(streamed.ends_with("event: message_stop\ndata: {}\n\n"), "{streamed}");
    assert_eq!(last(&services, "outcome")["outcome"], "ok");
    refused(&services.ask("POST /s/model/v1/messages?stream", &[], "{}"), "budget.tokens");
    let whole = with("tokens = 13");
    assert_eq!(whole.ask("POST /s/model/v1/messages", &[], "{}").status, 200);
    refused(&whole.ask("POST /s/model/v1/messages", &[], "{}"), "budget.tokens");
}

#[test]
fn who_leaves_before_the_tokens_are_said_or_has_them_unsaid_spends_them_all_the_same() {
    let (services, body) = (with("tokens = 100"), "x".repeat(600));
    let asks = |path: &str| {
        let mut client = services.connect();
        let headers = [services.key(), format!("Content-Length: {}", body.len())];
        client.send(head(&format!("POST /s/model/v1/messages?{path} HTTP/1.1"), &[&headers[0], &headers[1]]) + &body);
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200 "));
        client
    };
    let mut client = asks("unsaid");
    assert_eq!(std::iter::from_fn(|| client.chunk()).count(), 2);
    assert_eq!(last(&services, "outcome")["tokens_estimated"], 150, "four bytes a token");
    refused(&services.ask("POST /s/model/v1/messages", &[], "{}"), "budget.tokens");
    let services = with("tokens = 100");
    let mut client = services.connect();
    client.send(head("POST /s/model/v1/messages?never HTTP/1.1", &[&services.key(), "Content-Length: 600"]) + &body);
    eventually(|| services.origin.received().into_iter().find(|one| one.body.len() == 600));
    drop(client);
    let outcome = last(&services, "outcome");
    assert_eq!((&outcome["detail"], &outcome["tokens_estimated"]), (&json!("cancelled"), &json!(150)), "{outcome}");
    refused(&services.ask("POST /s/model/v1/messages", &[], "{}"), "budget.tokens");
    let services = with("tokens = 100");
    let mut client = services.connect();
    client.send(head("POST /s/model/v1/messages?waits HTTP/1.1", &[&services.key(), "Content-Length: 600"]) + &body);
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200 ") && client.chunk().is_some());
    drop(client);
    let outcome = last(&services, "outcome");
    assert_eq!((&outcome["outcome"], &outcome["tokens_estimated"]), (&json!("unknown"), &json!(150)), "{outcome}");
    refused(&services.ask("POST /s/model/v1/messages", &[], "{}"), "budget.tokens");
}

#[test]
fn what_an_answer_keeps_to_itself_is_spent_all_the_same() {
    for (path, estimated) in [("pretends", 150), ("later", 153), ("zip", 153), ("proto", 153)] {
        let (services, body) = (with("tokens = 100"), "x".repeat(600));
        let mut client = services.connect();
        let line = format!("POST /s/model/v1/messages?{path} HTTP/1.1");
        client.send(head(&line, &[&services.key(), "Content-Length: 600"]) + &body);
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200 "));
        if path == "pretends" {
            assert!(client.chunk().unwrap().contains("[DONE]"));
        }
        drop(client);
        let outcome = last(&services, "outcome");
        assert_eq!(outcome["tokens_estimated"], estimated, "{path}: {outcome}");
        refused(&services.ask("POST /s/model/v1/messages", &[], "{}"), "budget.tokens");
    }
}

#[test]
fn what_comes_behind_an_answer_is_estimated_with_the_rest() {
    let services = with("tokens = 100");
    let mut client = services.connect();
    client.send(head("POST /s/model/v1/messages?sink HTTP/1.1", &[&services.key(), "Content-Length: 600"]));
    assert_eq!(client.answer().body, "{}");
    client.send("x".repeat(600));
    let outcome = last(&services, "outcome");
    assert_eq!((&outcome["sent"], &outcome["tokens_estimated"]), (&json!(600), &json!(150)), "{outcome}");
    refused(&services.ask("POST /s/model/v1/messages", &[], "{}"), "budget.tokens");
}

#[test]
fn tokens_that_are_over_are_no_leave_to_go_over_the_bytes() {
    let services = with("tokens = 10\nservice_bytes = 100000");
    let mut client = services.connect();
    client.send(head("POST /s/model/v1/messages?long HTTP/1.1", &[&services.key(), "Content-Length: 2"]) + "{}");
    let mut passed = Vec::new();
    // It is cut.
    let _cut = client.stream().read_to_end(&mut passed);
    assert!(passed.starts_with(b"HTTP/1.1 200 ") && passed.len() < 110_000, "{}", passed.len());
    let outcome = last(&services, "outcome");
    assert_eq!((&outcome["outcome"], &outcome["tokens_out"]), (&json!("budget_spent"), &json!(50)), "{outcome}");
}

#[test]
fn bytes_of_services_are_counted_both_ways() {
    let services = with("service_bytes = 95");
    // The answer says its length, which is more than is left.
    refused(&services.get("/echo"), "budget.service_bytes");
    assert_eq!(last(&services, "outcome")["detail"], "over the session's budget");
    refused(&services.ask("POST /s/tracker/x", &[], &"y".repeat(96)), "budget.service_bytes");
    assert_eq!(services.ask("POST /s/tracker/x", &[], &"y".repeat(85)).status, 200);
    let (mut client, _) = begun(&services, "/events");
    assert_eq!(client.chunk().unwrap(), "data: one\n\n");
    services.origin.go_on.send(()).unwrap();
    let error = client.chunk().unwrap();
    assert!(error.starts_with("event: error\ndata: {") && error.contains("budget.service_bytes"), "{error}");
    assert!(client.chunk().is_none());
    refused(&services.get("/x"), "budget.service_bytes");
}

/// What becomes of a tunnel that may pass 6000 bytes, which is more than TLS begins with, once this is asked through it: what
/// was heard behind that, and the bytes that passed to the origin and to the client.
fn spent_by(asked: &str) -> (Vec<u8>, [u64; 2]) {
    let services = with("tunnel_bytes = 6000\nservice_bytes = 1");
    let mut tunnel = tunnels::opens(&services);
    let mut tls = tunnels::tls(&services, &tunnel, "localhost");
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock).unwrap();
    }
    let mut heard = Vec::new();
    // It is cut somewhere.
    let _cut = tls.write_all(asked.as_bytes()).and_then(|()| tls.flush());
    let _end = tls.read_to_end(&mut heard);
    tunnel.must_end();
    let outcome = last(&services, "outcome");
    assert_eq!(outcome["outcome"], "budget_spent", "{outcome}");
    assert!(outcome["detail"].as_str().unwrap().contains("budget.tunnel_bytes"), "{outcome}");
    let line = format!("CONNECT localhost:{}", services.origin.port);
    refused(&tunnels::asks(&services, &line, &[&tunnels::proxy(&services)]), "budget.tunnel_bytes");
    (heard, ["sent", "received"].map(|way| outcome[way].as_u64().unwrap()))
}

#[test]
fn bytes_of_tunnels_are_counted_both_ways() {
    let asked = "GET /api/x HTTP/1.1\r\nhost: localhost\r\n";
    let (heard, [_, received]) = spent_by(&format!("{asked}x-long: {}\r\n\r\n", "y".repeat(9000)));
    assert!(heard.is_empty() && received < 2000, "it was what is sent that spent it: {received}");
    let (heard, [sent, _]) = spent_by("GET /api/long-head HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert!(heard.starts_with(b"HTTP/1.1 200 ") && sent < 2000, "it was what came that spent it: {sent}");
}
