//! A relay under test, the harness it leads to, and what `/proc` says of it.
//!
//! Each test binary uses its own part of it.
#![allow(dead_code, reason = "every test binary uses another part")]
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;

/// Longest that a test waits for something that should happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A relay that listens on a free port; ended when it is dropped.
pub(crate) struct Relay {
    pub(crate) port: u16,
    pub(crate) address: String,
    pub(crate) child: Child,
    /// What the command wrote.
    pub(crate) out: BufReader<ChildStdout>,
}

/// The relay's command, saying on its standard output that it is ready (through descriptor 3), before any output of
/// the command it runs.
pub(crate) fn relay_command(args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" --ready-fd 3 \"$@\" 3>&1", env!("CARGO_BIN_EXE_footbridge-relay")]);
    command.args(args).env_remove("FOOTBRIDGE_TO").env_remove("FOOTBRIDGE_LISTEN");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

impl Relay {
    pub(crate) fn start(to: &str, args: &[&str]) -> Self {
        let all = [&["--listen", "tcp:127.0.0.1:0", "--to", to], args].concat();
        Self::spawn(&mut relay_command(&all))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let address = line.trim().to_owned();
        let port = address.rsplit(':').next().unwrap().parse().unwrap();
        Self { port, address, child, out }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// The next line that the command wrote.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The rest of what the command wrote, and the relay's status.
    pub(crate) fn finish(&mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }

    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Resident memory in KiB.
    pub(crate) fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // One that has been waited for is not there to be ended. SIGTERM also ends what it runs.
        if let Ok(None) = self.child.try_wait() {
            let _ = kill(self.pid(), Signal::SIGTERM);
            let _ = self.child.wait();
        }
    }
}

/// Looks again and again, since `/proc` has no event for it.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::yield_now();
    }
}

/// A folder with a socket path in it.
pub(crate) fn socket_path() -> (TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("h.sock").display().to_string();
    let to = format!("unix:{path}");
    (folder, path, to)
}

/// Both kinds of streams that a harness can have.
pub(crate) trait Peer: Read + Write + Send {
    fn shut_write(&self);
    fn set_timeouts(&self, read: Duration, write: Duration);
    fn twin(&self) -> Box<dyn Peer>;
}

impl Peer for TcpStream {
    fn shut_write(&self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
    fn set_timeouts(&self, read: Duration, write: Duration) {
        self.set_read_timeout(Some(read)).unwrap();
        self.set_write_timeout(Some(write)).unwrap();
    }
    fn twin(&self) -> Box<dyn Peer> {
        Box::new(self.try_clone().unwrap())
    }
}

impl Peer for UnixStream {
    fn shut_write(&self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
    fn set_timeouts(&self, read: Duration, write: Duration) {
        self.set_read_timeout(Some(read)).unwrap();
        self.set_write_timeout(Some(write)).unwrap();
    }
    fn twin(&self) -> Box<dyn Peer> {
        Box::new(self.try_clone().unwrap())
    }
}

/// Where the harness listens.
pub(crate) enum Harness {
    Tcp(TcpListener),
    Unix(UnixListener, TempDir),
}

impl Harness {
    pub(crate) fn tcp() -> (Self, String) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let to = format!("tcp:{}", listener.local_addr().unwrap());
        (Self::Tcp(listener), to)
    }

    pub(crate) fn unix() -> (Self, String) {
        let (folder, path, to) = socket_path();
        (Self::Unix(UnixListener::bind(path).unwrap(), folder), to)
    }

    pub(crate) fn accept(&self) -> Box<dyn Peer> {
        let peer: Box<dyn Peer> = match self {
            Self::Tcp(listener) => Box::new(listener.accept().unwrap().0),
            Self::Unix(listener, _) => Box::new(listener.accept().unwrap().0),
        };
        peer.set_timeouts(PATIENCE, PATIENCE);
        peer
    }
}

/// Bytes that show any loss, doubling or change of order.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(length)
    .collect()
}
