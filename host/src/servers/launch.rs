//! The one place where an MCP server's program is started, signalled and waited for.
//!
//! A child gets exactly the environment of its specification, pipes for its three streams, and a process group of its
//! own, so that what it started can be ended with it. Dropping a [`Process`] kills the group.
//!
//! Failure paths: the program is missing or may not be run ([`LaunchError`]); it ends at any time ([`Process::wait`]).

use std::{io, process::Stdio};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::process::{Child, Command};

use super::{
    StdioSpec,
    lines::{Reader, Writer},
};

/// How programs are started.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub enum Launcher {
    /// As children of this process, each in a group of its own.
    #[default]
    Direct,
}

/// Why a program does not run.
#[derive(Debug, thiserror::Error)]
#[error("{program:?} cannot be started: {error}")]
pub(super) struct LaunchError {
    program: String,
    #[source]
    pub(super) error: io::Error,
}

/// A program that was started, and its streams.
pub(super) struct Launched {
    pub(super) stdin: Writer,
    pub(super) stdout: Reader,
    pub(super) stderr: Reader,
    pub(super) process: Process,
}

/// A program that was started. Dropping it kills the program and its group.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    group: Option<Pid>,
}

impl Launcher {
    /// Starts a program.
    pub(super) fn launch(self, spec: &StdioSpec) -> Result<Launched, LaunchError> {
        let Self::Direct = self;
        let failed = |error| LaunchError { program: spec.command.clone(), error };
        let mut command = Command::new(&spec.command);
        command.args(spec.args.iter().map(|arg| arg.expose())).env_clear();
        command.envs(spec.env.iter().map(|(name, value)| (name, value.expose())));
        if let Some(cwd) = &spec.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).kill_on_drop(true).spawn().map_err(failed)?;
        let group = child.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Process { child, group };
        match (stdin, stdout, stderr) {
            (Some(stdin), Some(stdout), Some(stderr)) => {
                Ok(Launched { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr), process })
            }
            _ => Err(failed(io::Error::other("it has no pipes"))),
        }
    }
}

impl Process {
    /// Its process id, while it was not waited for.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the program itself has ended, and says how. What it started may still run.
    pub(super) async fn wait(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => format!("its end cannot be seen: {error}"),
        }
    }

    /// Asks the program and its group to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Ends what is left of the group.
    pub(super) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.group = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An error means that nothing is left.
            let _gone = killpg(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
