//! Requests whose end can be read in two ways, and targets, hosts and headers that claim to be something else.

use serde_json::json;

use crate::{
    bridge::Bridge,
    client::{LIST, head, post},
};

const JSON: &str = "Content-Type: application/json";
const CHUNKED: &str = "Transfer-Encoding: chunked";

/// What was smuggled behind a request, if it was answered, would be a call that is recorded.
fn smuggled(bridge: &Bridge) -> String {
    let call = r#"{"jsonrpc":"2.0","id":666,"method":"callTool","params":{"server":"demo","tool":"delete_all_notes"}}"#;
    bridge.request(call)
}

#[test]
fn a_body_whose_end_can_be_read_in_two_ways_ends_the_connection() {
    let bridge = Bridge::start();
    let auth = bridge.authorization();
    let length = format!("Content-Length: {}", LIST.len());
    let attempts: Vec<(&str, Vec<&str>, &str)> = vec![
        ("length, then chunks", vec![&length, CHUNKED], "0\r\n\r\n"),
        ("chunks, then length", vec![CHUNKED, &length], "0\r\n\r\n"),
        ("chunks", vec![CHUNKED], "0\r\n\r\n"),
        ("chunks in capitals", vec!["TRANSFER-ENCODING: CHUNKED"], "0\r\n\r\n"),
        ("chunks twice", vec![CHUNKED, CHUNKED], "0\r\n\r\n"),
        ("bad chunks", vec![CHUNKED], "zz\r\nabc\r\n"),
        ("a chunk too large", vec![CHUNKED], "fffffffffffffffff\r\n"),
        ("chunks with an extension", vec![CHUNKED], "0;a=b\r\n\r\n"),
        ("an encoding that is none", vec!["Transfer-Encoding: identity", &length], LIST),
        ("a hidden encoding", vec!["Transfer-Encoding: xchunked", &length], LIST),
        ("chunks that are not last", vec!["Transfer-Encoding: chunked, identity", &length], LIST),
        ("a space before the colon", vec!["Transfer-Encoding : chunked", &length], LIST),
        ("two lengths", vec![&length, "Content-Length: 3"], LIST),
        ("two lengths in one", vec!["Content-Length: 47, 3"], LIST),
        ("a length with a sign", vec!["Content-Length: +47"], LIST),
        ("a length below zero", vec!["Content-Length: -1"], LIST),
        ("a length in hex", vec!["Content-Length: 0x2f"], LIST),
        ("a length of 99 digits", vec!["Content-Length: 999999999999999999999999999999999999"], LIST),
        ("a folded header", vec!["X-A: b\r\n c", &length], LIST),
        ("a folded length", vec!["Content-Length:\r\n 47"], LIST),
        ("a lone return", vec!["X-A: b\rc", &length], LIST),
        ("a NUL", vec!["X-A: b\0c", &length], LIST),
        ("a name with a space", vec!["X A: b", &length], LIST),
        ("no name", vec![": b", &length], LIST),
        ("a name with an underscore", vec!["Content_Length: 3", &length], LIST),
    ];
    for (what, framing, body) in attempts {
        for authorized in [true, false] {
            let mut headers = vec![JSON];
            headers.extend(authorized.then_some(auth.as_str()));
            headers.extend(&framing);
            let mut client = bridge.connect();
            client.send(head("POST / HTTP/1.1", &headers) + body + &smuggled(&bridge));
            let answer = client.answer();
            assert!(matches!((answer.status, authorized), (400, _) | (401, false)), "{what}: {answer:?}");
            assert!(answer.closes(), "{what}: {answer:?}");
            client.must_end();
        }
    }
    bridge.must_have_called_nothing();
    bridge.must_serve();
}

#[test]
fn what_follows_a_refusal_is_a_request_of_its_own() {
    let bridge = Bridge::start();
    let mut client = bridge.connect();
    client.send(post(&[JSON], LIST) + &bridge.request(LIST) + &post(&[JSON], LIST));
    assert_eq!([client.answer().status, client.answer().status, client.answer().status], [401, 200, 401]);
    // A body that looks like a request is a body.
    let mut client = bridge.connect();
    client.send(post(&[JSON], &smuggled(&bridge)) + &bridge.request(LIST));
    assert_eq!([client.answer().status, client.answer().status], [401, 200]);
    client.send(bridge.request(LIST));
    assert_eq!(client.answer().status, 200, "in step");
    bridge.must_have_called_nothing();
}

#[test]
fn one_length_said_twice_and_bare_line_feeds_are_one_request() {
    let bridge = Bridge::start();
    let length = format!("Content-Length: {}", LIST.len());
    for request in [
        post(&[&bridge.authorization(), JSON, &length], LIST),
        head("POST / HTTP/1.1", &[&bridge.authorization(), JSON, &length]).replace("\r\n", "\n") + LIST,
        format!("\r\n\r\n{}", bridge.request(LIST)),
    ] {
        let mut client = bridge.connect();
        client.send(request + &bridge.request(r#"{"jsonrpc":"2.0","id":"second","method":"listServers"}"#));
        assert_eq!(client.answer().json()["id"], 1);
        assert_eq!(client.answer().json()["id"], "second");
    }
}

#[test]
fn other_paths_and_methods_are_refused() {
    let bridge = Bridge::start();
    let auth = bridge.authorization();
    let length = format!("Content-Length: {}", LIST.len());
    for (line, status) in [
        ("POST / HTTP/1.1", 200),
        ("POST /rpc HTTP/1.1", 200),
        ("POST /rpc?x=/../ HTTP/1.1", 200),
        ("POST / HTTP/1.0", 200),
        ("POST http://localhost/ HTTP/1.1", 404),
        ("POST http://127.0.0.1/rpc HTTP/1.1", 404),
        ("POST http://evil.test/ HTTP/1.1", 404),
        ("POST http://user@localhost/ HTTP/1.1", 404),
        ("POST /rpc/../ HTTP/1.1", 404),
        ("POST /../rpc HTTP/1.1", 404),
        ("POST /%72pc HTTP/1.1", 404),
        ("POST /%2e%2e/rpc HTTP/1.1", 404),
        ("POST //rpc HTTP/1.1", 404),
        ("POST /RPC HTTP/1.1", 404),
        ("POST /mcps HTTP/1.1", 404),
        ("POST /admin HTTP/1.1", 404),
        ("POST /healthz HTTP/1.1", 404),
        ("OPTIONS * HTTP/1.1", 404),
        ("CONNECT localhost:80 HTTP/1.1", 404),
        ("GET / HTTP/1.1", 405),
        ("HEAD /rpc HTTP/1.1", 405),
        ("PUT / HTTP/1.1", 405),
        ("post / HTTP/1.1", 405),
        ("OPTIONS / HTTP/1.1", 405),
        ("TRACE / HTTP/1.1", 405),
        ("POST / HTTP/1.2", 400),
        ("POST / HTTP/2.0", 400),
        ("POST /\0 HTTP/1.1", 400),
        ("POST  / HTTP/1.1", 400),
        ("POST /", 400),
        ("\u{16}\u{3}\u{1}", 400),
    ] {
        let mut client = bridge.connect();
        client.send(head(line, &[&auth, JSON, &length]) + LIST);
        if line.starts_with("HEAD") {
            // Its answer says a length and has no body.
            let mut text = [0; 12];
            std::io::Read::read_exact(&mut client.stream(), &mut text).unwrap();
            assert_eq!(&text, b"HTTP/1.1 405");
        } else {
            assert_eq!(client.answer().status, status, "{line}");
        }
    }
    let mut client = bridge.connect();
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    client.must_end();
}

#[test]
fn web_pages_and_rebound_names_are_refused_with_the_right_token_too() {
    let bridge = Bridge::start();
    let auth = bridge.authorization();
    for header in [
        "Origin: null",
        "Origin: http://localhost",
        "Origin: http://127.0.0.1:7179",
        "Referer: http://localhost/",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "Sec-Fetch-Site: Same-Origin",
        "Sec-Fetch-Site: same-origin, cross-site",
    ] {
        let mut client = bridge.connect();
        client.send(post(&[&auth, JSON, header], LIST));
        assert_eq!(client.answer().status, 403, "{header}");
    }
    let length = format!("Content-Length: {}", LIST.len());
    // Well-formed ones of others, and what is no host at all (RFC 9112, 3.2).
    for (hosts, status) in [
        (&["evil.test"][..], 403),
        (&["localhost.evil.test"], 403),
        (&["127.0.0.1.evil.test"], 403),
        (&["evil.test:7179"], 403),
        (&["2130706433"], 403),
        (&["0x7f.1"], 403),
        (&["0"], 403),
        (&["localhost:evil"], 400),
        (&["localhost:80:80"], 400),
        (&["localhost@evil.test"], 400),
        (&["evil.test#localhost"], 400),
        (&["[::1].evil.test"], 400),
        (&[""], 400),
        (&[], 400),
        (&["localhost", "evil.test"], 400),
        (&["evil.test", "localhost"], 400),
        (&["localhost", "localhost"], 400),
    ] {
        let hosts: String = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect();
        let mut client = bridge.connect();
        client.send(format!("POST / HTTP/1.1\r\n{hosts}{auth}\r\n{JSON}\r\n{length}\r\n\r\n{LIST}"));
        assert_eq!(client.answer().status, status, "{hosts:?}");
    }
    bridge.must_serve();
}

#[test]
fn headers_that_claim_another_identity_have_no_effect() {
    let bridge = Bridge::start();
    let auth = bridge.authorization();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"callTool","params":{"server":"demo","tool":"now"}}"#;
    let claims = [
        "Forwarded: for=10.0.0.1;host=evil.test;proto=https",
        "X-Forwarded-For: 10.0.0.1",
        "X-Forwarded-Host: evil.test",
        "X-Real-IP: 10.0.0.1",
        "X-Original-URL: /admin",
        "X-Rewrite-URL: /admin",
        "X-HTTP-Method-Override: GET",
        "X-Remote-User: root",
        "X-Footbridge-Session: other",
        "X-Session: other",
        "X-Approved: true",
        "Via: 1.1 evil.test",
        "Upgrade: h2c",
        "Connection: keep-alive, Authorization, Host",
        "Expect: 200-ok",
    ];
    let mut client = bridge.connect();
    let headers: Vec<&str> = [auth.as_str(), JSON].into_iter().chain(claims).collect();
    client.send(post(&headers, call));
    let answer = client.answer();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.json()["result"]["content"].is_array());
    let intent = bridge.until_recorded(|line| line["type"] == "intent");
    let expected = (json!("test"), json!(format!("tcp:127.0.0.1:{}", client.port())));
    assert_eq!((intent["session"].clone(), intent["peer"].clone()), expected);
}

#[test]
fn a_head_beyond_its_limits_is_refused_and_ends_the_connection() {
    let bridge = Bridge::start();
    let auth = bridge.authorization();
    let long = format!("X-A: {}", "a".repeat(16 * 1024));
    let longer = format!("X-A: {}", "a".repeat(200 * 1024));
    let many: Vec<String> = (0..61).map(|n| format!("X-{n}: 1")).collect();
    // `Host` and `Content-Length` make two more.
    let with = |count: usize| -> Vec<&str> { many[..count].iter().map(String::as_str).collect() };
    for (what, extra, status) in [
        ("64 headers", with(60), 200),
        ("65 headers", with(61), 431),
        ("16 KiB", vec![&*long], 431),
        ("200 KiB", vec![&*longer], 431),
    ] {
        let headers: Vec<&str> = [auth.as_str(), JSON].into_iter().chain(extra).collect();
        let mut client = bridge.connect();
        let _ = client.try_send(post(&headers, LIST));
        let answer = client.answer();
        assert_eq!(answer.status, status, "{what}");
        if status != 200 {
            client.must_end();
        }
    }
    let path = format!("POST /{} HTTP/1.1", "a".repeat(64 * 1024));
    let mut client = bridge.connect();
    let _ = client.try_send(head(&path, &[&auth, JSON]));
    assert!(matches!(client.answer().status, 414 | 431));
    bridge.must_serve();
}
