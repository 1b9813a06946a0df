//! `tool-cli batch`: a call a line of standard input, a result a line of standard output, in the same order, over one
//! connection or a few.
//!
//! One loop waits for all of it, without threads. A call that the bridge had no place for is sent again when it said
//! that this helps, and until then no other is: nothing of it was sent on.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use footbridge_cli::{
    layout,
    output::{self, NotWritten},
    suggest::closest,
};
use footbridge_guest::{
    ClientError, ClientSettings,
    answers::CallResult,
    input::{self, InputLine, InputLines},
    many::ManyRequests,
};
use footbridge_proto::{exit::ExitCode, json::JsonMistake, text::Escaped, wire::method};
use nix::poll::{PollFd, PollFlags};
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};

use crate::{
    asked::at_random,
    failure::Failure,
    pauses::Pauses,
    progress::{Line, ToldToo},
};

/// Lines that are read ahead of the calls that are under way.
const AHEAD: usize = 16;

/// What a line of the input may have.
const MEMBERS: [&str; 4] = ["server", "tool", "arguments", "id"];

/// A line of the input.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct BatchCall {
    server: String,
    tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arguments: Option<Box<RawValue>>,
    /// Given back with the result.
    #[serde(default, skip_serializing)]
    id: Option<Box<RawValue>>,
}

/// A call that is not over.
struct Open {
    call: BatchCall,
    pauses: Pauses,
    /// When asking again is over, once it was asked: what waits behind many others has its whole time then.
    deadline: Option<Instant>,
}

/// All that is going on.
struct Batch {
    many: ManyRequests,
    timeout: Duration,
    line: Line,
    /// By the number of their line.
    open: BTreeMap<usize, Open>,
    waiting: VecDeque<usize>,
    not_before: Option<Instant>,
    finished: BTreeMap<usize, String>,
    read: usize,
    printed: usize,
    has_failed: bool,
}

/// Carries calls until the input ends and all of them are over.
pub(crate) fn run(
    settings: ClientSettings,
    parallel: usize,
    told: ToldToo,
    input: BorrowedFd<'_>,
) -> Result<(), Failure> {
    let mut batch = Batch {
        timeout: settings.timeout,
        many: ManyRequests::new(settings, parallel),
        line: Line::new(true, told),
        open: BTreeMap::new(),
        waiting: VecDeque::new(),
        not_before: None,
        finished: BTreeMap::new(),
        read: 0,
        printed: 0,
        has_failed: false,
    };
    let (mut lines, mut has_ended) = (InputLines::default(), false);
    while !has_ended || !batch.open.is_empty() {
        if batch.wait(input, !has_ended).map_err(Failure::Stdio)? {
            has_ended = lines.read_some(input).map_err(Failure::Stdio)?;
            batch.take_lines(&mut lines);
        }
        batch.go_on()?;
        batch.send();
        batch.print()?;
    }
    if batch.has_failed { Err(Failure::Told(ExitCode::ToolError)) } else { Ok(()) }
}

/// What is said of a member that no line has.
fn unknown_member(error: &serde_json::Error) -> Option<String> {
    let text = error.to_string();
    let name = text.strip_prefix("unknown field `")?.split('`').next()?;
    let begins = |member: &&str| name.len() > 2 && member.starts_with(name.trim_end_matches('s'));
    let meant = MEMBERS.into_iter().find(begins).or_else(|| closest(name, &MEMBERS));
    let hint = meant
        .map_or_else(|| format!(": there are {}", MEMBERS.join(", ")), |meant| format!(" (did you mean \"{meant}\"?)"));
    Some(format!("\"{}\" is not known here{hint}", Escaped(name)))
}

impl Batch {
    /// Waits until something can be done; whether it is the input that has something.
    fn wait(&self, input: BorrowedFd<'_>, is_open: bool) -> io::Result<bool> {
        let mut polled: Vec<PollFd<'_>> = self.many.polled().collect();
        let takes_more = is_open && self.waiting.len() < AHEAD;
        if takes_more {
            polled.push(PollFd::new(input, PollFlags::POLLIN));
        }
        if !input::wait(&mut polled, [self.many.deadline(), self.not_before].into_iter().flatten().min())? {
            return Ok(false);
        }
        let of_input = polled.last().filter(|_| takes_more).and_then(PollFd::revents);
        Ok(of_input.is_some_and(|events| !events.is_empty()))
    }

    fn take_lines(&mut self, lines: &mut InputLines) {
        while let Some(line) = lines.take_line() {
            let number = self.read;
            self.read += 1;
            match line {
                // It counts, so that a line has the number that an editor shows; there is nothing to say of it.
                InputLine::Whole(line) if line.trim_ascii().is_empty() => {
                    self.finished.insert(number, String::new());
                }
                InputLine::Whole(line) => self.take(number, line.trim_ascii()),
                InputLine::TooLong(line) => self.failed(number, line.id, ClientError::RequestTooLarge(line.bytes)),
            }
        }
    }

    fn take(&mut self, number: usize, line: &[u8]) {
        match serde_json::from_slice::<BatchCall>(line) {
            Ok(call) => {
                self.open.insert(number, Open { call, pauses: Pauses::default(), deadline: None });
                self.waiting.push_back(number);
            }
            Err(error) => {
                let JsonMistake { column, what, .. } = JsonMistake::of(&String::from_utf8_lossy(line), &error);
                let what = unknown_member(&error).unwrap_or(what);
                let why = format!(
                    "this is no call: {what}, column {column}. A line is {{\"server\": ..., \"tool\": ..., \"arguments\": {{}}}}"
                );
                let error = json!({"type": "Error", "message": why, "exitCode": ExitCode::Usage as u8});
                self.finish(number, None, false, &format!("\"error\":{error}"));
            }
        }
    }

    /// Sends what waits, as far as there is room.
    fn send(&mut self) {
        if self.not_before.is_some_and(|at| Instant::now() < at) {
            return;
        }
        self.not_before = None;
        while self.many.has_room() {
            let Some(number) = self.waiting.pop_front() else { return };
            let Some(open) = self.open.get_mut(&number) else { continue };
            open.deadline.get_or_insert_with(|| Instant::now() + self.timeout);
            if let Err(error) = self.many.send(number, method::CALL_TOOL, &open.call) {
                self.over(number, Err(error));
            }
        }
    }

    fn go_on(&mut self) -> Result<(), Failure> {
        let Self { many, line, .. } = self;
        for (number, answer) in many.go_on(&mut |event| line.tell(&event)) {
            self.over(number, answer);
        }
        Ok(())
    }

    fn over(&mut self, number: usize, answer: Result<Box<RawValue>, ClientError>) {
        let Some(mut open) = self.open.remove(&number) else { return };
        let error = match answer {
            Ok(raw) => {
                let is_error = serde_json::from_str::<CallResult>(raw.get()).is_ok_and(|result| result.is_error);
                let said = format!("\"result\":{}", layout::one_line(&raw));
                return self.finish(number, open.call.id, !is_error, &said);
            }
            Err(error) => error,
        };
        let left = open.deadline.map_or(self.timeout, |at| at.saturating_duration_since(Instant::now()));
        if let Some(pause) = error.come_back().and_then(|told| open.pauses.next(told, left, at_random())) {
            self.not_before = self.not_before.max(Some(Instant::now() + pause));
            self.waiting.push_front(number);
            self.open.insert(number, open);
            return;
        }
        self.failed(number, open.call.id, error);
    }

    fn failed(&mut self, number: usize, id: Option<Box<RawValue>>, error: ClientError) {
        let error = Failure::request(error, true).to_json();
        self.finish(number, id, false, &format!("\"error\":{error}"));
    }

    fn finish(&mut self, number: usize, id: Option<Box<RawValue>>, is_ok: bool, said: &str) {
        self.has_failed |= !is_ok;
        let id = id.map_or_else(String::new, |id| format!("\"id\":{},", layout::one_line(&id)));
        let line = format!("{{\"line\":{},{id}\"ok\":{is_ok},{said}}}\n", number + 1);
        self.finished.insert(number, line);
    }

    /// Prints what is over, as far as all before it is.
    fn print(&mut self) -> Result<(), Failure> {
        while let Some(line) = self.finished.remove(&self.printed) {
            self.printed += 1;
            if !line.is_empty() {
                output::print(&line).map_err(NotWritten::of_result)?;
            }
        }
        Ok(())
    }
}
