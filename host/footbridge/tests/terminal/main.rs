//! A command with a terminal of its own, in front of it a local one, and what happens to that.
//!
//! The test plays the person: it holds the far end of the local terminal, types there and reads the screen. The
//! harness is this same test binary in a session of its own, with that terminal as its controlling one.

#![expect(clippy::unwrap_used, reason = "a test says no more than that it failed, and where")]

#[path = "../../../../tests/terminal.rs"]
mod local_terminal;
mod person;
#[path = "../../../../tests/skipped.rs"]
mod skipped;
mod sys;
mod visits;

use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use footbridge_processes::keeper::ProgramStream;
use footbridge_processes::pty::Local;
use footbridge_processes::sandbox::none;
use footbridge_processes::sandbox::{Nesting, files::View, net};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{FlushArg, LocalFlags, tcflush};
use person::Person;
use skipped::skipped;

const FOOTBRIDGE: &str = env!("CARGO_BIN_EXE_footbridge");
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

#[tokio::test]
#[ignore = "a part that the tests start"]
async fn as_harness() {
    let script = std::env::var("SCRIPT").unwrap();
    let local = Local::find().unwrap().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let shell = folder.path().join("sh");
    File::create(&shell).unwrap();
    let programs = vec![("/bin/sh".into(), shell)];
    let shown = vec![std::env::current_exe().unwrap()];
    let view = View { session: folder.path().to_owned(), programs, shown, ..View::default() };
    let command = match std::env::var("SANDBOX").unwrap().as_str() {
        "net" => net::command(view.plan().unwrap(), ["-c", &script], Nesting::Refused).folder("/"),
        _ => none::command("/bin/sh", ["-c", &script]),
    };
    let [stdin, stdout, stderr] = local.streams();
    let env = [("PATH", PATH.into()), ("PART", std::env::current_exe().unwrap().into_os_string())];
    let command = command.env(env).local_terminal(local.duplicate().unwrap()).helper(FOOTBRIDGE);
    let mut kept = command.streams(stdin, stdout, stderr).spawn().await.unwrap();
    let attached = local.attach(kept.terminal.take().unwrap()).unwrap();
    if script.contains("harness-panics") {
        panic!("on purpose");
    }
    let ended = match visits::guest().await {
        Some(mut guest) => attached.carry_with(&mut guest, kept.wait()).await,
        None => attached.carry(kept.wait()).await,
    };
    let ended = ended.unwrap().unwrap();
    eprintln!("ended {}", ended.code());
}

/// Types into whatever terminal it can reach, with the call that does so without asking anybody.
#[test]
#[ignore = "a part that the tests start"]
fn typist() {
    for terminal in ["/proc/self/fd/0", "/dev/tty"] {
        let opened = File::open(terminal).unwrap();
        for key in b"typed\n" {
            sys::type_into(&opened, *key);
        }
    }
}

fn parent_of(process: &str) -> i32 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap()
}

fn cannot_run(sandbox: &str, test: &str) -> bool {
    let can = sandbox != "net" || Command::new("unshare").args(["-Urn", "true"]).status().is_ok_and(|s| s.success());
    if !can {
        skipped(test, "no user namespaces here");
    }
    !can
}

#[test]
fn the_command_has_a_terminal_of_its_own_that_looks_alike() {
    for sandbox in ["none", "net"] {
        if cannot_run(sandbox, "the_command_has_a_terminal_of_its_own_that_looks_alike") {
            continue;
        }
        let mut person = Person::sits_down();
        let outer = nix::unistd::ttyname(person.terminal()).unwrap();
        let before = person.settings();
        let script = "stty size; tty; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all; echo >/dev/tty through-dev-tty";
        let mut harness = person.runs(sandbox, script, false);
        assert!(person.sees("ended 0"));
        assert!(harness.wait().unwrap().success());
        for expected in ["33 77\r\n", "/dev/pts/", "all\r\n", "through-dev-tty\r\n"] {
            assert!(person.seen.contains(expected), "{expected:?} in {:?}", person.seen);
        }
        let lines: Vec<&str> = person.seen.lines().collect();
        // In the sandbox the first terminal of its own has a number that says nothing about the host's.
        assert!(sandbox == "net" || !lines.contains(&outer.to_str().unwrap()), "{lines:?}");
        assert_eq!(person.settings(), before);
    }
}

#[test]
fn keys_reach_the_command_and_ctrl_c_interrupts_it_not_the_harness() {
    for sandbox in ["none", "net"] {
        if cannot_run(sandbox, "keys_reach_the_command_and_ctrl_c_interrupts_it_not_the_harness") {
            continue;
        }
        let mut person = Person::sits_down();
        let before = person.settings();
        let script = "trap 'echo interrupted; exit 5' INT; read x; echo got-$x; while :; do read x; done";
        let mut harness = person.runs(sandbox, script, false);
        person.types("hello\r");
        assert!(person.sees("got-hello"));
        assert!(!person.settings().local_flags.contains(LocalFlags::ICANON), "raw meanwhile");
        person.types("\u{3}");
        assert!(person.sees("ended 5"));
        assert!(harness.wait().unwrap().success());
        assert_eq!(person.settings(), before);
    }
}

#[test]
fn the_window_is_followed() {
    let mut person = Person::sits_down();
    let script = "trap 'stty size' WINCH; echo ready; while :; do read x; done";
    let mut harness = person.runs("none", script, false);
    assert!(person.sees("ready"));
    let resized = Command::new("stty").args(["rows", "40", "cols", "100"]).stdin(person.terminal()).status();
    assert!(resized.unwrap().success());
    // Rows and columns come one after the other.
    assert!(person.sees("40 100"));
    person.types("\u{3}");
    assert!(person.sees("ended 130"));
    assert!(harness.wait().unwrap().success());
}

#[test]
fn everything_that_the_command_wrote_is_shown() {
    let mut person = Person::sits_down();
    let mut harness = person.runs("none", "seq 1 200000", false);
    assert!(person.sees("ended 0"));
    assert!(harness.wait().unwrap().success());
    let numbers: Vec<&str> = person.seen.lines().filter(|line| line.parse::<u32>().is_ok()).collect();
    assert_eq!((numbers.len(), numbers.last()), (200_000, Some(&"200000")));
}

#[test]
fn a_stream_that_is_no_terminal_is_passed_as_it_is() {
    let mut person = Person::sits_down();
    let before = person.settings();
    let script = "[ -t 1 ] || echo to-the-pipe; echo to-the-terminal >&2; read x";
    let harness = person.runs("none", script, true);
    assert!(person.sees("to-the-terminal"));
    // What goes through the pipe may come to this terminal too, as through tee: its lines still end.
    assert_eq!(person.settings().output_flags, before.output_flags);
    person.types("\r");
    assert!(person.sees("ended 0"));
    let output = harness.wait_with_output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("to-the-pipe\n"));
    assert!(!person.seen.contains("to-the-pipe"));
}

#[test]
fn the_local_terminal_is_restored_when_the_harness_panics() {
    let mut person = Person::sits_down();
    let before = person.settings();
    let mut harness = person.runs("none", ": harness-panics; read x", false);
    assert!(!harness.wait().unwrap().success());
    person.waits_until_all_have_left();
    assert!(person.seen.contains("on purpose"));
    assert_eq!(person.settings(), before);
}

#[test]
fn the_local_terminal_is_restored_when_the_harness_is_killed_with_9() {
    let mut person = Person::sits_down();
    let before = person.settings();
    let script = ": shell-stays; printf '\\033[?1003h'; echo keeper $PPID; printf '\\033]0;'; cat";
    let mut harness = person.runs("none", script, false);
    assert!(person.sees("keeper ") && person.sees("\n"));
    person.types("echoed\r");
    assert!(person.sees("echoed"));
    assert_ne!(person.settings(), before);
    let keeper = person.seen.split("keeper ").nth(1).unwrap().lines().next().unwrap().trim();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(parent_of(keeper)), nix::sys::signal::Signal::SIGKILL).unwrap();
    person.gets_back(&before);
    // What it was writing is ended, too, and what it switched on is off.
    assert!(person.sees("\u{18}\u{1b}\\") && person.sees("\u{1b}[?1003l"));
    person.types("\r");
    assert!(!harness.wait().unwrap().success());
    person.waits_until_all_have_left();
}

#[test]
fn the_command_cannot_type_into_the_local_terminal() {
    for sandbox in ["none", "net"] {
        if cannot_run(sandbox, "the_command_cannot_type_into_the_local_terminal") {
            continue;
        }
        let mut person = Person::sits_down();
        let script = "\"$PART\" --ignored --exact typist --nocapture --quiet";
        let mut harness = person.runs(sandbox, script, false);
        assert!(person.sees("ended 0"), "{}", person.seen);
        assert!(harness.wait().unwrap().success());
        let terminal = person.terminal();
        let waiting = poll(&mut [PollFd::new(terminal.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO).unwrap();
        assert_eq!(waiting, 0, "nothing was typed");
        tcflush(&terminal, FlushArg::TCIOFLUSH).unwrap();
    }
}

#[test]
fn without_a_terminal_streams_are_inherited() {
    assert!(matches!(ProgramStream::default(), ProgramStream::Null));
    let output = Command::new("/proc/self/exe")
        .args(["--ignored", "--exact", "finds_no_terminal", "--quiet"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
#[ignore = "a part that the tests start"]
fn finds_no_terminal() {
    assert!(Local::find().unwrap().is_none());
}
