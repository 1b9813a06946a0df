//! The figures of `docs/figures.md`, measured in one run: sizes, a whole call against curl, idle memory, time to listen, and
//! what a call costs over the same call made directly.
//!
//! Peers alternate, so that whatever else the machine does meets both. `scripts/bench` builds what is measured and
//! runs this; it takes the folder with the three binaries. It is also its own guest: started inside a sandbox with
//! `inside`, it measures from there.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write as _},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use footbridge_tests::figures::{median, say};
use rmcp::{ServiceExt as _, model::CallToolRequestParams};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const CALLS: usize = 500;
const COMMANDS: usize = 200;
const STARTS: usize = 21;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.as_slice() {
        [word, bin] if word == "inside" => inside(Path::new(bin)),
        [bin] => outside(Path::new(bin)),
        _ => Err("usage: figures FOLDER, the one with footbridge, tool-cli and footbridge-relay".into()),
    }
}

fn outside(bin: &Path) -> Result<(), Failure> {
    for name in ["tool-cli", "footbridge-relay", "footbridge"] {
        say(&format!("size of {name}: {:.2} MB", fs::metadata(bin.join(name))?.len() as f64 / 1e6));
    }
    let folder = tempfile::tempdir()?;
    let config = folder.path().join("servers.json");
    let demo = bin.join("footbridge");
    fs::write(&config, format!(r#"{{"mcpServers":{{"demo":{{"command":{demo:?},"args":["demo-server"]}}}}}}"#))?;
    limits(folder.path())?;
    idle(bin, folder.path(), &config)?;
    listening(bin, folder.path())?;
    for sandbox in ["none", "net"] {
        say(&format!("--sandbox {sandbox}:"));
        let mut run = footbridge(bin, folder.path(), &config);
        run.args(["--sandbox", sandbox, "--"]).arg(env::current_exe()?).arg("inside").arg(bin);
        if !run.status()?.success() {
            return Err("the measurement inside the sandbox failed".into());
        }
    }
    Ok(())
}

/// The rate limit is for agents, not for measurements.
fn limits(folder: &Path) -> Result<(), Failure> {
    fs::write(folder.join("footbridge.toml"), "[limits.calls]\nper_second = 100000\nburst = 100000\n")?;
    Ok(())
}

fn footbridge(bin: &Path, folder: &Path, config: &Path) -> Command {
    let mut run = Command::new(bin.join("footbridge"));
    run.env("FOOTBRIDGE_STATE", folder.join("state")).env("FOOTBRIDGE_RUNTIME", folder.join("runtime"));
    run.arg("run").arg("--config").arg(config).arg("--config").arg(folder.join("footbridge.toml"));
    run
}

fn idle(bin: &Path, folder: &Path, config: &Path) -> Result<(), Failure> {
    let mut run = footbridge(bin, folder, config);
    // The command tells when the server has answered, and stays until its input ends.
    let script = "tool-cli demo now '{}' >/dev/null && echo ready && cat >/dev/null";
    let mut child = run.args(["--", "sh", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kib: f64 = resident.trim().trim_end_matches(" kB").parse()?;
    say(&format!("harness idle, one server: {:.1} MiB", kib / 1024.0));
    drop(child.stdin.take());
    child.wait()?;
    Ok(())
}

/// From the start of the process to the first connection that is accepted, with servers that never come up.
fn listening(bin: &Path, folder: &Path) -> Result<(), Failure> {
    let config = folder.join("bad.json");
    let servers = r#"{"mcpServers":{"silent":{"command":"sleep","args":["1000"]},"missing":{"command":"no-such-program"},"ends":{"command":"false"}}}"#;
    fs::write(&config, servers)?;
    let runtime = folder.join("runtime");
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let start = Instant::now();
        let mut run = footbridge(bin, folder, &config);
        let mut child =
            run.args(["--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let deadline = start + Duration::from_secs(10);
        while !accepts(&runtime) {
            if Instant::now() > deadline {
                return Err("nothing listens after 10 s".into());
            }
            std::thread::yield_now();
        }
        times.push(start.elapsed());
        drop(child.stdin.take());
        child.wait()?;
    }
    say(&format!("listening after {}, whatever the servers do", spread(&mut times)));
    Ok(())
}

fn accepts(runtime: &Path) -> bool {
    let runs = fs::read_dir(runtime).into_iter().flatten().flatten();
    runs.map(|run| run.path().join("s/footbridge.sock")).any(|socket| UnixStream::connect(socket).is_ok())
}

fn inside(bin: &Path) -> Result<(), Failure> {
    let (port, token) = (env::var("TOOL_CLI_PORT")?, env::var("TOOL_CLI_TOKEN")?);
    against_curl(&port, &token)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(against_direct(bin, &port, &token))
}

const BODY: &str = r#"{"jsonrpc":"2.0","method":"callTool","params":{"server":"demo","tool":"get_weather","arguments":{"city":"Bern"}},"id":1}"#;
const LISTING: &str =
    r#"{"jsonrpc":"2.0","method":"describeTool","params":{"server":"demo","tool":"get_weather"},"id":1}"#;

/// A whole process, as a script would start it, and curl doing the same POST: once for a listing, which the harness
/// answers by itself, and once for a call, which waits for the server and for two syncs of the record.
fn against_curl(port: &str, token: &str) -> Result<(), Failure> {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        say("  SKIPPED: tool-cli against curl: there is no curl");
        return Ok(());
    }
    let listing: &[&str] = &["demo", "get_weather"];
    let call: &[&str] = &["demo", "get_weather", r#"{"city":"Bern"}"#];
    for (what, args, body) in [("listing", listing, LISTING), ("call", call, BODY)] {
        let (mut ours, mut curls) = (Vec::new(), Vec::new());
        for _ in 0..COMMANDS {
            ours.push(timed(Command::new("tool-cli").args(args))?);
            let mut command = Command::new("curl");
            command.args(["-sS", "--fail", "-X", "POST", "-H", "Content-Type: application/json", "-H"]);
            command.arg(format!("Authorization: Bearer {token}"));
            curls.push(timed(command.args(["-d", body, &format!("http://127.0.0.1:{port}/")]))?);
        }
        let ratio = median(&mut curls).as_secs_f64() / median(&mut ours).as_secs_f64();
        let (ours, curls) = (spread(&mut ours), spread(&mut curls));
        say(&format!("  a whole {what} with tool-cli: {ours}; with curl: {curls}; {ratio:.1} times faster"));
    }
    Ok(())
}

fn timed(command: &mut Command) -> Result<Duration, Failure> {
    let start = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    let took = start.elapsed();
    if status.success() { Ok(took) } else { Err("a measured command failed".into()) }
}

/// The same call directly through rmcp, and through the port on a connection that stays open.
async fn against_direct(bin: &Path, port: &str, token: &str) -> Result<(), Failure> {
    let mut command = tokio::process::Command::new(bin.join("footbridge"));
    let mut server =
        command.arg("demo-server").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let pipes = (server.stdout.take().ok_or("no output")?, server.stdin.take().ok_or("no input")?);
    let client = ().serve(pipes).await?;
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}"))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let request = format!(
        "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    let arguments = serde_json::json!({"city": "Bern"}).as_object().cloned().unwrap_or_default();
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let start = Instant::now();
        client.call_tool(CallToolRequestParams::new("get_weather").with_arguments(arguments.clone())).await?;
        direct.push(start.elapsed());
        let start = Instant::now();
        stream.write_all(request.as_bytes())?;
        let answer = answer(&mut reader)?;
        through.push(start.elapsed());
        if !answer.contains("\"result\"") {
            return Err(format!("no result: {answer}").into());
        }
    }
    let added = median(&mut through).saturating_sub(median(&mut direct));
    say(&format!(
        "  a call: directly through rmcp {}; through the port {}; added {:.2} ms",
        spread(&mut direct),
        spread(&mut through),
        added.as_secs_f64() * 1e3
    ));
    client.cancel().await?;
    Ok(())
}

fn answer(reader: &mut impl BufRead) -> Result<String, Failure> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(String::from_utf8(body)?)
}

/// Median and 90th percentile.
fn spread(times: &mut [Duration]) -> String {
    let middle = median(times);
    let high = times[times.len() * 9 / 10];
    format!("{:.2} ms (p90 {:.2})", middle.as_secs_f64() * 1e3, high.as_secs_f64() * 1e3)
}
