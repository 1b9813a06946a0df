//! `tool-cli batch`: a call a line of standard input, a result a line of standard output, in the same order, over one
//! connection or a few.
//!
//! One loop waits for all of it, without threads. A call that the bridge had no place for is sent again when it said
//! that this helps, and until then no other is: nothing of it was sent on. What is over before an earlier line is held, up
//! to a bound: beyond it nothing but that line is sent.

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
/// Bytes of calls that are not over, beyond which no more are read: each is kept, to be sent again.
const MOST_OPEN: usize = 32 << 20;
/// Bytes of results that are held until those before them are there.
const MOST_HELD: usize = 64 << 20;
/// What each counts besides its text: one without a text is held, too.
const HELD_BYTES: usize = 64;

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
    /// What its line comes to.
    bytes: usize,
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
    /// What that comes to.
    held: usize,
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
    let mut batch = Batch::new(settings, parallel, told);
    let (mut lines, mut has_ended) = (InputLines::default(), false);
    while !has_ended || !batch.open.is_empty() {
        if batch.wait(input, !has_ended).map_err(Failure::Stdio)? {
            has_ended = lines.read_some(input).map_err(Failure::Stdio)?;
            batch.take_lines(&mut lines);
        }
        batch.go_on()?;
        batch.print()?;
        while batch.send_next() {
            // One that could not be sent is over.
            batch.print()?;
        }
    }
    if batch.has_failed { Err(Failure::Told(ExitCode::ToolError)) } else { Ok(()) }
}

/// Reads the call of a line, or says what is wrong with it and where.
fn read_call(line: &[u8]) -> Result<BatchCall, String> {
    let text =
        std::str::from_utf8(line).map_err(|error| format!("it is not UTF-8 at byte {}", error.valid_up_to() + 1))?;
    let call = serde_json::from_str(text.trim_ascii()).map_err(|error| {
        let JsonMistake { column, what, .. } = JsonMistake::of(text, &error);
        format!("{}, column {column}", unknown_member(&error).unwrap_or(what))
    })?;
    JsonMistake::check_strictly(text.trim_ascii_end())
        .map_err(|JsonMistake { column, what, .. }| format!("{what}, column {column}"))?;
    Ok(call)
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
    fn new(settings: ClientSettings, parallel: usize, told: ToldToo) -> Self {
        Self {
            timeout: settings.timeout,
            many: ManyRequests::new(settings, parallel),
            line: Line::new(true, told),
            open: BTreeMap::new(),
            waiting: VecDeque::new(),
            not_before: None,
            finished: BTreeMap::new(),
            held: 0,
            read: 0,
            printed: 0,
            has_failed: false,
        }
    }

    /// Whether so much is held that only what it waits for may go on.
    fn is_full(&self) -> bool {
        self.held > MOST_HELD
    }

    /// Whether there is a place for more of the input.
    fn takes_more(&self) -> bool {
        let open: usize = self.open.values().map(|open| open.bytes).sum();
        self.waiting.len() < AHEAD && open <= MOST_OPEN && !self.is_full()
    }

    /// Waits until something can be done; whether it is the input that has something.
    fn wait(&self, input: BorrowedFd<'_>, is_open: bool) -> io::Result<bool> {
        let mut polled: Vec<PollFd<'_>> = self.many.polled().collect();
        let takes_more = is_open && self.takes_more();
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
                    self.hold(number, String::new());
                }
                InputLine::Whole(line) => self.take(number, &line),
                InputLine::TooLong(line) => self.failed(number, line.id, ClientError::RequestTooLarge(line.bytes)),
            }
        }
    }

    fn take(&mut self, number: usize, line: &[u8]) {
        match read_call(line) {
            Ok(call) => {
                let bytes = line.len();
                self.open.insert(number, Open { call, bytes, pauses: Pauses::default(), deadline: None });
                self.waiting.push_back(number);
            }
            Err(what) => {
                let why = format!(
                    "this is no call: {what}. A line is {{\"server\": ..., \"tool\": ..., \"arguments\": {{}}}}"
                );
                let error = json!({"type": "Error", "message": why, "exitCode": ExitCode::Usage as u8});
                self.finish(number, None, false, &format!("\"error\":{error}"));
            }
        }
    }

    /// Sends the next that waits, where there is room and something waits that may be sent; whether it did.
    fn send_next(&mut self) -> bool {
        if self.not_before.is_some_and(|at| Instant::now() < at) {
            return false;
        }
        self.not_before = None;
        let at = if self.is_full() { self.waiting.iter().position(|number| *number == self.printed) } else { Some(0) };
        let Some(number) = at.filter(|_| self.many.has_room()).and_then(|at| self.waiting.remove(at)) else {
            return false;
        };
        let Some(open) = self.open.get_mut(&number) else { return true };
        open.deadline.get_or_insert_with(|| Instant::now() + self.timeout);
        if let Err(error) = self.many.send(number, method::CALL_TOOL, &open.call) {
            self.over(number, Err(error));
        }
        true
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
        self.hold(number, line);
    }

    fn hold(&mut self, number: usize, line: String) {
        self.held += line.len() + HELD_BYTES;
        self.finished.insert(number, line);
    }

    /// The next line, where it is over.
    fn next_line(&mut self) -> Option<String> {
        let line = self.finished.remove(&self.printed)?;
        self.held -= line.len() + HELD_BYTES;
        self.printed += 1;
        Some(line)
    }

    /// Prints what is over, as far as all before it is.
    fn print(&mut self) -> Result<(), Failure> {
        while let Some(line) = self.next_line() {
            if !line.is_empty() {
                output::print(&line).map_err(NotWritten::of_result)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use footbridge_guest::{BridgeAddress, Token};

    use super::*;

    #[test]
    fn where_much_is_held_for_an_earlier_line_nothing_but_that_one_is_sent() {
        let bridge = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = BridgeAddress::tcp("127.0.0.1", bridge.local_addr().unwrap().port()).unwrap();
        let settings = ClientSettings::of(target, Token::parse("fbt_token-of-a-test").unwrap());
        let mut batch = Batch::new(settings, 4, ToldToo::default());
        for number in 0..4 {
            batch.take(number, br#"{"server": "s", "tool": "t"}"#);
        }
        batch.open.remove(&1);
        batch.finish(1, None, true, &format!("\"result\":\"{}\"", "x".repeat(MOST_HELD)));
        // The bridge had no place for the first, which waits again behind another.
        batch.waiting = VecDeque::from([2, 0, 3]);
        assert!(!batch.takes_more());
        while batch.send_next() {}
        assert_eq!(batch.waiting, [2, 3]);

        batch.over(0, Ok(RawValue::NULL.to_owned()));
        assert_eq!([batch.next_line(), batch.next_line()].map(|line| line.is_some()), [true, true]);
        assert!(batch.takes_more() && batch.held == 0);
        while batch.send_next() {}
        assert!(batch.waiting.is_empty());
    }
}
