//! Origins of HTTP/1.1 whose answers are longer or shorter than they say: what of them their guest gets, and that nothing
//! left over is taken for the answer to another request.

use std::io::Read as _;

use footbridge_core::digest::Digest;
use serde_json::Value;

use super::{Services, begun, origin::HALTS};
use crate::{
    bridge::eventually,
    client::{Answer, Client, head},
};

/// Asks once more over a connection.
fn asks(services: &Services, client: &mut Client, line: &str) {
    client.send(head(&format!("{line} HTTP/1.1"), &[&services.key()]));
}

/// The next request over this connection, and one over another, have their own answers.
fn goes_on(services: &Services, client: &mut Client, nth: usize) {
    let own = |answer: Answer, name: &str| {
        assert!(answer.status == 200 && answer.body.starts_with(&format!("/api/repeat/{name}{nth}\n")), "{answer:?}");
    };
    asks(services, client, &format!("GET /s/tracker/repeat/next{nth}"));
    own(client.answer(), "next");
    own(services.get(&format!("/repeat/other{nth}")), "other");
}

/// The outcomes, once there are so many.
fn outcomes(services: &Services, many: usize) -> Vec<Value> {
    let ended = || services.records.lines().into_iter().filter(|line| line["type"] == "outcome").collect::<Vec<_>>();
    eventually(|| Some(ended()).filter(|all| all.len() == many))
}

#[test]
fn what_stands_behind_an_answer_of_http_1_is_no_answer_to_the_next_request() {
    let services = Services::open();
    let mut client = services.connect();
    let kinds = [("length", 200, "ok"), ("none", 204, ""), ("chunked", 200, "ok")];
    for (nth, (kind, status, body)) in kinds.into_iter().cycle().take(12).enumerate() {
        asks(&services, &mut client, &format!("GET /s/tracker/longer?{kind}"));
        if kind == "chunked" {
            assert!(client.head().unwrap().starts_with("HTTP/1.1 200 "));
            assert_eq!((client.chunk().as_deref(), client.chunk()), (Some(body), None));
        } else {
            let answer = client.answer();
            assert_eq!((answer.status, &*answer.body), (status, body), "{answer:?}");
        }
        goes_on(&services, &mut client, nth);
    }
    assert_eq!(services.origin.received().len(), 36, "each request came to its origin, once");
    let outcomes = outcomes(&services, 36);
    assert!(outcomes.iter().all(|outcome| outcome["outcome"] == "ok"), "{outcomes:?}");
}

#[test]
fn an_answer_to_head_has_no_body_and_its_connection_goes_on() {
    let services = Services::open();
    let mut client = services.connect();
    // The second one has a body all the same.
    for (nth, path) in ["head", "longer"].into_iter().enumerate() {
        asks(&services, &mut client, &format!("HEAD /s/tracker/{path}"));
        let answered = client.head().unwrap();
        assert!(answered.starts_with("HTTP/1.1 200 ") && answered.contains("content-length: 2\r\n"), "{answered}");
        goes_on(&services, &mut client, nth);
    }
    let received = services.origin.received();
    assert_eq!(received.iter().filter(|one| one.head.starts_with("HEAD /api/")).count(), 2, "{received:?}");
    let outcomes = outcomes(&services, 6);
    assert!(outcomes.iter().all(|outcome| outcome["outcome"] == "ok"), "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| outcome["received"] == 0).count(), 2, "{outcomes:?}");
}

#[test]
fn an_answer_whose_connection_is_reset_is_never_whole() {
    for path in ["/cut", "/cut?chunked"] {
        let services = Services::open();
        let (mut client, said) = begun(&services, path);
        assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
        let is_chunked = path.ends_with("?chunked");
        if is_chunked {
            assert_eq!(client.chunk().as_deref(), Some("some"));
        } else {
            assert!(said.contains("content-length: 1000\r\n"), "{said}");
        }
        services.origin.go_on.send(()).unwrap();
        if is_chunked {
            assert_eq!(client.try_chunk(), None, "it breaks off");
        } else {
            let mut came = Vec::new();
            // However it ends.
            let _cut = client.stream().read_to_end(&mut came);
            assert!(came.len() < 1000, "{came:?}");
        }
        let (_, outcome) = services.outcome();
        assert_eq!((&outcome["outcome"], &outcome["status"]), (&"unknown".into(), &200.into()), "{outcome}");
        assert_eq!(services.get("/plain").status, 200);
    }
}

#[test]
fn an_answer_that_halts_behind_much_ends_with_its_silence_and_is_never_whole() {
    let services = Services::open();
    let (mut client, _) = begun(&services, "/halts");
    let mut length = 0;
    let end = loop {
        match client.try_chunk() {
            Some(Some(chunk)) => length += chunk.len(),
            end => break end,
        }
    };
    assert_eq!((length, end), (HALTS, None), "no chunk is its last");
    let (_, outcome) = services.outcome();
    assert_eq!((&outcome["outcome"], &outcome["received"]), (&"unknown".into(), &HALTS.into()), "{outcome}");
    let digest = format!("sha256:{}", Digest::of("z".repeat(HALTS)));
    assert_eq!(outcome["received_digest"], digest, "{outcome}");
}
