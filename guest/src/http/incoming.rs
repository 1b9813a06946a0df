//! What arrives: a head, and a body whose end is known in one of three ways.

use std::io::Read;

use super::{HttpError, MAX_ANSWER_BYTES};

/// Largest head of an answer.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// How much one read asks for.
const READ_BYTES: usize = 16 << 10;

/// Takes a part of a body, and says whether more is wanted.
pub(super) type Take<'a> = &'a mut dyn FnMut(&[u8]) -> Result<bool, HttpError>;

/// What is needed of a head.
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) framing: Framing,
    /// Whether the body is a stream of events.
    pub(super) events: bool,
}

/// How the end of a body is known.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(usize),
    Chunked,
    UntilEnd,
}

/// Bytes that arrived, read from `at` on.
pub(super) struct Incoming<'a, R> {
    pub(super) wire: &'a mut R,
    held: Vec<u8>,
    at: usize,
}

impl<'a, R: Read> Incoming<'a, R> {
    pub(super) fn new(wire: &'a mut R) -> Self {
        Self { wire, held: Vec::new(), at: 0 }
    }

    /// Reads more; false at the end of the stream.
    fn more(&mut self) -> Result<bool, HttpError> {
        let length = self.held.len();
        self.held.resize(length + READ_BYTES, 0);
        let read = self.wire.read(&mut self.held[length..]);
        self.held.truncate(length + read.as_ref().map_or(0, |n| *n));
        Ok(read? > 0)
    }

    fn need_more(&mut self) -> Result<(), HttpError> {
        if self.more()? { Ok(()) } else { Err(HttpError::Cut) }
    }

    /// One line without its end, at most `limit` bytes.
    fn line(&mut self, limit: usize) -> Result<String, HttpError> {
        let mut seen = self.at;
        loop {
            if let Some(end) = self.held[seen..].iter().position(|b| *b == b'\n').map(|n| seen + n) {
                let line = &self.held[self.at..end];
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                let text = std::str::from_utf8(line).map_err(|_| HttpError::Malformed("its head is not text"))?;
                self.at = end + 1;
                return Ok(text.to_owned());
            }
            seen = self.held.len();
            if seen - self.at > limit {
                return Err(HttpError::Malformed("a line of its head does not end"));
            }
            self.need_more()?;
        }
    }

    pub(super) fn head(&mut self) -> Result<Head, HttpError> {
        let start = self.at;
        let status = status(&self.line(MAX_HEAD_BYTES)?)?;
        let (mut length, mut chunked, mut events) = (None, false, false);
        loop {
            let line = self.line(MAX_HEAD_BYTES)?;
            if line.is_empty() {
                break;
            }
            if self.at - start > MAX_HEAD_BYTES {
                return Err(HttpError::Malformed("its head is too long"));
            }
            let (name, value) = line.split_once(':').ok_or(HttpError::Malformed("a header has no colon"))?;
            if name.eq_ignore_ascii_case("content-length") {
                if length.replace(value.trim().to_owned()).is_some_and(|before| before != value.trim()) {
                    return Err(HttpError::Malformed("it names two lengths"));
                }
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                if !value.trim().eq_ignore_ascii_case("chunked") {
                    return Err(HttpError::Malformed("its transfer encoding is not chunked"));
                }
                chunked = true;
            } else if name.eq_ignore_ascii_case("content-type") {
                let media_type = value.split(';').next().unwrap_or_default().trim();
                events = media_type.eq_ignore_ascii_case("text/event-stream");
            }
        }
        let framing = match (length, chunked) {
            (Some(_), true) => return Err(HttpError::Malformed("it names a length beside chunks")),
            (None, true) => Framing::Chunked,
            (None, false) => Framing::UntilEnd,
            (Some(text), false) => Framing::Length(size(&text, 10)?),
        };
        Ok(Head { status, framing, events })
    }

    pub(super) fn exactly(&mut self, length: usize) -> Result<Vec<u8>, HttpError> {
        self.held.drain(..self.at);
        self.at = 0;
        self.held.reserve(length.saturating_sub(self.held.len()));
        while self.held.len() < length {
            self.need_more()?;
        }
        // A large one is not copied.
        let rest = self.held.split_off(length);
        Ok(std::mem::replace(&mut self.held, rest))
    }

    /// The body whose end is not known beforehand, as it arrives, or any other in pieces. Ends early when `take` says
    /// false.
    pub(super) fn pieces(&mut self, framing: &Framing, take: Take<'_>) -> Result<(), HttpError> {
        match framing {
            Framing::Length(length) => self.pass(*length, take).map(|_| ()),
            Framing::Chunked => self.chunks(take),
            Framing::UntilEnd => loop {
                if !self.all_held(usize::MAX, take)?.1 || !self.more()? {
                    return Ok(());
                }
            },
        }
    }

    fn chunks(&mut self, take: Take<'_>) -> Result<(), HttpError> {
        loop {
            // A stream may go on for long, and what was read of it is not kept.
            if self.at > READ_BYTES {
                self.held.drain(..self.at);
                self.at = 0;
            }
            let line = self.line(1024)?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let length = size(digits, 16)?;
            if length == 0 {
                while !self.line(MAX_HEAD_BYTES)?.is_empty() {}
                return Ok(());
            }
            if !self.pass(length, take)? {
                return Ok(());
            }
            if !self.line(1024)?.is_empty() {
                return Err(HttpError::Malformed("a chunk is longer than it says"));
            }
        }
    }

    /// Hands on exactly this many bytes; false if no more are wanted.
    fn pass(&mut self, mut length: usize, take: Take<'_>) -> Result<bool, HttpError> {
        loop {
            let (passed, wanted) = self.all_held(length, take)?;
            length -= passed;
            if length == 0 || !wanted {
                return Ok(wanted);
            }
            self.need_more()?;
        }
    }

    /// Hands on what is held, up to a length: how much that was, and whether more is wanted.
    fn all_held(&mut self, most: usize, take: Take<'_>) -> Result<(usize, bool), HttpError> {
        let held = &self.held[self.at..];
        let part = &held[..held.len().min(most)];
        let (passed, wanted) = (part.len(), part.is_empty() || take(part)?);
        self.at += passed;
        if self.at == self.held.len() {
            self.held.clear();
            self.at = 0;
        }
        Ok((passed, wanted))
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
