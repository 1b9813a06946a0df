//! Origins that answer before the body of the request has come, and read on.

use std::{io::Read as _, thread::sleep, time::Duration};

use footbridge_core::digest::{Digest, digest_text};
use serde_json::Value;

use super::{LIMITS, Services};
use crate::{
    bridge::eventually,
    client::{Client, head},
};

/// A request whose body is to come, answered.
fn answered(services: &Services, path: &str, length: &str) -> Client {
    let mut client = services.connect();
    client.send(head(&format!("POST /s/tracker{path} HTTP/1.1"), &[&services.key(), length]));
    let answer = client.answer();
    assert!((answer.status, &*answer.body, answer.closes()) == (401, "no", true), "{answer:?}");
    client
}

fn outcomes(services: &Services) -> Vec<Value> {
    services.records.lines().into_iter().filter(|line| line["type"] == "outcome").collect()
}

/// Whether the connection ends, and says nothing before.
fn ends(client: &mut Client) -> bool {
    let mut more = Vec::new();
    // However it ends.
    let _ended = client.stream().read_to_end(&mut more);
    more.is_empty()
}

#[test]
fn what_comes_behind_an_answer_is_recorded_with_it() {
    for (length, parts) in [
        ("Transfer-Encoding: chunked", ["5\r\nhello\r\n", "6\r\n, all!\r\n0\r\n\r\n"]),
        ("Content-Length: 11", ["hello", ", all!"]),
    ] {
        let services = Services::open();
        let mut client = answered(&services, "/sink", length);
        client.send(parts[0]);
        assert_eq!(outcomes(&services), [Value::Null; 0], "it is not over");
        client.send(parts[1]);
        let (_, outcome) = services.outcome();
        assert_eq!(
            (&outcome["outcome"], &outcome["status"], &outcome["sent"]),
            (&"http_error".into(), &401.into(), &11.into())
        );
        assert_eq!(outcome["sent_digest"], digest_text(Digest::of("hello, all!")), "{outcome}");
        assert!(outcome.get("detail").is_none(), "{outcome}");
        assert!(ends(&mut client), "it is used for no other request");
        let received = eventually(|| services.origin.received().get(1).cloned());
        assert!(String::from_utf8(received.body).unwrap().contains("hello"));
    }
}

#[test]
fn a_request_whose_body_still_comes_keeps_its_place() {
    let services = Services::start("open", &format!("{LIMITS}in_flight = 1\n[limits.calls]\nbusy_after = \"100ms\"\n"));
    let mut client = answered(&services, "/sink", "Content-Length: 5");
    let second = services.get("/plain");
    assert!(second.status == 429 && second.body.contains("services.in_flight"), "{second:?}");
    client.send("hello");
    eventually(|| (outcomes(&services).len() == 1).then_some(()));
    assert_eq!(services.get("/plain").status, 200);
}

#[test]
fn silence_and_the_end_of_its_time_end_a_body_behind_its_answer() {
    for (limits, parts, why) in [
        (LIMITS.to_owned(), 1, "answered before the end of the request's body: nothing passed for too long"),
        (
            "[limits.services]\ntotal_time = \"3s\"\n".to_owned(),
            100,
            "answered before the end of the request's body: the request took too long",
        ),
    ] {
        let services = Services::start("open", &limits);
        let mut client = answered(&services, "/sink", "Transfer-Encoding: chunked");
        let sent = (0..parts).take_while(|_| {
            sleep(Duration::from_millis(50));
            client.try_send("5\r\nhello\r\n")
        });
        let sent = sent.count();
        let (_, outcome) = services.outcome();
        assert_eq!((&outcome["outcome"], &outcome["detail"]), (&"http_error".into(), &why.into()), "{outcome}");
        let recorded = outcome["sent"].as_u64().unwrap();
        assert!(recorded > 0 && recorded <= 5 * sent as u64 && (parts == 1 || sent < parts), "{sent}: {outcome}");
        assert_eq!(outcome["sent_digest"], digest_text(Digest::of("hello".repeat(recorded as usize / 5))));
        assert!(ends(&mut client));
    }
}

#[test]
fn a_body_behind_its_answer_is_held_to_its_limit() {
    let services = Services::open();
    let mut client = answered(&services, "/sink", "Transfer-Encoding: chunked");
    let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    let _had_enough = (0..8).all(|_| client.try_send(&chunk));
    let (_, outcome) = services.outcome();
    let why = "answered before the end of the request's body: the body is over its limit";
    assert_eq!((&outcome["outcome"], &outcome["detail"]), (&"http_error".into(), &why.into()), "{outcome}");
    let received = eventually(|| services.origin.received().get(1).cloned());
    assert!(received.body.is_empty(), "it was told that this is no whole one");
}

#[test]
fn whoever_leaves_ends_a_body_behind_its_answer() {
    let services = Services::open();
    let mut client = answered(&services, "/sink", "Content-Length: 11");
    client.send("hello");
    drop(client);
    let (_, outcome) = services.outcome();
    assert_eq!(outcome["detail"], "answered before the end of the request's body: the body broke off", "{outcome}");
}

#[test]
fn an_answer_to_a_client_that_still_sends_is_no_reset() {
    let services = Services::open();
    let mut client = services.connect();
    client.send(head("POST /s/tracker/gone HTTP/1.1", &[&services.key(), "Content-Length: 60000"]));
    // Its origin answers and is gone, and this one reads nothing before it has sent all.
    for _ in 0..6 {
        client.send("y".repeat(10_000));
        sleep(Duration::from_millis(50));
    }
    let answer = client.answer();
    assert!(answer.status == 413 && answer.body == "much" && answer.closes(), "{answer:?}");
    assert!(ends(&mut client));
    let (_, outcome) = services.outcome();
    let why = "answered before the end of the request's body: the service took no more of it";
    assert_eq!((&outcome["status"], &outcome["detail"]), (&413.into(), &why.into()), "{outcome}");
    assert!(outcome["sent"].as_u64().unwrap() < 60_000, "{outcome}");
}

#[test]
fn an_answer_whose_origin_is_gone_behind_it_is_handed_on_however_much_is_under_way() {
    let services = Services::start("open", "[limits.services]\nsilence_time = \"5s\"\nrequest_bytes = \"4 MiB\"\n");
    let body = vec![b'y'; 3 << 20];
    for nth in 0..24 {
        let mut client = services.connect();
        let length = format!("Content-Length: {}", body.len());
        client.send(head("POST /s/tracker/gone HTTP/1.1", &[&services.key(), &length]));
        // It may have had enough before all of it came.
        let _all_sent = client.try_send(&body);
        let answer = client.answer();
        assert!(answer.status == 413 && answer.body == "much", "{nth}: {answer:?}");
    }
    let outcomes = eventually(|| Some(outcomes(&services)).filter(|all| all.len() == 24));
    for outcome in outcomes {
        assert_eq!((&outcome["outcome"], &outcome["status"]), (&"http_error".into(), &413.into()), "{outcome}");
        assert!(outcome["sent"].as_u64().unwrap() <= body.len() as u64, "{outcome}");
    }
}

#[test]
fn a_body_that_comes_is_no_silence_of_its_answer() {
    let services = Services::open();
    let mut client = services.connect();
    client.send(head("POST /s/tracker/stream-and-sink HTTP/1.1", &[&services.key(), "Transfer-Encoding: chunked"]));
    client.head().unwrap();
    assert_eq!(client.chunk().unwrap(), "ok");
    // Longer than services.silence_time, and never silent for that long.
    for _ in 0..6 {
        sleep(Duration::from_millis(500));
        client.send("2\r\nhi\r\n");
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.chunk(), None);
    let (_, outcome) = services.outcome();
    assert_eq!((&outcome["outcome"], outcome["sent"].as_u64()), (&"ok".into(), Some(12)), "{outcome}");
}
