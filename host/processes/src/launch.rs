//! The one place where a server's or the operator's program is started, signalled and waited for.
//!
//! A child gets exactly the environment of its specification and pipes for its three streams. It lives under a keeper,
//! which ends all that came of it, whatever ends first: the program, its connection, or the harness. Without a keeper
//! it gets a process group of its own, and only that group ends with it. Dropping a [`Process`] kills.
//!
//! Failure paths: the program is missing or may not be run ([`LaunchError`]); it ends at any time ([`Process::wait`]).

use std::{
    io,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    process::{Child, Command},
};

mod once;
mod own_folders;
mod start_folder;

pub use own_folders::OwnFolders;
pub use start_folder::{StartFolder, StartFolders};

use crate::file_plan::FilePlan;
use crate::keeper::{Confinement, Kept, ProgramEnd, ProgramStream, SpawnError};
use crate::refusal::{StartRefusal, Step};
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
    /// Its working folder; without one, an empty folder of its own that goes with it.
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
        /// The harness's own folders.
        folders: OwnFolders,
    },
    /// As children of this process, each in a group of its own: for programs that only embed this library. What
    /// leaves its group is left behind. Those that name no folder start in `/`.
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

/// A program that was started. Dropping it kills the program and what belongs to it, and removes the folder that was
/// made for it.
#[derive(Debug)]
pub struct Process {
    program: Program,
    _folder: Option<StartFolder>,
}

#[derive(Debug)]
enum Program {
    /// Under a keeper.
    Kept(Kept),
    /// A child and its group.
    Child(Group),
}

/// A child that leads a process group.
#[derive(Debug)]
struct Group {
    child: Child,
    group: Option<Pid>,
}

impl Launcher {
    /// Starts a program.
    pub async fn launch(&self, spec: &ProgramSpec) -> Result<Launched, LaunchError> {
        let launched = async {
            let made = if spec.cwd.is_none() { Some(self.folder()?) } else { None };
            let at = spec.cwd.as_deref().or(made.as_ref().map(StartFolder::path)).unwrap_or(Path::new("/"));
            let mut launched = match self {
                Self::Kept { helper, folders } => {
                    let own_files = spec.confine.then(|| folders.plan(made.as_ref()));
                    kept(spec, at, own_files, helper.as_ref()).await?
                }
                Self::Direct => direct(spec, at)?,
            };
            launched.process._folder = made;
            Ok(launched)
        };
        launched.await.map_err(|error| LaunchError { program: spec.command.clone(), error })
    }

    /// A folder for a program that names none.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn folder(&self) -> io::Result<StartFolder> {
        match self {
            Self::Kept { folders, .. } => folders.start.make(),
            Self::Direct => StartFolders::default().make(),
        }
    }

    /// What the kernel cannot do of keeping programs apart, where this starts them so.
    #[must_use]
    pub fn gap(&self) -> Option<&'static str> {
        if matches!(self, Self::Kept { .. }) { Confinement::here().gap() } else { None }
    }
}

async fn kept(
    spec: &ProgramSpec,
    folder: &Path,
    own_files: Option<FilePlan>,
    helper: Option<&PathBuf>,
) -> io::Result<Launched> {
    let confined = own_files.is_some();
    let env = spec.env.iter().map(|(name, value)| (name, value.expose()));
    let [stdin, stdout, stderr] = [ProgramStream::Pipe, ProgramStream::Pipe, ProgramStream::Pipe];
    let command = Kept::command(&spec.command).args(spec.args.iter().map(|arg| arg.expose())).env(env).folder(folder);
    let mut command = command.streams(stdin, stdout, stderr);
    if let Some(own_files) = own_files {
        command = command.confined(own_files);
    }
    if let Some(helper) = helper {
        command = command.helper(helper);
    }
    let mut kept = command.spawn().await.map_err(plain)?;
    if confined && !kept.is_apart() {
        say_that_own_files_show();
    }
    match (kept.stdin.take(), kept.stdout.take(), kept.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Launched {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            process: Process { program: Program::Kept(kept), _folder: None },
        }),
        _ => Err(io::Error::other("it has no pipes")),
    }
}

/// Says it once: it is the machine that cannot do it, not the program.
fn say_that_own_files_show() {
    static SAID: std::sync::Once = std::sync::Once::new();
    SAID.call_once(|| {
        tracing::warn!(
            "MCP servers can write what Footbridge itself keeps here (pins, record, sockets): the kernel or the container \
             engine gives this user no namespaces. Allow user namespaces, or run servers that you do not trust as \
             another user"
        );
    });
}

/// The keeper's reason with the kind that tells a guest what to do.
fn plain(error: SpawnError) -> io::Error {
    let kind = match &error {
        SpawnError::Refused(refusal) => io::Error::from_raw_os_error(refusal.errno).kind(),
        _ => io::ErrorKind::Other,
    };
    match error {
        // Whoever hears it names the program.
        SpawnError::Refused(refusal @ StartRefusal { step: Step::Program(_), .. }) => {
            io::Error::new(kind, refusal.reason())
        }
        error => io::Error::new(kind, error),
    }
}

fn direct(spec: &ProgramSpec, folder: &Path) -> io::Result<Launched> {
    let mut command = Command::new(&spec.command);
    command.args(spec.args.iter().map(|arg| arg.expose())).env_clear();
    command.envs(spec.env.iter().map(|(name, value)| (name, value.expose())));
    command.current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
    let group = child.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let process = Process { program: Program::Child(Group { child, group }), _folder: None };
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
        match &self.program {
            Program::Kept(kept) => u32::try_from(kept.pid()).ok(),
            Program::Child(group) => group.child.id(),
        }
    }

    /// Waits until the program has ended, and says how. Safe to cancel and call again.
    pub async fn wait(&mut self) -> String {
        match self.end().await {
            Ok(end) => end.to_string(),
            Err(error) => format!("its end cannot be seen: {error}"),
        }
    }

    /// Waits until the program has ended. Safe to cancel and call again.
    ///
    /// # Errors
    /// When its end cannot be seen.
    pub async fn end(&mut self) -> io::Result<ProgramEnd> {
        match &mut self.program {
            Program::Kept(kept) => kept.wait().await.map_err(io::Error::other),
            Program::Child(group) => {
                let status = group.child.wait().await?;
                // Its number may be another's from here on, once nothing is left of the group.
                group.kill();
                let by_signal = status.signal().map(ProgramEnd::Signaled);
                Ok(by_signal.unwrap_or(ProgramEnd::Exited(status.code().unwrap_or_default())))
            }
        }
    }

    /// Asks the program and its group to end.
    pub fn terminate(&self) {
        match &self.program {
            Program::Kept(kept) => kept.signal(Signal::SIGTERM),
            Program::Child(group) => group.signal(Signal::SIGTERM),
        }
    }

    /// Ends it and what belongs to it by force, and waits at most this long for it.
    pub async fn kill(&mut self, time: Duration) {
        match &mut self.program {
            Program::Kept(kept) => {
                if kept.kill(time).await.is_none() {
                    tracing::warn!(pid = kept.pid(), "processes of a program are still ending");
                }
            }
            Program::Child(group) => {
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

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn what_is_left_of_a_group_ends_with_its_leader_and_its_number_is_forgotten() {
        let script = "/bin/sleep 1000 & echo begun";
        let args = ["-c", script].map(Secret::new);
        let spec =
            ProgramSpec { command: "/bin/sh".into(), args: args.into(), env: Vec::new(), cwd: None, confine: false };
        let Launched { mut stdout, mut process, .. } = Launcher::Direct.launch(&spec).await.unwrap();
        assert_eq!(process.end().await.unwrap(), ProgramEnd::Exited(0));
        let Program::Child(group) = &process.program else { panic!("it has a keeper") };
        assert_eq!(group.group, None);
        // Nobody is left who keeps it open.
        let mut said = String::new();
        stdout.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "begun\n");
        assert_eq!(process.end().await.unwrap(), ProgramEnd::Exited(0));
    }
}
