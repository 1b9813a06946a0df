//! The one place where a server's or the operator's program is started, signalled and waited for.
//!
//! A child gets exactly the environment of its specification and pipes for its three streams. It lives under a keeper,
//! which ends all that came of it, whatever ends first: the program, its connection, or the harness. Without a keeper
//! it gets a process group of its own, and only that group ends with it. Dropping a [`Process`] kills.
//!
//! Failure paths: the program is missing or may not be run ([`LaunchError`]); it ends at any time ([`Process::wait`]).

use std::{io, path::PathBuf, process::Stdio, time::Duration};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    process::{Child, Command},
};

mod once;

use crate::keeper::{Confinement, Kept, ProgramEnd, ProgramStream, SpawnError};
use footbridge_core::secret::Secret;

/// A program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSpec {
    /// The program, looked up in PATH unless it has a slash.
    pub command: String,
    /// Its arguments.
    pub args: Vec<Secret>,
    /// Its whole environment: the allowed variables of the harness, and what the configuration adds.
    pub env: Vec<(String, Secret)>,
    /// Its working folder; the harness's own if absent.
    pub cwd: Option<PathBuf>,
    /// Whether it is kept away from other processes, as [`crate::keeper::Confinement`] says. That takes a keeper.
    pub confine: bool,
}

/// A stream to read from.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// A stream to write to.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// How programs are started.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Launcher {
    /// Each under a keeper. The helper is a program that calls [`crate::keeper::become_one_if_told`] first thing in its `main`;
    /// without one it is this very program.
    Kept {
        /// See above.
        helper: Option<PathBuf>,
    },
    /// As children of this process, each in a group of its own: for programs that only embed this library. What
    /// leaves its group is left behind.
    #[default]
    Direct,
}

/// Why a program does not run.
#[derive(Debug, thiserror::Error)]
#[error("{program:?} cannot be started: {error}")]
pub struct LaunchError {
    program: String,
    /// The cause.
    #[source]
    pub error: io::Error,
}

/// A program that was started, and its streams.
pub struct Launched {
    /// What it reads.
    pub stdin: Writer,
    /// What it writes.
    pub stdout: Reader,
    /// What it says besides.
    pub stderr: Reader,
    /// The program itself.
    pub process: Process,
}

/// A program that was started. Dropping it kills the program and what belongs to it.
#[derive(Debug)]
pub enum Process {
    /// Under a keeper.
    Kept(Kept),
    /// A child and its group.
    Child(Group),
}

/// A child that leads a process group.
#[derive(Debug)]
pub struct Group {
    child: Child,
    group: Option<Pid>,
}

impl Launcher {
    /// Starts a program.
    pub async fn launch(&self, spec: &ProgramSpec) -> Result<Launched, LaunchError> {
        let launched = match self {
            Self::Kept { helper } => kept(spec, helper.as_ref()).await,
            Self::Direct => direct(spec),
        };
        launched.map_err(|error| LaunchError { program: spec.command.clone(), error })
    }

    /// What the kernel cannot do of keeping programs apart, where this starts them so.
    #[must_use]
    pub fn gap(&self) -> Option<&'static str> {
        if matches!(self, Self::Kept { .. }) { Confinement::here().gap() } else { None }
    }
}

async fn kept(spec: &ProgramSpec, helper: Option<&PathBuf>) -> io::Result<Launched> {
    let env = spec.env.iter().map(|(name, value)| (name, value.expose()));
    let mut command = Kept::command(&spec.command).args(spec.args.iter().map(|arg| arg.expose())).env(env).streams(
        ProgramStream::Pipe,
        ProgramStream::Pipe,
        ProgramStream::Pipe,
    );
    if let Some(cwd) = &spec.cwd {
        command = command.folder(cwd);
    }
    if spec.confine {
        command = command.confined();
    }
    if let Some(helper) = helper {
        command = command.helper(helper);
    }
    let mut kept = command.spawn().await.map_err(plain)?;
    match (kept.stdin.take(), kept.stdout.take(), kept.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Launched {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            process: Process::Kept(kept),
        }),
        _ => Err(io::Error::other("it has no pipes")),
    }
}

/// The keeper's reason with the kind that tells a guest what to do.
fn plain(error: SpawnError) -> io::Error {
    let kind = match &error {
        SpawnError::Refused(refusal) => io::Error::from_raw_os_error(refusal.errno).kind(),
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

fn direct(spec: &ProgramSpec) -> io::Result<Launched> {
    let mut command = Command::new(&spec.command);
    command.args(spec.args.iter().map(|arg| arg.expose())).env_clear();
    command.envs(spec.env.iter().map(|(name, value)| (name, value.expose())));
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
    let group = child.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let process = Process::Child(Group { child, group });
    match (stdin, stdout, stderr) {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            Ok(Launched { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr), process })
        }
        _ => Err(io::Error::other("it has no pipes")),
    }
}

impl Process {
    /// Its process id, while it was not waited for.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Self::Kept(kept) => u32::try_from(kept.pid()).ok(),
            Self::Child(group) => group.child.id(),
        }
    }

    /// Waits until the program has ended, and says how. Safe to cancel and call again.
    pub async fn wait(&mut self) -> String {
        match self {
            Self::Kept(kept) => match kept.wait().await {
                Ok(ProgramEnd::Exited(code)) => format!("exit status: {code}"),
                Ok(ProgramEnd::Signaled(signal)) => format!("signal: {signal}"),
                Err(lost) => lost.to_string(),
            },
            Self::Child(group) => match group.child.wait().await {
                Ok(status) => status.to_string(),
                Err(error) => format!("its end cannot be seen: {error}"),
            },
        }
    }

    /// Asks the program and its group to end.
    pub fn terminate(&self) {
        match self {
            Self::Kept(kept) => kept.signal(Signal::SIGTERM),
            Self::Child(group) => group.signal(Signal::SIGTERM),
        }
    }

    /// Ends it and what belongs to it by force, and waits at most this long for it.
    pub async fn kill(&mut self, time: Duration) {
        match self {
            Self::Kept(kept) => {
                if kept.kill(time).await.is_err() {
                    tracing::warn!(pid = kept.pid(), "processes of a program are still ending");
                }
            }
            Self::Child(group) => {
                group.kill();
                let _ended = tokio::time::timeout(time, group.child.wait()).await;
            }
        }
    }
}

impl Group {
    fn kill(&mut self) {
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

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
