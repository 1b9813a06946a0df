//! A daemon with a thousand sessions against one with a single session, in one run: memory, and how long a call takes
//! at the median and at the 99th percentile. Each session keeps a connection open, and calls go round among them.
//!
//! Rounds alternate between the two daemons, so that whatever else the machine does meets both.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use footbridge_tests::figures::{median, say};
use serde_json::Value;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const MANY: usize = 1000;
const ROUNDS: usize = 11;
const CALLS: usize = 500;
const BODY: &str = r#"{"jsonrpc":"2.0","method":"callTool","params":{"server":"demo","tool":"get_weather","arguments":{"city":"Bern"}},"id":1}"#;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [footbridge] = args.as_slice() else { return Err("usage: sessions FILE, the program footbridge".into()) };
    let mut few = Daemon::start(Path::new(footbridge), 1)?;
    let mut many = Daemon::start(Path::new(footbridge), MANY)?;
    let (mut of_few, mut of_many) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_few.push(few.round()?);
        of_many.push(many.round()?);
    }
    let (few_middle, few_high) = medians(&of_few);
    let (many_middle, many_high) = medians(&of_many);
    say(&format!("a call, 1 session: median {few_middle:.2?}, p99 {few_high:.2?}"));
    say(&format!("a call, {MANY} sessions: median {many_middle:.2?}, p99 {many_high:.2?}"));
    let ratio = many_high.as_secs_f64() / few_high.as_secs_f64();
    say(&format!("p99 with {MANY} sessions over p99 with one: {ratio:.2} (goal: under 3)"));
    let (one, all) = (few.resident()?, many.resident()?);
    say(&format!(
        "daemon, 1 session: {one:.1} MB resident; {MANY} sessions, a connection each: {all:.1} MB (goal: under 128)"
    ));
    few.end()?;
    many.end()
}

/// `footbridge serve`, its sessions, and a connection to each. Dropping it ends it.
struct Daemon {
    child: Child,
    doors: Vec<Door>,
    next: usize,
    _folder: tempfile::TempDir,
}

struct Door {
    reader: BufReader<UnixStream>,
    request: String,
}

impl Daemon {
    fn start(footbridge: &Path, sessions: usize) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let servers = folder.path().join("servers.json");
        fs::write(
            &servers,
            format!(r#"{{"mcpServers":{{"demo":{{"command":{footbridge:?},"args":["demo-server"]}}}}}}"#),
        )?;
        // Rates are for agents, not for measurements.
        let settings = folder.path().join("footbridge.toml");
        fs::write(&settings, "[limits.calls]\nper_second = 100000\nburst = 100000\n")?;
        let ours = |command: &mut Command| {
            command.env("FOOTBRIDGE_STATE", folder.path().join("state"));
            command.env("FOOTBRIDGE_RUNTIME", folder.path().join("run"));
        };
        let mut serve = Command::new(footbridge);
        ours(&mut serve);
        serve.arg("serve").arg("--config").arg(&servers).arg("--config").arg(&settings);
        let mut child = serve.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut log = BufReader::new(child.stderr.take().ok_or("no log")?);
        wait_for(&mut log, "ready:")?;
        // Read on, or the daemon would wait for its reader.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        let mut doors = Vec::with_capacity(sessions);
        for n in 0..sessions {
            let mut create = Command::new(footbridge);
            ours(&mut create);
            let output = create.args(["session", "create", &format!("s{n}"), "--json"]).output()?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into());
            }
            doors.push(Door::open(&serde_json::from_slice(&output.stdout)?)?);
        }
        Ok(Self { child, doors, next: 0, _folder: folder })
    }

    /// Calls one after the other; gives the median and the 99th percentile.
    fn round(&mut self) -> Result<(Duration, Duration), Failure> {
        let mut times = Vec::with_capacity(CALLS);
        for _ in 0..CALLS {
            let at = self.next % self.doors.len();
            self.next += 1;
            let start = Instant::now();
            self.doors[at].call()?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        Ok((times[CALLS / 2], times[CALLS * 99 / 100]))
    }

    fn resident(&self) -> Result<f64, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib * 1024.0 / 1e6)
    }

    fn end(mut self) -> Result<(), Failure> {
        self.doors.clear();
        let id = i32::try_from(self.child.id())?;
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGTERM)?;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the daemon ended with {status}").into()) }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It has ended already, unless something failed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Door {
    fn open(session: &Value) -> Result<Self, Failure> {
        let endpoint = session["endpoint"].as_str().or_else(|| session["endpoints"][0].as_str());
        let path: PathBuf = endpoint.and_then(|e| e.strip_prefix("unix:")).ok_or("no socket")?.into();
        let token = session["token"].as_str().ok_or("no token")?;
        let request = format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{BODY}",
            BODY.len()
        );
        Ok(Self { reader: BufReader::new(UnixStream::connect(path)?), request })
    }

    fn call(&mut self) -> Result<(), Failure> {
        self.reader.get_mut().write_all(self.request.as_bytes())?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line)? == 0 {
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
        self.reader.read_exact(&mut body)?;
        let body = String::from_utf8_lossy(&body);
        if body.contains("\"result\"") { Ok(()) } else { Err(format!("no result: {body}").into()) }
    }
}

fn wait_for(log: &mut impl BufRead, word: &str) -> Result<(), Failure> {
    let mut line = String::new();
    while log.read_line(&mut line)? > 0 {
        if line.contains(word) {
            return Ok(());
        }
        line.clear();
    }
    Err("the daemon ended before it was ready".into())
}

/// The medians over the rounds.
fn medians(rounds: &[(Duration, Duration)]) -> (Duration, Duration) {
    let (mut middles, mut highs): (Vec<_>, Vec<_>) = rounds.iter().copied().unzip();
    (median(&mut middles), median(&mut highs))
}
