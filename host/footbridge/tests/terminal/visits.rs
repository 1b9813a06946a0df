//! Somebody else has the local terminal for a while: nothing of the command shows, no key reaches it, and afterwards
//! everything is as it was.
//!
//! The visitor writes what it sees and hears, and leaves at the key `q`. The test calls it over a socket.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command};
use std::time::Duration;

use footbridge_processes::pty::{BorrowedTerminal, Borrower};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Person;

/// The visitor in the harness: one byte calls it, and it says when it has left.
pub(super) struct Guest(tokio::net::UnixStream);

/// The visitor, where the test has one.
pub(super) async fn guest() -> Option<Guest> {
    let path = std::env::var_os("VISITS")?;
    Some(Guest(tokio::net::UnixStream::connect(path).await.unwrap()))
}

impl Borrower for Guest {
    async fn wants(&mut self) {
        if self.0.read_u8().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    async fn uses(&mut self, terminal: &BorrowedTerminal<'_>) -> std::io::Result<()> {
        terminal.write("visitor comes\r\n").await?;
        loop {
            tokio::select! {
                keys = terminal.keys() => {
                    let keys = keys?;
                    terminal.write(&format!("heard {}\r\n", keys.escape_ascii())).await?;
                    if keys.contains(&b'q') {
                        terminal.write("visitor leaves\r\n").await?;
                        return self.0.write_all(b"left").await;
                    }
                }
                () = terminal.resized() => terminal.write(&format!("size {:?}\r\n", terminal.size())).await?,
            }
        }
    }
}

/// A person, the harness in front of which they sit, and the line to the visitor.
struct House {
    person: Person,
    harness: Child,
    line: UnixStream,
    _folder: tempfile::TempDir,
}

impl House {
    fn runs(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("visits");
        let listener = UnixListener::bind(&path).unwrap();
        let mut person = Person::sits_down();
        person.visits = Some(path);
        let harness = person.runs("none", script, false);
        let (line, _) = listener.accept().unwrap();
        Self { person, harness, line, _folder: folder }
    }

    fn calls_the_visitor(&mut self) {
        self.line.write_all(b"!").unwrap();
        assert!(self.person.sees("visitor comes\r\n"));
    }

    fn sends_the_visitor_away(&mut self) {
        self.person.types("q");
        assert!(self.person.sees("visitor leaves\r\n"));
        let mut left = [0; 4];
        self.line.read_exact(&mut left).unwrap();
    }

    /// What was seen since this was.
    fn since(&self, text: &str) -> &str {
        self.person.seen.rsplit_once(text).unwrap().1
    }
}

/// A file that the script makes says how far it is; a pipe holds it up until the test says so.
struct Steps {
    folder: tempfile::TempDir,
}

impl Steps {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["go", "there"] {
            nix::unistd::mkfifo(&folder.path().join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn go(&self) {
        std::fs::write(self.path("go"), "go\n").unwrap();
    }

    fn is_there(&self) {
        assert_eq!(std::fs::read_to_string(self.path("there")).unwrap(), "there\n");
    }
}

#[test]
fn what_the_command_writes_meanwhile_waits_and_is_whole_afterwards() {
    let steps = Steps::new();
    let (go, there) = (steps.path("go"), steps.path("there"));
    let script = format!("echo before; read x <{go}; echo first; echo there >{there}; seq 1 100000; echo last");
    let mut house = House::runs(&script);
    assert!(house.person.sees("before\r\n"));
    house.calls_the_visitor();
    steps.go();
    // It has written by now, and goes on to write more than anything in between holds.
    steps.is_there();
    house.person.types("a");
    assert!(house.person.sees("heard a"));
    assert_eq!(house.since("visitor comes\r\n"), "heard a\r\n");
    house.sends_the_visitor_away();
    assert!(house.person.sees("last\r\n") && house.person.sees("ended 0"));
    assert!(house.harness.wait().unwrap().success());
    let numbers: Vec<&str> = house.since("first\r\n").lines().filter(|line| line.parse::<u32>().is_ok()).collect();
    assert_eq!((numbers.len(), numbers.last()), (100_000, Some(&"100000")));
}

#[test]
fn keys_are_the_visitors_meanwhile_and_what_it_does_not_read_is_forgotten() {
    let mut house = House::runs("echo ready; read x; echo got-$x");
    assert!(house.person.sees("ready\r\n"));
    house.calls_the_visitor();
    house.person.types("secret\r");
    assert!(house.person.sees("heard secret\\r"));
    // What comes behind the key that sends it away is neither its own nor the command's.
    house.person.types("qmore\r");
    assert!(house.person.sees("visitor leaves\r\n"));
    assert!(house.person.sees("\x1b[?1049l"));
    let mut left = [0; 4];
    house.line.read_exact(&mut left).unwrap();
    house.person.seen.clear();
    house.calls_the_visitor();
    house.sends_the_visitor_away();
    assert!(house.person.sees("\x1b[?1049l"));
    house.person.types("mine\r");
    assert!(house.person.sees("got-mine\r\n"), "{:?}", house.person.seen);
    assert!(house.person.sees("ended 0") && house.harness.wait().unwrap().success());
}

#[test]
fn screen_modes_and_settings_are_the_commands_again() {
    let script =
        "trap 'stty size' WINCH; printf '\\033[?1049h\\033[?1h\\033[?25l'; echo ready; while :; do read x; done";
    let mut house = House::runs(script);
    assert!(house.person.sees("ready\r\n"));
    let raw = house.person.settings();
    house.calls_the_visitor();
    let taken = house.since("ready\r\n").to_owned();
    assert!(taken.contains("\x1b7") && taken.contains("\x1b[?1l") && taken.contains("\x1b[?25h"), "{taken:?}");
    let resized = Command::new("stty").args(["cols", "99"]).stdin(house.person.terminal()).status();
    assert!(resized.unwrap().success());
    assert!(house.person.sees("size Some((33, 99))"), "who visits learns of the window");
    house.sends_the_visitor_away();
    assert!(house.person.sees("33 99\r\n"), "{:?}", house.person.seen);
    let back = house.since("visitor leaves\r\n").to_owned();
    let (cursor, mode, place) = (back.find("\x1b[?25l"), back.find("\x1b[?1h"), back.find("\x1b8"));
    assert!(cursor.is_some() && mode.is_some() && place > mode && !back.contains("1049"), "{back:?}");
    assert_eq!(house.person.settings(), raw);
    // Its window was smaller for a moment, so that it draws all of it. A shell that is not run in that moment misses
    // it.
    let drawn = (0..20).any(|_| {
        if house.person.sees_within(Duration::from_secs(1), "32 99\r\n") == Some(true) {
            return true;
        }
        house.person.seen.clear();
        house.calls_the_visitor();
        house.sends_the_visitor_away();
        false
    });
    assert!(drawn, "{:?}", house.person.seen);
    house.person.types("\u{3}");
    assert!(house.person.sees("ended 130") && house.harness.wait().unwrap().success());
}

#[test]
fn the_end_of_the_command_sends_the_visitor_away() {
    let steps = Steps::new();
    let mut house = House::runs(&format!("echo ready; read x <{}; exit 7", steps.path("go")));
    assert!(house.person.sees("ready\r\n"));
    house.calls_the_visitor();
    steps.go();
    assert!(house.person.sees("\x1b[?1049l") && house.person.sees("ended 7"));
    assert!(house.harness.wait().unwrap().success());
    assert!(!house.person.seen.contains("visitor leaves"));
}

#[test]
fn when_the_harness_is_killed_with_9_the_keeper_leaves_the_visitors_screen() {
    let before = Person::sits_down().settings();
    let mut house = House::runs(": shell-stays; echo keeper $PPID; cat");
    assert!(house.person.sees("keeper ") && house.person.sees("\n"));
    house.calls_the_visitor();
    let keeper = house.person.seen.split("keeper ").nth(1).unwrap().lines().next().unwrap().trim().to_owned();
    kill(Pid::from_raw(super::parent_of(&keeper)), Signal::SIGKILL).unwrap();
    assert!(house.person.sees("\x1b[?1049l"), "{:?}", house.person.seen);
    house.person.gets_back(&before);
    house.person.types("\r");
    assert!(!house.harness.wait().unwrap().success());
}

impl House {
    fn harness_pid(&self) -> Pid {
        let keeper = self.person.seen.split("keeper ").nth(1).unwrap().lines().next().unwrap().trim();
        Pid::from_raw(super::parent_of(keeper))
    }

    /// Waits until the harness is stopped, or goes on: nothing tells who is not its parent.
    fn waits_until_stopped(&self, stopped: bool) {
        let stat = format!("/proc/{}/stat", self.harness_pid());
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let is = || std::fs::read_to_string(&stat).unwrap().rsplit_once(") ").unwrap().1.starts_with('T');
        while is() != stopped {
            assert!(std::time::Instant::now() < until, "in time");
            let _idle = nix::poll::poll(&mut [], 10_u8).unwrap();
        }
    }
}

#[test]
fn a_stop_gives_the_shell_its_terminal_and_going_on_takes_it_again() {
    let before = Person::sits_down().settings();
    let script =
        "trap 'stty size' WINCH; printf '\\033[?2004h'; echo keeper $PPID; while :; do read x; echo got-$x; done";
    let mut house = House::runs(script);
    assert!(house.person.sees("keeper ") && house.person.sees("\n"));
    let raw = house.person.settings();
    for visited in [false, true] {
        if visited {
            house.calls_the_visitor();
        }
        house.person.seen =
            format!("keeper {}\n\n", house.person.seen.split("keeper ").nth(1).unwrap().lines().next().unwrap());
        kill(house.harness_pid(), Signal::SIGTSTP).unwrap();
        house.waits_until_stopped(true);
        assert_eq!(house.person.settings(), before, "visited {visited}");
        assert!(house.person.sees("\x1b[?1049l"), "the alternate screen is left");
        // The window may be another one afterwards.
        let columns = if visited { "99" } else { "88" };
        let resized = Command::new("stty").args(["cols", columns]).stdin(house.person.terminal()).status();
        assert!(resized.unwrap().success());
        house.person.seen.push_str("stopped\n");
        kill(house.harness_pid(), Signal::SIGCONT).unwrap();
        house.person.gets_back(&raw);
        if visited {
            assert!(house.person.sees(&format!("size Some((33, {columns}))")), "it draws anew");
            assert!(house.since("stopped\n").contains("\x1b[?1049h"), "{:?}", house.person.seen);
            house.sends_the_visitor_away();
        }
        assert!(house.person.sees(&format!("33 {columns}\r\n")), "{:?}", house.person.seen);
        assert!(house.since("stopped\n").contains("\x1b[?2004h"), "{:?}", house.person.seen);
    }
    house.person.types("mine\r");
    assert!(house.person.sees("got-mine\r\n"), "{:?}", house.person.seen);
    house.person.types("\u{3}");
    assert!(house.person.sees("ended 130") && house.harness.wait().unwrap().success());
}
