//! The relay as the sandbox's init: statuses, signals, orphans, the environment, and the lifeline.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod sandbox;
mod terminal;

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use nix::sys::signal::Signal;
use sandbox::{PATIENCE, Relay, relay_command, socket_path, until};
use terminal::terminal;

/// A relay that runs a shell script, without a lifeline.
fn script(text: &str) -> Relay {
    let (_folder, _, to) = socket_path();
    Relay::start(&to, &["--lifeline-grace", "0", "--", "sh", "-c", text])
}

#[test]
fn it_exits_with_the_status_of_the_command() {
    assert_eq!(script("exit 0").finish().0.code(), Some(0));
    assert_eq!(script("exit 7").finish().0.code(), Some(7));
    assert_eq!(script("kill -KILL $$").finish().0.code(), Some(128 + 9));
    assert_eq!(script("kill -TERM $$").finish().0.code(), Some(128 + 15));
}

#[test]
fn a_signal_beyond_31_ends_a_command_and_an_orphan_as_any_other() {
    for number in [34, 64] {
        assert_eq!(script(&format!("kill -{number} $$")).finish().0.code(), Some(128 + number));
        // Left behind, so that it comes to the relay, which reaps it.
        let orphan = "o=$(sh -c 'sleep 600 >/dev/null & echo $!'); kill -NUMBER $o; while [ -e /proc/$o ]; do sleep 0.01; done; exit 5";
        assert_eq!(script(&orphan.replace("NUMBER", &number.to_string())).finish().0.code(), Some(5));
    }
}

#[test]
fn a_command_that_cannot_run_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for (name, status, part) in [
        ("no-such-command", 127, "there is no such command"),
        ("/no/such/command", 127, "there is no such file"),
        (&file("plain", "x", 0o644), 126, "ermission"),
        (folder.path().to_str().unwrap(), 126, "this is a folder"),
        (&file("no-interpreter", "#!/no/such/one\n", 0o755), 127, "the interpreter in its first line"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_footbridge-relay"));
        let told = command.args(["--listen", "tcp:127.0.0.1:0", "--to", "unix:/nowhere", "--", name]).output().unwrap();
        let stderr = String::from_utf8(told.stderr).unwrap();
        assert_eq!(told.status.code(), Some(status), "{stderr}");
        assert!(stderr.contains(name) && stderr.contains(part), "{stderr}");
    }
}

#[test]
fn the_command_gets_the_port_and_nothing_of_the_relay() {
    let (_folder, _, to) = socket_path();
    let text = "echo port=$TOOL_CLI_PORT socket=$TOOL_CLI_SOCKET host=$TOOL_CLI_HOST kept=$KEPT; env | grep -c ^FOOTBRIDGE_; \
                ls /proc/self/fd | wc -l; ulimit -n; grep SigBlk /proc/self/status; grep SigIgn /proc/self/status";
    let limits = "ulimit -S -n 200; exec \"$0\" --ready-fd 3 \"$@\" 3>&1 5</dev/null";
    let mut command = Command::new("sh");
    command.args(["-c", limits, env!("CARGO_BIN_EXE_footbridge-relay"), "--", "sh", "-c", text]);
    command.env("FOOTBRIDGE_TO", &to).env("FOOTBRIDGE_LISTEN", "tcp:127.0.0.1:0").env("FOOTBRIDGE_OTHER", "x");
    command.env("TOOL_CLI_SOCKET", "/s").env("TOOL_CLI_HOST", "10.0.0.1").env("KEPT", "yes");
    let mut relay = Relay::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()));
    let port = relay.port;
    let (status, out) = relay.finish();
    assert!(status.success());
    let lines: Vec<_> = out.lines().collect();
    let signals = |line: &str| u64::from_str_radix(line.rsplit('\t').next().unwrap(), 16).unwrap();
    // `ls` itself has one descriptor more than 0, 1, 2.
    assert_eq!(lines[..4], [&format!("port={port} socket= host= kept=yes"), "0", "4", "200"], "{out}");
    // Signals 32 and 33 belong to the C library, which lets nobody set them.
    let of_library = 0b11 << 31;
    assert_eq!(signals(lines[4]) & !of_library, 0, "{out}");
    // What this process itself was started with, as by nohup, is the command's too; SIGPIPE is Rust's.
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let own = signals(own.lines().find(|line| line.starts_with("SigIgn")).unwrap());
    let [pipe, child] = [Signal::SIGPIPE, Signal::SIGCHLD].map(|signal| 1 << (signal as i32 - 1));
    assert_eq!(signals(lines[5]) & !of_library, own & !(of_library | pipe | child), "{out}");
}

#[test]
fn what_is_ignored_at_its_start_as_by_nohup_stays_so_for_the_command_and_is_not_passed_on() {
    let (_folder, _, to) = socket_path();
    let ignoring = "trap '' HUP USR1; exec \"$0\" --ready-fd 3 \"$@\" 3>&1";
    let text = "kill -HUP $$; kill -USR1 $$; kill -HUP $PPID; kill -USR1 $PPID; sleep 0.1; echo alive; kill -USR2 $$";
    let mut command = Command::new("sh");
    command.args([
        "-c",
        ignoring,
        env!("CARGO_BIN_EXE_footbridge-relay"),
        "--lifeline-grace",
        "0",
        "--",
        "sh",
        "-c",
        text,
    ]);
    command.env("FOOTBRIDGE_TO", &to).env("FOOTBRIDGE_LISTEN", "tcp:127.0.0.1:0");
    let (status, out) = Relay::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped())).finish();
    assert_eq!((status.code(), out.as_str()), (Some(128 + Signal::SIGUSR2 as i32), "alive\n"));
}

#[test]
fn it_forwards_before_the_command_runs() {
    let (_folder, path, to) = socket_path();
    let listener = UnixListener::bind(path).unwrap();
    let tool_cli = env!("CARGO_BIN_EXE_tool-cli");
    let mut relay = Relay::start(&to, &["--lifeline-grace", "0", "--", tool_cli]);
    let (mut peer, _) = listener.accept().unwrap();
    let mut request = [0; 4096];
    let length = peer.read(&mut request).unwrap();
    assert!(request[..length].starts_with(b"POST / HTTP/1.1"));
    let body = r#"{"jsonrpc":"2.0","result":{"servers":[]},"id":1}"#;
    write!(peer, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let (status, out) = relay.finish();
    assert_eq!((status.code(), out.as_str()), (Some(0), "No MCP servers connected.\n"));
}

#[test]
fn signals_are_passed_on() {
    for (signal, name) in
        [(Signal::SIGTERM, "TERM"), (Signal::SIGINT, "INT"), (Signal::SIGHUP, "HUP"), (Signal::SIGUSR1, "USR1")]
    {
        let mut relay =
            script(&format!("trap 'echo got {name}; exit 3' {name}; echo up; while :; do sleep 0.01; done"));
        assert_eq!(relay.line(), "up");
        relay.signal(signal);
        assert_eq!(relay.line(), format!("got {name}"));
        assert_eq!(relay.finish().0.code(), Some(3));
    }
}

#[test]
fn orphans_are_reaped() {
    let text = "p=$(sh -c 'sleep 0.02 >/dev/null & echo $!'); i=0; \
                while [ -e /proc/$p ] && [ $i -lt 1000 ]; do i=$((i+1)); sleep 0.01; done; [ ! -e /proc/$p ] && exit 5";
    assert_eq!(script(text).finish().0.code(), Some(5));
}

#[test]
fn nothing_outlives_the_command() {
    let (_, out) = script("setsid sleep 600 >/dev/null & echo $!; sleep 600 >/dev/null & echo $!").finish();
    let pids: Vec<_> = out.lines().collect();
    assert_eq!(pids.len(), 2);
    for pid in pids {
        assert!(!Path::new("/proc").join(pid).exists(), "{pid} is still there");
    }
}

/// Answers the lifeline (and nothing else) until it is told to go away.
fn lively(path: &str) -> (Arc<AtomicUsize>, impl FnOnce() + use<>) {
    let listener = UnixListener::bind(path).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let (count, socket) = (Arc::clone(&asked), path.to_owned());
    let open = Arc::new(Mutex::new(None));
    let held = Arc::clone(&open);
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        *held.lock().unwrap() = Some(stream.try_clone().unwrap());
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        while reader.read_line(&mut line).unwrap_or(0) > 0 {
            if line.starts_with("GET /healthz HTTP/1.1") {
                count.fetch_add(1, Ordering::SeqCst);
                (&stream).write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
            }
            line.clear();
        }
    });
    let leave = move || {
        std::fs::remove_file(socket).unwrap();
        open.lock().unwrap().take().unwrap().shutdown(std::net::Shutdown::Both).unwrap();
        thread.join().unwrap();
    };
    (asked, leave)
}

#[test]
fn the_command_ends_when_the_harness_stays_gone() {
    let (_folder, path, to) = socket_path();
    let (asked, leave) = lively(&path);
    let start = Instant::now();
    let text = "sleep 600 >/dev/null & echo $! $$; wait";
    let mut command =
        relay_command(&["--listen", "tcp:127.0.0.1:0", "--to", &to, "--lifeline-grace", "1s", "--", "sh", "-c", text]);
    let mut relay = Relay::spawn(command.stderr(Stdio::piped()));
    let line = relay.line();
    until("the lifeline", || asked.load(Ordering::SeqCst) == 1);
    leave();
    let mut stderr = String::new();
    relay.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(relay.finish().0.code(), Some(125), "{stderr}");
    assert!(stderr.contains("the harness was gone for 1s"), "{stderr}");
    assert!(start.elapsed() < PATIENCE);
    for pid in line.split(' ') {
        assert!(!Path::new("/proc").join(pid).exists(), "{pid} is still there");
    }
}

#[test]
fn a_harness_that_accepts_and_says_nothing_counts_as_gone() {
    let (_folder, path, to) = socket_path();
    let _silent = UnixListener::bind(path).unwrap();
    let mut relay = Relay::start(&to, &["--lifeline-grace", "200ms", "--", "sleep", "600"]);
    assert_eq!(relay.finish().0.code(), Some(125));
}

#[test]
fn a_command_that_ignores_sigterm_ends_all_the_same() {
    let (_folder, _, to) = socket_path();
    let text = "trap '' TERM; echo up; while :; do sleep 1; done";
    let mut relay = Relay::start(&to, &["--lifeline-grace", "10ms", "--", "sh", "-c", text]);
    assert_eq!(relay.line(), "up");
    assert_eq!(relay.finish().0.code(), Some(125));
}

#[test]
fn a_harness_that_comes_back_in_time_ends_nothing() {
    let (_folder, path, to) = socket_path();
    let (asked, leave) = lively(&path);
    let mut relay = Relay::start(&to, &["--lifeline-grace", "5s", "--", "sh", "-c", "sleep 600"]);
    let mut second = script("exit 0");
    assert!(second.finish().0.success());
    until("the lifeline", || asked.load(Ordering::SeqCst) == 1);
    leave();
    let (asked, leave) = lively(&path);
    until("the lifeline again", || asked.load(Ordering::SeqCst) == 1);
    relay.signal(Signal::SIGTERM);
    assert_eq!(relay.finish().0.code(), Some(128 + 15));
    leave();
}

/// Runs a command line on a terminal of its own and gives the master side, which no other child inherits.
fn on_terminal(args: &[&str]) -> (std::process::Child, File) {
    let (master, slave) = terminal();
    let (output, errors) = (slave.try_clone().unwrap(), slave.try_clone().unwrap());
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait"]).args(args).stdin(slave).stdout(output).stderr(errors);
    (command.spawn().unwrap(), master)
}

fn read_until(master: &mut File, wanted: &str) -> String {
    let mut seen = String::new();
    let mut part = [0; 1024];
    while !seen.contains(wanted) {
        let length = master.read(&mut part).unwrap_or_else(|e| panic!("{e} after {seen:?}"));
        seen.push_str(&String::from_utf8_lossy(&part[..length]));
    }
    seen
}

#[test]
fn ctrl_c_reaches_the_command_alone_and_once() {
    let relay = env!("CARGO_BIN_EXE_footbridge-relay");
    let text = "trap 'echo caught' INT; echo up; while :; do sleep 0.01; done";
    let options = ["--listen", "tcp:127.0.0.1:0", "--to", "unix:/nowhere", "--lifeline-grace", "0", "--", "sh", "-c"];
    let args = [&[relay], options.as_slice(), &[text]].concat();
    let (mut child, mut master) = on_terminal(&args);
    read_until(&mut master, "up");
    master.write_all(b"\x03").unwrap();
    let seen = read_until(&mut master, "caught");
    assert_eq!(seen.matches("caught").count(), 1, "{seen}");
    // Ctrl-\ ends a shell that does not handle it.
    master.write_all(b"\x1c").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 3));
}

#[test]
fn an_interactive_shell_has_job_control() {
    let relay = env!("CARGO_BIN_EXE_footbridge-relay");
    let options = ["--listen", "tcp:127.0.0.1:0", "--to", "unix:/nowhere", "--lifeline-grace", "0", "--"];
    let args = [&[relay], options.as_slice(), &["bash", "--norc", "--noprofile", "-i"]].concat();
    let (mut child, mut master) = on_terminal(&args);
    // exec, since a shell that is stopped while it forks cannot stop. The echo of the line does not hold the answer,
    // only the running job does.
    master.write_all(b"sh -c 'echo job-$((1+1)); exec sleep 600'\n").unwrap();
    let seen = read_until(&mut master, "job-2");
    assert!(!seen.contains("no job control"), "{seen}");
    master.write_all(b"\x1a").unwrap();
    read_until(&mut master, "Stopped");
    master.write_all(b"kill %1; exit 9\nexit 9\n").unwrap();
    let mut rest = Vec::new();
    // Ends with EIO when the last one closes the terminal.
    let _ = master.read_to_end(&mut rest);
    assert_eq!(child.wait().unwrap().code(), Some(9), "{}", String::from_utf8_lossy(&rest));
}

/// A relay as pid 1 of a namespace of its own, running a shell script.
fn as_pid_1(text: &str) -> Command {
    let relay = env!("CARGO_BIN_EXE_footbridge-relay");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc", relay]);
    command.args([
        "--listen",
        "tcp:127.0.0.1:0",
        "--to",
        "unix:/nowhere",
        "--lifeline-grace",
        "0",
        "--",
        "sh",
        "-c",
        text,
    ]);
    command
}

/// Whether this machine lets an ordinary user have namespaces; where it does not, there is nothing to test as.
fn has_namespaces() -> bool {
    let tried =
        Command::new("unshare").args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "true"]).status();
    tried.is_ok_and(|status| status.success())
}

#[test]
fn as_pid_1_it_reaps_passes_signals_on_and_exits_alike() {
    if !has_namespaces() {
        return;
    }
    let told = as_pid_1("echo $PPID; exit 7").output().unwrap();
    assert_eq!((told.status.code(), told.stdout.as_slice()), (Some(7), b"1\n".as_slice()));
    let told = as_pid_1("trap 'exit 3' TERM; kill -TERM 1; while :; do sleep 0.01; done").output().unwrap();
    assert_eq!(told.status.code(), Some(3));
    let orphan = "p=$(sh -c 'sleep 0.02 >/dev/null & echo $!'); while [ -e /proc/$p ]; do sleep 0.01; done; exit 5";
    assert_eq!(as_pid_1(orphan).output().unwrap().status.code(), Some(5));
    assert_eq!(as_pid_1("kill -KILL $$").output().unwrap().status.code(), Some(128 + 9));
    assert_eq!(as_pid_1("kill -34 $$").output().unwrap().status.code(), Some(128 + 34));
}

#[test]
fn as_pid_1_it_takes_a_terminal_that_controls_nobody() {
    if !has_namespaces() {
        return;
    }
    let (mut master, slave) = terminal();
    let mut command = as_pid_1("trap 'echo caught; exit 4' INT; echo up; while :; do sleep 0.01; done");
    command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = command.spawn().unwrap();
    drop(command);
    read_until(&mut master, "up");
    master.write_all(b"\x03").unwrap();
    read_until(&mut master, "caught");
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

#[test]
fn below_a_shell_a_stop_gives_the_terminal_back_and_fg_goes_on() {
    let relay = env!("CARGO_BIN_EXE_footbridge-relay");
    let (mut child, mut master) = on_terminal(&["bash", "--norc", "--noprofile", "-i"]);
    let text = "echo up-$((1+1)); while :; do read x; echo got-$x; [ $x = end ] && exit 6; done";
    let line = format!("{relay} --listen tcp:127.0.0.1:0 --to unix:/nowhere --lifeline-grace 0 -- sh -c '{text}'\n");
    master.write_all(line.as_bytes()).unwrap();
    read_until(&mut master, "up-2");
    master.write_all(b"\x1a").unwrap();
    read_until(&mut master, "Stopped");
    master.write_all(b"echo shell-$((2+2)); fg\n").unwrap();
    read_until(&mut master, "shell-4");
    master.write_all(b"end\n").unwrap();
    read_until(&mut master, "got-end");
    master.write_all(b"exit $?\n").unwrap();
    let mut rest = Vec::new();
    // Ends with EIO when the last one closes the terminal.
    let _ = master.read_to_end(&mut rest);
    assert_eq!(child.wait().unwrap().code(), Some(6), "{}", String::from_utf8_lossy(&rest));
}
