//! What is done for a program that has others run what matters, as the client of a container engine does.
//!
//! The engine is told to remove the container, while all of its helpers live and can put their affairs in order. Where
//! there is none yet, the client goes on until there is one: what a daemon was asked for it makes, also for a client that
//! is gone. Then there is a moment in which the helpers end by themselves. If they do not, they are killed. As long as
//! nothing was removed and a container may still come, the engine is told again. Nothing here waits without a limit.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
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

/// How much of what an engine says is read, bytes.
const SAID: usize = 4096;

/// How long a client has to make what is then removed, and after that its helpers to end by themselves.
const HELPERS: Duration = Duration::from_secs(5);

/// What a removal came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Removal {
    /// It is gone.
    Removed,
    /// There is none, as the engine says.
    NotThere,
    /// Nobody knows: the engine does not answer.
    Failed,
}

/// What engines say of a container that is not there, or that they are removing by themselves.
const NOT_THERE: [&str; 2] = ["o such container", "is already in progress"];

/// What a cleanup found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cleaned {
    /// How the program ended, if it did.
    pub(super) ending: Option<Ending>,
    /// Whether nothing is left of what it had others run.
    pub(super) is_gone: bool,
}

impl Cleanup {
    /// Has everything ended in order, given how the program ended, if it did.
    pub(super) fn run(&self, program: Pid, ended: Option<Ending>, signals: &SignalFd) -> Cleaned {
        let mut ending = ended;
        // The keeper makes no files, and has no use for more of them: what it starts from now on has them from it.
        let _it_is_tried_all_the_same = restore_limits(&self.inherited);
        let deadline = Instant::now() + HELPERS;
        let mut removal = self.run_command(program, signals, &mut ending);
        while removal != Removal::Removed && ending.is_none() && Instant::now() < deadline {
            pause(LONGEST_PAUSE, signals);
            removal = self.run_command(program, signals, &mut ending);
        }
        let (none_left, meanwhile) = none_left_within(HELPERS, program, signals);
        let killed = if none_left { None } else { end_all(program, signals) };
        ending = ending.or(meanwhile).or(killed);
        // One that ended by itself has been answered: nothing comes any more.
        let is_answered = |ending: Option<Ending>| matches!(ending, Some(Ending::Exited(_)));
        if removal == Removal::Removed || (removal == Removal::NotThere && is_answered(ended) && none_left) {
            return Cleaned { ending, is_gone: true };
        }
        // An engine that does not answer may be starting again; what it ran goes on meanwhile.
        let deadline = Instant::now() + self.late;
        loop {
            removal = self.run_command(program, signals, &mut ending);
            let is_settled = removal == Removal::Removed || (removal == Removal::NotThere && is_answered(ending));
            if is_settled || Instant::now() >= deadline {
                return Cleaned { ending, is_gone: removal != Removal::Failed };
            }
            pause(LONGEST_PAUSE, signals);
        }
    }

    /// Runs it, and notes how the program ended if it did so meanwhile. Orphans are taken note
    /// of as they end: a container whose monitor was killed is this process's, and the engine waits for it to be gone.
    fn run_command(&self, program: Pid, signals: &SignalFd, ending: &mut Option<Ending>) -> Removal {
        self.run_command_within(COMMAND, signals, || *ending = ending.or(reap(program).program))
    }

    fn run_command_within(&self, time: Duration, signals: &SignalFd, mut meanwhile: impl FnMut()) -> Removal {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        // What it prints is what it removed, or why not. A file, which nobody waits for that a script leaves behind.
        let file = || memfd_create("footbridge-removed", MFdFlags::MFD_CLOEXEC).map(File::from);
        let (Ok(printed), Ok(said)) = (file(), file()) else { return Removal::Failed };
        let (Ok(stdout), Ok(stderr)) = (printed.try_clone(), said.try_clone()) else { return Removal::Failed };
        // In a group of its own: an engine's client may be a script, and what it waits for would go on without it.
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0);
        // Without the program there is nothing more that could be done.
        let Ok(mut child) = command.spawn() else { return Removal::Failed };
        let deadline = Instant::now() + time;
        let mut ended = child.try_wait();
        while let Ok(None) = ended {
            if Instant::now() >= deadline {
                let group = Pid::from_raw(child.id().cast_signed());
                let _it_may_just_have_ended = killpg(group, Signal::SIGKILL);
                let _it_is_killed = child.wait();
                break;
            }
            pause(LONGEST_PAUSE, signals);
            // It may take note of the command itself, too, which then cannot be waited for: that ends it here as well.
            meanwhile();
            ended = child.try_wait();
        }
        let mut text = [0; SAID];
        let length = said.read_at(&mut text, 0).unwrap_or_default();
        let text = String::from_utf8_lossy(&text[..length]);
        let is_well = match ended {
            Ok(status) => status.is_some_and(|status| status.success()),
            // It was taken note of before: what went wrong it says.
            Err(_) => length == 0,
        };
        match () {
            () if printed.metadata().is_ok_and(|printed| printed.len() > 0) => Removal::Removed,
            () if is_well || NOT_THERE.iter().any(|words| text.contains(words)) => Removal::NotThere,
            () => Removal::Failed,
        }
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
        assert_eq!(cleanup.run_command_within(Duration::from_secs(5), &signals, || ()), Removal::Failed);
        let pid = std::fs::read_to_string(&file).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        // It is whoever reaps orphans that takes it away.
        while std::fs::read(format!("/proc/{}/cmdline", pid.trim())).is_ok_and(|words| !words.is_empty()) {
            assert!(Instant::now() < deadline, "{pid} goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
