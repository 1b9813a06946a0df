//! `tool-cli` and the client library where the answer is a stream of events, in every shape that one may have.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod bridge;
mod terminal;

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use bridge::{Bridge, TOKEN, bare, http, id_of, ok, run, tool_cli};
use footbridge_guest::{Client, ClientError, Event, Token};
use serde_json::{Value, json};
use terminal::terminal;

const CALL: [&str; 3] = ["s", "t", "{}"];
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const PROGRESS: &str = "event: progress\ndata: {\"progress\":1,\"total\":2,\"message\":\"half \\u001b[2J way\\n\"}\n\n";

fn result(text: &str) -> String {
    let response = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}]}});
    format!("event: result\ndata: {response}\n\n")
}

/// Answers with this stream until its end.
fn stream(events: &str) -> Bridge {
    let answer = HEAD.to_owned() + events;
    Bridge::raw(move |_| answer.clone().into_bytes())
}

/// The same in chunks of this many bytes, with the last one.
fn chunked(events: &str, size: usize) -> Vec<u8> {
    let mut out =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n"
            .to_vec();
    for chunk in events.as_bytes().chunks(size) {
        out.extend(format!("{:x}\r\n", chunk.len()).bytes().chain(chunk.iter().copied()).chain(*b"\r\n"));
    }
    out.extend(b"0\r\n\r\n");
    out
}

#[test]
fn a_result_is_found_in_a_stream_of_any_shape() {
    let good = result("hi");
    let lines = result("hi").replace(",\"result\"", ",\ndata: \"result\"");
    for events in [
        good.clone(),
        format!("{PROGRESS}{PROGRESS}{good}"),
        format!(
            "\u{feff}: a comment\n:\n\n{PROGRESS}: another\n\nid: 4\nretry: 10\n\n{good}{PROGRESS}not read any more"
        ),
        format!(
            "event: progress\ndata: no JSON\n\nevent: later\ndata: {{}}\n\ndata: x\n\nevent: log\ndata: []\n\n{good}"
        ),
        lines,
    ] {
        for text in [events.clone(), events.replace('\n', "\r\n"), events.replace('\n', "\r")] {
            for size in [1, 7, 100_000] {
                let answer = chunked(&text, size);
                let bridge = Bridge::raw(move |_| answer.clone());
                assert_eq!(
                    run(&mut tool_cli(&bridge, &CALL)),
                    (Some(0), "hi\n".into(), String::new()),
                    "{size}: {text}"
                );
            }
            assert_eq!(run(&mut tool_cli(&stream(&text), &CALL)), (Some(0), "hi\n".into(), String::new()), "{text}");
        }
    }
}

#[test]
fn a_large_result_comes_whole() {
    let text = "é".repeat(4 << 20);
    let answer = chunked(&(PROGRESS.to_owned() + &result(&text)), 1 << 20);
    let bridge = Bridge::raw(move |_| answer.clone());
    let (code, stdout, stderr) = run(&mut tool_cli(&bridge, &CALL));
    assert_eq!((code, stdout.len(), stderr.as_str()), (Some(0), text.len() + 1, ""));
}

#[test]
fn a_stream_without_a_result_leaves_the_outcome_unknown() {
    let cut = result("hi");
    for events in ["", PROGRESS, ": alive\n\n", cut.trim_end()] {
        let (code, stdout, stderr) = run(tool_cli(&stream(events), &CALL).arg("--exit-codes"));
        assert_eq!((code, stdout.as_str()), (Some(9), ""), "{stderr}");
        assert!(stderr.contains("ended before the answer was complete"), "{stderr}");
        let answer = chunked(events, 9);
        let bridge = Bridge::raw(move |_| answer[..answer.len() - 5].to_vec());
        assert_eq!(run(tool_cli(&bridge, &CALL).arg("--exit-codes")).0, Some(9));
    }
}

#[test]
fn errors_and_wrong_ids_are_those_of_a_plain_answer() {
    let refused = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "no", "data": {"reason": "approval_denied"}}});
    let bridge = stream(&format!("{PROGRESS}event: result\ndata: {refused}\n\n"));
    assert_eq!(run(tool_cli(&bridge, &CALL).arg("--exit-codes")), (Some(5), String::new(), "Error: no\n".into()));
    let other = stream(&result("hi").replace("\"id\":1", "\"id\":2"));
    assert!(run(&mut tool_cli(&other, &CALL)).2.contains("the id 2 and the request had 1"));
    let none = stream("event: result\ndata: <html>\n\n");
    assert!(run(&mut tool_cli(&none, &CALL)).2.contains("not a bridge"));
}

#[test]
fn only_calls_ask_for_streams_and_only_no_wait_says_so() {
    let bridge = Bridge::raw(|got| {
        ok(&json!({"jsonrpc": "2.0", "result": {"content": [], "tools": [], "contents": []}, "id": bridge::id_of(got)}))
    });
    for args in
        [["s"].as_slice(), &CALL, &["resource", "read", "s", "u:1"], &["wait", "a1"], &["--no-wait", "s", "t", "{}"]]
    {
        assert_eq!(run(&mut tool_cli(&bridge, args)).0, Some(0), "{args:?}");
    }
    let got = bridge.got.lock().unwrap();
    let header = |name: &str| got.iter().map(|got| got.headers.get(name).cloned()).collect::<Vec<_>>();
    let both = Some("application/json, text/event-stream".to_owned());
    let json = Some("application/json".to_owned());
    assert_eq!(header("accept"), [json.clone(), both.clone(), both.clone(), json, both]);
    assert_eq!(header("footbridge-wait"), [None, None, None, None, Some("0".to_owned())]);
}

/// A bridge for one request that does with the connection what it is told to.
fn one_answer(answer: impl FnOnce(&mut TcpStream) + Send + 'static) -> (String, thread::JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        answer(&mut stream);
    });
    (port, thread)
}

#[test]
fn the_timeout_measures_silence_once_a_stream_has_begun() {
    let (port, server) = one_answer(|stream| {
        stream.write_all(HEAD.as_bytes()).unwrap();
        for _ in 0..12 {
            thread::sleep(Duration::from_millis(250));
            stream.write_all(b": alive\n\n").unwrap();
        }
        stream.write_all(result("late").as_bytes()).unwrap();
    });
    let (code, stdout, stderr) = run(bare(&CALL).args(["--timeout", "2s"]).env("TOOL_CLI_PORT", port));
    assert_eq!((code, stdout.as_str()), (Some(0), "late\n"), "{stderr}");
    server.join().unwrap();
    let (port, server) = one_answer(|stream| {
        stream.write_all((HEAD.to_owned() + PROGRESS).as_bytes()).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the bridge sees that the client left");
    });
    let (code, _, stderr) = run(bare(&CALL).args(["--timeout", "2s", "--exit-codes"]).env("TOOL_CLI_PORT", port));
    assert_eq!(code, Some(8));
    assert!(stderr.contains("nothing was heard of the call for 2 s") && stderr.contains("--timeout"), "{stderr}");
    server.join().unwrap();
}

/// What a terminal gets on standard error.
fn on_terminal(events: &str, flags: &[&str], term: &str) -> String {
    let (mut master, slave) = terminal();
    let bridge = stream(events);
    let mut command = tool_cli(&bridge, &CALL);
    let mut child = command.args(flags).env("TERM", term).stdout(Stdio::null()).stderr(slave).spawn().unwrap();
    drop(command);
    assert!(child.wait().unwrap().success());
    let mut seen = Vec::new();
    // It ends with an error once nobody holds the other end.
    let _ = master.read_to_end(&mut seen);
    String::from_utf8(seen).unwrap()
}

#[test]
fn a_terminal_shows_one_line_that_goes_away() {
    let shown = on_terminal(&(PROGRESS.to_owned() + &result("hi")), &[], "xterm");
    assert_eq!(shown, "\r\u{1b}[?7l50% half \\u{1b}[2J way\\n\u{1b}[K\u{1b}[?7h\r\u{1b}[K");
    let asked = "event: approval\ndata: {\"id\":\"a1\",\"state\":\"pending\",\"expiresAt\":\"2026-11-22T13:43:52Z\",\"summary\":\"s/t \\u202e\"}\n\n";
    let shown = on_terminal(&(PROGRESS.to_owned() + asked + &result("hi")), &[], "xterm");
    let stays = "Asking a person; later: tool-cli wait a1 (until 13:43:52Z): s/t \\u{202e}\u{1b}[K\u{1b}[?7h\r\n";
    assert!(shown.ends_with(stays), "it stays, and what follows has a line of its own: {shown}");
    for (events, flags, term) in [
        (result("hi"), [].as_slice(), "xterm"),
        (PROGRESS.to_owned() + &result("hi"), &["--json"], "xterm"),
        (PROGRESS.to_owned() + &result("hi"), &[], "dumb"),
        (PROGRESS.to_owned() + &result("hi"), &[], ""),
    ] {
        assert_eq!(on_terminal(&events, flags, term), "", "{flags:?} {term}");
    }
}

#[test]
fn off_a_terminal_a_held_call_says_so_once() {
    let asked = |id: &str, state: &str| {
        let data = json!({"id": id, "state": state, "expiresAt": "2026-11-22T13:43:52Z", "expiresInMs": 298_400, "summary": "s/t\u{1b}"});
        format!("event: approval\ndata: {data}\n\n")
    };
    let events = [asked("a1", "pending"), PROGRESS.to_owned(), asked("a1", "pending"), asked("a1", "granted")].concat();
    let bridge = stream(&(events.clone() + &result("hi")));
    let (code, stdout, stderr) = run(&mut tool_cli(&bridge, &CALL));
    assert_eq!((code, stdout.as_str()), (Some(0), "hi\n"));
    assert!(stderr.starts_with("Held: a person has to allow this call, approval a1, 4 min 59 s left"), "{stderr}");
    assert!(stderr.contains("\"tool-cli wait a1\"") && stderr.lines().count() == 1, "{stderr}");
    // A second one is told of too: somebody else's identical call took the first.
    let both = stream(&(events.clone() + &asked("a2", "pending") + &result("hi")));
    assert_eq!(run(&mut tool_cli(&both, &CALL)).2.lines().count(), 2);
    let bridge = stream(&(events + &result("hi")));
    let (_, _, stderr) = run(tool_cli(&bridge, &CALL).arg("--json"));
    let told: Value = serde_json::from_str(&stderr).unwrap();
    assert_eq!((&told["approval"]["id"], &told["approval"]["summary"]), (&json!("a1"), &json!("s/t\u{1b}")));
    let quiet = stream(&(PROGRESS.to_owned() + &result("hi")));
    assert_eq!(run(&mut tool_cli(&quiet, &CALL)).2, "", "nothing else is told");
}

#[test]
fn a_held_call_that_is_not_waited_for_any_longer_was_not_made() {
    let event = |state: &str| format!("event: approval\ndata: {}\n\n", json!({"id": "a1", "state": state}));
    let pending = event("pending");
    for (events, status, says, is_held) in [
        (pending.clone(), 6, "nothing was called: approval a1 waits on. \"tool-cli wait a1\"", true),
        (pending + &event("granted"), 8, "it was cancelled, but may have taken effect", false),
    ] {
        let (port, server) = one_answer(move |stream| {
            stream.write_all((HEAD.to_owned() + &events).as_bytes()).unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the bridge sees that the client left");
        });
        let mut command = bare(&CALL);
        let (code, _, stderr) = run(command.args(["--timeout", "2s", "--exit-codes"]).env("TOOL_CLI_PORT", port));
        assert_eq!((code, stderr.contains("may have taken effect")), (Some(status), !is_held), "{stderr}");
        assert!(stderr.contains(says), "{stderr}");
        server.join().unwrap();
    }
}

#[test]
fn many_calls_and_clients_of_mcp_are_told_the_same_of_one_that_is_held() {
    let event = |state: &str| format!("event: approval\ndata: {}\n\n", json!({"id": "a1", "state": state}));
    let pending = event("pending");
    let of_batch = r#"{"server":"s","tool":"t"}"#;
    let of_mcp = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
    let waits = "nobody has answered yet, so nothing was called: approval a1 waits on";
    for (events, says, exit_code, reason) in [
        (pending.clone(), waits, 6, "approval_required"),
        (pending + &event("granted"), "may have", 8, "outcome_unknown"),
    ] {
        for (word, line) in [("batch", of_batch), ("mcp", of_mcp)] {
            let events = events.clone();
            let (port, server) = one_answer(move |stream| {
                stream.write_all((HEAD.to_owned() + &events).as_bytes()).unwrap();
                while stream.read(&mut [0; 4096]).unwrap_or(0) > 0 {}
            });
            let mut command = bare(&[word, "--timeout", "2s"]);
            command.env("TOOL_CLI_PORT", port).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"));
            let error = &told["error"];
            assert!(error["message"].as_str().unwrap().contains(says), "{word}: {told}");
            if word == "batch" {
                let kind = (&error["type"], &error["exitCode"]);
                assert_eq!(kind, (&json!("RpcTimeoutError"), &json!(exit_code)), "{told}");
            } else {
                let id = if exit_code == 6 { json!("a1") } else { Value::Null };
                assert_eq!((&error["data"]["reason"], &error["data"]["approvalId"]), (&json!(reason), &id), "{told}");
            }
            server.join().unwrap();
        }
    }
}

#[test]
fn waiting_for_an_approval_ends_with_what_became_of_it() {
    let wait = ["wait", "a1", "--exit-codes", "--timeout", "4s"];
    for (state, expected) in
        [("granted", 0), ("used", 0), ("denied", 5), ("pending", 6), ("expired", 6), ("withdrawn", 6), ("unknown", 2)]
    {
        let bridge = Bridge::result(json!({"id": "a1", "state": state}));
        let (code, stdout, stderr) = run(&mut tool_cli(&bridge, &wait));
        assert_eq!(code, Some(expected), "{state}");
        let said = if expected == 0 { stdout } else { stderr };
        assert!(said.contains(&format!("approval a1 is {state}")), "{said}");
        let body: Value = serde_json::from_str(&bridge.first().body).unwrap();
        assert_eq!((&body["method"], &body["params"]), (&json!("awaitApproval"), &json!({"id": "a1"})));
        let (code, stdout, _) = run(tool_cli(&bridge, &wait).arg("--json"));
        assert_eq!((code, stdout), (Some(expected), format!("{{\"id\":\"a1\",\"state\":\"{state}\"}}\n")));
    }
    for (reason, expected) in [("approval_denied", 5), ("approval_required", 6), ("approval_expired", 6)] {
        let bridge = Bridge::error(json!({"code": -32001, "message": "no", "data": {"reason": reason}}));
        assert_eq!(run(&mut tool_cli(&bridge, &wait)).0, Some(expected), "{reason}");
    }
    let called = stream(&(PROGRESS.to_owned() + &result("the result")));
    assert_eq!(run(&mut tool_cli(&called, &wait)), (Some(0), "the result\n".into(), String::new()));
    let read = Bridge::result(json!({"contents": [{"uri": "u:1", "text": "read"}]}));
    assert_eq!(run(&mut tool_cli(&read, &wait)).1, "read\n");
}

#[test]
fn waiting_goes_on_where_the_bridge_says_that_nobody_has_answered_yet() {
    let asked = AtomicUsize::new(0);
    let bridge = Bridge::raw(move |got| {
        let state = if asked.fetch_add(1, Ordering::Relaxed) == 0 { "pending" } else { "granted" };
        http(200, &json!({"jsonrpc": "2.0", "id": id_of(got), "result": {"id": "a1", "state": state}}).to_string())
    });
    let (code, stdout, stderr) = run(&mut tool_cli(&bridge, &["wait", "a1", "--timeout", "120s"]));
    assert_eq!((code, stdout.as_str()), (Some(0), "approval a1 is granted\n"), "{stderr}");
}

#[test]
fn an_approval_that_is_not_waited_for_any_longer_waits_on() {
    for events in ["", ": still waiting\n\n"] {
        let events = if events.is_empty() { String::new() } else { HEAD.to_owned() + events };
        let (port, server) = one_answer(move |stream| {
            stream.write_all(events.as_bytes()).unwrap();
            while stream.read(&mut [0; 4096]).unwrap_or(0) > 0 {}
        });
        let mut command = bare(&["wait", "a1", "--timeout", "2s", "--exit-codes"]);
        let (code, stdout, stderr) = run(command.env("TOOL_CLI_PORT", port));
        assert_eq!((code, stdout.as_str()), (Some(6), ""), "{stderr}");
        assert!(stderr.contains("approval a1 waits on") && !stderr.contains("may have"), "{stderr}");
        server.join().unwrap();
    }
}

#[test]
fn the_library_hears_what_happens_in_order() {
    let approval = "event: approval\ndata: {\"id\":\"a1\",\"state\":\"later\"}\n\n";
    let log = "event: log\ndata: {\"level\":\"info\",\"message\":\"x\",\"new\":1}\n\n";
    let bridge = stream(&format!("{approval}{log}{PROGRESS}{}", result("hi")));
    let client = |port: u16| Client::tcp("127.0.0.1", port, Token::parse(TOKEN).unwrap()).unwrap();
    let mut heard = Vec::new();
    let answer = client(bridge.port).call_watched("s", "t", &json!({}), |event| heard.push(event)).unwrap();
    assert_eq!(answer.text(), "hi");
    let [Event::Approval(asked), Event::Log(line), Event::Progress(step)] = heard.as_slice() else {
        panic!("{heard:?}")
    };
    assert_eq!((asked.state.as_str(), line.level.as_str(), step.total), ("later", "info", Some(2.0)));
    assert_eq!(step.message.as_deref(), Some("half \u{1b}[2J way\n"), "escaping is for whoever shows it");
    let plain = Bridge::result(json!({"content": [{"type": "text", "text": "plain"}]}));
    let mut silent = client(plain.port).without_waiting();
    assert_eq!(silent.call_watched("s", "t", &json!({}), |event| panic!("{event:?}")).unwrap().text(), "plain");
    assert_eq!(plain.first().headers["footbridge-wait"], "0");
    let refused = Bridge::raw(|_| http(401, "{}"));
    let error = client(refused.port).call_watched("s", "t", &json!({}), |_| {}).unwrap_err();
    assert!(matches!(error, ClientError::Unauthorized));
}
