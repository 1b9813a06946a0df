//! `tool-cli mcp` where lines are piped into it: what waits for what, what is answered when the input ends, and what is
//! said of a token that is wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod bridge;

use std::{
    io::Write as _,
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use bridge::{Bridge, Got, http, id_of, ok, tool_cli};
use serde_json::{Value, json};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

/// What is answered when all of this is piped into it at once.
fn piped(bridge: &Bridge, words: &[&str], input: &str) -> Output {
    let mut command = tool_cli(bridge, &[&["mcp"], words].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A session that is begun, and what is said in it.
fn speaks(got: &Got) -> Vec<u8> {
    if got.line.starts_with("GET") {
        return http(405, "");
    }
    let told =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}});
    match (got.method().as_str(), got.headers.get("mcp-session-id")) {
        ("initialize", _) => {
            let body = json!({"jsonrpc": "2.0", "result": told, "id": id_of(got)}).to_string();
            let head = format!("HTTP/1.1 200 OK\r\nMcp-Session-Id: s1\r\nContent-Length: {}\r\n\r\n", body.len());
            (head + &body).into_bytes()
        }
        (_, None) => http(400, r#"{"error":"Mcp-Session-Id is missing"}"#),
        (method, Some(_)) if method.starts_with("notifications/") => http(202, ""),
        (_, Some(_)) => ok(&json!({"jsonrpc": "2.0", "result": {"tools": []}, "id": id_of(got)})),
    }
}

#[test]
fn lines_that_are_piped_at_once_wait_for_the_handshake_and_are_answered_after_the_end() {
    let bridge = Bridge::raw(speaks);
    let input = format!("{INITIALIZE}\n{INITIALIZED}\n{LIST}");
    let told = lines(&piped(&bridge, &[], &input));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0]["id"] == 1 && told[0]["result"].is_object(), "{told:?}");
    assert!(told[1]["id"] == 2 && told[1]["result"]["tools"].is_array(), "{told:?}");
}

#[test]
fn a_wrong_token_is_an_error_of_each_request_and_nothing_is_printed_for_a_notification() {
    let bridge = Bridge::raw(|_| http(401, r#"{"error":"Unauthorized"}"#));
    let told = lines(&piped(&bridge, &[], &format!("{INITIALIZE}\n{INITIALIZED}\nrubbish\n{LIST}\n")));
    let ids: Vec<&Value> = told.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(2)], "{told:?}");
    for answer in &told {
        assert_eq!((&answer["jsonrpc"], &answer["error"]["code"]), (&json!("2.0"), &json!(-32600)), "{answer}");
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("token") && said.contains("TOOL_CLI_TOKEN"), "{said}");
    }
}

#[test]
fn a_line_that_no_request_can_be_is_answered_and_takes_no_other_answer() {
    let bridge = Bridge::raw(speaks);
    let long = |rest: &str| format!(r#"{{"params":{{"id":7,"x":"{}"}},"jsonrpc":"2.0",{rest}}}"#, "y".repeat(2 << 20));
    let request = long(r#""method":"tools/list","id":3"#);
    let others = [long(r#""method":"notifications/x""#), long(r#""id":4,"result":{}"#), "x".repeat(2 << 20)].join("\n");
    let told = lines(&piped(&bridge, &[], &format!("{INITIALIZE}\n{INITIALIZED}\n{request}\n{LIST}\n{others}")));
    let too_long: Vec<&Value> = told.iter().filter(|answer| answer["error"].is_object()).collect();
    assert!(too_long.iter().all(|answer| answer["error"]["data"]["reason"] == "too_large"), "{told:?}");
    let ids: Vec<&Value> = too_long.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(3), &Value::Null, &Value::Null, &Value::Null]);
    for id in [1, 2] {
        assert!(told.iter().any(|answer| answer["id"] == id && answer["result"].is_object()), "{told:?}");
    }
    assert_eq!(told.len(), 6, "{told:?}");
}

#[test]
fn what_is_not_answered_in_time_after_the_end_is_said_to_be_unknown() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let receiver = std::sync::Mutex::new(receiver);
    let bridge = Bridge::raw(move |_| {
        let _ended = receiver.lock().unwrap().recv();
        Vec::new()
    });
    let told = lines(&piped(&bridge, &["--timeout", "300ms"], &format!("{LIST}\n")));
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["id"], &told[0]["error"]["data"]["reason"]), (&json!(2), &json!("outcome_unknown")));

    // Nobody reads any more, so nothing is waited for.
    let mut command = tool_cli(&bridge, &["mcp"]);
    let began = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{LIST}\n").as_bytes()).unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    drop(sender);
}
