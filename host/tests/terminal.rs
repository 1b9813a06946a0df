//! A command with a terminal of its own, in front of it a local one, and what happens to that.
//!
//! The test plays the person: it holds the far end of the local terminal, types there and reads the screen. The
//! harness is this same test binary in a session of its own, with that terminal as its controlling one.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test says no more than that it failed, and where")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use footbridge::keeper::Stream;
use footbridge::pty::Local;
use footbridge::sandbox::net::{self, View};
use footbridge::sandbox::none;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{FlushArg, LocalFlags, Termios, tcflush, tcgetattr};

const DEADLINE: Duration = Duration::from_secs(20);
const FOOTBRIDGE: &str = env!("CARGO_BIN_EXE_footbridge");
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A person in front of a terminal of 33 rows and 77 columns.
struct Person {
    far_end: File,
    terminal: Option<OwnedFd>,
    seen: String,
}

impl Person {
    fn sits_down() -> Self {
        let size = Winsize { ws_row: 33, ws_col: 77, ws_xpixel: 0, ws_ypixel: 0 };
        let both = openpty(Some(&size), None).unwrap();
        Self { far_end: both.master.into(), terminal: Some(both.slave), seen: String::new() }
    }

    fn terminal(&self) -> OwnedFd {
        self.terminal.as_ref().unwrap().try_clone().unwrap()
    }

    /// Runs a harness here; `streams` are the numbers of those that are not the terminal, but a pipe.
    fn runs(&self, sandbox: &str, script: &str, piped_stdout: bool) -> Child {
        let mut command = Command::new("setsid");
        // As in life a shell leads the session; the terminal is hung up when it ends.
        command.args([
            "--ctty",
            "--wait",
            "sh",
            "-c",
            "\"$@\"; status=$?; [ -z \"$STAYS\" ] || read x; exit $status",
            "sh",
        ]);
        command.arg(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "as_harness", "--nocapture", "--quiet"]);
        command.env("STAYS", if script.contains("shell-stays") { "yes" } else { "" });
        command.env("SCRIPT", script).env("SANDBOX", sandbox).stdin(self.terminal()).stderr(self.terminal());
        command.stdout(if piped_stdout { Stdio::piped() } else { self.terminal().into() }).spawn().unwrap()
    }

    fn types(&mut self, keys: &str) {
        self.far_end.write_all(keys.as_bytes()).unwrap();
    }

    fn settings(&self) -> Termios {
        tcgetattr(&self.far_end).unwrap()
    }

    /// Reads the screen until it shows this; false when everybody has left the terminal before.
    fn sees(&mut self, text: &str) -> bool {
        let until = Instant::now() + DEADLINE;
        while !self.seen.contains(text) {
            let left = until.saturating_duration_since(Instant::now());
            let left = PollTimeout::try_from(left).unwrap();
            let ready = poll(&mut [PollFd::new(self.far_end.as_fd(), PollFlags::POLLIN)], left).unwrap();
            assert!(ready > 0, "{text:?} in time, not only {:?}", self.seen);
            let mut chunk = [0; 4096];
            match self.far_end.read(&mut chunk) {
                Ok(count) => self.seen.push_str(&String::from_utf8_lossy(&chunk[..count])),
                Err(_everybody_has_left) => return false,
            }
        }
        true
    }

    /// Waits until the terminal has these settings.
    fn gets_back(&mut self, settings: &Termios) {
        let until = Instant::now() + DEADLINE;
        while self.settings() != *settings {
            assert!(Instant::now() < until, "not restored: {:?}", self.settings());
            // Nothing wakes for a change of settings.
            let _idle = poll(&mut [], PollTimeout::from(10_u8)).unwrap();
        }
    }

    /// Reads the screen until nobody else has the terminal.
    fn waits_until_all_have_left(&mut self) {
        self.terminal = None;
        assert!(!self.sees("\u{0}never shown"));
    }
}

#[tokio::test]
#[ignore = "a part that the tests start"]
async fn as_harness() {
    let script = std::env::var("SCRIPT").unwrap();
    let local = Local::find().unwrap().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let hidden_files = local.name().cloned().into_iter().collect();
    let view = View { socket_folder: folder.path().to_owned(), hidden_files, ..View::default() };
    let command = match std::env::var("SANDBOX").unwrap().as_str() {
        "net" => net::command("/bin/sh", ["-c", &script], &view),
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
    let ended = attached.carry(kept.wait()).await.unwrap().unwrap();
    eprintln!("ended {}", ended.code());
}

/// Types into whatever terminal it can reach, with the call that does so without asking anybody.
#[test]
#[ignore = "a part that the tests start"]
fn typist() {
    for terminal in ["/proc/self/fd/0", "/dev/tty"] {
        let opened = File::open(terminal).unwrap();
        for key in b"typed\n" {
            let number = std::os::fd::AsRawFd::as_raw_fd(&opened);
            #[expect(unsafe_code, reason = "TIOCSTI reads one byte")]
            let _refused_by_some_kernels = unsafe { libc::ioctl(number, libc::TIOCSTI, std::ptr::from_ref(key)) };
        }
    }
}

fn cannot_run(sandbox: &str, test: &str) -> bool {
    let can = sandbox != "net" || Command::new("unshare").args(["-Urn", "true"]).status().is_ok_and(|s| s.success());
    if !can {
        eprintln!("SKIPPED: {test}: no user namespaces here");
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
    let harness = person.runs("none", "[ -t 1 ] || echo to-the-pipe; echo to-the-terminal >&2", true);
    assert!(person.sees("to-the-terminal"));
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
    let script = ": shell-stays; echo keeper $PPID; cat";
    let mut harness = person.runs("none", script, false);
    assert!(person.sees("keeper ") && person.sees("\n"));
    person.types("echoed\r");
    assert!(person.sees("echoed"));
    assert_ne!(person.settings(), before);
    let keeper = person.seen.split("keeper ").nth(1).unwrap().lines().next().unwrap().trim();
    let status = std::fs::read_to_string(format!("/proc/{keeper}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(parent), nix::sys::signal::Signal::SIGKILL).unwrap();
    person.gets_back(&before);
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
    assert!(matches!(Stream::default(), Stream::Null));
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
