//! An answer over HTTP as its bytes arrive: pushed in, in any pieces, and given out as messages, each with its kind, which
//! is empty for a body that is no stream. It waits for nothing.

use crate::{
    http::{HttpError, MAX_ANSWER_BYTES},
    sse::Parser,
};

/// Largest head of an answer.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// What has arrived of an answer.
pub(crate) struct Arriving {
    held: Vec<u8>,
    state: State,
    /// The status, once the head is there.
    pub(crate) status: Option<u16>,
    /// The `Mcp-Session-Id` of its head.
    pub(crate) session: Option<String>,
    events: Option<Parser>,
    closes: bool,
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
    /// The empty line behind the last chunk.
    LastEnd,
    Done,
}

impl Arriving {
    pub(crate) fn new() -> Self {
        Self {
            held: Vec::new(),
            state: State::Head,
            status: None,
            session: None,
            events: None,
            closes: false,
            body: Vec::new(),
        }
    }

    /// Whether it is whole, and its connection stays open with nothing behind it.
    pub(crate) fn leaves_open(&self) -> bool {
        self.state == State::Done && self.held.is_empty() && !self.closes
    }

    /// Takes bytes, and gives every message that they end. True at the end of the answer.
    pub(crate) fn feed(&mut self, bytes: &[u8], take: &mut dyn FnMut(&str, Vec<u8>)) -> Result<bool, HttpError> {
        self.held.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(used) = self.step(at, take)? {
            at += used;
            if self.state == State::Done {
                break;
            }
        }
        self.held.drain(..at);
        if self.state == State::Done && !self.body.is_empty() {
            take("", std::mem::take(&mut self.body));
        }
        Ok(self.state == State::Done)
    }

    /// One step over what is held from here on: how many bytes it used, or nothing where more have to come.
    fn step(&mut self, at: usize, take: &mut dyn FnMut(&str, Vec<u8>)) -> Result<Option<usize>, HttpError> {
        let rest = self.held.len() - at;
        match self.state {
            State::Head => {
                let Some(end) = find(&self.held[at..], b"\r\n\r\n") else {
                    return if rest > MAX_HEAD_BYTES {
                        Err(HttpError::Malformed("its head is too long"))
                    } else {
                        Ok(None)
                    };
                };
                let head = String::from_utf8(self.held[at..at + end].to_vec());
                self.read_head(&head.map_err(|_| HttpError::Malformed("its head is not text"))?)?;
                Ok(Some(end + 4))
            }
            State::Length(0) => {
                self.state = State::Done;
                Ok(Some(0))
            }
            State::Length(left) | State::Chunk(left) if rest > 0 && left > 0 => {
                let taken = rest.min(left);
                let part = self.held[at..at + taken].to_vec();
                self.take_body(&part, take)?;
                self.state = match self.state {
                    State::Length(_) => State::Length(left - taken),
                    _ => State::Chunk(left - taken),
                };
                Ok(Some(taken))
            }
            State::Chunk(0) => {
                self.state = State::ChunkEnd;
                Ok(Some(0))
            }
            State::ChunkEnd | State::ChunkSize => self.chunk_line(at),
            // Nothing of ours has trailers.
            State::LastEnd if rest < 2 => Ok(None),
            State::LastEnd => {
                self.state = State::Done;
                Ok(Some(2))
            }
            State::Length(_) | State::Chunk(_) | State::Done => Ok(None),
        }
    }

    /// The line behind a chunk, or the one that says how long the next is.
    fn chunk_line(&mut self, at: usize) -> Result<Option<usize>, HttpError> {
        let held = &self.held[at..];
        let Some(end) = find(held, b"\r\n") else {
            return if held.len() > 1024 { Err(HttpError::Malformed("a chunk has no end")) } else { Ok(None) };
        };
        if self.state == State::ChunkEnd {
            self.state = State::ChunkSize;
            return if end == 0 { Ok(Some(2)) } else { Err(HttpError::Malformed("a chunk is longer than it says")) };
        }
        let digits = std::str::from_utf8(&held[..end]).unwrap_or_default();
        let digits = digits.split(';').next().unwrap_or_default().trim();
        self.state = match size(digits, 16)? {
            0 => State::LastEnd,
            length => State::Chunk(length),
        };
        Ok(Some(end + 2))
    }

    fn read_head(&mut self, head: &str) -> Result<(), HttpError> {
        let mut lines = head.split("\r\n");
        let first = lines.next().and_then(|line| line.strip_prefix("HTTP/1."));
        let status = first.and_then(|rest| rest.get(2..5)).and_then(|code| code.parse().ok());
        let status = status.ok_or(HttpError::Malformed("its first line is not HTTP's"))?;
        if (100..200).contains(&status) {
            return Ok(());
        }
        let (mut length, mut chunked) = (None, false);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = Some(size(value, 10)?),
                "transfer-encoding" => chunked = true,
                "connection" => self.closes |= value.eq_ignore_ascii_case("close"),
                "mcp-session-id" => self.session = Some(value.to_owned()),
                "content-type" if value.starts_with("text/event-stream") => {
                    self.events = Some(Parser::new(MAX_ANSWER_BYTES));
                }
                _ => {}
            }
        }
        self.status = Some(status);
        self.state = match (length, chunked) {
            (Some(_), true) => return Err(HttpError::Malformed("it names a length beside chunks")),
            (None, true) => State::ChunkSize,
            (length, false) => State::Length(length.unwrap_or(0)),
        };
        Ok(())
    }

    fn take_body(&mut self, part: &[u8], take: &mut dyn FnMut(&str, Vec<u8>)) -> Result<(), HttpError> {
        if let Some(events) = &mut self.events {
            events.feed(part, &mut |kind, data| {
                take(kind, data);
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

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// A length in digits only, within the limit.
fn size(text: &str, radix: u32) -> Result<usize, HttpError> {
    if text.is_empty() || !text.chars().all(|c| c.is_digit(radix)) {
        return Err(HttpError::Malformed("a length is no number"));
    }
    usize::from_str_radix(text, radix).ok().filter(|n| *n <= MAX_ANSWER_BYTES).ok_or(HttpError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str, piece: usize) -> (Vec<String>, bool, Option<String>) {
        let (mut arriving, mut seen, mut done) = (Arriving::new(), Vec::new(), false);
        for part in text.as_bytes().chunks(piece) {
            done = arriving.feed(part, &mut |_, data| seen.push(String::from_utf8(data).unwrap())).unwrap();
        }
        (seen, done, arriving.session)
    }

    #[test]
    fn an_answer_in_any_pieces_is_the_same_messages() {
        let whole = "HTTP/1.1 200 OK\r\nMcp-Session-Id: abc\r\nContent-Length: 7\r\n\r\n{\"a\":1}";
        let events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
                      a\r\ndata: {\"b\"\r\n5\r\n:2}\n\n\r\n6\r\n: hi\n\n\r\nc\r\ndata: {\"c\"}\n\r\n1\r\n\n\r\n0\r\n\r\n";
        let nothing = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
        for piece in [1, 2, 3, 7, 1000] {
            assert_eq!(messages(whole, piece), (vec!["{\"a\":1}".to_owned()], true, Some("abc".to_owned())), "{piece}");
            assert_eq!(messages(events, piece).0, ["{\"b\":2}", "{\"c\"}"], "{piece}");
            assert_eq!(messages(nothing, piece), (Vec::new(), true, None), "{piece}");
        }
    }

    #[test]
    fn what_is_no_http_is_named() {
        for text in [
            "SSH-2.0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\
            Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert!(Arriving::new().feed(text.as_bytes(), &mut |_, _| ()).is_err(), "{text}");
        }
    }
}
