//! Attacks that take from the whole process: its descriptors and its memory. The harness is the real program.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    bridge::{LONG, eventually},
    client::{Client, LIST, head, post},
};

const JSON: &str = "Content-Type: application/json";

/// One crowd at a time: each keeps all processors busy, and has to be done in time.
static TURN: Mutex<()> = Mutex::new(());

/// `footbridge run` with the demo server. Dropping it ends it.
struct Program {
    child: Child,
    address: SocketAddr,
    authorization: String,
    _folder: tempfile::TempDir,
}

impl Program {
    /// Starts it with a limit of the shell's `ulimit`, and settings.
    fn start(limit: [&str; 2], settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("guest")).unwrap();
        for name in ["tool-cli", "footbridge-relay"] {
            fs::write(path("guest").join(name), "").unwrap();
        }
        let program = env!("CARGO_BIN_EXE_footbridge");
        let servers = serde_json::json!({"mcpServers": {"demo": {"command": program, "args": ["demo-server"]}}});
        fs::write(path("servers.json"), servers.to_string()).unwrap();
        fs::write(path("footbridge.toml"), settings).unwrap();
        let start = "ulimit \"$1\" \"$2\"; exec \"$0\" run --sandbox none --config \"$3\" --config \"$4\" -- \
                     sh -c 'echo \"$TOOL_CLI_PORT $TOOL_CLI_TOKEN\"; exec cat'";
        let mut child = Command::new("sh")
            .args(["-c", start, program])
            .args(limit)
            .args([path("servers.json"), path("footbridge.toml")])
            .env("FOOTBRIDGE_STATE", path("state"))
            .env("FOOTBRIDGE_RUNTIME", path("runtime"))
            .env("FOOTBRIDGE_GUEST_DIR", path("guest"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some((port, token)) = line.trim().split_once(' ') else {
            let mut errors = String::new();
            child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
            panic!("{line:?} {errors}");
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap()));
        Self { child, address, authorization: format!("Authorization: Bearer {token}"), _folder: folder }
    }

    fn request(&self, body: &str) -> String {
        post(&[&self.authorization, JSON], body)
    }

    fn is_served(&self) -> bool {
        let mut client = Client::connect(self.address);
        client.try_send(self.request(LIST)) && client.try_answer().is_some_and(|answer| answer.status == 200)
    }

    /// The most memory that it ever had, KiB.
    fn peak_memory(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Memory that counts in a way of `/proc/PID/status`, KiB.
    fn memory(&self, way: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(way)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Ends it, and gives what it logged.
    fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let ended = eventually(|| self.child.try_wait().unwrap());
        assert!(ended.success(), "{ended}");
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        errors
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It ended already unless its test failed.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[test]
fn out_of_descriptors_it_pauses_and_goes_on() {
    let program = Program::start(["-n", "48"], "");
    eventually(|| program.is_served().then_some(()));
    let mut inside = Client::connect(program.address);
    inside.send(program.request(LIST));
    assert_eq!(inside.answer().status, 200);
    // More than it has descriptors for, and fewer than a session may have: the rest waits to be accepted.
    let crowd: Vec<Client> = (0..60).map(|_| Client::connect(program.address)).collect();
    let mut late = Client::connect(program.address);
    late.send(program.request(LIST));
    for _ in 0..3 {
        inside.send(program.request(LIST));
        assert_eq!(inside.answer().status, 200, "those inside are served");
    }
    assert!(!late.hears(Duration::from_millis(200)), "it was accepted all the same");
    drop(crowd);
    assert_eq!(late.answer().status, 200, "those outside are served when there is room again");
    drop((inside, late));
    let errors = program.end();
    let paused = errors.lines().filter(|line| line.contains("no new connection can be accepted")).count();
    assert!((1..100).contains(&paused), "{paused} lines: {errors}");
    assert!(!errors.contains("panicked"), "{errors}");
}

#[test]
fn over_a_file_size_limit_calls_are_refused_and_it_lives_on() {
    // A disk that takes its time to sync would only hold up the calls that fill the record.
    let program = Program::start(["-f", "200"], "[audit]\nsync = false\n");
    eventually(|| program.is_served().then_some(()));
    let reason =
        || {
            let mut client = Client::connect(program.address);
            client.send(program.request(
                r#"{"jsonrpc":"2.0","id":1,"method":"callTool","params":{"server":"demo","tool":"list_notes"}}"#,
            ));
            let answer = client.answer().json();
            answer["error"]["data"]["reason"].as_str().map(str::to_owned)
        };
    let refused = |reason: &Option<String>| reason.as_deref() == Some("audit_unavailable");
    // The record grows by a kilobyte a call, and the limit is 100 or 200 of them: the store has to fit too.
    eventually(|| refused(&reason()).then_some(()));
    // So many calls may be over the rate, too; none is made any more.
    let again = reason();
    assert!(refused(&again) || again.as_deref() == Some("rate_limited"), "{again:?}");
    assert!(program.is_served());
    let errors = program.end();
    assert!(errors.contains("cannot be recorded"), "{errors}");
}

/// A call whose arguments cost the most memory for their text.
fn costly(tool: &str) -> String {
    let zeros = "0,".repeat((1 << 19) - 120) + "0";
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"callTool","params":{{"server":"demo","tool":"{tool}","arguments":{{"city":[{zeros}]}}}}}}"#
    )
}

#[test]
fn under_attack_memory_stays_bounded_and_others_are_served() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let program = Program::start(["-n", "1024"], "");
    eventually(|| program.is_served().then_some(()));
    let before = program.peak_memory();
    let attacked = AtomicBool::new(true);
    let slowest = thread::scope(|scope| {
        let good = scope.spawn(|| slowest_answer(&program, &attacked));
        let mut attackers = Vec::new();
        for n in 0..60 {
            let program = &program;
            attackers.push(scope.spawn(move || match n % 4 {
                0 => attack(program, &program.request(&costly("get_weather"))),
                1 => attack(program, &program.request(&costly("delete_all_notes"))),
                2 => attack(program, &post(&[JSON, "Authorization: Bearer x"], &"x".repeat(1 << 20))),
                _ => {
                    let mut client = Client::connect(program.address);
                    client.send(head("POST / HTTP/1.1", &["X-A: b"]).trim_end());
                    client.send("\r\nX-B: ".to_owned() + &"b".repeat(15_000));
                    client.must_end();
                }
            }));
        }
        let ended: Vec<_> = attackers.into_iter().map(|attacker| attacker.join()).collect();
        attacked.store(false, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "an attacker heard neither an answer nor the end");
        good.join().unwrap()
    });
    assert!(slowest < LONG / 2, "a good client waited {slowest:?}");
    let peak = program.peak_memory();
    assert!(program.is_served());
    assert!(before < 64 * 1024 && peak < 128 * 1024, "from {before} KiB to {peak} KiB");
    let errors = program.end();
    assert!(!errors.contains("panicked"), "{errors}");
}

#[test]
fn after_a_wave_of_connections_its_memory_goes_back() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let program = Program::start(["-n", "1024"], "");
    eventually(|| program.is_served().then_some(()));
    let before = program.memory("RssAnon:");
    for _ in 0..4 {
        thread::scope(|scope| {
            for n in 0..60 {
                let program = &program;
                scope.spawn(move || match n % 2 {
                    0 => attack(program, &program.request(&costly("get_weather"))),
                    _ => attack(program, &program.request(&LIST.replace("}", &format!("{}}}", " ".repeat(900_000))))),
                });
            }
        });
    }
    let after = program.memory("RssAnon:");
    let back = before + 6 * 1024;
    println!("{before} KiB before, {after} KiB right after, {} KiB at most", program.peak_memory());
    let left = eventually(|| Some(program.memory("RssAnon:")).filter(|left| *left < back));
    println!("{left} KiB left");
}

/// How long a good client waits at most, as long as the attack goes on.
fn slowest_answer(program: &Program, attacked: &AtomicBool) -> Duration {
    let mut client = Client::connect(program.address);
    let mut slowest = Duration::ZERO;
    while attacked.load(Ordering::Relaxed) {
        let start = Instant::now();
        client.send(program.request(r#"{"jsonrpc":"2.0","id":1,"method":"getBridgeInfo"}"#));
        assert_eq!(client.answer().status, 200);
        slowest = slowest.max(start.elapsed());
        thread::sleep(Duration::from_millis(20));
    }
    slowest
}

fn attack(program: &Program, request: &str) {
    let mut client = Client::connect(program.address);
    if client.try_send(request) {
        let answer = client.answer();
        assert!(matches!(answer.status, 200 | 401 | 408 | 503), "{answer:?}");
    }
}
