//! Clients that are slow, in every part of a request and its answer.

use std::time::{Duration, Instant};

use footbridge_core::limits::EdgeLimits;
use nix::sys::socket::{setsockopt, sockopt::RcvBuf};

use crate::{
    bridge::{Bridge, LONG},
    client::{Client, LIST, head},
};

const JSON: &str = "Content-Type: application/json";
const SHORT: Duration = Duration::from_millis(400);

/// Sends a text byte by byte, for ever, until the other end has had enough.
fn trickle(client: &mut Client, text: &str) {
    let start = Instant::now();
    for byte in text.bytes().cycle() {
        if !client.try_send([byte]) {
            break;
        }
        assert!(start.elapsed() < LONG);
        if client.hears(Duration::from_millis(10)) {
            break;
        }
    }
}

#[test]
fn a_slow_head_ends_the_connection() {
    let bridge = Bridge::with(|limits| limits.edge.head_time = SHORT);
    let start = Instant::now();
    let mut client = bridge.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\n");
    trickle(&mut client, "X-A: b\r\n");
    client.must_end();
    assert!(start.elapsed() >= SHORT / 2);
    // A head that stops is one too, and so is the second one of a connection.
    let mut client = bridge.connect();
    client.send(bridge.request(LIST));
    assert_eq!(client.answer().status, 200);
    let start = Instant::now();
    client.send("POST");
    client.must_end();
    assert!(start.elapsed() >= SHORT / 2);
    bridge.must_serve();
}

#[test]
fn an_idle_connection_ends_and_one_that_is_used_stays() {
    let bridge = Bridge::with(|limits| limits.edge.idle_time = SHORT);
    let start = Instant::now();
    let mut idle = bridge.connect();
    idle.must_end();
    assert!(start.elapsed() >= SHORT / 2);
    // A busy one is not idle, however long it takes.
    let mut used = bridge.connect();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"callTool","params":{"server":"demo","tool":"count_slowly","arguments":{"n":3,"stepMs":400}}}"#;
    used.send(bridge.request(call));
    assert_eq!(used.answer().json()["result"]["content"][0]["text"], "Counted to 3.");
    let start = Instant::now();
    used.send(bridge.request(LIST));
    assert_eq!(used.answer().status, 200);
    used.must_end();
    assert!(start.elapsed() >= SHORT / 2);
}

#[test]
fn a_slow_body_is_told_so_and_its_connection_ends() {
    let bridge = Bridge::with(|limits| limits.edge.body_time = SHORT);
    for slowly in [false, true] {
        let mut client = bridge.connect();
        let start = Instant::now();
        client.send(head("POST / HTTP/1.1", &[&bridge.authorization(), JSON, "Content-Length: 100000"]));
        if slowly {
            trickle(&mut client, " ");
        }
        let answer = client.answer();
        assert_eq!((answer.status, answer.closes()), (408, true), "{answer:?}");
        assert!(start.elapsed() >= SHORT / 2);
        client.must_end();
    }
    bridge.must_serve();
}

#[test]
fn an_unwanted_body_is_waited_for_only_a_moment() {
    let bridge = Bridge::start();
    for headers in [vec![], vec!["Transfer-Encoding: chunked"], vec!["Content-Length: 100000000"]] {
        let mut client = bridge.connect();
        client.send(head("POST /nowhere HTTP/1.1", &headers));
        let start = Instant::now();
        assert_eq!(client.answer().status, 404);
        assert!(start.elapsed() < EdgeLimits::default().body_time, "{headers:?}: {:?}", start.elapsed());
    }
}

#[test]
fn answers_that_nobody_reads_end_the_connection() {
    let bridge = Bridge::with(|limits| limits.edge.write_time = SHORT);
    let mut client = bridge.connect();
    setsockopt(client.stream(), RcvBuf, &4096).unwrap();
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"describeTool","params":{"server":"demo","tool":"get_weather"}}"#;
    let many = bridge.request(ask).repeat(100);
    let start = Instant::now();
    while client.try_send(&many) {
        assert!(start.elapsed() < LONG, "nobody minds");
    }
    assert!(start.elapsed() >= SHORT / 2);
    bridge.must_serve();
}
