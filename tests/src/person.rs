//! A person in front of a terminal of 33 rows and 77 columns.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::{AsFd, OwnedFd},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::termios::{Termios, tcgetattr},
};

use crate::{
    PATIENCE, local_terminal,
    running::{Running, starting},
};

/// How long nothing takes any key where all is full: what is behind a terminal may take its time.
const FULL: Duration = Duration::from_millis(500);

/// A person in front of a terminal.
#[derive(Debug)]
pub struct Person {
    far_end: File,
    terminal: Option<OwnedFd>,
    seen: String,
}

impl Person {
    /// Sits down.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it opens a terminal")]
    pub fn new() -> Self {
        let (far_end, terminal) = local_terminal::opened();
        Self { far_end, terminal: Some(terminal), seen: String::new() }
    }

    /// Starts a command at this terminal, which becomes its controlling one.
    #[must_use]
    pub fn starts(&mut self, command: &Command) -> Running {
        let mut here = starting(command, local_terminal::in_front());
        let terminal = self.terminal.take().unwrap();
        let copy = || terminal.try_clone().unwrap();
        Running::watch(here.stdin(copy()).stdout(copy()).stderr(copy()).spawn().unwrap())
    }

    /// The settings of the terminal.
    #[must_use]
    pub fn settings(&self) -> Termios {
        tcgetattr(&self.far_end).unwrap()
    }

    /// Forgets what was on the screen until now.
    pub fn forgets(&mut self) {
        self.seen.clear();
    }

    /// Whether the screen showed this until now.
    #[must_use]
    pub fn saw(&self, text: &str) -> bool {
        self.seen.contains(text)
    }

    /// What the screen showed after it showed this, the last time.
    #[track_caller]
    #[must_use]
    pub fn seen_since(&self, text: &str) -> String {
        let after = self.seen.rsplit_once(text).map(|(_, after)| after.to_owned());
        after.unwrap_or_else(|| panic!("{text:?} was not shown, only {:?}", self.seen))
    }

    /// Reads a question. Its first half second counts for nothing, which only time can show.
    pub fn reads(&self) {
        thread::sleep(Duration::from_millis(1200));
    }

    /// Types.
    pub fn types(&mut self, keys: &str) {
        self.far_end.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a key until nothing takes any more: the terminal is full, and so is all behind it.
    pub fn types_all_that_fits(&mut self, key: char) {
        let flags = OFlag::from_bits_retain(fcntl(&self.far_end, FcntlArg::F_GETFL).unwrap());
        let _was_set = fcntl(&self.far_end, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).unwrap();
        let keys = key.to_string().repeat(1024);
        let mut taken = Instant::now();
        while taken.elapsed() < FULL {
            match self.far_end.write(keys.as_bytes()) {
                Ok(1..) => taken = Instant::now(),
                Ok(0) | Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        }
        let _was_set = fcntl(&self.far_end, FcntlArg::F_SETFL(flags)).unwrap();
    }

    /// Whether it showed this by now, in one line or cut to several that are marked.
    #[must_use]
    pub fn saw_cut(&self, text: &str) -> bool {
        let mut whole = String::new();
        for line in self.seen.split("\r\n") {
            match line.trim_start().strip_prefix("| ") {
                Some(rest) => whole.push_str(rest),
                None => whole.extend(["\n", line]),
            }
        }
        whole.contains(text)
    }

    /// Watches the screen until it shows this.
    #[track_caller]
    pub fn sees(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.seen.contains(text) {
            let left = PollTimeout::try_from(deadline.saturating_duration_since(Instant::now())).unwrap();
            let ready = poll(&mut [PollFd::new(self.far_end.as_fd(), PollFlags::POLLIN)], left).unwrap();
            assert!(ready > 0, "{text:?} does not show in time, only {:?}", self.seen);
            let mut chunk = [0; 4096];
            let count = self.far_end.read(&mut chunk);
            let count = count.unwrap_or_else(|_| panic!("everybody left the terminal; it showed {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&chunk[..count]));
        }
    }
}
