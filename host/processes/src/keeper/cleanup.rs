//! What is done for a program that has others run what matters, as the client of a container engine does.
//!
//! The engine is told to end the container first, while all of its helpers live and can put their affairs in order.
//! Then there is a moment in which they end by themselves. If they do not, they are killed, and the engine is told once
//! more, since a client that was about to start a container may have done so. Nothing here waits without a limit.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;

use super::finish::{Ending, LONGEST_PAUSE, end_all, none_left_within, pause, reap};
use super::order::Cleanup;

/// How long the command may take. A healthy engine needs a tenth of a second.
const COMMAND: Duration = Duration::from_secs(20);

/// How long the engine's helpers have to end by themselves.
const HELPERS: Duration = Duration::from_secs(5);

impl Cleanup {
    /// Has everything ended in order; says how the program ended if it did so meanwhile.
    pub(super) fn run(&self, program: Pid, signals: &SignalFd) -> Option<Ending> {
        let first = self.run_command(program, signals);
        let (none_left, ending) = none_left_within(HELPERS, program, signals);
        let ending = first.or(ending);
        if none_left {
            // One that only ended meanwhile may have made a container behind the engine's back.
            if ending.is_some() {
                self.run_command(program, signals);
            }
            return ending;
        }
        let killed = end_all(program, signals);
        self.run_command(program, signals);
        ending.or(killed)
    }

    /// Runs it; says how the program ended if it did so meanwhile. Orphans are taken note of as they end: a container whose
    /// monitor was killed is this process's, and the engine waits for it to be gone.
    fn run_command(&self, program: Pid, signals: &SignalFd) -> Option<Ending> {
        let mut ending = None;
        self.run_command_within(COMMAND, signals, || ending = ending.or(reap(program).program));
        ending
    }

    fn run_command_within(&self, time: Duration, signals: &SignalFd, mut meanwhile: impl FnMut()) {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        // In a group of its own: an engine's client may be a script, and what it waits for would go on without it.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        // Without the program there is nothing more that could be done.
        let Ok(mut child) = command.spawn() else { return };
        let deadline = Instant::now() + time;
        while let Ok(None) = child.try_wait() {
            if Instant::now() >= deadline {
                let group = Pid::from_raw(child.id().cast_signed());
                let _it_may_just_have_ended = killpg(group, Signal::SIGKILL);
                let _it_is_killed = child.wait();
                return;
            }
            pause(LONGEST_PAUSE, signals);
            // It may take note of the command itself, too, which then cannot be waited for: that ends it here as well.
            meanwhile();
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::{signal::SigSet, signalfd::SfdFlags};

    use super::*;

    #[test]
    fn what_a_command_that_hangs_waits_for_is_killed_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! >{}; wait", file.display());
        let cleanup = Cleanup {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        };
        let signals = SignalFd::with_flags(&SigSet::empty(), SfdFlags::SFD_NONBLOCK).unwrap();
        cleanup.run_command_within(Duration::from_secs(5), &signals, || ());
        let pid = std::fs::read_to_string(&file).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        // It is whoever reaps orphans that takes it away.
        while std::fs::read(format!("/proc/{}/cmdline", pid.trim())).is_ok_and(|words| !words.is_empty()) {
            assert!(Instant::now() < deadline, "{pid} goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
