//! Tunnels to an origin with TLS against tinyproxy: a large answer, requests one after the other through one that is kept,
//! and a new one with its first answer. Their client is curl, which TLS goes on to from end to end.
//!
//! Both run at once and are measured in turn; a figure is the median of the rounds, a ratio that of the rounds' ratios.
//! `scripts/bench tunnels` builds and runs this; it takes the path of `footbridge`.

mod origin;

use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::{IpAddr, ToSocketAddrs},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use origin::{Failure, LARGE, Program, free_port, in_turn, listening, median, say, tls_origin};

const TRIPS: usize = 1000;
const NEW: usize = 40;

/// What is measured: a proxy, or nothing, in front of an origin.
struct Way {
    name: &'static str,
    proxy: Option<String>,
    origin: String,
    authority: PathBuf,
    _program: Option<Program>,
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [program] = args.as_slice() else { return Err("usage: tunnels PATH, that of footbridge".into()) };
    for (name, package) in
        [("nginx", "nginx-light"), ("tinyproxy", "tinyproxy-bin"), ("curl", "curl"), ("openssl", "openssl")]
    {
        if Command::new(name).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            say(&format!("SKIPPED: tunnels: {name} is not in the PATH (Debian has it as {package})"));
            return Ok(());
        }
    }
    let Some((name, address)) = this_machine() else {
        say(
            "SKIPPED: tunnels: the name of this machine leads to no address, and tunnels lead to none that is localhost",
        );
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let at = folder.path();
    let (port, _origin) = tls_origin(at, &name, &address.to_string())?;
    let origin = format!("{name}:{port}");
    let direct = Way::new("nothing between", None, at, &origin, None);
    let ways = [tinyproxy(at, &origin, port)?, footbridge(Path::new(program), at, &origin)?, direct];
    report("an answer of 1 GiB", &ways, large, "MB/s")?;
    report("one request after the other through a tunnel, p50", &ways, latency, "us")?;
    report("a new tunnel with its first answer, p50", &ways, opened, "us")
}

/// A name of this machine that is not localhost, and where it leads to.
fn this_machine() -> Option<(String, IpAddr)> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_owned();
    let mut found = (name.as_str(), 0).to_socket_addrs().ok()?.map(|address| address.ip());
    Some((name.clone(), found.find(IpAddr::is_ipv4)?))
}

impl Way {
    fn new(name: &'static str, proxy: Option<String>, at: &Path, origin: &str, program: Option<Program>) -> Self {
        Self { name, proxy, origin: origin.to_owned(), authority: at.join("ca.pem"), _program: program }
    }

    /// What curl says of each answer, by this format.
    fn curl(&self, path: &str, says: &str) -> Result<Vec<f64>, Failure> {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--fail", "--output", "/dev/null", "--noproxy", ""]);
        command.arg("--cacert").arg(&self.authority).args(["--write-out", &format!("{says}\\n")]);
        if let Some(proxy) = &self.proxy {
            command.args(["--proxytunnel", "--proxy", proxy]);
        }
        let output = command.arg(format!("https://{}{path}", self.origin)).output()?;
        if !output.status.success() {
            return Err(format!("{}: {}", self.name, String::from_utf8_lossy(&output.stderr)).into());
        }
        let lines = String::from_utf8(output.stdout)?;
        lines.lines().map(|line| line.parse().map_err(Failure::from)).collect()
    }
}

fn tinyproxy(at: &Path, origin: &str, port_of_origin: u16) -> Result<Way, Failure> {
    let (port, file) = (free_port()?, at.join("tinyproxy.conf"));
    let text = format!(
        "Port {port}\nListen 127.0.0.1\nTimeout 600\nLogLevel Error\nMaxClients 100\nConnectPort {port_of_origin}\n"
    );
    fs::write(&file, text)?;
    let program = listening(Command::new("tinyproxy").arg("-d").arg("-c").arg(file).stderr(Stdio::null()), port)?;
    Ok(Way::new("tinyproxy", Some(format!("http://127.0.0.1:{port}")), at, origin, Some(program)))
}

fn footbridge(path: &Path, at: &Path, origin: &str) -> Result<Way, Failure> {
    let file = at.join("footbridge.toml");
    fs::write(&file, format!("[audit]\nsync = false\n[tunnels]\nallow = [\"{origin}\"]\nallow_private = true\n"))?;
    let mut command = Command::new(path);
    command.args(["run", "--sandbox", "none", "--policy", "open", "--service", "tunnels", "--config"]).arg(&file);
    for limit in ["services.per_second=1000000", "services.burst=1000000"] {
        command.args(["--limit", limit]);
    }
    command.args(["--", "sh", "-c", "echo $HTTPS_PROXY; exec sleep 100000"]);
    let runtime = at.join("runtime");
    fs::create_dir(&runtime)?;
    command.env("FOOTBRIDGE_STATE", at.join("state")).env("FOOTBRIDGE_RUNTIME", runtime);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    if !line.starts_with("http://") {
        return Err("footbridge does not start".into());
    }
    Ok(Way::new("footbridge", Some(line.trim().to_owned()), at, origin, Some(Program(child))))
}

fn large(way: &Way) -> Result<f64, Failure> {
    let times = way.curl("/large", "%{time_total}")?;
    let [time] = times[..] else { return Err("curl says no time".into()) };
    Ok(LARGE as f64 / 1e6 / time)
}

fn latency(way: &Way) -> Result<f64, Failure> {
    let times = way.curl(&format!("/small?[0-{TRIPS}]"), "%{time_total}")?;
    // The first one opens the tunnel.
    Ok(median(times[1..].to_vec()) * 1e6)
}

fn opened(way: &Way) -> Result<f64, Failure> {
    let times: Result<Vec<Vec<f64>>, Failure> = (0..NEW).map(|_| way.curl("/small", "%{time_total}")).collect();
    Ok(median(times?.concat()) * 1e6)
}

/// Measures in turn, and prints a line each.
fn report(
    title: &str,
    ways: &[Way],
    measure: impl Fn(&Way) -> Result<f64, Failure>,
    unit: &str,
) -> Result<(), Failure> {
    let rounds = in_turn(ways, measure)?;
    for (index, way) in ways.iter().enumerate() {
        let figure = median(rounds.iter().map(|round| round[index]).collect());
        let ratio = median(rounds.iter().map(|round| round[index] / round[0]).collect());
        say(&format!("{title}: {}: {figure:.0} {unit}, {ratio:.2} of tinyproxy", way.name));
    }
    Ok(())
}
