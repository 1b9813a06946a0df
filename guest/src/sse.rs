//! The events of an answer, each with all of its data. What is kept of one event has a limit; the length of a stream
//! has none.

use footbridge_proto::events::{EventPart, EventStream};

/// What is around an answer on its line.
const FIELD_BYTES: usize = 64;

/// More came of one event than may be kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventTooLarge;

/// What has arrived of a stream and is not used up.
#[derive(Debug)]
pub(crate) struct Parser {
    stream: EventStream,
    data: Vec<u8>,
    has_data: bool,
    limit: usize,
}

impl Parser {
    /// The start of a stream whose events hold at most this much.
    pub(crate) fn new(event_bytes: usize) -> Self {
        let limit = event_bytes + FIELD_BYTES;
        Self { stream: EventStream::new(limit), data: Vec::new(), has_data: false, limit }
    }

    /// Takes bytes and gives every event that they end, its kind and its data. Stops early when `take` says false;
    /// the rest is not looked at then.
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        take: &mut dyn FnMut(&str, Vec<u8>) -> bool,
    ) -> Result<bool, EventTooLarge> {
        while let Some(part) = self.stream.next(&mut bytes) {
            match part {
                EventPart::DataLine if !std::mem::replace(&mut self.has_data, true) => {}
                EventPart::DataLine => self.keep(b"\n")?,
                EventPart::Data(part) => self.keep(part)?,
                EventPart::LongLine => return Err(EventTooLarge),
                EventPart::End(event) => {
                    self.has_data = false;
                    let data = std::mem::take(&mut self.data);
                    if event.has_data && !take(event.kind.as_deref().unwrap_or_default(), data) {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), EventTooLarge> {
        if self.data.len() + part.len() > self.limit {
            return Err(EventTooLarge);
        }
        self.data.extend_from_slice(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 32 << 20;

    fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = Parser::new(LIMIT);
        let mut events = Vec::new();
        for piece in pieces {
            parser
                .feed(piece, &mut |kind, data| {
                    events.push((kind.to_owned(), String::from_utf8(data).unwrap()));
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
        let mut parser = Parser::new(LIMIT);
        let mega = vec![b'x'; 1 << 20];
        for _ in 0..64 {
            assert!(parser.feed(b"data: ", &mut |_, _| true).unwrap());
            assert!(parser.feed(&mega, &mut |_, data| data.len() == 1 << 20).unwrap());
            assert!(parser.feed(b"\n\n", &mut |_, data| data.len() == 1 << 20).unwrap());
        }
        let fed = (0..64).try_for_each(|_| parser.feed(&mega, &mut |_, _| true).map(|_| ()));
        assert!(matches!(fed, Err(EventTooLarge)));
    }

    #[test]
    fn nothing_is_read_beyond_what_was_waited_for() {
        let mut seen = 0;
        let more = Parser::new(LIMIT).feed(b"data: 1\n\ndata: 2\n\n", &mut |_, _| {
            seen += 1;
            false
        });
        assert_eq!((more.unwrap(), seen), (false, 1));
    }
}
