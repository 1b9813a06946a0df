//! What is done for a program that has others run what matters, as the client of a container engine does.
//!
//! The engine is told to remove the container, while all of its helpers live and can put their affairs in order. Where
//! there is none yet, the client goes on until there is one: what a daemon was asked for it makes, also for a client that
//! is gone. Then there is a moment in which the helpers end by themselves. If they do not, they are killed. As long as
//! nothing was removed and a container may still come, the engine is told again. Nothing here waits without a limit.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, killpg};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;

use super::finish::{Ending, LONGEST_PAUSE, end_all, none_left_within, pause, reap};
use super::order::Cleanup;
use super::program::restore_limits;

/// How long the command may take. A healthy engine needs a tenth of a second.
const COMMAND: Duration = Duration::from_secs(20);

/// How long a client has to make what is then removed, and after that its helpers to end by themselves.
const HELPERS: Duration = Duration::from_secs(5);

impl Cleanup {
    /// Has everything ended in order, given how the program ended, if it did; says so if it did meanwhile.
    pub(super) fn run(&self, program: Pid, ended: Option<Ending>, signals: &SignalFd) -> Option<Ending> {
        let mut ending = ended;
        // The keeper makes no files, and has no use for more of them: what it starts from now on has them from it.
        let _it_is_tried_all_the_same = restore_limits(&self.inherited);
        let deadline = Instant::now() + HELPERS;
        let mut removed = self.run_command(program, signals, &mut ending);
        while !removed && ending.is_none() && Instant::now() < deadline {
            pause(LONGEST_PAUSE, signals);
            removed = self.run_command(program, signals, &mut ending);
        }
        let (none_left, meanwhile) = none_left_within(HELPERS, program, signals);
        let killed = if none_left { None } else { end_all(program, signals) };
        ending = ending.or(meanwhile).or(killed);
        // One that ended by itself has been answered: nothing comes any more.
        let is_answered = |ending: Option<Ending>| matches!(ending, Some(Ending::Exited(_)));
        if removed || (is_answered(ended) && none_left) {
            return ending;
        }
        let deadline = Instant::now() + if is_answered(ending) { Duration::ZERO } else { self.late };
        while !self.run_command(program, signals, &mut ending) && Instant::now() < deadline {
            pause(LONGEST_PAUSE, signals);
        }
        ending
    }

    /// Runs it; says whether it removed anything, and how the program ended if it did so meanwhile. Orphans are taken note
    /// of as they end: a container whose monitor was killed is this process's, and the engine waits for it to be gone.
    fn run_command(&self, program: Pid, signals: &SignalFd, ending: &mut Option<Ending>) -> bool {
        self.run_command_within(COMMAND, signals, || *ending = ending.or(reap(program).program))
    }

    fn run_command_within(&self, time: Duration, signals: &SignalFd, mut meanwhile: impl FnMut()) -> bool {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        // What it prints is what it removed. A file, which nobody waits for that a script leaves behind.
        let Ok(printed) = memfd_create("footbridge-removed", MFdFlags::MFD_CLOEXEC).map(File::from) else {
            return false;
        };
        let Ok(stdout) = printed.try_clone() else { return false };
        // In a group of its own: an engine's client may be a script, and what it waits for would go on without it.
        command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::null()).process_group(0);
        // Without the program there is nothing more that could be done.
        let Ok(mut child) = command.spawn() else { return false };
        let deadline = Instant::now() + time;
        while let Ok(None) = child.try_wait() {
            if Instant::now() >= deadline {
                let group = Pid::from_raw(child.id().cast_signed());
                let _it_may_just_have_ended = killpg(group, Signal::SIGKILL);
                let _it_is_killed = child.wait();
                break;
            }
            pause(LONGEST_PAUSE, signals);
            // It may take note of the command itself, too, which then cannot be waited for: that ends it here as well.
            meanwhile();
        }
        printed.metadata().is_ok_and(|printed| printed.len() > 0)
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::{signal::SigSet, signalfd::SfdFlags};

    use super::*;
    use crate::sys::Inherited;

    #[test]
    fn what_a_command_that_hangs_waits_for_is_killed_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! >{}; wait", file.display());
        let cleanup = Cleanup {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            inherited: Inherited::of_this_process(),
            late: Duration::ZERO,
        };
        let signals = SignalFd::with_flags(&SigSet::empty(), SfdFlags::SFD_NONBLOCK).unwrap();
        assert!(!cleanup.run_command_within(Duration::from_secs(5), &signals, || ()));
        let pid = std::fs::read_to_string(&file).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        // It is whoever reaps orphans that takes it away.
        while std::fs::read(format!("/proc/{}/cmdline", pid.trim())).is_ok_and(|words| !words.is_empty()) {
            assert!(Instant::now() < deadline, "{pid} goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
