//! Requests to a service against nginx and HAProxy as reverse proxies to the same TLS origin, which is an nginx of its
//! own: requests a second on kept connections, the latency of one, and a large answer. Streams of events come from here
//! in the clear: when each was sent is known, and what passes it on adds to what it takes without anybody between.
//!
//! All run at once and are measured in turn, so that whatever else the machine does meets all. A figure is the median of
//! the rounds; a ratio is the median of the rounds' ratios to the better of the two others.
//! `scripts/bench services` builds and runs this; it takes the path of `footbridge`.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

mod origin;

use origin::{Failure, LARGE, Program, free_port, in_turn, listening, median, say, start_nginx, tls_origin};

const CLIENTS: usize = 8;
const SPAN: Duration = Duration::from_millis(1500);
const TRIPS: usize = 1500;
const BLOCK: usize = 256 << 10;
const EVENTS: usize = 500;
const EVENT_EVERY: Duration = Duration::from_millis(2);
const IDLE_STREAMS: usize = 1000;

/// When this began: events say how long after it they were sent.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What is measured: where it listens, what its paths begin with, and the header that opens it.
struct Way {
    name: &'static str,
    port: u16,
    prefix: &'static str,
    /// The same for streams of events.
    streams: &'static str,
    header: String,
    program: Option<Program>,
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [program] = args.as_slice() else { return Err("usage: services PATH, that of footbridge".into()) };
    for (name, package) in [("nginx", "nginx-light"), ("haproxy", "haproxy"), ("openssl", "openssl")] {
        if Command::new(name).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            say(&format!("SKIPPED: services: {name} is not in the PATH (Debian has it as {package})"));
            return Ok(());
        }
    }
    let folder = tempfile::tempdir()?;
    let at = folder.path();
    let (origin, _origin) = tls_origin(at, "localhost", "127.0.0.1")?;
    let streams = streams()?;
    let origins = Origins { origin, streams };
    let ways = [
        nginx(at, &origins)?,
        haproxy(at, &origins)?,
        footbridge(Path::new(program), at, &origins, false)?,
        footbridge(Path::new(program), at, &origins, true)?,
    ];
    report("requests a second, 8 kept connections", &ways, per_second, "/s", true)?;
    report("one request after the other, p50", &ways, latency, "us", false)?;
    report("an answer of 1 GiB", &ways[..3], large, "MB/s", true)?;
    let direct =
        Way { name: "nothing between", port: streams, prefix: "", streams: "", header: String::new(), program: None };
    for way in ways[..3].iter().chain([&direct]) {
        say(&format!("an event of a stream, p50: {}: {:.0} us", way.name, event(way)?));
    }
    for way in &ways[..3] {
        let kib = idle_streams(way)?;
        say(&format!("an idle stream, {IDLE_STREAMS} held: {}: {kib:.1} KiB resident each", way.name));
    }
    Ok(())
}

/// The ports of what is asked.
struct Origins {
    origin: u16,
    streams: u16,
}

/// Sends an event every two milliseconds to whoever asks for `/ticks`, and one to others.
fn streams() -> Result<u16, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    LazyLock::force(&BEGAN);
    thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming().flatten() {
            if let Ok(Some(idle)) = stream_events(stream) {
                held.push(idle);
            }
        }
    });
    Ok(port)
}

/// Begins a stream, and gives it back where nothing more is to come.
fn stream_events(mut stream: TcpStream) -> Result<Option<TcpStream>, Failure> {
    stream.set_nodelay(true)?;
    let (mut asked, mut line) = (String::new(), String::new());
    let mut reader = BufReader::new(stream.try_clone()?);
    reader.read_line(&mut asked)?;
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")?;
    let mut send = move || {
        let event = format!("data: {:020}\n\n", BEGAN.elapsed().as_nanos());
        stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).map(|()| stream.try_clone())
    };
    if !asked.contains("/ticks") {
        return Ok(Some(send()??));
    }
    thread::spawn(move || {
        // Until its client leaves.
        while send().is_ok() {
            thread::sleep(EVENT_EVERY);
        }
    });
    Ok(None)
}

fn nginx(at: &Path, origins: &Origins) -> Result<Way, Failure> {
    let (port, Origins { origin, streams }) = (free_port()?, origins);
    let server = format!(
        "upstream origin {{ server localhost:{origin}; keepalive 64; keepalive_requests 100000000; }}\n\
         server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass https://origin; proxy_http_version 1.1;\n\
         proxy_set_header Connection \"\"; proxy_set_header Host localhost; proxy_set_header x-api-key k;\n\
         proxy_ssl_verify on; proxy_ssl_name localhost; proxy_ssl_trusted_certificate {}/ca.pem;\n\
         proxy_max_temp_file_size 0; }}\n\
         location /streams/ {{ proxy_pass http://127.0.0.1:{streams}; proxy_http_version 1.1; proxy_buffering off; }} }}",
        at.display()
    );
    let program = Some(start_nginx(at, "proxy", port, &server)?);
    Ok(Way { name: "nginx", port, prefix: "", streams: "/streams", header: String::new(), program })
}

fn haproxy(at: &Path, origins: &Origins) -> Result<Way, Failure> {
    let (port, file, Origins { origin, streams }) = (free_port()?, at.join("haproxy.cfg"), origins);
    let text = format!(
        "global\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n\
         frontend f\n  bind 127.0.0.1:{port}\n  use_backend s if {{ path_beg /streams/ }}\n  default_backend b\n\
         backend s\n  server s 127.0.0.1:{streams}\nbackend b\n  http-reuse always\n\
         \x20 http-request set-header x-api-key k\n\
         \x20 server s 127.0.0.1:{origin} ssl verify required ca-file {}/ca.pem sni str(localhost)\n",
        at.display()
    );
    fs::write(&file, text)?;
    let program = Some(listening(Command::new("haproxy").arg("-db").arg("-f").arg(file), port)?);
    Ok(Way { name: "haproxy", port, prefix: "", streams: "/streams", header: String::new(), program })
}

fn footbridge(path: &Path, at: &Path, origins: &Origins, sync: bool) -> Result<Way, Failure> {
    let (name, state) =
        (if sync { "footbridge, record synced" } else { "footbridge" }, at.join(format!("state-{sync}")));
    let (file, Origins { origin, streams }) = (at.join(format!("footbridge-{sync}.toml")), origins);
    fs::write(
        &file,
        format!(
            "[audit]\nsync = {sync}\n[limits.edge]\nconnections = 4000\n[services.bench]\nurl = \"https://localhost:{origin}\"\nheader = \"x-api-key\"\n\
             credential = \"the-key-of-the-bench\"\nca_file = \"{}/ca.pem\"\n\
             [services.streams]\nurl = \"http://localhost:{streams}\"\nheader = \"x-api-key\"\n\
             credential = \"the-key-of-the-bench\"\n",
            at.display()
        ),
    )?;
    let mut command = Command::new(path);
    command
        .args([
            "run",
            "--sandbox",
            "none",
            "--policy",
            "open",
            "--service",
            "bench",
            "--service",
            "streams",
            "--config",
        ])
        .arg(&file);
    let places = ["edge.connections_per_session=2000", "services.in_flight=2000"];
    for limit in ["services.per_second=1000000", "services.burst=1000000"].iter().chain(&places) {
        command.args(["--limit", limit]);
    }
    command.args(["--", "sh", "-c", "echo $TOOL_CLI_PORT $TOOL_CLI_TOKEN; exec sleep 100000"]);
    command.env("FOOTBRIDGE_STATE", &state).env("FOOTBRIDGE_RUNTIME", at.join(format!("rt-{sync}")));
    fs::create_dir(at.join(format!("rt-{sync}")))?;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let (port, token) = line.trim().split_once(' ').ok_or("footbridge does not start")?;
    let header = format!("x-api-key: {token}\r\n");
    let program = Some(Program(child));
    Ok(Way { name, port: port.parse()?, prefix: "/s/bench", streams: "/s/streams", header, program })
}

/// A kept connection.
struct Connection<'a> {
    way: &'a Way,
    stream: BufReader<TcpStream>,
}

impl<'a> Connection<'a> {
    fn new(way: &'a Way) -> Result<Self, Failure> {
        let stream = TcpStream::connect(("127.0.0.1", way.port))?;
        stream.set_nodelay(true)?;
        Ok(Self { way, stream: BufReader::with_capacity(BLOCK, stream) })
    }

    /// Asks and reads the answer, and gives its length.
    fn get(&mut self, path: &str) -> Result<u64, Failure> {
        let Way { prefix, header, .. } = self.way;
        let asked = format!("GET {prefix}{path} HTTP/1.1\r\nhost: localhost\r\n{header}\r\n");
        self.stream.get_mut().write_all(asked.as_bytes())?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(format!("{} ended: {head}", self.way.name).into());
            }
        }
        let lower = head.to_ascii_lowercase();
        let length = lower.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let length: u64 = length.ok_or_else(|| format!("{}: {head}", self.way.name))?.trim().parse()?;
        if !head.starts_with("HTTP/1.1 200 ") {
            return Err(format!("{}: {head}", self.way.name).into());
        }
        let mut left = length;
        while left > 0 {
            let got = self.stream.fill_buf()?.len().min(usize::try_from(left)?);
            if got == 0 {
                return Err("the answer broke off".into());
            }
            self.stream.consume(got);
            left -= got as u64;
        }
        Ok(length)
    }
}

impl Connection<'_> {
    /// Reads the next event: how long ago it was sent.
    fn event(&mut self) -> Result<Duration, Failure> {
        let mut line = String::new();
        while !line.starts_with("data: ") {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(format!("{}: a stream ended", self.way.name).into());
            }
        }
        Ok(BEGAN.elapsed().saturating_sub(Duration::from_nanos(line["data: ".len()..].trim().parse()?)))
    }
}

fn per_second(way: &Way) -> Result<f64, Failure> {
    let until = Instant::now() + SPAN;
    let client = || -> Result<u64, Failure> {
        let (mut connection, mut count) = (Connection::new(way)?, 0);
        while Instant::now() < until {
            connection.get("/small")?;
            count += 1;
        }
        Ok(count)
    };
    let counts: Result<Vec<u64>, Failure> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        clients.into_iter().map(|one| one.join().map_err(|_| "a client failed")?).collect()
    });
    Ok(counts?.iter().sum::<u64>() as f64 / SPAN.as_secs_f64())
}

fn latency(way: &Way) -> Result<f64, Failure> {
    let mut connection = Connection::new(way)?;
    let mut times = Vec::new();
    for _ in 0..TRIPS {
        let since = Instant::now();
        connection.get("/small")?;
        times.push(since.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(times))
}

fn large(way: &Way) -> Result<f64, Failure> {
    let since = Instant::now();
    let length = Connection::new(way)?.get("/large")?;
    if length != LARGE {
        return Err(format!("{} gave {length} bytes", way.name).into());
    }
    Ok(length as f64 / 1e6 / since.elapsed().as_secs_f64())
}

/// Opens a stream of events, and reads the first.
fn stream<'a>(way: &'a Way, path: &str) -> Result<(Connection<'a>, Duration), Failure> {
    let mut connection = Connection::new(way)?;
    let Way { streams, header, .. } = way;
    let asked = format!("GET {streams}{path} HTTP/1.1\r\nhost: localhost\r\n{header}\r\n");
    connection.stream.get_mut().write_all(asked.as_bytes())?;
    let passed = connection.event()?;
    Ok((connection, passed))
}

fn event(way: &Way) -> Result<f64, Failure> {
    let (mut connection, _) = stream(way, "/ticks")?;
    let times: Result<Vec<_>, _> = (0..EVENTS).map(|_| Ok(connection.event()?.as_secs_f64() * 1e6)).collect();
    times.map(median)
}

/// The memory that each of many streams that say nothing has resident, KiB.
fn idle_streams(way: &Way) -> Result<f64, Failure> {
    let Some(program) = &way.program else { return Err("no program".into()) };
    let before = resident(program.0.id())?;
    let held: Result<Vec<_>, Failure> = (0..IDLE_STREAMS).map(|_| stream(way, "/idle")).collect();
    let (held, after) = (held?, resident(program.0.id())?);
    Ok((after - before) / held.len() as f64)
}

/// The memory of their own that a program and those that it started have resident, KiB.
fn resident(id: u32) -> Result<f64, Failure> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).ok_or("no RssAnon")?;
    let own: f64 = own.trim().trim_end_matches(" kB").parse()?;
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
    children.split_whitespace().try_fold(own, |sum, child| Ok(sum + resident(child.parse()?)?))
}

/// Measures in turn, and prints a line each.
fn report(
    title: &str,
    ways: &[Way],
    measure: impl Fn(&Way) -> Result<f64, Failure>,
    unit: &str,
    more_is_better: bool,
) -> Result<(), Failure> {
    let rounds = in_turn(ways, measure)?;
    for (index, way) in ways.iter().enumerate() {
        let figure = median(rounds.iter().map(|round| round[index]).collect());
        let ratio = |round: &Vec<f64>| {
            if more_is_better { round[index] / round[0].max(round[1]) } else { round[index] - round[0].min(round[1]) }
        };
        let ratio = median(rounds.iter().map(ratio).collect());
        let against =
            if more_is_better { format!("{ratio:.2} of the better one") } else { format!("{ratio:+.0} {unit}") };
        say(&format!("{title}: {}: {figure:.0} {unit} ({against})", way.name));
    }
    Ok(())
}
