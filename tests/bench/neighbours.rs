//! One guest or server against all: how long a neighbour's calls take at the 99th percentile with each attacker and
//! without, in one run, as a ratio. Rounds with and without alternate, so that whatever else the machine does meets both.
//! Guests have processors of their own, and so have servers over HTTP: here they are a process that gives way to all
//! others, and the servers that they keep busy give way too, so that what is measured is what they make the daemon do.
//!
//! Some attacks keep a processor busy, as they may, behind all others. What that alone costs a neighbour is the
//! machine's: a virtual one may lose its processors for milliseconds where all are busy. So there are rounds, too, in
//! which threads that have nothing to do with the daemon keep them busy, behind all others, and an attack is held
//! against the longer of both.
//!
//! Attackers: bodies that are announced and do not come; connections without a request; arguments whose check costs as
//! much as it may, by heavy patterns and by items that must differ; arguments that cost much as values; a server over
//! HTTP that sends `100 Continue`, a JSON answer or events without end, or cuts its events off; results that are deep;
//! bodies as large as may be. At the end, the memory that all of it took.
//!
//! What misses its goal is named again at the end, and the exit status is 1.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const ROUNDS: usize = 5;
const CALLS: usize = 200;
const ATTACKERS: usize = 8;
const WEATHER: &str = r#"{"jsonrpc":"2.0","method":"callTool","params":{"server":"demo","tool":"get_weather","arguments":{"city":"Bern"}},"id":1}"#;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--server", kind] => server(kind),
        ["--attackers"] => attackers(),
        [footbridge, names @ ..] => measure(Path::new(footbridge), names),
        _ => Err("usage: neighbours FILE [NAME...]: the program footbridge, and attacks if not all of them".into()),
    }
}

/// How many times as long a neighbour's calls may take as without an attack, or as on a machine that others keep busy.
const GOAL: f64 = 2.0;
/// What the daemon may take, MiB.
const MEMORY_GOAL: f64 = 128.0;

/// What each attacking session does, on so many connections.
struct Attacking {
    name: &'static str,
    connections: usize,
    body: String,
    /// Whether the body is announced as larger than it is, or there is no request at all.
    is_held: bool,
    /// Whether it takes its answer as a stream of events alone.
    takes_events: bool,
}

fn call(server: &str, arguments: &Value) -> String {
    let params = json!({"server": server, "tool": "x", "arguments": arguments});
    json!({"jsonrpc": "2.0", "method": "callTool", "params": params, "id": 1}).to_string()
}

/// All attacks. `text` is as long as the patterns let it be.
fn attacks(text: &str) -> Vec<Attacking> {
    let of = |name, connections, body| Attacking { name, connections, body, is_held: false, takes_events: false };
    let held = |name, connections, body: &str| Attacking { is_held: true, ..of(name, connections, body.to_owned()) };
    let differ = (0..80_000).map(|n| json!([n])).chain([json!([0])]).collect::<Vec<_>>();
    let nothing = json!({});
    vec![
        held("announced bodies", 40, " "),
        held("connections without a request", 62, ""),
        of("heavy patterns", 2, call("patterns", &json!({ "text": text }))),
        of("items that must differ", 2, call("unique", &json!({ "items": differ }))),
        of("lists with one item each", 2, call("unique", &json!({"items": [vec![json!([0]); 80_000]]}))),
        of("100 Continue without end", 1, call("continues", &nothing)),
        of("JSON without end", 1, call("endless", &nothing)),
        Attacking { takes_events: true, ..of("events without end", 1, call("events", &nothing)) },
        Attacking { takes_events: true, ..of("events that are cut off", 1, call("cut", &nothing)) },
        of("deep results", 1, call("deep", &nothing)),
        of("bodies of 900 KiB", 8, WEATHER.replace("Bern", &"x".repeat(900 * 1024))),
    ]
}

fn measure(footbridge: &Path, names: &[&str]) -> Result<(), Failure> {
    let mut others = Others::start()?;
    let daemon = Daemon::start(footbridge, others.port)?;
    let neighbour = daemon.session("neighbour", &["calls.per_second=100000", "calls.burst=100000"])?;
    let attackers = (0..ATTACKERS).map(|n| daemon.session(&format!("a{n}"), &[])).collect::<Result<Vec<_>, _>>()?;
    let attackers: Vec<Value> = attackers.iter().map(|session| json!([session.path, session.token])).collect();
    let mut missed = Vec::new();
    let mut all = attacks(&longest_text(&neighbour)?);
    all.retain(|attack| names.is_empty() || names.contains(&attack.name));
    for attack in all {
        let (mut quiet, mut busy, mut attacked, mut refused) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for _ in 0..ROUNDS {
            quiet.push(neighbour.round()?.0);
            others.tell(&json!({ "burns": true }))?;
            busy.push(neighbour.round()?.0);
            others.tell(&json!(null))?;
            let Attacking { connections, body, is_held, takes_events, .. } = &attack;
            others.tell(&json!({
                "sessions": attackers, "connections": connections, "body": body, "is_held": is_held,
                "takes_events": takes_events,
            }))?;
            let (p99, failed) = neighbour.round()?;
            attacked.push(p99);
            refused += failed;
            others.tell(&json!(null))?;
        }
        let (quiet, busy, attacked) = (median(quiet), median(busy), median(attacked));
        let times = |other: Duration| attacked.as_secs_f64() / other.as_secs_f64();
        let name = attack.name;
        writeln!(
            std::io::stdout(),
            "{name}: p99 {quiet:.2?}, attacked {attacked:.2?}, {:.2} times; {:.2} times that of a machine that others \
             keep busy, {busy:.2?} (goal: one of them under {GOAL}); {refused} of {} calls refused (goal: 0)",
            times(quiet),
            times(busy),
            ROUNDS * CALLS
        )?;
        if times(quiet.max(busy)) >= GOAL || refused > 0 {
            missed.push(name);
        }
    }
    let (most, last) = (daemon.memory("VmHWM:")?, daemon.memory("VmRSS:")?);
    writeln!(
        std::io::stdout(),
        "memory of the daemon: at most {most:.0} MiB (goal: under {MEMORY_GOAL}), at the end {last:.0} MiB"
    )?;
    if most >= MEMORY_GOAL {
        missed.push("memory");
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("goals that were missed: {}", missed.join(", ")).into()) }
}

/// The longest text, within a tenth, whose check against the patterns may cost what it costs.
fn longest_text(session: &Session) -> Result<String, Failure> {
    let mut length = 256 * 1024;
    while length > 1024 {
        let text = "a".repeat(length);
        let body = call("patterns", &json!({ "text": text }));
        let mut reader = BufReader::new(UnixStream::connect(&session.path)?);
        reader.get_mut().write_all((session.head(body.len(), false) + &body).as_bytes())?;
        let answer = answer(&mut reader)?;
        if !answer.contains("invalid_arguments") {
            return Err(format!("the patterns are not what they should be: {answer}").into());
        }
        if !answer.contains("would cost too much") {
            return Ok(text);
        }
        length = length / 10 * 9;
    }
    Err("no text is short enough for the patterns".into())
}

/// The process of the attackers, and of the server over HTTP. Dropping it ends it.
struct Others {
    child: Child,
    told: ChildStdin,
    answers: BufReader<ChildStdout>,
    port: u16,
}

impl Others {
    fn start() -> Result<Self, Failure> {
        let mut command = Command::new("setsid");
        command.args(["nice", "-n", "19"]).arg(env::current_exe()?).arg("--attackers");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let told = child.stdin.take().ok_or("no input")?;
        let mut others =
            Self { told, answers: BufReader::new(child.stdout.take().ok_or("no output")?), child, port: 0 };
        others.port = others.answer()?.trim().parse()?;
        // Where the kernel groups processes by session, how nice they are counts within the group alone.
        let group = format!("/proc/{}/autogroup", others.child.id());
        if Path::new(&group).exists() {
            std::fs::write(&group, "19")?;
        }
        Ok(others)
    }

    /// Begins an attack, or ends it, and waits until that is so.
    fn tell(&mut self, attack: &Value) -> Result<(), Failure> {
        writeln!(self.told, "{attack}")?;
        self.answer().map(drop)
    }

    fn answer(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        match self.answers.read_line(&mut line)? {
            0 => Err("the attackers ended".into()),
            _ => Ok(line),
        }
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// The process of the attackers: an order a line, or null at its end, and an answer a line.
fn attackers() -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{}", http_server()?)?;
    let mut under_way: Option<Attack> = None;
    for line in std::io::stdin().lines() {
        if let Some(over) = under_way.take() {
            over.end();
        }
        let order: Value = serde_json::from_str(&line?)?;
        under_way = Attack::ordered(&order);
        writeln!(std::io::stdout(), "done")?;
    }
    Ok(())
}

/// A session's socket and token.
#[derive(Clone)]
struct Session {
    path: PathBuf,
    token: String,
}

impl Session {
    fn head(&self, length: usize, takes_events: bool) -> String {
        let token = &self.token;
        let accept = if takes_events { "text/event-stream" } else { "application/json" };
        format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}\r\n\
             Accept: {accept}\r\nContent-Length: {length}\r\n\r\n"
        )
    }

    /// Calls one after the other: the 99th percentile, and how many were refused.
    fn round(&self) -> Result<(Duration, usize), Failure> {
        let mut reader = BufReader::new(UnixStream::connect(&self.path)?);
        let request = self.head(WEATHER.len(), false) + WEATHER;
        let (mut times, mut refused) = (Vec::with_capacity(CALLS), 0);
        for _ in 0..CALLS {
            let start = Instant::now();
            reader.get_mut().write_all(request.as_bytes())?;
            let answer = answer(&mut reader)?;
            times.push(start.elapsed());
            refused += usize::from(!answer.contains("\"result\""));
        }
        times.sort_unstable();
        Ok((times[CALLS * 99 / 100], refused))
    }
}

fn answer(reader: &mut BufReader<UnixStream>) -> Result<String, Failure> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err("the connection was closed".into());
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Connections that go on attacking until they are told to end.
struct Attack {
    over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Attack {
    /// As the process of the attackers is told; none to null.
    fn ordered(order: &Value) -> Option<Self> {
        if order["burns"] == true {
            return Some(Self::burning());
        }
        let session = |told: &Value| Some(Session { path: told[0].as_str()?.into(), token: told[1].as_str()?.into() });
        let sessions: Option<Vec<Session>> = order["sessions"].as_array()?.iter().map(session).collect();
        let connections = usize::try_from(order["connections"].as_u64()?).ok()?;
        let (body, is_held) = (order["body"].as_str()?, order["is_held"].as_bool()?);
        let length = if is_held { 1024 * 1024 } else { body.len() };
        let takes_events = order["takes_events"].as_bool()?;
        let request = |session: &Session| {
            if body.is_empty() { String::new() } else { session.head(length, takes_events) + body }
        };
        let requests: Vec<_> = sessions?.into_iter().map(|session| (Arc::from(request(&session)), session)).collect();
        Some(Self::start(&requests, connections, is_held))
    }

    /// No attack: threads that keep every processor busy.
    fn burning() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let burn = |over: Arc<AtomicBool>| thread::spawn(move || while !over.load(Ordering::Relaxed) {});
        let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = (0..processors).map(|_| burn(Arc::clone(&over))).collect();
        thread::sleep(Duration::from_millis(100));
        Self { over, threads }
    }

    /// What each session sends, and where.
    fn start(requests: &[(Arc<str>, Session)], connections: usize, is_held: bool) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let attackers = requests.iter().flat_map(|request| std::iter::repeat_n(request.clone(), connections));
        let begin = |(request, session): (Arc<str>, Session)| {
            let over = Arc::clone(&over);
            let attacks = move || {
                while !over.load(Ordering::Relaxed) {
                    // One that is cut off begins again.
                    let _cut = attack(&session, &request, is_held, &over);
                    thread::sleep(Duration::from_millis(5));
                }
            };
            thread::Builder::new().stack_size(128 * 1024).spawn(attacks)
        };
        let threads = attackers.filter_map(|session| begin(session).ok()).collect();
        // It is under way by then.
        thread::sleep(Duration::from_millis(500));
        Self { over, threads }
    }

    fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

fn attack(session: &Session, request: &str, is_held: bool, over: &AtomicBool) -> Result<(), Failure> {
    let mut stream = UnixStream::connect(&session.path)?;
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    stream.write_all(request.as_bytes())?;
    let mut chunk = [0; 4096];
    while !over.load(Ordering::Relaxed) {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(_) if !is_held => return Ok(()),
            _ => {}
        }
    }
    Ok(())
}

/// `footbridge serve`. Dropping it ends it.
struct Daemon {
    child: Child,
    footbridge: PathBuf,
    folder: tempfile::TempDir,
}

impl Daemon {
    fn start(footbridge: &Path, port: u16) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let (servers, settings) = (folder.path().join("servers.json"), folder.path().join("footbridge.toml"));
        let of_http = |path: &str| json!({"url": format!("http://127.0.0.1:{port}/{path}")});
        let this = env::current_exe()?;
        let of_stdio = |kind: &str| json!({"command": "nice", "args": ["-n", "19", this, "--server", kind]});
        let all = json!({"mcpServers": {
            "demo": {"command": footbridge, "args": ["demo-server"]},
            "patterns": of_stdio("patterns"), "unique": of_stdio("unique"), "deep": of_stdio("deep"),
            "continues": of_http("continues"), "endless": of_http("endless"),
            "events": of_http("events"), "cut": of_http("cut"),
        }});
        fs::write(&servers, all.to_string())?;
        fs::write(&settings, "[limits.calls]\nidle_time = \"5s\"\n")?;
        let mut daemon = Command::new(footbridge);
        daemon.arg("serve").arg("--config").arg(&servers).arg("--config").arg(&settings);
        daemon.env("FOOTBRIDGE_STATE", folder.path().join("state"));
        daemon.env("FOOTBRIDGE_RUNTIME", folder.path().join("run"));
        let mut child = daemon.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut log = BufReader::new(child.stderr.take().ok_or("no log")?);
        let mut line = String::new();
        while !line.contains("ready:") {
            line.clear();
            if log.read_line(&mut line)? == 0 {
                return Err("the daemon ended before it was ready".into());
            }
        }
        thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Ok(Self { child, footbridge: footbridge.to_owned(), folder })
    }

    /// What the kernel says of its memory, MiB.
    fn memory(&self, what: &str) -> Result<f64, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(what)).ok_or("no such line")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    }

    /// A session with limits of its own, the others as they are by default.
    fn session(&self, name: &str, limits: &[&str]) -> Result<Session, Failure> {
        let mut create = Command::new(&self.footbridge);
        create.env("FOOTBRIDGE_STATE", self.folder.path().join("state"));
        create.env("FOOTBRIDGE_RUNTIME", self.folder.path().join("run"));
        create.args(["session", "create", name, "--policy", "open", "--json"]);
        for limit in limits {
            create.args(["--limit", limit]);
        }
        let output = create.output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        let told: Value = serde_json::from_slice(&output.stdout)?;
        let path = told["endpoints"][0].as_str().and_then(|endpoint| endpoint.strip_prefix("unix:"));
        let token = told["token"].as_str().ok_or("no token")?.to_owned();
        Ok(Session { path: path.ok_or("no socket")?.into(), token })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Asks a process to end, and waits until it has.
fn end(child: &mut Child) {
    if let Ok(id) = i32::try_from(child.id()) {
        let _ended = nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGTERM);
    }
    let _status = child.wait();
}

/// What any of the servers says of itself; none to what is no request, or a call.
fn told(message: &Value, schema: &Value) -> Option<String> {
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "0"},
        }),
        "tools/list" => json!({"tools": [{"name": "x", "inputSchema": schema}]}),
        "ping" => json!({}),
        _ => return None,
    };
    Some(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
}

/// An MCP server over stdio whose tool has heavy patterns, takes items that must differ, or has deep results.
fn server(kind: &str) -> Result<(), Failure> {
    // Where the kernel schedules sessions, being nice counts among the processes of one alone.
    let _none = fs::write("/proc/self/autogroup", "19");
    let patterns: Vec<Value> = (0..20).map(|n| json!({"pattern": format!("^(a?){{150}}x{{{n}}}$")})).collect();
    let schema = match kind {
        "patterns" => json!({"type": "object", "additionalProperties": {"anyOf": patterns}}),
        "unique" => json!({"type": "object", "additionalProperties": {"uniqueItems": true}}),
        _ => json!({"type": "object"}),
    };
    let deep = format!("{{\"content\":[],\"deep\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    for line in std::io::stdin().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let answer = told(&message, &schema);
        let deep = || {
            let is_call = message["method"] == "tools/call";
            is_call.then(|| format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{deep}}}", message["id"]))
        };
        if let Some(answer) = answer.or_else(deep) {
            writeln!(std::io::stdout(), "{answer}")?;
        }
    }
    Ok(())
}

/// An HTTP server that answers calls without end. It ends with this process.
fn http_server() -> Result<u16, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve_http(stream));
        }
    });
    Ok(port)
}

fn serve_http(stream: TcpStream) -> Result<(), Failure> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut path, mut line) = (0, String::new(), String::new());
        while !matches!(line.as_str(), "\r\n") {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if path.is_empty() {
                path.clone_from(&line);
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let stream = reader.get_mut();
        if message["method"] == "tools/call" {
            return attack_by_answer(stream, &path);
        }
        match told(&message, &json!({"type": "object"})) {
            Some(answer) => write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
                answer.len()
            )?,
            None => stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")?,
        }
    }
}

/// Answers a call as the path says; most go on until the connection is gone.
fn attack_by_answer(stream: &mut TcpStream, path: &str) -> Result<(), Failure> {
    const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"x\":\"";
    let (head, flood) = match path.split(' ').nth(1) {
        Some("/continues") => ("", "HTTP/1.1 100 Continue\r\n\r\n".repeat(1000)),
        Some("/events") => (EVENTS, ": nothing\n\n".repeat(1000)),
        Some("/cut") => return Ok(stream.write_all(format!("{EVENTS}: nothing\n\n").as_bytes())?),
        _ => (JSON, "x".repeat(64 * 1024)),
    };
    stream.write_all(head.as_bytes())?;
    loop {
        stream.write_all(flood.as_bytes())?;
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
