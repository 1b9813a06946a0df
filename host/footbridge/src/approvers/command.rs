//! The operator's command: what is asked goes to its standard input as JSON, its answer comes back as JSON.
//!
//! Only `{"decision":"allow"}` and `{"decision":"deny"}` with status 0 and in time are answers; either may name the
//! `approver`. Everything else is none, and others may still answer.

use std::{error::Error, io, path::PathBuf, time::Duration};

use futures::future::BoxFuture;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

use super::decision::{self, MAX_ANSWER, Unreadable};
use footbridge_calls::approval::{Approver, ApproverAnswer};
use footbridge_processes::{
    keeper::{Kept, LostKeeper, ProgramEnd, ProgramStream, SpawnError},
    launch::Launcher,
};

/// How long what is left of a command that was too slow may take to end.
const KILL_TIME: Duration = Duration::from_secs(2);

/// A command that is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program: a path, or a name on the PATH.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
}

impl CommandSpec {
    /// What the record calls it: the program's name, without its folder.
    #[must_use]
    pub fn name(&self) -> String {
        let name = PathBuf::from(&self.program);
        name.file_name().map_or_else(|| self.program.clone(), |name| name.to_string_lossy().into_owned())
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("it cannot be started: {0}")]
    Start(#[from] SpawnError),
    #[error("it cannot be talked to: {0}")]
    Pipes(#[from] io::Error),
    #[error("it did not end within {0:?}")]
    Slow(Duration),
    #[error("{0}")]
    Lost(#[from] LostKeeper),
    #[error("it ended with status {0}")]
    Failed(i32),
    #[error("its answer is longer than {MAX_ANSWER} bytes")]
    TooLong,
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// The command, and how long it may take.
pub(super) struct Command {
    pub(super) spec: CommandSpec,
    pub(super) time: Duration,
    /// Knows where it starts.
    pub(super) launcher: Launcher,
}

impl Approver for Command {
    fn name(&self) -> String {
        format!("command {}", self.spec.name())
    }

    fn ask<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Result<ApproverAnswer, Box<dyn Error + Send + Sync>>> {
        Box::pin(async { Ok(self.asked(question).await?) })
    }
}

impl Command {
    /// Asks it, once. Dropping this ends it and all that came of it.
    async fn asked(&self, question: &str) -> Result<ApproverAnswer, NoAnswer> {
        let Self { spec, time, launcher } = self;
        let folder = launcher.folder()?;
        let env = spec.env.iter().map(|(name, value)| (name, value));
        let command = Kept::command(&spec.program).args(&spec.args).env(env).folder(folder.path());
        let mut kept = command.streams(ProgramStream::Pipe, ProgramStream::Pipe, ProgramStream::Null).spawn().await?;
        match timeout(*time, converse(&mut kept, question)).await {
            Ok(answer) => answer,
            Err(_) => {
                // What is still ending then is the keeper's to end.
                let _ = kept.kill(KILL_TIME).await;
                Err(NoAnswer::Slow(*time))
            }
        }
    }
}

async fn converse(kept: &mut Kept, question: &str) -> Result<ApproverAnswer, NoAnswer> {
    let (Some(mut stdin), Some(stdout)) = (kept.stdin.take(), kept.stdout.take()) else {
        return Err(io::Error::other("it has no pipes").into());
    };
    let tell = async {
        // A command that decides without reading all of it is not wrong.
        let _ = stdin.write_all(question.as_bytes()).await;
        let _ = stdin.write_all(b"\n").await;
        drop(stdin);
        Ok(())
    };
    let hear = async {
        let mut printed = Vec::new();
        stdout.take(MAX_ANSWER as u64 + 1).read_to_end(&mut printed).await?;
        if printed.len() > MAX_ANSWER { Err(NoAnswer::TooLong) } else { Ok(printed) }
    };
    // One whose answer is too long may read nothing either: it is not told the rest.
    let ((), printed) = tokio::try_join!(tell, hear)?;
    match kept.wait().await? {
        ProgramEnd::Exited(0) => Ok(decision::read(&printed)?),
        other => Err(NoAnswer::Failed(other.code())),
    }
}
