//! An answer over HTTP as its bytes arrive: pushed in, in any pieces, and given out as messages: each event of a stream,
//! or a body that is none once it is whole. It waits for nothing.
//!
//! Its end is known in one of three ways: by its length, by its last chunk, or as its connection ends. What comes behind
//! the end is not looked at, and its connection is not used again.

use super::{HttpError, MAX_ANSWER_BYTES};
use crate::sse::Parser;

/// Largest head of an answer, and most that may be behind its last chunk.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Longest line before a chunk.
const MAX_CHUNK_LINE_BYTES: usize = 1024;
/// Most answers of a bridge that only say that another one will come.
const MOST_INTERIM: usize = 16;

/// Takes messages: the kind of each event, or none for a body that is no stream, and what it holds.
pub(crate) type Take<'a> = &'a mut dyn FnMut(Option<&str>, Vec<u8>);

/// What has arrived of an answer.
pub(crate) struct Arriving {
    state: State,
    /// The start of a line whose end is not there yet.
    line: Vec<u8>,
    /// What was read of lines since the head began, or behind the last chunk.
    line_bytes: usize,
    head: Head,
    interim: usize,
    /// The status, once the head is there.
    pub(crate) status: Option<u16>,
    /// The `Mcp-Session-Id` of its head.
    pub(crate) session: Option<String>,
    events: Option<Parser>,
    closes: bool,
    /// Something came behind its end.
    is_followed: bool,
    body: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    /// So many bytes of the body are still to come.
    Length(usize),
    ChunkSize,
    Chunk(usize),
    ChunkEnd,
    /// What is behind the last chunk, until an empty line.
    Trailers,
    UntilEnd,
    Done,
}

/// What a head has said so far.
#[derive(Default)]
struct Head {
    status: Option<u16>,
    length: Option<String>,
    is_chunked: bool,
    is_stream: bool,
    closes: bool,
    session: Option<String>,
}

impl Arriving {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Head,
            line: Vec::new(),
            line_bytes: 0,
            head: Head::default(),
            interim: 0,
            status: None,
            session: None,
            events: None,
            closes: false,
            is_followed: false,
            body: Vec::new(),
        }
    }

    /// Whether it is a stream of events, as its head says.
    pub(crate) fn is_stream(&self) -> bool {
        self.events.is_some()
    }

    /// Whether it is whole, and its connection stays open with nothing behind it.
    pub(crate) fn leaves_open(&self) -> bool {
        self.state == State::Done && !self.is_followed && !self.closes
    }

    /// Whether anything of it has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.status.is_some() || self.interim > 0 || self.line_bytes > 0
    }

    /// Takes bytes, and gives every message that they end. True at the end of the answer.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], take: Take<'_>) -> Result<bool, HttpError> {
        while !bytes.is_empty() && self.state != State::Done {
            match self.state {
                State::Length(left) | State::Chunk(left) => {
                    let (part, rest) = bytes.split_at(left.min(bytes.len()));
                    bytes = rest;
                    self.take_body(part, take)?;
                    self.state = self.state.after(part.len());
                }
                State::UntilEnd => self.take_body(std::mem::take(&mut bytes), take)?,
                _ => {
                    if let Some(line) = self.next_line(&mut bytes)? {
                        self.read_line(&line)?;
                    }
                }
            }
        }
        self.is_followed |= !bytes.is_empty();
        Ok(self.is_whole(take))
    }

    /// Its connection has ended, which may be its end too.
    pub(crate) fn ends(&mut self, take: Take<'_>) -> Result<(), HttpError> {
        if self.state == State::UntilEnd {
            self.state = State::Done;
        }
        if self.is_whole(take) { Ok(()) } else { Err(HttpError::Cut) }
    }

    fn is_whole(&mut self, take: Take<'_>) -> bool {
        if self.state == State::Done && !self.body.is_empty() {
            take(None, std::mem::take(&mut self.body));
        }
        self.state == State::Done
    }

    /// The next line without its end, where that is there.
    fn next_line(&mut self, bytes: &mut &[u8]) -> Result<Option<String>, HttpError> {
        let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        *bytes = rest;
        self.line.extend_from_slice(part);
        self.line_bytes += part.len();
        match self.state {
            State::Head if self.line_bytes > MAX_HEAD_BYTES => Err(HttpError::Malformed("its head is too long")),
            State::Trailers if self.line_bytes > MAX_HEAD_BYTES => {
                Err(HttpError::Malformed("what is behind its last chunk does not end"))
            }
            State::ChunkSize | State::ChunkEnd if self.line.len() > MAX_CHUNK_LINE_BYTES => {
                Err(HttpError::Malformed("a chunk has no end"))
            }
            _ if end.is_none() => Ok(None),
            _ => {
                let line = std::mem::take(&mut self.line);
                let line = line.strip_suffix(b"\n").unwrap_or(&line);
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                let text = std::str::from_utf8(line).map_err(|_| HttpError::Malformed("its head is not text"))?;
                Ok(Some(text.to_owned()))
            }
        }
    }

    fn read_line(&mut self, line: &str) -> Result<(), HttpError> {
        match self.state {
            State::Head if line.is_empty() && self.head.status.is_some() => return self.head_ends(),
            State::Head => return self.head.read(line),
            State::ChunkSize => {
                let digits = line.split(';').next().unwrap_or_default().trim();
                let length = size(digits, 16)?;
                self.line_bytes = 0;
                self.state = if length == 0 { State::Trailers } else { State::Chunk(length) };
            }
            State::ChunkEnd if line.is_empty() => self.state = State::ChunkSize,
            State::ChunkEnd => return Err(HttpError::Malformed("a chunk is longer than it says")),
            State::Trailers if line.is_empty() => self.state = State::Done,
            // Nothing of ours has trailers.
            State::Trailers | State::Length(_) | State::Chunk(_) | State::UntilEnd | State::Done => {}
        }
        Ok(())
    }

    fn head_ends(&mut self) -> Result<(), HttpError> {
        let head = std::mem::take(&mut self.head);
        self.line_bytes = 0;
        let status = head.status.unwrap_or_default();
        if status == 101 {
            return Err(HttpError::Malformed("it switched protocols"));
        }
        if (100..200).contains(&status) {
            self.interim += 1;
            let is_enough = self.interim > MOST_INTERIM;
            return if is_enough { Err(HttpError::Malformed("it goes on saying that it will answer")) } else { Ok(()) };
        }
        let state = match (head.length, head.is_chunked) {
            (Some(_), true) => return Err(HttpError::Malformed("it names a length beside chunks")),
            (None, true) => State::ChunkSize,
            (None, false) => State::UntilEnd,
            (Some(text), false) => match size(&text, 10)? {
                0 => State::Done,
                length => State::Length(length),
            },
        };
        self.state = if matches!(status, 204 | 304) { State::Done } else { state };
        self.events = head.is_stream.then(|| Parser::new(MAX_ANSWER_BYTES));
        if let (State::Length(length), None) = (self.state, &self.events) {
            // A large one is not copied as it grows; where there is no room for it, that shows as it comes.
            let _ = self.body.try_reserve_exact(length);
        }
        self.closes = head.closes || self.state == State::UntilEnd;
        (self.status, self.session) = (Some(status), head.session);
        Ok(())
    }

    fn take_body(&mut self, part: &[u8], take: Take<'_>) -> Result<(), HttpError> {
        if let Some(events) = &mut self.events {
            events.feed(part, &mut |kind, data| {
                take(Some(kind), data);
                true
            })?;
            return Ok(());
        }
        if self.body.len() + part.len() > MAX_ANSWER_BYTES {
            return Err(HttpError::TooLarge);
        }
        self.body.extend_from_slice(part);
        Ok(())
    }
}

impl State {
    /// The same within a body, this many bytes later.
    fn after(self, bytes: usize) -> Self {
        match self {
            Self::Length(left) if left == bytes => Self::Done,
            Self::Length(left) => Self::Length(left - bytes),
            Self::Chunk(left) if left == bytes => Self::ChunkEnd,
            Self::Chunk(left) => Self::Chunk(left - bytes),
            other => other,
        }
    }
}

impl Head {
    /// Its next line, the first of which has the status.
    fn read(&mut self, line: &str) -> Result<(), HttpError> {
        if self.status.is_none() {
            self.status = Some(status(line)?);
            // A connection of HTTP/1.0 ends, unless both say otherwise.
            self.closes = line.starts_with("HTTP/1.0");
            return Ok(());
        }
        let (name, value) = line.split_once(':').ok_or(HttpError::Malformed("a header has no colon"))?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                let before = self.length.replace(value.to_owned());
                if before.is_some_and(|before| before != value) {
                    return Err(HttpError::Malformed("it names two lengths"));
                }
            }
            "transfer-encoding" if !value.eq_ignore_ascii_case("chunked") => {
                return Err(HttpError::Malformed("its transfer encoding is not chunked"));
            }
            "transfer-encoding" => self.is_chunked = true,
            "connection" => self.closes |= value.split(',').any(|word| word.trim().eq_ignore_ascii_case("close")),
            "mcp-session-id" => self.session = Some(value.to_owned()),
            "content-type" => {
                let media_type = value.split(';').next().unwrap_or_default().trim();
                self.is_stream = media_type.eq_ignore_ascii_case("text/event-stream");
            }
            _ => {}
        }
        Ok(())
    }
}

fn status(line: &str) -> Result<u16, HttpError> {
    let rest = line.strip_prefix("HTTP/1.").ok_or(HttpError::Malformed("its first line is not HTTP's"))?;
    let code = rest.get(2..5).filter(|code| code.bytes().all(|b| b.is_ascii_digit()));
    code.and_then(|code| code.parse().ok()).ok_or(HttpError::Malformed("it has no status"))
}

/// A length in digits only, within the limit.
fn size(text: &str, radix: u32) -> Result<usize, HttpError> {
    if text.is_empty() || !text.chars().all(|c| c.is_digit(radix)) {
        return Err(HttpError::Malformed("a length is no number"));
    }
    match usize::from_str_radix(text, radix) {
        Ok(n) if n <= MAX_ANSWER_BYTES => Ok(n),
        _ => Err(HttpError::TooLarge),
    }
}

#[cfg(test)]
mod tests;
