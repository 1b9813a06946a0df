//! The person: holds the far end of the local terminal, types there and reads the screen.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{Termios, tcgetattr};

use super::local_terminal;

const DEADLINE: Duration = Duration::from_secs(20);
/// A person in front of a terminal of 33 rows and 77 columns.
pub(super) struct Person {
    far_end: File,
    terminal: Option<OwnedFd>,
    pub(super) seen: String,
    /// Where a visitor is called from, if there is one.
    pub(super) visits: Option<PathBuf>,
}

impl Person {
    pub(super) fn sits_down() -> Self {
        let (far_end, terminal) = local_terminal::opened();
        Self { far_end, terminal: Some(terminal), seen: String::new(), visits: None }
    }

    pub(super) fn terminal(&self) -> OwnedFd {
        self.terminal.as_ref().unwrap().try_clone().unwrap()
    }

    /// Runs a harness here; `streams` are the numbers of those that are not the terminal, but a pipe.
    pub(super) fn runs(&self, sandbox: &str, script: &str, piped_stdout: bool) -> Child {
        let mut command = local_terminal::in_front();
        // As in life a shell leads the session; the terminal is hung up when it ends.
        command.args(["sh", "-c", "\"$@\"; status=$?; [ -z \"$STAYS\" ] || read x; exit $status", "sh"]);
        command.arg(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "as_harness", "--nocapture", "--quiet"]);
        command.env("STAYS", if script.contains("shell-stays") { "yes" } else { "" });
        if let Some(path) = &self.visits {
            command.env("VISITS", path);
        }
        command.env("SCRIPT", script).env("SANDBOX", sandbox).stdin(self.terminal()).stderr(self.terminal());
        command.stdout(if piped_stdout { Stdio::piped() } else { self.terminal().into() }).spawn().unwrap()
    }

    pub(super) fn types(&mut self, keys: &str) {
        self.far_end.write_all(keys.as_bytes()).unwrap();
    }

    pub(super) fn settings(&self) -> Termios {
        tcgetattr(&self.far_end).unwrap()
    }

    /// Reads the screen until it shows this; false when everybody has left the terminal before.
    pub(super) fn sees(&mut self, text: &str) -> bool {
        let seen = self.sees_within(DEADLINE, text);
        assert!(seen.is_some(), "{text:?} in time, not only {:?}", self.seen);
        seen == Some(true)
    }

    /// The same; nothing when it did not show in this time.
    pub(super) fn sees_within(&mut self, time: Duration, text: &str) -> Option<bool> {
        let until = Instant::now() + time;
        while !self.seen.contains(text) {
            let left = until.saturating_duration_since(Instant::now());
            let left = PollTimeout::try_from(left).unwrap();
            let ready = poll(&mut [PollFd::new(self.far_end.as_fd(), PollFlags::POLLIN)], left).unwrap();
            if ready == 0 {
                return None;
            }
            let mut chunk = [0; 4096];
            match self.far_end.read(&mut chunk) {
                Ok(count) => self.seen.push_str(&String::from_utf8_lossy(&chunk[..count])),
                Err(_everybody_has_left) => return Some(false),
            }
        }
        Some(true)
    }

    /// Waits until the terminal has these settings.
    pub(super) fn gets_back(&mut self, settings: &Termios) {
        let until = Instant::now() + DEADLINE;
        while self.settings() != *settings {
            assert!(Instant::now() < until, "not restored: {:?}", self.settings());
            // Nothing wakes for a change of settings.
            let _idle = poll(&mut [], PollTimeout::from(10_u8)).unwrap();
        }
    }

    /// Reads the screen until nobody else has the terminal.
    pub(super) fn waits_until_all_have_left(&mut self) {
        self.terminal = None;
        assert!(!self.sees("\u{0}never shown"));
    }
}
