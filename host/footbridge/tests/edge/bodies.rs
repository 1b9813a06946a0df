//! Bodies that are too large, unwanted, announced or too many.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    bridge::{Bridge, eventually},
    client::{Client, LIST, head, post},
};

const JSON: &str = "Content-Type: application/json";
const MIB: usize = 1 << 20;

#[test]
fn a_body_over_the_limit_is_answered_even_when_all_of_it_is_sent_first() {
    let bridge = Bridge::with(|limits| limits.edge.wrong_token_delay = Duration::ZERO);
    let auth = bridge.authorization();
    for (authorization, size, status) in [
        (&*auth, MIB, 200),
        (&*auth, MIB + 1, 413),
        (&*auth, MIB + 60_000, 413),
        ("Authorization: Bearer x", MIB, 401),
        ("Accept: */*", MIB + 60_000, 401),
    ] {
        for _ in 0..5 {
            let mut client = bridge.connect();
            client.send(post(&[authorization, JSON], &"x".repeat(size)));
            let answer = client.answer();
            assert_eq!(answer.status, status, "{size}");
            if status == 413 {
                assert_eq!(answer.json()["error"]["message"], "Request too large");
                assert!(answer.closes());
                client.must_end();
            }
        }
    }
    bridge.must_serve();
}

#[test]
fn a_body_of_any_length_that_is_only_announced_is_refused() {
    let bridge = Bridge::start();
    for length in ["1048577", "18446744073709551614"] {
        let mut client = bridge.connect();
        let length = format!("Content-Length: {length}");
        client.send(head("POST / HTTP/1.1", &[&bridge.authorization(), JSON, &length]));
        // A length beyond 64 bits is refused with the head.
        assert!(matches!(client.answer().status, 413 | 431), "{length}");
        client.must_end();
    }
}

#[test]
fn an_early_refusal_reaches_a_client_that_still_sends() {
    let bridge = Bridge::with(|limits| limits.edge.wrong_token_delay = Duration::ZERO);
    let auth = bridge.authorization();
    let length = "Content-Length: 1000000";
    for (line, headers, status) in [
        ("POST /nowhere HTTP/1.1", vec![length], 404),
        ("GET / HTTP/1.1", vec![length], 405),
        ("POST / HTTP/1.1", vec![JSON, length], 401),
        ("POST / HTTP/1.1", vec!["Authorization: Bearer x", JSON, length], 401),
        ("POST / HTTP/1.1", vec![&auth, "Content-Type: text/plain", length], 415),
        ("POST / HTTP/1.1", vec![&auth, JSON, "Content-Encoding: gzip", length], 415),
        ("POST / HTTP/1.1", vec!["Origin: null", length], 403),
    ] {
        let mut client = bridge.connect();
        client.send(head(line, &headers));
        for _ in 0..10 {
            client.send([b'x'; 100_000]);
        }
        assert_eq!(client.answer().status, status, "{line} {headers:?}");
        // All of it was read, so the connection is in step.
        client.send(bridge.request(LIST));
        assert_eq!(client.answer().status, 200);
    }
}

#[test]
fn a_client_that_still_sends_is_told_too_where_its_connection_ends() {
    let bridge = Bridge::start();
    let auth = bridge.authorization();
    let chunk = format!("{:x}\r\n{}\r\n", 100_000, "x".repeat(100_000));
    let length = "Content-Length: 1000000";
    for (headers, body) in [
        (vec![auth.as_str(), JSON, "Transfer-Encoding: chunked"], chunk.as_bytes()),
        (vec!["X_Y: z", length], &[b'x'; 100_000]),
        (vec!["Host: a/b", length], &[b'x'; 100_000]),
    ] {
        let mut client = bridge.connect();
        client.send(head("POST / HTTP/1.1", &headers));
        for _ in 0..10 {
            client.send(body);
        }
        assert_eq!(client.answer().status, 400, "{headers:?}");
        client.must_end();
    }
}

#[test]
fn a_body_beyond_the_limit_is_read_past_so_that_its_client_is_told() {
    let bridge = Bridge::start();
    let mut client = bridge.connect();
    let length = format!("Content-Length: {}", 12 * MIB);
    client.send(head("POST / HTTP/1.1", &[&bridge.authorization(), JSON, &length]));
    for _ in 0..12 {
        client.send(vec![b'x'; MIB]);
    }
    assert_eq!(client.answer().status, 413);
    client.must_end();
}

#[test]
fn a_body_is_only_asked_for_when_it_is_wanted() {
    let bridge = Bridge::start();
    let length = format!("Content-Length: {}", LIST.len());
    let mut client = bridge.connect();
    client.send(head("POST / HTTP/1.1", &[&bridge.authorization(), JSON, &length, "Expect: 100-continue"]));
    assert_eq!(client.answer().status, 100);
    client.send(LIST);
    assert_eq!(client.answer().status, 200);
    let large = "Content-Length: 100000000";
    let mut client = bridge.connect();
    client.send(head("POST / HTTP/1.1", &[&bridge.authorization(), JSON, large, "Expect: 100-continue"]));
    let answer = client.answer();
    assert!(matches!(answer.status, 100 | 413), "{answer:?}");
}

#[test]
fn a_body_that_ends_too_soon_is_no_request() {
    let bridge = Bridge::start();
    let mut client = bridge.connect();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"callTool","params":{"server":"demo","tool":"delete_all_notes"}}"#;
    let request = bridge.request(call);
    client.send(&request[..request.len() - 1]);
    client.finish();
    assert!(client.try_answer().is_none_or(|answer| answer.status == 400));
    bridge.must_serve();
    bridge.must_have_called_nothing();
}

/// A connection that announces a body of 1 MiB and sends this much of it.
fn unfinished(bridge: &Bridge, sent: usize) -> Client {
    let mut client = bridge.connect();
    let length = format!("Content-Length: {MIB}");
    client.send(head("POST / HTTP/1.1", &[&bridge.authorization(), JSON, &length, "Expect: 100-continue"]));
    // It is asked for once there is somebody who takes it.
    assert_eq!(client.answer().status, 100);
    client.send(vec![b' '; sent]);
    client
}

fn large() -> String {
    format!("{LIST}{}", " ".repeat(MIB - LIST.len()))
}

#[test]
fn more_bytes_at_once_than_may_be_held_are_told_to_come_back() {
    // Room for two large ones and some small ones.
    let bridge = Bridge::with(|limits| limits.edge.held_bytes = 2 * MIB + MIB / 2);
    bridge.must_serve();
    let (one, two) = (unfinished(&bridge, MIB - 1), unfinished(&bridge, MIB - 1));
    // They are read when somebody comes to it.
    let busy = eventually(|| Some(bridge.ask(&large()).json()).filter(|answer| answer["error"].is_object()));
    let error = &busy["error"];
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32002), &json!("busy")), "{busy}");
    assert!(error["data"]["retryAfterMs"].as_u64().unwrap() > 0);
    // What is small has room of its own.
    bridge.must_serve();
    drop((one, two));
    eventually(|| bridge.ask(&large()).json()["result"].is_object().then_some(()));
}

#[test]
fn bodies_that_are_only_announced_hold_nothing() {
    let bridge = Bridge::with(|limits| limits.edge.held_bytes = 3 * MIB);
    let announced: Vec<Client> = (0..40).map(|_| unfinished(&bridge, 1)).collect();
    for _ in 0..10 {
        bridge.must_serve();
        assert!(bridge.ask(&large()).json()["result"].is_object());
    }
    drop(announced);
}

#[test]
fn bodies_are_read_no_faster_than_their_session_may_send() {
    let rate = MIB / 4;
    let bridge = Bridge::with(|limits| limits.edge.body_rate = rate);
    bridge.must_serve();
    let (body, start) = (large(), Instant::now());
    let mut client = bridge.connect();
    client.send(bridge.request(&body));
    // Nobody else waits for it.
    let other = bridge.another_session();
    let mut neighbour = Client::connect(other.address);
    neighbour.send(post(&[&other.authorization(), JSON], LIST));
    assert_eq!(neighbour.answer().status, 200);
    assert!(client.answer().json()["result"].is_object());
    // Half a second's worth comes at once.
    let least = Duration::from_secs_f64((body.len() - rate / 2) as f64 / rate as f64 * 0.98);
    assert!(start.elapsed() >= least, "{:?} of {least:?}", start.elapsed());
}

#[test]
fn listings_count_as_bytes_that_are_held() {
    let bridge = Bridge::with(|limits| limits.edge.held_bytes = 1024);
    let answer = bridge.ask(LIST).json();
    assert_eq!((&answer["error"]["data"]["reason"], &answer["id"]), (&json!("busy"), &json!(1)), "{answer}");
}
