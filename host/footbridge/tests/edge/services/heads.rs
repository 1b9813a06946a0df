//! What heads ask for besides the request itself: to be asked for the body, and what stands behind that of an answer.

use std::io::Read as _;

use super::{Services, origin::KEY};
use crate::client::head;

#[test]
fn a_body_is_asked_for_where_it_is_wanted_alone() {
    let services = Services::open();
    let headers = [&*services.key(), "Expect: 100-continue", "Content-Length: 5"];
    let mut client = services.connect();
    client.send(head("POST /s/tracker/x HTTP/1.1", &headers));
    assert!(client.head().unwrap().starts_with("HTTP/1.1 100 "));
    client.send("hello");
    assert_eq!(client.answer().body, "ok");
    for (line, status) in [("POST /s/narrow/v1/x", 403), ("POST /s/tracker/a/../b", 400), ("POST /s/none/x", 404)] {
        let mut client = services.connect();
        client.send(head(&format!("{line} HTTP/1.1"), &headers));
        let answer = client.answer();
        assert!(answer.status == status && answer.closes(), "{line}: {answer:?}");
        client.must_end();
    }
}

#[test]
fn a_coding_that_would_be_lost_is_refused() {
    let services = Services::open();
    let mut client = services.connect();
    let headers = [&*services.key(), "Transfer-Encoding: gzip, chunked"];
    client.send(head("POST /s/tracker/x HTTP/1.1", &headers) + "1\r\nx\r\n0\r\n\r\n");
    assert_eq!(client.answer().status, 400);
    assert!(services.origin.received().is_empty());
}

#[test]
fn what_stands_behind_an_answer_passes_to_who_asks_for_it() {
    let services = Services::open();
    let mut client = services.connect();
    let headers = [&*services.key(), "TE: trailers", "Connection: close, te"];
    client.send(head("GET /s/tracker/trailers HTTP/1.1", &headers));
    let mut all = String::new();
    client.stream().read_to_string(&mut all).unwrap();
    assert!(all.ends_with("2\r\nok\r\n0\r\nx-check: 7\r\n\r\n"), "{all}");
    assert!(!all.contains(KEY) && !all.contains("clear"), "{all}");
}
