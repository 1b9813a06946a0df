//! The end of everything that descends from this process.
//!
//! Orphans come to the keeper because it is a subreaper, so killing what it has and waiting reaches all of them in the
//! end, however they forked and whatever session they are in. A process may fork while it is being killed: the loop
//! goes on until there is no child. Only processes that the kernel forbids to kill (another user's) are left.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;
use rustix::process::{WaitOptions, WaitStatus, wait};

/// Longest pause between two rounds, in milliseconds.
pub(super) const LONGEST_PAUSE: u16 = 64;

/// How a process ended, if it did: by any signal, also one that has a number alone (32 to 64).
fn ending_of(status: WaitStatus) -> Option<Ending> {
    status.exit_status().map(Ending::Exited).or(status.terminating_signal().map(Ending::Signaled))
}

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Exited(i32),
    Signaled(i32),
}

/// What one look at the ended children found.
#[derive(Debug)]
pub(super) struct Reaped {
    pub(super) program: Option<Ending>,
    pub(super) none_left: bool,
}

/// Takes note of every child that has ended.
pub(super) fn reap(program: Pid) -> Reaped {
    let mut ending = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(None) => return Reaped { program: ending, none_left: false },
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == program.as_raw() => {
                ending = ending_of(status).or(ending);
            }
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Reaped { program: ending, none_left: true },
        }
    }
}

/// Waits until there is no child left, or until it has waited this long; says how the program ended if it did so.
pub(super) fn none_left_within(limit: Duration, program: Pid, signals: &SignalFd) -> (bool, Option<Ending>) {
    let deadline = Instant::now() + limit;
    let mut ending = None;
    loop {
        let reaped = reap(program);
        ending = ending.or(reaped.program);
        if reaped.none_left || Instant::now() >= deadline {
            return (reaped.none_left, ending);
        }
        pause(LONGEST_PAUSE, signals);
    }
}

/// Waits for news of a child, at most this many milliseconds.
pub(super) fn pause(milliseconds: u16, signals: &SignalFd) {
    let _woken_or_not = poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], PollTimeout::from(milliseconds));
    while let Ok(Some(_no_longer_of_interest)) = signals.read_signal() {}
}

/// Kills until there is no child left; says how the program ended if it did so meanwhile.
///
/// `signals` tells when a child ends.
pub(super) fn end_all(program: Pid, signals: &SignalFd) -> Option<Ending> {
    let mut ending = None;
    let mut milliseconds = 1;
    loop {
        let all_refused = kill_descendants();
        let reaped = reap(program);
        ending = ending.or(reaped.program);
        if reaped.none_left || all_refused {
            return ending;
        }
        pause(milliseconds, signals);
        milliseconds = (milliseconds * 2).min(LONGEST_PAUSE);
    }
}

/// Kills every descendant once; true if there were some and the kernel refused each.
fn kill_descendants() -> bool {
    let mut found = descendants_of(Pid::this());
    found.retain(|pid| kill(*pid, Signal::SIGKILL) != Err(Errno::ESRCH));
    let refused = |pid: &Pid| kill(*pid, None) == Err(Errno::EPERM);
    !found.is_empty() && found.iter().all(refused)
}

fn descendants_of(root: Pid) -> Vec<Pid> {
    let mut found = children_of(root);
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        // Two reads can see one process under two parents.
        for child in children_of(pid) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
        next += 1;
    }
    found
}

/// The children of a process, as far as the kernel tells.
pub fn children_of(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        match std::fs::read_to_string(thread.path().join("children")) {
            Ok(list) => found.extend(list.split_ascii_whitespace().filter_map(|word| word.parse::<i32>().ok())),
            // A kernel without these lists has none for anybody.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && parent == Pid::this() => {
                return children_by_search(parent).into_iter().map(Pid::from_raw).collect();
            }
            Err(_) => {}
        }
    }
    found.into_iter().map(Pid::from_raw).collect()
}

fn children_by_search(parent: Pid) -> Vec<i32> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let is_child = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name is in parentheses and may hold anything, so the fields are counted from its end.
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_ascii_whitespace());
        fields.and_then(|mut f| f.nth(1)).and_then(|f| f.parse().ok()) == Some(parent.as_raw())
    };
    processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}
