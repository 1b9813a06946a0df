//! As much HTTP/1.1 as one POST needs: a request in one write, and an answer with a length, in chunks, or until the
//! connection ends.
//!
//! It refuses what would be ambiguous (a length beside chunks, two lengths), and anything beyond its limits. A bridge
//! may answer before it has read the whole request, so a failed write is only an error if no answer came either.

use std::io::{self, Read, Write};

use footbridge_proto::token::Token;

/// Largest answer that is read. Results are at most 16 MiB, and escapes in JSON make them longer.
pub(crate) const MAX_ANSWER_BYTES: usize = 32 << 20;
/// Largest head of an answer.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// How much one read asks for.
const READ_BYTES: usize = 16 << 10;

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the connection was closed before the answer was complete")]
    Cut,
    #[error("what answered does not speak HTTP/1.1 ({0})")]
    Malformed(&'static str),
    #[error("the answer has more than {MAX_ANSWER_BYTES} bytes")]
    TooLarge,
}

/// Sends one POST and reads its answer.
pub(crate) fn post(
    wire: &mut (impl Read + Write),
    host: &str,
    token: Option<&Token>,
    body: &[u8],
) -> Result<Answer, HttpError> {
    let sent = wire.write_all(&request(host, token, body));
    match (read_answer(wire), sent) {
        (Ok(answer), _) => Ok(answer),
        (Err(_), Err(e)) => Err(HttpError::Io(e)),
        (Err(e), Ok(())) => Err(e),
    }
}

fn request(host: &str, token: Option<&Token>, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + body.len());
    for part in
        ["POST / HTTP/1.1\r\nHost: ", host, "\r\nContent-Type: application/json\r\nAccept: application/json\r\n"]
    {
        out.extend_from_slice(part.as_bytes());
    }
    if let Some(token) = token {
        for part in ["Authorization: Bearer ", token.expose(), "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    out.extend_from_slice(format!("Connection: close\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes());
    out.extend_from_slice(body);
    out
}

/// How the end of a body is known.
#[derive(Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    UntilEnd,
}

fn read_answer(wire: &mut impl Read) -> Result<Answer, HttpError> {
    let mut incoming = Incoming { wire, held: Vec::new(), at: 0 };
    let (status, framing) = loop {
        let (status, framing) = incoming.head()?;
        match status {
            101 => return Err(HttpError::Malformed("it switched protocols")),
            100..200 => {}
            _ => break (status, framing),
        }
    };
    let body = match framing {
        _ if matches!(status, 204 | 304) => Vec::new(),
        Framing::Length(length) => incoming.exactly(length)?,
        Framing::Chunked => incoming.chunks()?,
        Framing::UntilEnd => incoming.rest()?,
    };
    Ok(Answer { status, body })
}

/// Bytes that arrived, read from `at` on.
struct Incoming<'a, R> {
    wire: &'a mut R,
    held: Vec<u8>,
    at: usize,
}

impl<R: Read> Incoming<'_, R> {
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

    fn head(&mut self) -> Result<(u16, Framing), HttpError> {
        let start = self.at;
        let status = status(&self.line(MAX_HEAD_BYTES)?)?;
        let (mut length, mut chunked) = (None, false);
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
            }
        }
        match (length, chunked) {
            (Some(_), true) => Err(HttpError::Malformed("it names a length beside chunks")),
            (None, true) => Ok((status, Framing::Chunked)),
            (None, false) => Ok((status, Framing::UntilEnd)),
            (Some(text), false) => Ok((status, Framing::Length(size(&text, 10)?))),
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>, HttpError> {
        self.held.reserve(length.saturating_sub(self.held.len() - self.at));
        while self.held.len() - self.at < length {
            self.need_more()?;
        }
        let body = self.held[self.at..self.at + length].to_vec();
        self.at += length;
        Ok(body)
    }

    fn chunks(&mut self) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        loop {
            let line = self.line(1024)?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let length = size(digits, 16)?;
            if length == 0 {
                while !self.line(MAX_HEAD_BYTES)?.is_empty() {}
                return Ok(body);
            }
            if body.len() + length > MAX_ANSWER_BYTES {
                return Err(HttpError::TooLarge);
            }
            body.extend(self.exactly(length)?);
            if !self.line(1024)?.is_empty() {
                return Err(HttpError::Malformed("a chunk is longer than it says"));
            }
            self.held.drain(..self.at);
            self.at = 0;
        }
    }

    fn rest(&mut self) -> Result<Vec<u8>, HttpError> {
        while self.more()? {
            if self.held.len() - self.at > MAX_ANSWER_BYTES {
                return Err(HttpError::TooLarge);
            }
        }
        Ok(self.held.split_off(self.at))
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
mod tests {
    use super::*;

    /// Gives its bytes one at a time, so that every boundary is met.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(1);
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn answer(text: &str) -> Result<(u16, String), HttpError> {
        let whole = read_answer(&mut Drip(text.as_bytes()));
        whole.map(|answer| (answer.status, String::from_utf8(answer.body).unwrap()))
    }

    #[test]
    fn a_body_ends_by_length_by_chunks_or_with_the_stream() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhiXX",
            "HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\nh\r\n1;x=y\r\ni\r\n0\r\nT: v\r\n\r\n",
            "HTTP/1.0 200 OK\nServer: x\n\nhi",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        ] {
            assert_eq!(answer(text).unwrap(), (200, "hi".to_owned()), "{text}");
        }
        assert_eq!(answer("HTTP/1.1 204 No Content\r\n\r\n").unwrap(), (204, String::new()));
    }

    #[test]
    fn a_cut_answer_is_no_answer() {
        let whole = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        for end in 0..whole.len() - 1 {
            assert!(matches!(answer(&whole[..end]), Err(HttpError::Cut)), "{end}");
        }
        assert!(matches!(answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi"), Err(HttpError::Cut)));
    }

    #[test]
    fn what_is_ambiguous_or_too_much_is_refused() {
        for text in [
            "SSH-2.0-x\r\n",
            "HTTP/1.1 2 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nhi\r\n0\r\n\r\n",
        ] {
            assert!(matches!(answer(text), Err(HttpError::Malformed(_))), "{text}");
        }
        let huge = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n";
        assert!(matches!(answer(huge), Err(HttpError::TooLarge)));
    }

    #[test]
    fn the_request_has_one_length_and_the_token_once() {
        let token = Token::parse("fbt_x").unwrap();
        let text = String::from_utf8(request("127.0.0.1:1", Some(&token), b"{}")).unwrap();
        assert!(text.starts_with("POST / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"), "{text}");
        assert_eq!(text.matches("Authorization: Bearer fbt_x\r\n").count(), 1);
        assert!(text.ends_with("Content-Length: 2\r\n\r\n{}"), "{text}");
    }
}
