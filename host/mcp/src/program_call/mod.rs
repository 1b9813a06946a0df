//! A call that is a run of a program: started without a shell, fed, read within bounds, and ended with all that came of
//! it.
//!
//! Ends: by itself, which is a result or, with its reason and the end of standard error, a result with `isError`; too
//! late, the same; with more than a result may have, or than there is room for; cancelled, or its server was taken out
//! of the configuration. In all but the first it is asked to end and then killed. A program that is not there any more,
//! and arguments that are none for a program, run nothing.

mod printed;
mod promised;

use std::{io, time::Duration};

use footbridge_processes::{
    keeper::ProgramEnd,
    launch::{LaunchError, Launched, Process, ProgramSpec, Reader, Writer},
};
use serde_json::{json, value::RawValue};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    NoAnswer, NotSent, Outcome, Outgoing, OutgoingRequest, RawResult, ServerState, ServersContext,
    message_buffer::{Awaited, Beyond, BufferedMessage, Dropped, MessageBuffer, Room},
    spec::not_installed,
    status::Shared,
    stderr::{StderrRing, drain},
    wrapped::{Arguments, CliSpec, CliTool},
};
use footbridge_core::{budget::Held, catalogue::Offered, limits::CallLimits, redact::Redactor};
use printed::NoResult;
pub(super) use promised::OutputChecks;

/// How long a program that is asked to end may take, and then one that is killed: less than the stage in front waits.
const END_TIME: Duration = Duration::from_millis(700);
/// Bytes of standard error in a result.
const LAST_WORDS: usize = 4_000;
/// Most lines of it.
const LAST_LINES: usize = 20;
/// What was printed beyond this is looked at behind all others, bytes.
const MUCH: usize = 64 * 1024;
/// How many reasons for leaving tools out are kept for the operator.
const MAX_REASONS: usize = 20;

/// What there is of a server whose tools are programs.
pub(super) fn state(cli: &CliSpec, context: &ServersContext, shared: &Shared) -> ServerState {
    if let Some(program) = &cli.missing {
        let detail = not_installed(program);
        tracing::warn!(server = %shared.name, %detail, "trouble with the programs of a server");
        shared.facts().last_error = Some(detail);
        let why = "a program of its tools is not installed; ask the operator";
        return ServerState::Unavailable(format!("Server \"{}\" is not available: {why}", shared.name).into());
    }
    let mut offered = Offered::of(shared.origin.clone());
    let mut reasons = Vec::new();
    for tool in &cli.tools {
        let added = serde_json::value::to_raw_value(&tool.definition)
            .map_err(|error| error.to_string())
            .and_then(|raw| offered.add_tool(&raw, &context.limits.servers).map_err(|error| error.to_string()));
        reasons.extend(added.err().map(|why| format!("tool {:?}: {why}", tool.name)));
    }
    let mut facts = shared.facts();
    facts.left_out = reasons.len();
    reasons.truncate(MAX_REASONS);
    facts.left_out_reasons = reasons;
    ServerState::Ready(offered.into())
}

/// What a run needs besides its call.
pub(super) struct ProgramCall<'a> {
    pub(super) cli: &'a CliSpec,
    pub(super) shared: &'a Shared,
    pub(super) context: &'a ServersContext,
    /// What results are held to.
    pub(super) outputs: &'a OutputChecks,
    /// Cancelled when the server is taken out of the configuration.
    pub(super) stop: &'a CancellationToken,
}

/// What a call's program is run with.
struct ProgramRun<'a> {
    tool: &'a CliTool,
    /// Its standard input.
    input: &'a [u8],
    limits: &'a CallLimits,
    redactor: &'a Redactor,
}

/// Why a run was not waited for to its end.
enum CutShort {
    TooLong,
    NoRoom,
    Late(Duration),
    Cancelled,
    Removed,
    Unreadable(io::Error),
}

impl ProgramCall<'_> {
    /// Runs the program of a call.
    pub(super) async fn carry_out(self, outgoing: Outgoing, cancel: &CancellationToken) -> Outcome {
        let limits = outgoing.limits();
        // What the call itself says is no secret to whoever made it, and its answer must not tell a right guess.
        let redactor = self.context.redactor.sparing(outgoing.texts());
        let (server, request) = outgoing.into_parts();
        let OutgoingRequest::CallTool { name, arguments, .. } = request else { return Outcome::not_offered(&server) };
        let Some(tool) = self.cli.tool(&name) else { return Outcome::not_offered(&server) };
        let (program, input) = match Arguments::of(&arguments).and_then(|arguments| tool.filled(&arguments)) {
            Ok(filled) => filled,
            Err(unfit) => return failed(&format!("Nothing was run: {unfit}")),
        };
        let launched = match self.context.launcher.launch(&program).await {
            Ok(launched) => launched,
            Err(error) => return self.not_launched(&program, &error),
        };
        let run = ProgramRun { tool, input: &input, limits: &limits.calls, redactor: &redactor };
        self.run(run, launched, cancel).await
    }

    /// What was printed as a result, without the values of secrets.
    async fn judge(
        &self,
        printed: Vec<u8>,
        tool: &CliTool,
        limit: usize,
        redactor: &Redactor,
    ) -> Result<Box<RawValue>, NoResult> {
        let (prints, redactor, length) = (tool.prints, redactor.clone(), printed.len());
        let promised = tool.definition.get("outputSchema").map(|schema| self.outputs.of(&self.shared.name, schema));
        let is_quick = length <= MUCH && promised.as_ref().is_none_or(|promise| promise.is_quick(length));
        let look = move || {
            let printed = String::from_utf8(printed)
                .map_err(|_| NoResult::Unfit(format!("it printed {length} bytes that are not UTF-8 text")))?;
            let result = printed::result(&redactor.scrub(&printed), prints, limit)?;
            promised.map_or(Ok(()), |promise| promise.check(&result))?;
            Ok(result)
        };
        if is_quick {
            return look();
        }
        let lost = || Err(NoResult::Unfit("what it printed could not be looked at".to_owned()));
        self.outputs.threads.run(look).await.unwrap_or_else(lost)
    }

    fn not_launched(&self, program: &ProgramSpec, error: &LaunchError) -> Outcome {
        tracing::warn!(server = %self.shared.name, program = ?program.command, %error, "a program did not start");
        self.shared.facts().last_error = Some(error.to_string());
        let why = match error.error.kind() {
            io::ErrorKind::ArgumentListTooLong => {
                return failed("Nothing was run: the arguments are too long together for a program; give less");
            }
            io::ErrorKind::NotFound => "its program or its working folder was not found; ask the operator",
            io::ErrorKind::PermissionDenied => "its program may not be run; ask the operator",
            _ => "its program could not be started; try again, or ask the operator",
        };
        let name = &self.shared.name;
        Outcome::NotSent(NotSent::Unavailable(format!("Server \"{name}\" is not available: {why}")))
    }

    async fn run(&self, run: ProgramRun<'_>, launched: Launched, cancel: &CancellationToken) -> Outcome {
        let ProgramRun { tool, input, limits, redactor } = run;
        let Launched { stdin, stdout, stderr, mut process } = launched;
        let ring = StderrRing::new(self.context.limits.servers.stderr_bytes);
        let (room, _awaited) = self.room(limits);
        let mut buffer = MessageBuffer::new(room);
        let time = tool.time.unwrap_or(limits.idle_time).min(limits.total_time);
        let ran = async {
            let end = async {
                let ended = process.end().await;
                // Nobody whom it left behind keeps its streams open.
                process.kill(END_TIME).await;
                ended.map_err(CutShort::Unreadable)
            };
            let said = self.drained(stderr, &ring);
            let (end, (), (), ()) = tokio::try_join!(end, read(stdout, &mut buffer), said, feed(stdin, input))?;
            Ok(end)
        };
        let ran = tokio::select! {
            biased;
            ran = ran => ran,
            () = cancel.cancelled() => Err(CutShort::Cancelled),
            () = self.stop.cancelled() => Err(CutShort::Removed),
            () = sleep(time) => Err(CutShort::Late(time)),
        };
        let last_words = || last_words(&ring, redactor);
        match ran {
            Ok(ProgramEnd::Exited(status)) if tool.ends_well.contains(&status) => {
                let BufferedMessage::Whole(bytes, held) = buffer.finish() else {
                    return Outcome::Unknown(NoAnswer::Unusable);
                };
                let printed = bytes.len();
                match self.judge(bytes, tool, limits.result_bytes, redactor).await {
                    Ok(text) => self.result(text, printed, held, limits).await,
                    Err(NoResult::TooLarge) => Outcome::too_large(limits.result_bytes),
                    Err(NoResult::Unfit(why)) => self.failure(tool, &why, &last_words()),
                }
            }
            Ok(ProgramEnd::Exited(status)) => {
                self.failure(tool, &format!("its program ended with exit status {status}"), &last_words())
            }
            Ok(ProgramEnd::Signaled(signal)) => {
                self.failure(tool, &format!("its program was ended by signal {signal}"), &last_words())
            }
            Err(why) => {
                stopped(&mut process).await;
                self.cut_short(tool, why, limits, &last_words())
            }
        }
    }

    /// A result that is held as what was printed was: beside the budget, if it is beyond what others may have. As JSON
    /// text it may be longer.
    async fn result(&self, text: Box<RawValue>, printed: usize, held: Option<Held>, limits: &CallLimits) -> Outcome {
        let (share, limit, length) = (&self.shared.share, self.context.limits.calls.result_bytes, text.get().len());
        if length <= limit {
            // Whoever hands it on takes room for it, as for any other's.
            return Outcome::Result(RawResult { text, held: None });
        }
        let held = held.filter(|_| printed > limit);
        let more = if held.is_some() { length.saturating_sub(printed) } else { length };
        match timeout(limits.busy_after, share.wait_beyond(more)).await {
            Ok(Ok(mut taken)) => {
                held.into_iter().for_each(|held| taken.add(held));
                Outcome::Result(RawResult { text, held: Some(taken) })
            }
            _ => Outcome::Unknown(NoAnswer::Busy),
        }
    }

    /// Room for what is printed. A session that has more than the others is bounded by that alone.
    fn room(&self, limits: &CallLimits) -> (Room, Option<Awaited>) {
        let (limit, beyond) = (self.context.limits.calls.result_bytes.min(limits.result_bytes), Beyond::default());
        let awaited = (limits.result_bytes > limit).then(|| beyond.awaits(limits.result_bytes));
        (Room { limit, share: self.shared.share.clone(), patience: limits.busy_after, beyond }, awaited)
    }

    async fn drained(&self, stderr: Reader, ring: &StderrRing) -> Result<(), CutShort> {
        drain(stderr, ring, &self.shared.name, self.shared.log.as_ref(), &self.context.redactor).await;
        Ok(())
    }

    fn cut_short(&self, tool: &CliTool, why: CutShort, limits: &CallLimits, last_words: &str) -> Outcome {
        match why {
            CutShort::TooLong => Outcome::too_large(limits.result_bytes),
            CutShort::NoRoom => Outcome::Unknown(NoAnswer::Busy),
            CutShort::Cancelled => Outcome::Unknown(NoAnswer::Cancelled),
            CutShort::Removed => Outcome::Unknown(NoAnswer::ServerGone),
            CutShort::Late(time) => {
                let why = format!("its program did not end within {time:?} and was ended; it may have had its effect");
                self.failure(tool, &why, last_words)
            }
            CutShort::Unreadable(error) => {
                tracing::warn!(server = %self.shared.name, %error, "the end of a program cannot be seen");
                Outcome::Unknown(NoAnswer::ServerGone)
            }
        }
    }

    /// A result that says why there is none, and what the program said last.
    fn failure(&self, tool: &CliTool, why: &str, last_words: &str) -> Outcome {
        let name = &tool.name;
        self.shared.facts().last_error = Some(format!("tool {name:?}: {why}"));
        let said = match last_words {
            "" => "It wrote nothing to standard error.".to_owned(),
            words => format!("Its standard error ends:\n{words}"),
        };
        failed(&format!("Tool \"{name}\" failed: {why}. {said}"))
    }
}

/// Reads what is printed, to its end or its limit.
async fn read(mut stdout: Reader, buffer: &mut MessageBuffer) -> Result<(), CutShort> {
    let mut chunk = vec![0; 16 * 1024];
    loop {
        let read = tokio::select! {
            read = stdout.read(&mut chunk) => read.map_err(CutShort::Unreadable)?,
            () = buffer.overdue() => return Err(CutShort::NoRoom),
        };
        let Some(more) = chunk.get(..read).filter(|more| !more.is_empty()) else { return Ok(()) };
        buffer.push(more).await;
        match buffer.dropping() {
            None => {}
            Some(Dropped::TooLong) => return Err(CutShort::TooLong),
            Some(Dropped::NoRoom) => return Err(CutShort::NoRoom),
        }
    }
}

/// Writes standard input, as far as it is read: a program need not.
async fn feed(mut stdin: Writer, input: &[u8]) -> Result<(), CutShort> {
    let _broken_pipe = stdin.write_all(input).await;
    let _closed = stdin.shutdown().await;
    Ok(())
}

/// Asks a program to end, which lets it tidy up, and then ends it and what came of it by force.
async fn stopped(process: &mut Process) {
    process.terminate();
    let _ended = timeout(END_TIME, process.end()).await;
    process.kill(END_TIME).await;
}

/// The end of standard error, escaped and without the values of secrets.
fn last_words(ring: &StderrRing, redactor: &Redactor) -> String {
    let lines = ring.last_lines(LAST_LINES, redactor);
    let mut left = LAST_WORDS;
    let fits = lines.iter().rev().take_while(|line| {
        let fits = line.len() < left;
        left = left.saturating_sub(line.len() + 1);
        fits
    });
    let mut fits: Vec<&str> = fits.map(String::as_str).collect();
    fits.reverse();
    fits.join("\n")
}

/// A result with `isError`.
fn failed(text: &str) -> Outcome {
    let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    match serde_json::value::to_raw_value(&result) {
        Ok(text) => Outcome::Result(RawResult { text, held: None }),
        Err(_) => Outcome::Unknown(NoAnswer::Unusable),
    }
}
