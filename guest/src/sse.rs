//! Server-sent events, as the HTML standard has them: lines that end with LF, CR or both, fields, comments.
//!
//! Bytes come in any pieces. An event that its stream does not end is none, and comments and fields that nobody knows
//! are skipped. What is kept of one event has a limit; the length of a stream has none.

use crate::http::{HttpError, MAX_ANSWER_BYTES};

/// What is around an answer on its line.
const FIELD_BYTES: usize = 64;

/// What has arrived of a stream and is not used up.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    kind: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The byte before was CR: an LF now belongs to it.
    after_cr: bool,
    begun: bool,
}

impl Parser {
    /// Takes bytes and gives every event that they end, its kind and its data. Stops early when `take` says false;
    /// the rest is not looked at then.
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        take: &mut dyn FnMut(&[u8], Vec<u8>) -> bool,
    ) -> Result<bool, HttpError> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + self.data.len() + part.len() > MAX_ANSWER_BYTES + FIELD_BYTES {
                return Err(HttpError::TooLarge);
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { return Ok(true) };
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if !self.line_ends(take) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn line_ends(&mut self, take: &mut dyn FnMut(&[u8], Vec<u8>) -> bool) -> bool {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            let (kind, data) = (std::mem::take(&mut self.kind), std::mem::take(&mut self.data));
            return !std::mem::take(&mut self.has_data) || take(&kind, data);
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"event" => self.kind = value.to_vec(),
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            // A comment has an empty name.
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        for piece in pieces {
            parser
                .feed(piece, &mut |kind, data| {
                    events.push((text(kind), text(&data)));
                    true
                })
                .unwrap();
        }
        events
    }

    #[test]
    fn any_split_and_any_line_end_give_the_same_events() {
        let plain = ": hello\nevent: progress\ndata: {\"a\":\ndata:1}\nid: 7\n\n\n:\ndata\n\nevent:x\n\nevent: result\ndata:  r\n\ndata: not ended\n";
        let expected = [("progress", "{\"a\":\n1}"), ("", ""), ("result", " r")];
        let expected = expected.map(|(kind, data)| (kind.to_owned(), data.to_owned()));
        for end in ["\n", "\r\n", "\r"] {
            for start in ["", "\u{feff}"] {
                let text = start.to_owned() + &plain.replace('\n', end);
                let bytes = text.as_bytes();
                for split in 0..bytes.len() {
                    assert_eq!(events(&[&bytes[..split], &bytes[split..]]), expected, "{end:?} at {split}");
                }
                assert_eq!(events(&bytes.chunks(1).collect::<Vec<_>>()), expected, "{end:?} byte by byte");
            }
        }
    }

    #[test]
    fn an_event_without_end_is_too_large_and_a_long_stream_is_not() {
        let mut parser = Parser::default();
        let mega = vec![b'x'; 1 << 20];
        for _ in 0..64 {
            assert!(parser.feed(b"data: ", &mut |_, _| true).unwrap());
            assert!(parser.feed(&mega, &mut |_, data| data.len() == 1 << 20).unwrap());
            assert!(parser.feed(b"\n\n", &mut |_, data| data.len() == 1 << 20).unwrap());
        }
        let fed = (0..64).try_for_each(|_| parser.feed(&mega, &mut |_, _| true).map(|_| ()));
        assert!(matches!(fed, Err(HttpError::TooLarge)));
    }

    #[test]
    fn nothing_is_read_beyond_what_was_waited_for() {
        let mut seen = 0;
        let more = Parser::default().feed(b"data: 1\n\ndata: 2\n\n", &mut |_, _| {
            seen += 1;
            false
        });
        assert_eq!((more.unwrap(), seen), (false, 1));
    }
}
