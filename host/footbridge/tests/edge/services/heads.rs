//! What heads ask for besides the request itself: to be asked for the body, and what stands behind that of an answer.

use std::io::{Read as _, Write as _};

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
fn what_an_origin_says_in_heads_is_bounded_whenever_it_came() {
    let services = Services::start("open", "[limits.services]\nanswer_head_bytes = \"4 KiB\"\n");
    for path in ["/long-head", "/long-heads"] {
        let answer = services.get(path);
        assert!(answer.status == 502 && answer.body.contains("cannot be used"), "{path}: {answer:?}");
    }
    assert_eq!(services.get("/plain").status, 200);
    let services = Services::start("open", "[limits.services]\nanswer_head_bytes = \"8 KiB\"\n");
    for path in ["/long-head", "/long-heads"] {
        assert_eq!(services.get(path).status, 200, "{path}");
    }
}

#[test]
fn an_answer_whose_coding_would_be_lost_or_whose_headers_are_not_all_read_is_none() {
    for path in ["/coded", "/crowd"] {
        let answer = Services::open().get(path);
        assert!(answer.status == 502 && answer.body.contains("cannot be used"), "{path}: {answer:?}");
    }
}

#[test]
fn a_length_beside_chunks_is_none_and_one_that_is_said_twice_counts_once() {
    let services = Services::open();
    for (headers, body) in [
        (
            ["Content-Length: 3", "Transfer-Encoding: chunked"],
            "5\r\nhello\r\n0\r\n\r\nGET /s/tracker/other HTTP/1.1\r\n\r\n",
        ),
        (["Content-Length: 5", "Content-Length: 5"], "hello"),
    ] {
        let mut client = services.connect();
        client.send(head("POST /s/tracker/x HTTP/1.1", &[&*services.key(), headers[0], headers[1]]) + body);
        let answer = client.answer();
        assert_eq!((answer.status, answer.closes()), (200, body.len() > 5), "{answer:?}");
    }
    let lengths: Vec<usize> = services.origin.received().iter().map(|one| one.body.len()).collect();
    assert_eq!(lengths, [15, 5], "in chunks, and as it is");
}

#[test]
fn an_answer_that_breaks_off_is_reset_where_its_end_would_be_that_of_its_connection() {
    let services = Services::open();
    let mut client = services.connect();
    client.send(format!("GET /s/tracker/half HTTP/1.0\r\nHost: localhost\r\n{}\r\n\r\n", services.key()));
    let (mut came, cut) = (Vec::new(), client.stream().read_to_end(&mut Vec::new()));
    assert_eq!(cut.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    let mut client = services.connect();
    client.send(format!("GET /s/tracker/both HTTP/1.0\r\nHost: localhost\r\n{}\r\n\r\n", services.key()));
    client.stream().read_to_end(&mut came).unwrap();
    assert!(came.ends_with(b"\r\n\r\nhello"), "{}", String::from_utf8_lossy(&came));
}

#[test]
fn where_nothing_can_be_reset_http_1_0_is_refused() {
    let services = Services::open();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let token = services.also_at(format!("unix:{}", path.display()).parse().unwrap());
    for (version, status) in [("HTTP/1.0", "HTTP/1.0 505 "), ("HTTP/1.1", "HTTP/1.1 200 ")] {
        let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
        let key = format!("x-api-key: {token}");
        write!(stream, "GET /s/tracker/plain {version}\r\nHost: localhost\r\n{key}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut came = String::new();
        stream.read_to_string(&mut came).unwrap();
        assert!(came.starts_with(status), "{came}");
    }
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
