//! A program that runs: its streams as they come, its end, and a guard that ends it.

use std::{
    fmt::Debug,
    io::{Read, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Instant,
};

use nix::sys::signal::Signal;

use crate::{PATIENCE, processes::Process};

/// How a program ended, and all that it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its exit status; -1 and the signal's number for a signal.
    pub status: i32,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Ran {
    /// Checks that it ended well and said nothing on standard error, and gives what it wrote.
    #[track_caller]
    #[must_use]
    pub fn well(self) -> String {
        assert_eq!((self.status, self.stderr.as_str()), (0, ""), "{self:?}");
        self.stdout
    }

    /// Checks its status and that its standard error holds each of these.
    #[track_caller]
    pub fn fails(&self, status: i32, says: &[&str]) {
        assert_eq!(self.status, status, "{self:?}");
        for part in says {
            assert!(self.stderr.contains(part), "{part:?} is not in {self:?}");
        }
    }
}

/// A command that starts another one, whose words come behind its own, in that one's environment and folder.
#[must_use]
pub fn starting(inner: &Command, mut starter: Command) -> Command {
    starter.arg(inner.get_program()).args(inner.get_args()).env_clear();
    starter.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = inner.get_current_dir() {
        starter.current_dir(folder);
    }
    starter
}

/// A program that runs. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    process: Process,
    stdin: Option<ChildStdin>,
    /// What it writes to standard output.
    pub stdout: Stream,
    /// What it writes to standard error.
    pub stderr: Stream,
    ending: Receiver<ExitStatus>,
    ended: Option<ExitStatus>,
}

impl Running {
    /// Starts a command with pipes for its streams.
    #[track_caller]
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        crate::sys::take_signals(command);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut running = Self::watch(child);
        running.stdin = stdin;
        running.stdout = Stream::of(stdout.unwrap());
        running.stderr = Stream::of(stderr.unwrap());
        running
    }

    /// Watches over a child that has other streams.
    #[must_use]
    pub fn watch(mut child: Child) -> Self {
        let process = crate::processes::open(child.id().cast_signed()).unwrap();
        let (sender, ending) = channel();
        thread::spawn(move || {
            // Nobody waits for it if the test is over.
            let _unheard = child.wait().map(|status| sender.send(status));
        });
        let nothing = || Stream::of(std::io::empty());
        Self { process, stdin: None, stdout: nothing(), stderr: nothing(), ending, ended: None }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.process.pid
    }

    /// Writes to its standard input, as far as it listens.
    pub fn hears(&mut self, text: &str) {
        let written = self.stdin.as_mut().expect("an open standard input").write_all(text.as_bytes());
        let has_left = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
        assert!(written.as_ref().is_ok() || written.as_ref().is_err_and(has_left), "{written:?}");
    }

    /// Closes its standard input.
    pub fn hears_no_more(&mut self) {
        self.stdin = None;
    }

    /// Sends it a signal, if it has not ended.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Kills it and waits until it is gone. What it started may go on.
    pub fn killed(&mut self) {
        self.process.kill();
        let _status = self.status();
    }

    /// Waits for its end.
    #[track_caller]
    pub fn status(&mut self) -> ExitStatus {
        if let Some(ended) = self.ended {
            return ended;
        }
        match self.ending.recv_timeout(PATIENCE) {
            Ok(status) => *self.ended.insert(status),
            Err(_) => panic!("no end in time of {self:?}"),
        }
    }

    /// Waits for its end, and for the end of its streams.
    #[track_caller]
    #[must_use]
    pub fn ends(mut self) -> Ran {
        use std::os::unix::process::ExitStatusExt as _;
        self.hears_no_more();
        let status = self.status();
        Ran {
            status: status.code().unwrap_or_else(|| -1 - status.signal().unwrap_or(0)),
            stdout: self.stdout.rest(),
            stderr: self.stderr.rest(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended.is_none() && matches!(self.ending.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty)) {
            self.process.kill();
            let _unwaited = self.ending.recv_timeout(PATIENCE);
        }
    }
}

/// What a program writes, as it comes.
pub struct Stream {
    pieces: Receiver<Vec<u8>>,
    seen: Vec<u8>,
    /// How much of `seen` was asked for.
    taken: usize,
}

impl Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.seen))
    }
}

impl Stream {
    fn of(mut from: impl Read + Send + 'static) -> Self {
        let (sender, pieces) = channel();
        thread::spawn(move || {
            let mut chunk = [0; 65536];
            while let Ok(count @ 1..) = from.read(&mut chunk) {
                if sender.send(chunk[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { pieces, seen: Vec::new(), taken: 0 }
    }

    /// Takes in what comes next; false at the end.
    #[track_caller]
    fn more(&mut self, deadline: Instant) -> bool {
        match self.pieces.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(piece) => {
                self.seen.extend(piece);
                true
            }
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came in time after {self:?}"),
        }
    }

    /// Waits for the next line.
    #[track_caller]
    pub fn line(&mut self) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(length) = self.seen[self.taken..].iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&self.seen[self.taken..self.taken + length]).into_owned();
                self.taken += length + 1;
                return line;
            }
            assert!(self.more(deadline), "it ended after {self:?}");
        }
    }

    /// Waits until this was written.
    #[track_caller]
    pub fn shows(&mut self, text: &str) {
        assert!(self.shows_or_ends(text), "it ended without {text:?}, after {self:?}");
    }

    /// Waits until this was written; false when it ends without.
    #[track_caller]
    pub fn shows_or_ends(&mut self, text: &str) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            if !self.more(deadline) {
                return false;
            }
        }
        true
    }

    /// All bytes, to the end: nobody holds its other end any more.
    #[track_caller]
    pub fn bytes(&mut self) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        while self.more(deadline) {}
        self.seen.clone()
    }

    /// All text, to the end.
    #[track_caller]
    pub fn rest(&mut self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}
