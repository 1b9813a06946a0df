//! What `/proc` says of the processes that came of a test: those that name its folder.
//!
//! A folder of a test has a name that nothing else has. It is in the arguments or the environment of whatever the
//! test's harness starts, or is the folder they work in.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::Path,
    time::Instant,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::PATIENCE;

/// A process that was seen. The descriptor keeps its number from meaning another one.
#[derive(Debug)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its arguments, with blanks in between.
    pub arguments: String,
    descriptor: OwnedFd,
}

/// All living processes that name this folder.
#[must_use]
pub fn naming(folder: &Path) -> Vec<Process> {
    let text = folder.as_os_str().as_encoded_bytes();
    let holds = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    let us = std::process::id().cast_signed();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).filter(|pid| *pid != us);
    let mut found = Vec::new();
    for pid in pids {
        // Opened first: what is read after it is of this process, or it has ended and is passed over.
        let Some(process) = open(pid) else { continue };
        let read = |what: &str| std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
        let works_there = std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        let zombie = read("cmdline").is_empty();
        if !zombie && (works_there || holds(&read("cmdline")) || holds(&read("environ"))) {
            found.push(process);
        }
    }
    found
}

/// The process that has this number in the pid namespace of another one.
#[must_use]
pub fn beside(other: &Process, number: i32) -> Option<Process> {
    let namespace = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let own = namespace(other.pid);
    let is_it = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        numbers.and_then(|all| all.split_whitespace().last()) == Some(&number.to_string()) && namespace(*pid) == own
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    open(all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is_it)?)
}

/// A process, if it lives.
#[must_use]
pub fn open(pid: i32) -> Option<Process> {
    let descriptor = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ").trim().to_owned();
    Some(Process { pid, arguments, descriptor })
}

impl Process {
    /// Waits until it has ended; false if it does not in time.
    #[must_use]
    pub fn ends_by(&self, deadline: Instant) -> bool {
        let left =
            PollTimeout::try_from(deadline.saturating_duration_since(Instant::now())).unwrap_or(PollTimeout::MAX);
        let mut watched = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
        poll(&mut watched, left).is_ok_and(|ready| ready > 0)
    }

    /// Waits until it has ended.
    pub fn ends(&self) {
        assert!(self.ends_by(Instant::now() + PATIENCE), "{} ({}) goes on", self.pid, self.arguments);
    }

    /// Kills it, and nothing that has its number later.
    pub fn kill(&self) {
        let _it_may_have_ended = pidfd_send_signal(&self.descriptor, Signal::KILL);
    }

    /// Sends it a signal, unless it has ended, and nothing that has its number later.
    #[track_caller]
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let signal = Signal::from_named_raw(signal as i32).unwrap();
        let sent = pidfd_send_signal(&self.descriptor, signal);
        assert!(matches!(sent, Ok(()) | Err(rustix::io::Errno::SRCH)), "{sent:?}");
    }
}

/// Waits until no process names this folder, and gives those that are left when patience ends.
#[must_use]
pub fn left_of(folder: &Path) -> Vec<Process> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = naming(folder);
        if found.is_empty() || !found.iter().all(|process| process.ends_by(deadline)) {
            return found;
        }
    }
}

/// Kills whatever names this folder, until nothing does.
pub fn end_all(folder: &Path) {
    loop {
        let found = naming(folder);
        if found.is_empty() {
            return;
        }
        found.iter().for_each(Process::kill);
        let deadline = Instant::now() + PATIENCE;
        if !found.iter().all(|process| process.ends_by(deadline)) {
            return;
        }
    }
}

/// Every process whose arguments hold this text, whoever it belongs to.
#[must_use]
pub fn with_argument(text: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(open).map(|process| process.arguments).filter(|arguments| arguments.contains(text)).collect()
}
