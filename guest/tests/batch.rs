//! `tool-cli batch`: many calls over few connections, results in the order of the calls.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod bridge;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Stdio},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bridge::{Bridge, TOKEN, bare, ok, run, told, tool_cli};
use serde_json::{Value, json};

/// Answers requests of any number on each connection.
struct Keeping {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Keeping {
    fn new(answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (port, connections) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let (count, answer) = (Arc::clone(&connections), Arc::new(answer));
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
                let answer = Arc::clone(&answer);
                std::thread::spawn(move || serve(stream.unwrap(), answer.as_ref()));
            }
        });
        Self { port, connections }
    }

    fn batch(&self, args: &[&str]) -> Child {
        let mut command = bare(&[&["batch"], args].concat());
        command.env("TOOL_CLI_PORT", self.port.to_string()).env("TOOL_CLI_TOKEN", TOKEN).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn runs(&self, args: &[&str], input: &str) -> (Option<i32>, Vec<Value>, String) {
        let mut child = self.batch(args);
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let (code, stdout, stderr) = told(&child.wait_with_output().unwrap());
        (code, stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), stderr)
    }
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&Value) -> Value) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let request: Value = serde_json::from_slice(&body).unwrap();
        let mut response = answer(&request["params"]);
        response["jsonrpc"] = "2.0".into();
        response["id"] = request["id"].clone();
        let _ = stream.write_all(&ok(&response));
    }
}

fn said(params: &Value) -> Value {
    json!({"result": {"content": [{"type": "text", "text": params["arguments"]["n"].to_string()}]}})
}

fn call(n: u64) -> String {
    format!("{{\"server\": \"s\", \"tool\": \"t\", \"arguments\": {{\"n\": {n}}}}}\n")
}

#[test]
fn calls_go_over_one_connection_and_come_back_in_order() {
    let bridge = Keeping::new(said);
    let calls: String = (0..200).map(call).collect();
    let (code, lines, stderr) = bridge.runs(&[], &calls);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    for (at, line) in lines.iter().enumerate() {
        let result = json!({"content": [{"type": "text", "text": at.to_string()}]});
        assert_eq!(*line, json!({"line": at + 1, "ok": true, "result": result}));
    }
    assert_eq!((lines.len(), bridge.connections.load(Ordering::SeqCst)), (200, 1));
}

#[test]
fn calls_side_by_side_are_still_printed_in_order() {
    // The first is answered once the third was asked.
    let third = Arc::new((Mutex::new(false), Condvar::new()));
    let bridge = Keeping::new(move |params| {
        let (seen, changed) = &*third;
        match params["arguments"]["n"].as_u64() {
            Some(0) => drop(changed.wait_while(seen.lock().unwrap(), |seen| !*seen).unwrap()),
            Some(2) => {
                *seen.lock().unwrap() = true;
                changed.notify_all();
            }
            _ => {}
        }
        said(params)
    });
    let calls: String = (0..40).map(call).collect();
    let (code, lines, _) = bridge.runs(&["--parallel", "4"], &calls);
    let order: Vec<u64> = lines.iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert_eq!((code, order), (Some(0), (1..=40).collect()));
    assert!((2..=4).contains(&bridge.connections.load(Ordering::SeqCst)));
}

#[test]
fn a_line_is_answered_before_the_next_is_there() {
    let bridge = Keeping::new(said);
    let mut child = bridge.batch(&[]);
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for n in [5, 7] {
        input.write_all(call(n).as_bytes()).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.contains(&format!("\"text\":\"{n}\"")), "{line}");
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_fails_takes_nothing_from_the_others_and_a_full_bridge_is_asked_again() {
    let asked = AtomicUsize::new(0);
    let bridge = Keeping::new(move |params| match params["arguments"]["n"].as_u64() {
        Some(1) if asked.fetch_add(1, Ordering::SeqCst) == 0 => {
            json!({"error": {"code": -32002, "message": "wait", "data": {"reason": "rate_limited", "retryAfterMs": 1}}})
        }
        Some(2) => json!({"error": {"code": -32001, "message": "no", "data": {"reason": "denied_by_policy"}}}),
        Some(3) => json!({"result": {"content": [], "isError": true}}),
        _ => said(params),
    });
    let input = format!(
        "{}{}\n{{\"server\": 7}}\n\n{}",
        call(1),
        r#"{"id": [1], "server":"s","tool":"t","arguments":{"n":2}}"#,
        call(3) + call(4).trim_end()
    );
    let (code, lines, stderr) = bridge.runs(&["--exit-codes"], &input);
    assert_eq!((code, stderr.as_str()), (Some(1), ""));
    let ok: Vec<bool> = lines.iter().map(|line| line["ok"].as_bool().unwrap()).collect();
    assert_eq!(ok, [true, false, false, false, true], "{lines:?}");
    assert_eq!((&lines[1]["id"], &lines[1]["error"]["exitCode"]), (&json!([1]), &json!(5)));
    let told = lines[2]["error"]["message"].as_str().unwrap();
    assert!(told.starts_with("this is no call: expected a text in double quotes, column "), "{lines:?}");
    assert_eq!(lines[3]["result"]["isError"], true);
    let numbers: Vec<u64> = lines.iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 5, 6], "an empty line counts");
}

#[test]
fn a_line_has_its_time_from_when_it_is_sent() {
    // What the first waits is most of the time that each has, and what the second is told more than the rest of it.
    let asked = [(); 2].map(|()| AtomicUsize::new(0));
    let bridge = Keeping::new(move |params| {
        let n = usize::from(params["arguments"]["n"] == 1);
        match asked[n].fetch_add(1, Ordering::SeqCst) {
            0 => {
                let after = [1_700, 1_500][n];
                let data = json!({"reason": "rate_limited", "retryAfterMs": after});
                json!({"error": {"code": -32002, "message": "wait", "data": data}})
            }
            _ => said(params),
        }
    });
    let (code, lines, stderr) = bridge.runs(&["--timeout", "3s"], &(call(0) + &call(1)));
    assert_eq!((code, lines.len(), stderr.as_str()), (Some(0), 2, ""), "{lines:?}");
}

#[test]
fn a_member_that_no_call_has_is_an_error_of_its_line() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let bridge = Keeping::new(move |params| {
        count.fetch_add(1, Ordering::SeqCst);
        said(params)
    });
    let line = |member: &str| format!("{{\"server\": \"s\", \"tool\": \"t\", \"{member}\": {{}}}}\n");
    let input = ["args", "servr", "toolname", "frob"].map(line).concat() + &call(5);
    let (code, lines, _) = bridge.runs(&["--exit-codes"], &input);
    assert_eq!((code, lines.len(), asked.load(Ordering::SeqCst)), (Some(1), 5, 1), "{lines:?}");
    for (line, told) in lines.iter().zip([
        "\"args\" is not known here (did you mean \"arguments\"?), column ",
        "\"servr\" is not known here (did you mean \"server\"?), column ",
        "\"toolname\" is not known here (did you mean \"tool\"?), column ",
        "\"frob\" is not known here: there are server, tool, arguments, id, column ",
    ]) {
        let message = line["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("this is no call: {told}")), "{line}");
        assert_eq!(line["error"]["exitCode"], 2, "{line}");
    }
    assert_eq!(lines[4]["ok"], true);
}

#[test]
fn what_is_wrong_with_the_bytes_of_a_line_is_told_by_its_place() {
    let bridge = Keeping::new(said);
    let mut child = bridge.batch(&[]);
    child.stdin.take().unwrap().write_all(b" {\"server\":\"s\",\"tool\":\"\xff\"}\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    let told = line["error"]["message"].as_str().unwrap();
    assert!(told.starts_with("this is no call: it is not UTF-8 at byte 24. A line is"), "{told}");
    let (_, lines, _) = bridge.runs(&[], r#" {"server":"s","tool":"t","arguments":{"n":1,"n":2}}"#);
    let told = lines[0]["error"]["message"].as_str().unwrap();
    assert!(told.starts_with("this is no call: this name is there twice in its object, column 46."), "{told}");
}

#[test]
fn a_line_that_no_call_can_be_is_an_error_of_its_own_and_takes_nothing_from_the_others() {
    let bridge = Keeping::new(said);
    let long = format!(r#"{{"server":"s","tool":"t","arguments":{{"x":"{}"}},"id":"it"}}"#, "y".repeat(17 << 20));
    // The last line has no end.
    let (code, lines, stderr) = bridge.runs(&[], &format!("{}{long}\n{}{long}", call(1), call(2)));
    assert_eq!((code, stderr.as_str()), (Some(1), ""));
    let ok: Vec<bool> = lines.iter().map(|line| line["ok"].as_bool().unwrap()).collect();
    assert_eq!(ok, [true, false, true, false]);
    for line in [&lines[1], &lines[3]] {
        assert_eq!((&line["id"], &line["error"]["exitCode"]), (&json!("it"), &json!(7)), "{line}");
        let told = line["error"]["message"].as_str().unwrap();
        assert!(told.starts_with(&format!("the request has {} bytes", long.len())), "{told}");
    }
}

/// What a call by itself says of its failure, and what one of a batch says.
fn failures(bridge: &Bridge, flags: &[&str]) -> [Value; 2] {
    let (_, stdout, stderr) = run(tool_cli(bridge, &["s", "t", "{}", "--json"]).args(flags));
    assert_eq!(stdout, "");
    let single: Value = serde_json::from_str(&stderr).unwrap();
    let mut child = tool_cli(bridge, &[&["batch"], flags].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(call(1).as_bytes()).unwrap();
    let (_, stdout, stderr) = told(&child.wait_with_output().unwrap());
    let line: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((stderr.as_str(), &line["ok"]), ("", &json!(false)), "{line}");
    [single, line["error"].clone()]
}

#[test]
fn a_failure_is_told_in_the_words_of_a_call_by_itself() {
    let events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
    for (answer, exit, says) in [
        ("", 9, "(it closed)"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}", 9, "(it closed)"),
        ("SSH-2.0-x\r\n\r\n", 9, "not a bridge: its first line"),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", 9, "it switched protocols"),
        (&interim, 9, "it goes on saying"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", 9, "encoding is not chunked"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 9, "two lengths"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", 7, "which is all that this client reads"),
        ("HTTP/1.1 200 OK\r\n\r\n<html>hello", 9, "<html>hello"),
        ("HTTP/1.1 403 No\r\n\r\n{\"error\":\"Host not allowed\"}", 3, "HTTP 403: Host not allowed"),
        (events, 9, "(it closed)"),
    ] {
        let sent = answer.to_owned();
        let bridge = Bridge::raw(move |_| sent.clone().into_bytes());
        let [single, of_batch] = failures(&bridge, &[]);
        assert_eq!(single, of_batch, "{answer}");
        assert_eq!(single["exitCode"], exit, "{single}");
        assert!(single["message"].as_str().unwrap().contains(says), "{single}");
    }
}

#[test]
fn a_timeout_is_told_in_the_words_of_a_call_by_itself() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let receiver = Mutex::new(receiver);
    let bridge = Bridge::raw(move |_| {
        let _ended = receiver.lock().unwrap().recv();
        Vec::new()
    });
    // It goes before the bridge, which waits for it.
    let _ends = sender;
    let [single, of_batch] = failures(&bridge, &["--timeout", "200ms"]);
    assert_eq!(single, of_batch);
    assert!(single["message"].as_str().unwrap().starts_with("no answer within 200 ms"), "{single}");
}

#[test]
fn an_answer_may_end_with_its_connection_and_events_without_a_name_are_none() {
    let result = |n: u64| json!({"jsonrpc": "2.0", "id": n, "result": {"content": []}});
    let plain = format!("HTTP/1.1 200 OK\r\n\r\n{}", result(1));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n\r\n";
    let events = format!("{head}data: x\n\nevent: result\ndata: {}\n\nevent: result\ndata: y\n\n", result(1));
    for answer in [plain, events] {
        let bridge = Bridge::raw(move |_| answer.clone().into_bytes());
        let mut command = tool_cli(&bridge, &["batch"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(call(1).as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let line: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(line, json!({"line": 1, "ok": true, "result": {"content": []}}));
    }
}

#[test]
fn words_that_are_no_batch_are_refused() {
    for args in
        [["batch", "x"].as_slice(), &["batch", "--parallel", "0"], &["batch", "--parallel", "65"], &["--parallel", "2"]]
    {
        let (code, _, stderr) = told(&bare(args).arg("--exit-codes").output().unwrap());
        assert_eq!(code, Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains("--parallel"), "{stderr}");
    }
}
