//! The operator's command: what is asked goes to its standard input as JSON, its answer comes back as JSON.
//!
//! Only `{"decision":"allow"}` and `{"decision":"deny"}` with status 0 and in time are answers; either may name the
//! `approver`. Everything else is none, and others may still answer.

use std::{error::Error, io, path::PathBuf, time::Duration};

use footbridge_core::redact::Redactor;
use footbridge_proto::text::Escaped;
use futures::{TryFutureExt as _, future::BoxFuture};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    time::{Instant, timeout_at},
};

use super::decision::{self, MAX_ANSWER, Unreadable};
use footbridge_calls::approval::{Approver, ApproverAnswer};
use footbridge_processes::{
    keeper::{Kept, LostKeeper, ProgramEnd, ProgramStream, SpawnError},
    launch::Launcher,
};

/// Most of its last words that are told, in bytes.
const MOST_SAID: usize = 300;

/// Most of its standard error that is kept, in bytes: secrets are looked for before it is cut.
const MOST_KEPT: usize = 8192;

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
    #[error("it ended with status {0}{1}")]
    Failed(i32, String),
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
    /// For what it says when it fails.
    pub(super) redactor: Redactor,
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
        let Self { spec, time, launcher, redactor } = self;
        let deadline = Instant::now() + *time;
        let folder = launcher.folder()?;
        let env = spec.env.iter().map(|(name, value)| (name, value));
        let command = Kept::command(&spec.program).args(&spec.args).env(env).folder(folder.path());
        let spawns = command.streams(ProgramStream::Pipe, ProgramStream::Pipe, ProgramStream::Pipe).spawn();
        // Its program may be on a disk that does not answer.
        let mut kept = timeout_at(deadline, spawns).await.map_err(|_| NoAnswer::Slow(*time))??;
        match timeout_at(deadline, converse(&mut kept, question, redactor)).await {
            Ok(answer) => answer,
            Err(_) => {
                // What is still ending then is the keeper's to end.
                let _ = kept.kill(KILL_TIME).await;
                Err(NoAnswer::Slow(*time))
            }
        }
    }
}

async fn converse(kept: &mut Kept, question: &str, redactor: &Redactor) -> Result<ApproverAnswer, NoAnswer> {
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (kept.stdin.take(), kept.stdout.take(), kept.stderr.take())
    else {
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
    let ended = async {
        // One whose answer is too long may read nothing either: it is not told the rest.
        let ((), printed) = tokio::try_join!(tell, hear)?;
        Ok::<_, NoAnswer>((printed, kept.wait().await?))
    };
    let ((printed, end), said) = tokio::try_join!(ended, last_of(stderr).err_into())?;
    match end {
        ProgramEnd::Exited(0) => Ok(decision::read(&printed)?),
        other => Err(NoAnswer::Failed(other.code(), last_line(&said, redactor))),
    }
}

/// The end of what it writes; the rest is passed over, with the whole of a line of which a part is.
async fn last_of(mut stderr: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let (mut last, mut read, mut is_cut) = (Vec::new(), [0; 4096], false);
    loop {
        match stderr.read(&mut read).await? {
            // A secret could lie across the cut.
            0 if is_cut => {
                return Ok(last
                    .iter()
                    .position(|byte| *byte == b'\n')
                    .map_or_else(Vec::new, |end| last.split_off(end)));
            }
            0 => return Ok(last),
            count => last.extend_from_slice(&read[..count]),
        }
        let gone = last.len().saturating_sub(MOST_KEPT);
        is_cut |= gone > 0;
        last.drain(..gone);
    }
}

/// The last line of a text as it can be shown, behind a colon; nothing where there is none.
fn last_line(text: &[u8], redactor: &Redactor) -> String {
    let text = String::from_utf8_lossy(text);
    let shown = redactor.scrub(&text);
    let Some(line) = shown.lines().rfind(|line| !line.trim().is_empty()) else { return String::new() };
    format!(": {}", Escaped(&line[..line.floor_char_boundary(MOST_SAID)]))
}

#[cfg(test)]
mod tests {
    use footbridge_core::secret::Secret;

    use super::*;

    #[tokio::test]
    async fn of_a_line_that_was_cut_nothing_is_told() {
        let long = "x".repeat(MOST_KEPT);
        for (text, kept) in [
            (format!("{long}\nends"), "\nends"),
            (format!("a\n{long}"), ""),
            (format!("{long}x"), ""),
            ("short".to_owned(), "short"),
        ] {
            assert_eq!(String::from_utf8(last_of(text.as_bytes()).await.unwrap()).unwrap(), kept);
        }
    }

    #[test]
    fn the_last_line_is_told_without_secrets() {
        let redactor = Redactor::new(&[Secret::new("s3cret-value")]);
        let told = |text: &[u8]| last_line(text, &redactor);
        assert_eq!(told(b"a\nno \x1b[2J s3cret-value\n\n"), r": no \u{1b}[2J [redacted]");
        assert_eq!(told(b" \n"), "");
        assert_eq!(told("\u{e4}".repeat(1_000).as_bytes()).len(), ": ".len() + MOST_SAID);
    }
}
