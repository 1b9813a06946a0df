//! Answers as streams of events: what is in them, what is not, and readers that leave or are slow.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use footbridge::{InProcess, Limits, Server, ToolContext, ToolDefinition, ToolResult, VolatileJournal};
use footbridge_calls::events::LogLevel;
use footbridge_proto::endpoint::Endpoint;
use nix::sys::socket::{setsockopt, sockopt::RcvBuf};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::{
    bridge::{Bridge, WORKERS, eventually},
    client::{Client, post},
};

const JSON: &str = "Content-Type: application/json";
const EVENTS: &str = "Accept: text/event-stream";
const BOTH: &str = "Accept: application/json, text/event-stream";
const SHORT: Duration = Duration::from_millis(400);

fn call(tool: &str, arguments: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": "callTool", "params": {"server": "demo", "tool": tool, "arguments": arguments}})
        .to_string()
}

/// The head of a stream, checked.
fn begins(client: &mut Client) {
    let head = client.head().expect("a head").to_ascii_lowercase();
    assert!(
        head.starts_with("http/1.1 200 ok\r\n") && head.contains("\r\ncontent-type: text/event-stream\r\n"),
        "{head}"
    );
    assert!(head.contains("\r\ntransfer-encoding: chunked\r\n") && !head.contains("content-length"), "{head}");
}

/// The whole rest of a stream, as its text.
fn rest(client: &mut Client) -> String {
    std::iter::from_fn(|| client.chunk()).collect()
}

/// Kinds and data of the events of a text. A sign of life has no kind.
fn events(text: &str) -> Vec<(String, Value)> {
    let event = |block: &str| {
        if block.starts_with(':') {
            assert!(!block.contains('\n'), "{block:?}");
            return (String::new(), Value::Null);
        }
        let (kind, data) = block.split_once('\n').unwrap();
        let data = data.strip_prefix("data: ").unwrap();
        assert!(!data.contains(['\n', '\r']), "{data:?}");
        (kind.strip_prefix("event: ").unwrap().to_owned(), serde_json::from_str(data).unwrap())
    };
    text.strip_suffix("\n\n").expect("an event that ends").split("\n\n").map(event).collect()
}

#[test]
fn progress_comes_before_the_result_and_in_order() {
    let bridge = Bridge::start();
    let mut client = bridge.connect();
    let request = call("count_slowly", &json!({"n": 3, "stepMs": 1000}));
    for accept in [EVENTS, BOTH, "accept: text/html;q=0.1,TEXT/EVENT-STREAM;charset=utf-8"] {
        client.send(post(&[&bridge.authorization(), JSON, accept], &request));
        begins(&mut client);
        let first = client.chunk().unwrap();
        assert_eq!(events(&first), [("progress".to_owned(), json!({"progress": 1, "total": 3, "message": "1 of 3"}))]);
        assert!(!client.hears(Duration::from_millis(1)), "the second step has only begun");
        let rest = events(&rest(&mut client));
        let [(two, second), (three, third), (last, result)] = rest.as_slice() else { panic!("{rest:?}") };
        assert_eq!([two, three, last], ["progress", "progress", "result"]);
        assert_eq!((&second["progress"], &third["progress"]), (&json!(2), &json!(3)));
        let text = json!([{"type": "text", "text": "Counted to 3."}]);
        assert_eq!(
            (&result["id"], &result["jsonrpc"], &result["result"]["content"]),
            (&json!(7), &json!("2.0"), &text)
        );
    }
    // The connection goes on after a stream.
    client.send(bridge.request(&call("now", &json!({}))));
    assert_eq!(client.answer().status, 200);
}

#[test]
fn whoever_takes_both_gets_json_where_nothing_came_before_the_answer() {
    let bridge = Bridge::start();
    let request = call("get_weather", &json!({"city": "Bern"}));
    let ask = |headers: &[&str]| {
        let mut client = bridge.connect();
        client.send(post(&[&[bridge.authorization().as_str(), JSON], headers].concat(), &request));
        client
    };
    let plain = ask(&[]).answer();
    let without_date =
        |head: &str| head.lines().filter(|line| !line.starts_with("date:")).map(str::to_owned).collect::<Vec<_>>();
    let heads = ["HTTP/1.1 200 OK".to_owned(), "content-type: application/json".to_owned()];
    assert!(without_date(&plain.head).starts_with(&heads), "{}", plain.head);
    for headers in [
        [BOTH].as_slice(),
        &["Accept: */*"],
        &["Accept: text/*"],
        &["Accept: text/event-stream;q=0"],
        &["Accept: nonsense,,;q=, text/event-stream-not"],
        &["Accept:"],
        &["Accept: application/*;q=0.1", EVENTS],
    ] {
        let answer = ask(headers).answer();
        assert_eq!(answer.body, plain.body, "{headers:?}");
        assert_eq!(without_date(&answer.head), without_date(&plain.head), "{headers:?}");
    }
    let mut only = ask(&[EVENTS]);
    begins(&mut only);
    assert_eq!(rest(&mut only), format!("event: result\ndata: {}\n\n", plain.body));
}

#[test]
fn what_is_refused_before_it_is_admitted_is_json() {
    let bridge = Bridge::with(|limits| {
        limits.calls.burst = 4;
        limits.calls.per_second = 1;
    });
    let authorization = bridge.authorization();
    let mut client = bridge.connect();
    let mut reason = |authorization: &str, body: &str| {
        client.send(post(&[authorization, JSON, EVENTS], body));
        let answer = client.answer();
        assert!(answer.head.to_ascii_lowercase().contains("content-type: application/json\r\n"), "{answer:?}");
        (answer.status, answer.json()["error"]["data"]["reason"].as_str().map(str::to_owned))
    };
    let refused = |reason: &str| (200, Some(reason.to_owned()));
    assert_eq!(reason(&authorization, &call("no_such_tool", &json!({}))), refused("unknown_tool"));
    assert_eq!(reason(&authorization, &call("count_slowly", &json!({"n": 0}))), refused("invalid_arguments"));
    assert_eq!(reason(&authorization, "{"), refused("bad_request"));
    assert_eq!(reason("Authorization: Bearer fbt_no", &call("now", &json!({}))), (401, None));
    assert_eq!(reason(&authorization, crate::client::LIST), (200, None));
    let over = refused("rate_limited");
    assert!((0..30).any(|_| reason(&authorization, &call("no_such_tool", &json!({}))) == over));
}

#[test]
fn a_quiet_stream_says_that_it_lives_and_is_not_cut_for_being_quiet() {
    let bridge = Bridge::with(|limits| {
        limits.edge.heartbeat_time = SHORT / 4;
        limits.edge.idle_time = SHORT;
        limits.edge.write_time = SHORT;
        limits.edge.answer_time = SHORT;
    });
    let mut client = bridge.connect();
    client.send(post(&[&bridge.authorization(), JSON, BOTH], &call("count_slowly", &json!({"n": 1, "stepMs": 2000}))));
    begins(&mut client);
    let all = events(&rest(&mut client));
    let signs = all.iter().take_while(|(kind, _)| kind.is_empty()).count();
    assert!(signs >= 5, "{all:?}");
    let kinds: Vec<&str> = all[signs..].iter().map(|(kind, _)| kind.as_str()).filter(|kind| !kind.is_empty()).collect();
    assert_eq!(kinds, ["progress", "result"]);
    // Over, the connection is idle as any other.
    client.must_end();
}

#[test]
fn a_client_that_leaves_a_stream_cancels_its_call() {
    let bridge = Bridge::start();
    let mut client = bridge.connect();
    client
        .send(post(&[&bridge.authorization(), JSON, EVENTS], &call("count_slowly", &json!({"n": 600, "stepMs": 20}))));
    begins(&mut client);
    client.chunk().unwrap();
    drop(client);
    let outcome = bridge.until_recorded(|line| line["type"] == "outcome");
    assert_eq!(outcome["detail"], "cancelled", "{outcome}");
    bridge.must_serve();
}

/// Tools of this process behind an edge.
struct InHouse {
    runtime: Runtime,
    server: Option<Server>,
    address: SocketAddr,
    authorization: String,
    done: Arc<AtomicBool>,
}

impl InHouse {
    fn start(limits: Limits) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name(WORKERS).enable_all().build().unwrap();
        let done = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&done);
        let flood = move |_: Value, context: ToolContext| {
            let over = Arc::clone(&over);
            async move {
                context.log(LogLevel::Info, &format!("begun\r\n\r\nevent: result\n{}", "x".repeat(1 << 20)));
                for n in 1..=20_000 {
                    context.progress(f64::from(n), None, Some(&"y".repeat(2000)));
                    tokio::task::yield_now().await;
                }
                over.store(true, Ordering::SeqCst);
                ToolResult::text("z".repeat(8 << 20))
            }
        };
        let inside = runtime.enter();
        let tools = InProcess::new("demo").tool(ToolDefinition::new("flood"), flood).build().unwrap();
        let server = Server::over(tools).limits(limits).start(VolatileJournal::new()).unwrap();
        let served = server.serve("test", &"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
        let Endpoint::Tcp(tcp) = &served.endpoint else { panic!("not TCP") };
        let (address, token) = (tcp.primary(), served.token.expose().to_owned());
        drop(inside);
        Self { runtime, server: Some(server), address, authorization: format!("Authorization: Bearer {token}"), done }
    }

    fn flooded(&self) -> Client {
        let mut client = Client::connect(self.address);
        setsockopt(client.stream(), RcvBuf, &(64 << 10)).unwrap();
        client.send(post(&[&self.authorization, JSON, BOTH], &call("flood", &json!({}))));
        client
    }
}

impl Drop for InHouse {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            let _recorded = self.runtime.block_on(server.stop());
        }
    }
}

#[test]
fn a_slow_reader_loses_progress_and_never_the_result() {
    let house = InHouse::start(Limits::default());
    let mut client = house.flooded();
    // Nothing is read until all was told: the call does not wait for its reader.
    eventually(|| house.done.load(Ordering::SeqCst).then_some(()));
    begins(&mut client);
    let all = events(&rest(&mut client));
    let (kind, result) = all.last().unwrap();
    assert_eq!((kind.as_str(), result["result"]["content"][0]["text"].as_str().unwrap().len()), ("result", 8 << 20));
    assert_eq!(all[0].0, "log");
    let line = all[0].1["message"].as_str().unwrap();
    assert!(line.starts_with("begun\r\n\r\nevent: result\n") && line.len() < 4096, "{}", line.len());
    let told: Vec<f64> = all.iter().filter_map(|(_, data)| data["progress"].as_f64()).collect();
    assert!(told.is_sorted() && !told.is_empty() && told.len() < 20_000, "{} of 20000", told.len());
}

/// Whether the other end of a client's connection has not ended it; what it sent before may still be on its way.
fn is_established(client: &Client) -> bool {
    let own = format!(":{:04X}", client.stream().local_addr().unwrap().port());
    let all = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let mut lines = all.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.any(|line| line[2].ends_with(&own) && line[3] == "01")
}

#[test]
fn a_stream_that_nobody_reads_ends() {
    let mut limits = Limits::default();
    limits.edge.write_time = SHORT;
    let house = InHouse::start(limits);
    let mut client = house.flooded();
    begins(&mut client);
    eventually(|| house.done.load(Ordering::SeqCst).then_some(()));
    // Not read from before it was cut: that would be to read it.
    eventually(|| (!is_established(&client)).then_some(()));
    let mut bytes = 0;
    while let Some(Some(chunk)) = client.try_chunk() {
        bytes += chunk.len();
    }
    assert!(bytes < 8 << 20, "the result was kept for it");
}
