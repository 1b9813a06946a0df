//! Ways to pass without the token, or with somebody else's.

use std::time::Duration;

use crate::{
    bridge::Bridge,
    client::{Client, LIST, head, post},
};

const JSON: &str = "Content-Type: application/json";

#[test]
fn only_the_exact_token_in_the_one_header_opens() {
    let bridge = Bridge::with(|limits| limits.edge.wrong_token_delay = Duration::ZERO);
    let token = bridge.door.token.clone();
    let auth = bridge.authorization();
    let almost = format!("Authorization: Bearer {}", &token[..token.len() - 1]);
    let flipped = format!("Authorization: Bearer {}", token.to_ascii_uppercase());
    let attempts: Vec<Vec<String>> = vec![
        vec![],
        vec!["Authorization:".into()],
        vec!["Authorization: Bearer".into()],
        vec!["Authorization: Bearer fbt_".into()],
        vec![almost],
        vec![flipped],
        vec![format!("{auth}x")],
        vec![format!("Authorization: bearer {token}")],
        vec![format!("Authorization: BEARER {token}")],
        vec![format!("Authorization: Bearer  {token}")],
        vec![format!("Authorization: Bearer\t{token}")],
        vec![format!("Authorization: Bearer {token}, Bearer {token}")],
        vec![format!("Authorization: Bearer \"{token}\"")],
        vec![format!("Authorization: Basic {token}")],
        vec![format!("Authorization: {token}")],
        vec![auth.clone(), auth.clone()],
        vec!["Authorization: Bearer x".into(), auth.clone()],
        vec![auth.clone(), "Authorization: Bearer x".into()],
        vec![format!("Proxy-Authorization: Bearer {token}")],
        vec![format!("X-Authorization: Bearer {token}")],
        vec![format!("Cookie: token={token}; Authorization=Bearer {token}")],
    ];
    for attempt in attempts {
        let mut headers: Vec<&str> = attempt.iter().map(String::as_str).collect();
        headers.push(JSON);
        let mut client = bridge.connect();
        client.send(post(&headers, LIST));
        let answer = client.answer();
        assert_eq!((answer.status, answer.body.as_str()), (401, r#"{"error":"Unauthorized"}"#), "{attempt:?}");
    }
    bridge.must_serve();
}

#[test]
fn a_token_anywhere_else_opens_nothing() {
    let bridge = Bridge::start();
    let token = bridge.door.token.clone();
    for path in
        [format!("/?token={token}"), format!("/?access_token={token}"), format!("/rpc?Authorization=Bearer+{token}")]
    {
        let mut client = bridge.connect();
        let length = format!("Content-Length: {}", LIST.len());
        client.send(head(&format!("POST {path} HTTP/1.1"), &[JSON, &length]) + LIST);
        assert_eq!(client.answer().status, 401, "{path}");
    }
    let mut client = bridge.connect();
    let chunk = format!("{:x}\r\n{LIST}\r\n0\r\n{}\r\n\r\n", LIST.len(), bridge.authorization());
    client.send(head("POST / HTTP/1.1", &[JSON, "Transfer-Encoding: chunked", "Trailer: Authorization"]) + &chunk);
    assert_eq!(client.answer().status, 401, "in a trailer");
    client.must_end();
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"listServers","params":{{"token":"{token}"}}}}"#);
    let mut client = bridge.connect();
    client.send(post(&[JSON], &body));
    assert_eq!(client.answer().status, 401, "in the body");
}

#[test]
fn each_request_of_a_connection_shows_its_token() {
    let bridge = Bridge::with(|limits| limits.edge.wrong_token_delay = Duration::ZERO);
    let mut client = bridge.connect();
    for (headers, status) in
        [(vec![bridge.authorization()], 200), (vec![], 401), (vec!["Authorization: Bearer x".into()], 401)]
    {
        let mut headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        headers.push(JSON);
        client.send(post(&headers, LIST));
        assert_eq!(client.answer().status, status);
    }
}

#[test]
fn a_token_opens_its_own_session_and_no_other() {
    let bridge = Bridge::with(|limits| limits.edge.wrong_token_delay = Duration::ZERO);
    let other = bridge.another_session();
    for (address, door, status) in [
        (bridge.door.address, &bridge.door, 200),
        (other.address, &other, 200),
        (other.address, &bridge.door, 401),
        (bridge.door.address, &other, 401),
    ] {
        let mut client = Client::connect(address);
        client.send(post(&[&door.authorization(), JSON], LIST));
        assert_eq!(client.answer().status, status);
    }
}

#[test]
fn wrong_tokens_wait_and_the_right_one_does_not() {
    let bridge = Bridge::with(|limits| limits.edge.wrong_token_delay = Duration::from_secs(4));
    bridge.must_serve();
    let wrong = || {
        let mut client = bridge.connect();
        client.send(post(&["Authorization: Bearer fbt_wrong", JSON], LIST));
        client
    };
    let mut guesses: Vec<Client> = (0..30).map(|_| wrong()).collect();
    bridge.must_serve();
    assert!(!guesses.iter_mut().any(|guess| guess.hears(Duration::from_millis(1))), "a guess was answered at once");
    for guess in &mut guesses {
        assert_eq!(guess.answer().status, 401);
    }
}
