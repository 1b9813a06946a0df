//! Many connections, and clients that leave.

use std::{os::fd::RawFd, sync::mpsc, thread, time::Duration};

use footbridge::{InProcess, ToolDefinition, ToolResult, harness::Harness};
use footbridge_calls::session::SessionSpec;
use footbridge_core::random::new_token;
use footbridge_core::{gate::Policy, limits::Limits};
use footbridge_edge::listener::{Listen, Listeners};
use footbridge_proto::endpoint::{Endpoint, TcpEndpoint};
use nix::sys::socket::{Shutdown, SockaddrIn, getsockname, shutdown};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::{
    bridge::{Bridge, LONG, Records, eventually},
    client::{Client, LIST, post},
};

const JSON: &str = "Content-Type: application/json";

#[test]
fn the_129th_connection_of_a_session_is_told_so_and_places_come_back() {
    let bridge = Bridge::start();
    let mut crowd: Vec<Client> = (0..128).map(|_| bridge.connect()).collect();
    let mut late = bridge.connect();
    let answer = late.answer();
    assert_eq!((answer.status, answer.body.as_str()), (503, r#"{"error":"Too many connections"}"#));
    late.must_end();
    let other = bridge.another_session();
    let mut client = Client::connect(other.address);
    client.send(post(&[&other.authorization(), JSON], LIST));
    assert_eq!(client.answer().status, 200, "another session has places of its own");
    for client in &mut crowd {
        client.send(bridge.request(LIST));
        assert_eq!(client.answer().status, 200, "those inside are served");
    }
    crowd.truncate(127);
    eventually(|| {
        let mut client = bridge.connect();
        let _ = client.try_send(bridge.request(LIST));
        client.try_answer().filter(|answer| answer.status == 200)
    });
}

#[test]
fn connections_in_all_have_a_limit_too() {
    let bridge = Bridge::with(|limits| {
        limits.edge.connections = 3;
        limits.edge.connections_reserved = 1;
    });
    let other = bridge.another_session();
    let mut crowd = [bridge.connect(), bridge.connect(), Client::connect(other.address)];
    for (client, door) in crowd.iter_mut().zip([&bridge.door, &bridge.door, &other]) {
        client.send(post(&[&door.authorization(), JSON], LIST));
        assert_eq!(client.answer().status, 200);
    }
    let told = bridge.connect().answer();
    assert_eq!(told.status, 503);
    assert!(told.closes());
    drop(crowd);
    eventually(|| {
        let mut client = bridge.connect();
        let _ = client.try_send(bridge.request(LIST));
        client.try_answer().filter(|answer| answer.status == 200)
    });
}

#[test]
fn a_client_that_leaves_cancels_its_call_and_frees_its_place() {
    leaves_behind("");
}

#[test]
fn a_client_that_leaves_behind_the_beginning_of_another_request_cancels_its_call_too() {
    for besides in ["\r\n", "G", "POST / HTTP/1.1\r\n"] {
        leaves_behind(besides);
    }
}

/// A client that sends this behind its request leaves.
fn leaves_behind(besides: &str) {
    let bridge = Bridge::with(|limits| limits.calls.in_flight_per_session_and_server = 1);
    bridge.must_serve();
    let slow = r#"{"jsonrpc":"2.0","id":1,"method":"callTool","params":{"server":"demo","tool":"count_slowly","arguments":{"n":600}}}"#;
    let mut client = bridge.connect();
    client.send(bridge.request(slow) + besides);
    let intent = bridge.until_recorded(|line| line["type"] == "intent");
    let now = json!({"server": "demo", "tool": "now"});
    let busy = bridge.rpc("callTool", &now);
    assert_eq!(busy["error"]["data"]["reason"], "busy", "{busy}");
    drop(client);
    let outcome = bridge.until_recorded(|line| line["type"] == "outcome");
    assert_eq!((&outcome["id"], &outcome["detail"]), (&intent["id"], &json!("cancelled")), "{outcome}");
    eventually(|| bridge.rpc("callTool", &now)["result"].is_object().then_some(()));
}

#[test]
fn a_client_that_leaves_again_and_again_takes_nothing_with_it() {
    let bridge = Bridge::with(|limits| {
        limits.calls.per_second = 10_000;
        limits.calls.burst = 10_000;
    });
    let slow = r#"{"jsonrpc":"2.0","id":1,"method":"callTool","params":{"server":"demo","tool":"count_slowly","arguments":{"n":600}}}"#;
    for round in 0..100 {
        let mut client = bridge.connect();
        let request = bridge.request(slow);
        let part = request.len() * (round % 10 + 1) / 10;
        client.send(&request[..part]);
    }
    let count = |kind: &str| bridge.records().iter().filter(|line| line["type"] == kind).count();
    eventually(|| (count("outcome") == count("intent")).then_some(()));
    eventually(|| {
        bridge.rpc("callTool", &json!({"server": "demo", "tool": "now"}))["result"].is_object().then_some(())
    });
}

#[test]
fn calls_beyond_the_rate_are_refused_with_a_time_and_recorded_in_one_line() {
    let bridge = Bridge::with(|limits| {
        limits.calls.burst = 5;
        limits.calls.per_second = 1;
    });
    bridge.must_serve();
    let mut refused = 0;
    for _ in 0..30 {
        let answer = bridge.rpc("callTool", &json!({"server": "demo", "tool": "now"}));
        if answer["error"].is_object() {
            assert_eq!(answer["error"]["data"]["reason"], "rate_limited", "{answer}");
            assert!(answer["error"]["data"]["retryAfterMs"].as_u64().unwrap() <= 1000);
            refused += 1;
        }
    }
    assert!(refused >= 15, "{refused}");
    let counted = || -> u64 {
        let records = bridge.records();
        records.iter().filter(|line| line["type"] == "limited").map(|line| line["count"].as_u64().unwrap()).sum()
    };
    eventually(|| (counted() == refused).then_some(()));
    assert!(bridge.records().iter().filter(|line| line["type"] == "limited").count() <= 5);
}

/// The descriptor of this process that listens on a port.
fn listening_on(port: u16) -> RawFd {
    let numbers = std::fs::read_dir("/proc/self/fd").unwrap();
    let mut numbers = numbers.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse::<RawFd>().unwrap());
    // Nobody connected yet, so no other socket has it.
    let is_it = |number: &RawFd| getsockname::<SockaddrIn>(*number).is_ok_and(|at| at.port() == port);
    numbers.find(is_it).expect("the listener's")
}

#[test]
fn a_listener_that_fails_again_and_again_leaves_the_processor_to_others() {
    let (sender, idle) = mpsc::channel();
    thread::spawn(move || {
        // This clock goes on only while nothing is busy.
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let tool = |_: Value, _| async { ToolResult::default() };
            let tools = InProcess::new("x").tool(ToolDefinition::new("nothing"), tool).build().unwrap();
            let harness =
                Harness::over(std::sync::Arc::new(tools), Limits::default(), &[], Records::default(), None).unwrap();
            let listener = Listeners::default().bind(&Listen::at(Endpoint::Tcp(TcpEndpoint::loopback(0)))).unwrap();
            let Endpoint::Tcp(tcp) = listener.endpoint().unwrap() else { panic!("not TCP") };
            // From now on every accept fails at once.
            shutdown(listening_on(tcp.port), Shutdown::Both).unwrap();
            let spec = SessionSpec::new("one".parse().unwrap(), &new_token().unwrap(), Policy::open());
            harness.open(spec, vec![listener]).unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
            sender.send(()).unwrap();
            harness.stop().await.unwrap();
        });
    });
    idle.recv_timeout(LONG).expect("a moment in which nothing is busy");
}
