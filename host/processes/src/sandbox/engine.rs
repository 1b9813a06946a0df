//! The container engines: which there are, how they are called, and whether they answer.
//!
//! Nothing of it knows containers. Each question is under a keeper of its own, so that nothing is left of an engine that
//! does not answer, nor where this process ends meanwhile. One that answers may leave a process: the first command of
//! Podman without root starts one that holds the namespaces of all others of its user, and a container that had to start
//! it would end it with itself. What an engine says when it refuses is passed on as an error's text, which is escaped where
//! it is printed.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use crate::keeper::{Kept, ProgramEnd, ProgramStream, SpawnError};

/// How long an engine may take to answer a question.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much of what an engine says is passed on, in bytes.
const MESSAGE: u64 = 2048;

/// How long one that does not answer may take to be gone.
const KILLED: Duration = Duration::from_secs(1);

/// The word that parts the engine's own arguments from those of its `run`.
pub(super) const RUN: &str = "run";

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// Podman.
    Podman,
    /// Docker.
    Docker,
}

impl EngineKind {
    /// The program.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }

    /// What only this engine needs: Podman can hand its own environment and proxies to containers.
    pub(super) fn own_args(self) -> &'static [&'static str] {
        match self {
            Self::Podman => &["--env-host=false", "--http-proxy=false", "--pid=private", "--ipc=private"],
            Self::Docker => &["--ipc=private"],
        }
    }

    /// Keys that would leave the container running and its terminal behind.
    pub(super) fn detach_keys(self) -> &'static str {
        match self {
            Self::Podman => "--detach-keys=",
            // Empty means its default; these are three that nobody types.
            Self::Docker => "--detach-keys=ctrl-^,ctrl-^,ctrl-^",
        }
    }

    /// How long a container may still come for a client that is gone: a daemon makes what it was asked for.
    pub(super) fn late(self) -> Duration {
        match self {
            Self::Podman => Duration::ZERO,
            Self::Docker => Duration::from_secs(10),
        }
    }

    /// What removes a container, and prints its name where it did.
    pub(super) fn removal(self) -> &'static [&'static str] {
        match self {
            Self::Podman => &["rm", "--force", "--volumes", "--time", "0"],
            Self::Docker => &["rm", "--force", "--volumes"],
        }
    }
}

/// Why there is no container.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The program is not there.
    #[error("cannot find {0} on PATH: install it, or use --sandbox net, which needs no program")]
    Missing(&'static str),
    /// It cannot be run.
    #[error("cannot run {name}: {source}")]
    NotRun {
        /// The program.
        name: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// It does not answer at all.
    #[error("{name} does not answer within {}: see whether `{name} version` does", PATIENCE.as_secs())]
    Silent {
        /// The program.
        name: &'static str,
    },
    /// It refuses even to say its version.
    #[error("{name} does not work here; try `{name} version`; it says:\n{message}")]
    Refuses {
        /// The program.
        name: &'static str,
        /// What it says.
        message: String,
    },
    /// It has no such image.
    #[error(
        "{name} has no image {image:?}: get it with `{name} pull {image}`, or build it, for this user; it says:\n{message}"
    )]
    NoImage {
        /// The program.
        name: &'static str,
        /// The image.
        image: String,
        /// What it says.
        message: String,
    },
    /// It does not bring a signal into a container.
    #[error("{name} kill refuses; it says:\n{message}")]
    Signal {
        /// The program.
        name: &'static str,
        /// What it says.
        message: String,
    },
    /// A path that its arguments cannot hold.
    #[error(
        "{name} cannot mount {path:?}: a comma, a quote or a line's end in a path splits its arguments; move the folder"
    )]
    Path {
        /// The program.
        name: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// A name that would be a pattern.
    #[error("--env {0} ends in *, which engines take for a pattern; name each variable")]
    Pattern(String),
}

/// An engine and how it is to be called.
#[derive(Debug, Clone)]
pub struct Engine {
    pub(super) kind: EngineKind,
    pub(super) program: PathBuf,
    /// Before `run`, and before any other verb.
    pub(super) global: Vec<OsString>,
    /// After `run`.
    pub(super) own: Vec<OsString>,
}

fn error_of(error: SpawnError) -> io::Error {
    match error {
        SpawnError::Refused(refusal) => refusal.cause().into(),
        other => io::Error::other(other),
    }
}

/// The beginning of what it says, once it has said all.
async fn heard(stderr: Option<Receiver>) -> String {
    let mut told = Vec::new();
    if let Some(mut stderr) = stderr {
        // What was read before an error is what there is.
        let _read = (&mut stderr).take(MESSAGE).read_to_end(&mut told).await;
        let _dropped = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&told).trim().to_owned()
}

/// What an engine says to a question.
enum Says {
    Yes,
    /// And why.
    No(String),
}

impl Engine {
    /// Parts `--engine-arg`s: all are for the engine's `run`, but for those before the word `run`, if it is there.
    #[must_use]
    pub fn new(kind: EngineKind, program: PathBuf, args: &[OsString]) -> Self {
        let (global, own) = match args.iter().position(|arg| arg == RUN) {
            Some(at) => (args[..at].to_vec(), args[at + 1..].to_vec()),
            None => (Vec::new(), args.to_vec()),
        };
        Self { kind, program, global, own }
    }

    /// The same with other `--engine-arg`s.
    #[must_use]
    pub fn with_args(self, args: &[OsString]) -> Self {
        Self::new(self.kind, self.program, args)
    }

    /// Which one it is.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Checks that the engine answers and has the image.
    ///
    /// # Errors
    /// [`EngineError`].
    pub async fn check(&self, image: &str, env: &[(OsString, OsString)]) -> Result<(), EngineError> {
        let name = self.name();
        let Says::No(message) = self.asks(&["image", "inspect", "--format", "{{.Id}}", image], env).await? else {
            return Ok(());
        };
        match self.asks(&["version"], env).await? {
            Says::Yes => Err(EngineError::NoImage { name, image: image.to_owned(), message }),
            Says::No(message) => Err(EngineError::Refuses { name, message }),
        }
    }

    /// Sends a signal to the init of a container.
    ///
    /// # Errors
    /// [`EngineError`], also while there is no such container yet.
    pub async fn signal(
        &self,
        container: &str,
        signal: Signal,
        env: &[(OsString, OsString)],
    ) -> Result<(), EngineError> {
        match self.asks(&["kill", "--signal", signal.as_str(), container], env).await? {
            Says::Yes => Ok(()),
            Says::No(message) => Err(EngineError::Signal { name: self.name(), message }),
        }
    }

    async fn asks(&self, words: &[&str], env: &[(OsString, OsString)]) -> Result<Says, EngineError> {
        let name = self.name();
        // A client may be a script that starts others, which would go on without it.
        let command = Kept::command(&self.program).args(&self.global).args(words).env(env.iter().cloned());
        let command = command.streams(ProgramStream::Null, ProgramStream::Null, ProgramStream::Pipe).leaves_others();
        let not_run = |source| EngineError::NotRun { name, source };
        let mut kept = command.spawn().await.map_err(|error| not_run(error_of(error)))?;
        let stderr = kept.stderr.take();
        let answer = timeout(PATIENCE, async { tokio::join!(kept.wait(), heard(stderr)) }).await;
        let Ok((ended, told)) = answer else {
            // What is still ending then is the keeper's to end.
            let _late = kept.kill(KILLED).await;
            return Err(EngineError::Silent { name });
        };
        let ended = ended.map_err(|lost| not_run(io::Error::other(lost)))?;
        Ok(if ended == ProgramEnd::Exited(0) { Says::Yes } else { Says::No(told) })
    }

    /// Says whose a status of 125 may be.
    pub fn explain_failure(&self) {
        let name = self.name();
        let text = format!(
            "footbridge: {name} ended with 125: unless that was the command's own status, {name} says above what it \
             could not do; --engine-arg tells it what this machine needs\n"
        );
        // Without a standard error there is nobody to tell.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
