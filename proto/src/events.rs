//! Streams of server-sent events, as the HTML standard has them: lines that end with LF, CR or both, fields, comments.
//!
//! Bytes come in any pieces, and what an event's data consists of goes out as it arrives: whoever reads keeps it, within
//! limits of its own, or does not. Only lines that are no data are kept here, up to a limit. An event that its stream
//! does not end is none, and comments and fields that nobody knows are skipped. It knows no I/O and never fails.

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What has arrived of a stream and is not used up.
#[derive(Debug)]
pub struct EventStream {
    /// Longest line that is no data.
    line_bytes: usize,
    line: Line,
    /// What is known of a line's start.
    start: Vec<u8>,
    event: EventFields,
    /// The byte before was CR: an LF now belongs to it.
    after_cr: bool,
    /// The first line has begun.
    begun: bool,
}

/// Which line is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// It is not known yet to be data.
    Start,
    /// Data; whether a blank after the colon may still come.
    Data { fresh: bool },
    /// A comment, or one that is too long.
    Skipped,
}

/// What arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum EventPart<'a> {
    /// A line of data begins. Lines of one event have a line feed between them.
    DataLine,
    /// More of that line.
    Data(&'a [u8]),
    /// A line that is no data is longer than the limit; nothing more comes of it.
    LongLine,
    /// The event is complete.
    End(EventFields),
}

/// What an event has besides the text of its data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFields {
    /// `event`: its kind.
    pub kind: Option<String>,
    /// `id`.
    pub id: Option<String>,
    /// `retry`: milliseconds.
    pub retry: Option<u64>,
    /// Whether it has data, be it empty. One without is no event to the standard.
    pub has_data: bool,
}

impl EventStream {
    /// The start of a stream. Lines that are no data are kept up to this many bytes.
    #[must_use]
    pub fn new(line_bytes: usize) -> Self {
        let event = EventFields::default();
        Self { line_bytes, line: Line::Start, start: Vec::new(), event, after_cr: false, begun: false }
    }

    /// Takes bytes up to the next thing of interest, and gives that; nothing once all of them are used up.
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<EventPart<'a>> {
        while let Some((&byte, rest)) = bytes.split_first() {
            let is_second = std::mem::take(&mut self.after_cr) && byte == b'\n';
            let part = match byte {
                _ if is_second => {
                    *bytes = rest;
                    None
                }
                b'\n' | b'\r' => {
                    *bytes = rest;
                    self.after_cr = byte == b'\r';
                    self.line_ends()
                }
                _ => self.in_line(bytes),
            };
            if part.is_some() {
                return part;
            }
        }
        None
    }

    /// Takes bytes that are no end of a line: one of a start, or all of the rest.
    fn in_line<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<EventPart<'a>> {
        if self.line == Line::Start {
            self.start.push(bytes[0]);
            *bytes = &bytes[1..];
            return self.started();
        }
        let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(bytes.len());
        let (mut part, rest) = bytes.split_at(end);
        *bytes = rest;
        let Line::Data { fresh } = &mut self.line else { return None };
        if std::mem::take(fresh) {
            part = part.strip_prefix(b" ").unwrap_or(part);
        }
        (!part.is_empty()).then_some(EventPart::Data(part))
    }

    /// Looks at the start of a line, which has grown by a byte.
    fn started(&mut self) -> Option<EventPart<'static>> {
        if !self.begun && self.start == BYTE_ORDER_MARK {
            self.begun = true;
            self.start.clear();
        } else if self.start == b"data:" {
            self.start.clear();
            self.line = Line::Data { fresh: true };
            self.event.has_data = true;
            return Some(EventPart::DataLine);
        } else if self.start == b":" {
            self.start.clear();
            self.line = Line::Skipped;
        } else if self.start.len() > self.line_bytes {
            self.start = Vec::new();
            self.line = Line::Skipped;
            return Some(EventPart::LongLine);
        }
        None
    }

    fn line_ends(&mut self) -> Option<EventPart<'static>> {
        self.begun = true;
        if std::mem::replace(&mut self.line, Line::Start) != Line::Start {
            return None;
        }
        let line = std::mem::take(&mut self.start);
        if line.is_empty() {
            return Some(EventPart::End(std::mem::take(&mut self.event)));
        }
        let line = String::from_utf8_lossy(&line);
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => self.event.kind = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok(),
            // With a colon it was one when that came.
            "data" => {
                self.event.has_data = true;
                return Some(EventPart::DataLine);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The events of a stream with their data, and how many lines were too long.
    fn events(pieces: &[&[u8]]) -> (Vec<(EventFields, String)>, usize) {
        let (mut stream, mut events, mut long) = (EventStream::new(32), Vec::new(), 0);
        let (mut data, mut lines) = (Vec::new(), 0);
        for piece in pieces {
            let mut rest = *piece;
            while let Some(part) = stream.next(&mut rest) {
                match part {
                    EventPart::DataLine => {
                        data.extend_from_slice(if lines > 0 { b"\n" } else { b"" });
                        lines += 1;
                    }
                    EventPart::Data(part) => data.extend_from_slice(part),
                    EventPart::LongLine => long += 1,
                    EventPart::End(fields) => {
                        lines = 0;
                        events.push((fields, String::from_utf8(std::mem::take(&mut data)).unwrap()));
                    }
                }
            }
            assert!(rest.is_empty());
        }
        (events, long)
    }

    fn fields(kind: &str, has_data: bool) -> EventFields {
        EventFields { kind: Some(kind.to_owned()), has_data, ..EventFields::default() }
    }

    #[test]
    fn any_split_and_any_line_end_give_the_same_events() {
        let plain = ": a comment of more than 32 bytes of length\nevent: p\ndata: {\"a\":\ndata:1}\nid: 7\nretry: 5\n\n:\n\
                     data\n\nevent:x\n\nevent: result\ndata:  r\nunknown: y\n\ndata: not ended\n";
        let first = EventFields { id: Some("7".to_owned()), retry: Some(5), ..fields("p", true) };
        let empty = EventFields { has_data: true, ..EventFields::default() };
        let expected = [
            (first, "{\"a\":\n1}".to_owned()),
            (empty, String::new()),
            (fields("x", false), String::new()),
            (fields("result", true), " r".to_owned()),
        ];
        for end in ["\n", "\r\n", "\r"] {
            for start in ["", "\u{feff}"] {
                let text = start.to_owned() + &plain.replace('\n', end);
                let bytes = text.as_bytes();
                for split in 0..bytes.len() {
                    let found = events(&[&bytes[..split], &bytes[split..]]);
                    assert_eq!(found, (expected.to_vec(), 0), "{end:?} at {split}");
                }
                assert_eq!(events(&bytes.chunks(1).collect::<Vec<_>>()).0, expected, "{end:?} byte by byte");
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_told_once_and_the_next_event_comes() {
        let text = format!("event: {}\ndata: 1\n\n", "x".repeat(100));
        let event = EventFields { has_data: true, ..EventFields::default() };
        assert_eq!(events(&[text.as_bytes()]), (vec![(event, "1".to_owned())], 1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let (mut stream, mut rest) = (EventStream::new(8), bytes.as_slice());
            while stream.next(&mut rest).is_some() {}
            prop_assert!(rest.is_empty());
        }
    }
}
