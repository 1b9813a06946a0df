//! Programs that run once, to their end: one that is fed something, or one that is asked for what it prints.
//!
//! They are started as MCP servers are. Whatever ends first, the program, its time or the future, all that came of it
//! ends too.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{Instant, timeout_at},
};

use super::{Launched, Launcher, Process, ProgramSpec, Reader};
use crate::keeper::ProgramEnd;

/// How long a program that was killed may take to be gone.
const KILL_TIME: Duration = Duration::from_secs(1);
/// Most bytes that a program that is asked may print.
const MAX_OUTPUT: usize = 64 * 1024;

impl Launcher {
    /// Runs a program to its end, with this on its standard input. What it prints is dropped.
    ///
    /// # Errors
    /// When it cannot be started, fails, or takes longer than this; then it is killed.
    pub async fn feed(&self, spec: &ProgramSpec, input: &[u8], time: Duration) -> io::Result<()> {
        let deadline = Instant::now() + time;
        let Launched { mut stdin, mut stdout, mut stderr, mut process } = self.launched(spec, deadline).await?;
        let fed = async {
            let write = async {
                // A program that does not read it all may still succeed.
                let _broken_pipe = stdin.write_all(input).await;
                drop(stdin);
            };
            let (mut nowhere, mut nobody) = (tokio::io::sink(), tokio::io::sink());
            let drain = async {
                // What it printed is of no interest, nor is why it stopped.
                let _ =
                    tokio::join!(tokio::io::copy(&mut stdout, &mut nowhere), tokio::io::copy(&mut stderr, &mut nobody));
            };
            let ((), ended) = tokio::join!(write, async {
                tokio::select! {
                    ended = process.end() => ended,
                    ended = async { drain.await; std::future::pending().await } => ended,
                }
            });
            succeeded(ended)
        };
        match timeout_at(deadline, fed).await {
            Ok(ended) => ended,
            Err(_) => Err(too_slow(&mut process, time).await),
        }
    }

    /// Runs a program to its end, without anything to read, and gives what it prints, at most 64 KiB. What it writes to
    /// standard error goes to ours.
    ///
    /// # Errors
    /// When it cannot be started, fails, prints more, or takes longer than this; then it is killed.
    pub async fn output(&self, spec: &ProgramSpec, time: Duration) -> io::Result<Vec<u8>> {
        let deadline = Instant::now() + time;
        let Launched { stdin, stdout, stderr, mut process } = self.launched(spec, deadline).await?;
        drop(stdin);
        let ran = async {
            let end = async {
                let ended = process.end().await;
                // Nobody who it left behind keeps its streams open.
                process.kill(KILL_TIME).await;
                succeeded(ended)
            };
            let (printed, (), ()) = tokio::try_join!(within_limit(stdout), end, pass_on(stderr))?;
            Ok(printed)
        };
        match timeout_at(deadline, ran).await {
            Ok(printed) => printed,
            Err(_) => Err(too_slow(&mut process, time).await),
        }
    }

    /// Starts it: where its program is on a disk that does not answer, that may take for ever.
    async fn launched(&self, spec: &ProgramSpec, deadline: Instant) -> io::Result<Launched> {
        let started = timeout_at(deadline, self.launch(spec)).await;
        let launched = started.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "it was not started in time"))?;
        launched.map_err(|error| error.error)
    }
}

async fn within_limit(stdout: Reader) -> io::Result<Vec<u8>> {
    let mut printed = Vec::new();
    stdout.take(MAX_OUTPUT as u64 + 1).read_to_end(&mut printed).await?;
    let fits = printed.len() <= MAX_OUTPUT;
    if fits { Ok(printed) } else { Err(io::Error::other("it prints more than 64 KiB")) }
}

/// Passes what a program writes there on to our standard error. Whether anybody hears it is not the program's concern.
async fn pass_on(mut stderr: Reader) -> io::Result<()> {
    let mut chunk = [0; 1024];
    loop {
        let count = stderr.read(&mut chunk).await?;
        let Some(said) = chunk.get(..count).filter(|said| !said.is_empty()) else { return Ok(()) };
        let _unheard = io::stderr().write_all(said);
    }
}

fn succeeded(ended: io::Result<ProgramEnd>) -> io::Result<()> {
    match ended? {
        ProgramEnd::Exited(0) => Ok(()),
        other => Err(io::Error::other(other.to_string())),
    }
}

async fn too_slow(process: &mut Process, time: Duration) -> io::Error {
    process.kill(KILL_TIME).await;
    io::Error::new(io::ErrorKind::TimedOut, format!("it did not end within {time:?}"))
}
