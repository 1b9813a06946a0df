//! `tool-cli mcp` where lines are piped into it: what waits for what, what is not sent any more, what is answered when the
//! input ends, and what is said of a token that is wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod bridge;

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    os::fd::OwnedFd,
    process::{Child, ChildStdout, ExitStatus, Output, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use bridge::{Bridge, Got, TOKEN, bare, http, id_of, ok, tool_cli};
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, getsockname, listen, socket};
use serde_json::{Value, json};

/// How long anything may take that happens at all.
const PATIENCE: Duration = Duration::from_secs(20);

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
    let long = |rest: &str| format!(r#"{{"params":{{"id":7,"x":"{}"}},"jsonrpc":"2.0",{rest}}}"#, "y".repeat(17 << 20));
    let request = long(r#""method":"tools/list","id":3"#);
    let others =
        [long(r#""method":"notifications/x""#), long(r#""id":4,"result":{}"#), "x".repeat(17 << 20)].join("\n");
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

/// A port where nobody listens, and which nobody else gets, until somebody does.
struct Away(OwnedFd, u16);

impl Away {
    fn new() -> Self {
        let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
        bind(std::os::fd::AsRawFd::as_raw_fd(&fd), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
        let port = getsockname::<SockaddrIn>(std::os::fd::AsRawFd::as_raw_fd(&fd)).unwrap().port();
        Self(fd, port)
    }

    /// The harness is there.
    fn comes_back(self) -> Bridge {
        listen(&self.0, Backlog::new(64).unwrap()).unwrap();
        Bridge::on(TcpListener::from(self.0), answers)
    }
}

/// A result for each request.
fn answers(got: &Got) -> Vec<u8> {
    ok(&json!({"jsonrpc": "2.0", "result": {"content": []}, "id": id_of(got)}))
}

/// `tool-cli mcp` and both of its ends.
struct Piped {
    child: Child,
    /// What is to be written, by a thread: it may not read.
    input: Option<Sender<String>>,
    lines: Receiver<Value>,
}

impl Piped {
    fn to(port: u16) -> Self {
        let (mut piped, output) = Self::unheard(port);
        let (sender, lines) = mpsc::channel();
        piped.lines = lines;
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                // Nobody hears it any more: the end that this thread reads from goes with it.
                if sender.send(serde_json::from_str(&line.unwrap()).unwrap()).is_err() {
                    return;
                }
            }
        });
        piped
    }

    /// The same, with its output.
    fn unheard(port: u16) -> (Self, ChildStdout) {
        let mut command = bare(&["mcp", "--timeout", "5m"]);
        command.env("TOOL_CLI_PORT", port.to_string()).env("TOOL_CLI_TOKEN", TOKEN);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, texts) = mpsc::channel::<String>();
        let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        thread::spawn(move || texts.iter().try_for_each(|text| input.write_all(text.as_bytes())));
        (Self { child, input: Some(sender), lines: mpsc::channel().1 }, output)
    }

    fn says(&self, lines: impl IntoIterator<Item = String>) {
        self.input.as_ref().unwrap().send(lines.into_iter().map(|line| line + "\n").collect()).unwrap();
    }

    /// The next line that it writes.
    fn hears(&self) -> Value {
        self.lines.recv_timeout(PATIENCE).unwrap_or_else(|why| panic!("it says nothing: {why}"))
    }

    /// It has read all that was said to it: what is too long for any request is answered at once.
    fn has_read_all(&self) {
        self.says([format!(r#"{{"jsonrpc":"2.0","id":"read","method":"x","params":"{}"}}"#, "y".repeat(17 << 20))]);
        assert_eq!(self.hears()["id"], "read");
    }

    fn ends(&mut self) -> ExitStatus {
        drop(self.input.take());
        self.has_ended()
    }

    fn has_ended(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn call(id: usize) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "s__t"}}).to_string()
}

fn cancelled(id: usize) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string()
}

/// The ids of all that was asked.
fn ids(bridge: &Bridge) -> Vec<Value> {
    bridge.got.lock().unwrap().iter().map(id_of).collect()
}

#[test]
fn what_is_taken_back_while_the_harness_is_away_is_not_sent_once_it_is_there() {
    let away = Away::new();
    let mut piped = Piped::to(away.1);
    piped.says((0..40).map(call));
    piped.has_read_all();
    piped.says((0..40).filter(|id| *id != 7).map(cancelled));
    piped.has_read_all();
    let bridge = away.comes_back();
    assert_eq!(piped.hears()["id"], 7);
    // What is said later finds nothing in front of it.
    piped.says([call(40)]);
    assert_eq!(piped.hears()["id"], 40);
    assert!(piped.ends().success());
    assert_eq!(ids(&bridge), [json!(7), json!(40)]);
}

#[test]
fn a_client_that_takes_all_back_and_ends_is_not_waited_for() {
    let mut piped = Piped::to(Away::new().1);
    piped.says((0..40).map(call));
    piped.has_read_all();
    piped.says((0..40).map(cancelled));
    assert!(piped.ends().success());
    assert!(piped.lines.recv_timeout(PATIENCE).is_err(), "nothing is answered");
}

#[test]
fn nothing_is_sent_for_a_client_that_left_while_the_harness_was_away() {
    let away = Away::new();
    // Its input stays open, as where another process has it too.
    let (mut piped, output) = Piped::unheard(away.1);
    piped.says((0..40).map(call));
    drop(output);
    assert!(piped.has_ended().success());
    assert_eq!(ids(&away.comes_back()), Vec::<Value>::new());
}

#[test]
fn behind_as_many_calls_as_may_be_under_way_the_next_is_taken_back_before_it_is_sent() {
    let (sender, receiver) = mpsc::channel::<()>();
    let receiver = Mutex::new(receiver);
    let bridge = Bridge::raw(move |got| {
        // All of them wait until the test goes on.
        let _ended = receiver.lock().unwrap().recv();
        answers(got)
    });
    // It goes before the bridge, which waits for it.
    let held = sender;
    let mut piped = Piped::to(bridge.port);
    piped.says((0..40).map(call));
    piped.has_read_all();
    piped.says([35, 39, 3].map(cancelled));
    piped.has_read_all();
    drop(held);
    let mut heard: Vec<u64> = (0..37).map(|_| piped.hears()["id"].as_u64().unwrap()).collect();
    heard.sort_unstable();
    assert_eq!(heard, (0..40).filter(|id| ![3, 35, 39].contains(id)).collect::<Vec<_>>());
    assert!(piped.ends().success());
    assert!(ids(&bridge).iter().all(|id| *id != 35 && *id != 39), "they were never sent");
}

#[test]
fn where_too_much_waits_a_request_is_answered_so_and_what_waits_is_sent() {
    let away = Away::new();
    let mut piped = Piped::to(away.1);
    piped.says((0..1_100).map(call));
    for id in 1_024..1_100 {
        let answer = piped.hears();
        assert_eq!((&answer["id"], &answer["error"]["data"]["reason"]), (&json!(id), &json!("busy")));
    }
    piped.says((0..1_023).map(cancelled).chain([call(1_100)]));
    piped.has_read_all();
    let _bridge = away.comes_back();
    let heard = [piped.hears(), piped.hears()].map(|answer| answer["id"].as_u64().unwrap());
    assert!(heard == [1_023, 1_100] || heard == [1_100, 1_023], "{heard:?}");
    assert!(piped.ends().success());
}

#[test]
fn an_answer_whose_stream_ends_later_is_the_only_one() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut piped = Piped::to(listener.local_addr().unwrap().port());
    for end in ["0\r\n\r\n", ""] {
        piped.says([call(1)]);
        let mut stream = listener.accept().unwrap().0;
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        let event = format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(format!("{head}{:x}\r\n{event}\r\n", event.len()).as_bytes()).unwrap();
        assert!(piped.hears()["result"].is_object());
        // Only now, so that it is read by itself.
        stream.write_all(end.as_bytes()).unwrap();
        drop(stream);
        piped.has_read_all();
    }
    assert!(piped.ends().success());
    assert!(piped.lines.recv_timeout(PATIENCE).is_err(), "nothing else is said");
}

#[test]
fn what_changes_is_asked_for_again_where_it_is_refused_for_now() {
    let asked = AtomicUsize::new(0);
    let bridge = Bridge::raw(move |got| {
        if !got.line.starts_with("GET") {
            return speaks(got);
        }
        // While the token is replaced, where too many ask, and then.
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => http(401, r#"{"error":"Unauthorized"}"#),
            1 => http(429, r#"{"error":"Too many"}"#),
            2 => {
                let told = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {told}\n\n").into_bytes()
            }
            _ => http(405, ""),
        }
    });
    let mut piped = Piped::to(bridge.port);
    piped.says([INITIALIZE, INITIALIZED].map(str::to_owned));
    assert_eq!(piped.hears()["id"], 1);
    assert_eq!(piped.hears()["method"], "notifications/tools/list_changed");
    assert!(piped.ends().success());
}
