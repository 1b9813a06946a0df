//! Where an event of a stream ends: an answer that has to end early ends behind a whole one, so that its client can
//! read what it is told then.

/// What begins an event that only says that the answer was whole.
const FINAL: [&[u8]; 3] = [b"event: message_stop", b"event:message_stop", b"data: [DONE]"];

/// How the last event of a model's stream begins.
const LAST: [&[u8]; 4] = [FINAL[0], FINAL[1], FINAL[2], b"event: response.completed"];

/// How much may still pass until an event ends.
const BEYOND: usize = 64 * 1024;

/// Follows a stream of events.
#[derive(Debug, Default)]
pub(crate) struct EventEnds {
    /// The last bytes that passed.
    tail: Vec<u8>,
    /// What passed since the stream had to end.
    beyond: usize,
}

/// What of some bytes may still pass of a stream that has to end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// All of them: no event ends in them, or the stream ends by itself.
    All,
    /// So many, and then it ends.
    Until(usize),
    /// An event that does not end.
    Never,
}

impl EventEnds {
    /// Whether what comes next says that a model has said all, at the beginning of a line: elsewhere it is what a model wrote.
    pub(crate) fn say_all(&self, bytes: &[u8]) -> bool {
        let begins_a_line = |at: usize| match at.checked_sub(1) {
            Some(before) => matches!(bytes[before], b'\n' | b'\r'),
            None => self.tail.last().is_none_or(|before| matches!(before, b'\n' | b'\r')),
        };
        LAST.iter().any(|line| memchr::memmem::find_iter(bytes, line).any(begins_a_line))
    }

    /// What passes of a stream that goes on.
    pub(crate) fn passed(&mut self, bytes: &[u8]) {
        let keep = self.tail.len().saturating_sub(3);
        self.tail.drain(..keep);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(4)..]);
    }

    /// What of these may pass, where the stream has to end. Where it had to before, they may begin another event.
    pub(crate) fn last_of(&mut self, bytes: &[u8], is_new: bool) -> Last {
        let at = if !is_new && self.is_between() { Some(0) } else { self.first_end(bytes) };
        let last = match at {
            Some(at) if at == bytes.len() => Last::All,
            Some(at) if FINAL.iter().any(|line| bytes[at..].starts_with(line)) => Last::All,
            Some(at) => Last::Until(at),
            None if self.beyond + bytes.len() > BEYOND => Last::Never,
            None => Last::All,
        };
        self.beyond += bytes.len();
        self.passed(bytes);
        last
    }

    fn is_between(&self) -> bool {
        self.tail.ends_with(b"\n\n") || self.tail.ends_with(b"\r\n\r\n")
    }

    /// Behind the first event that ends in these bytes.
    fn first_end(&self, bytes: &[u8]) -> Option<usize> {
        let before = self.tail.len();
        let all = [&self.tail[..], bytes].concat();
        let ends = |at: &usize| all[..*at].ends_with(b"\n\n") || all[..*at].ends_with(b"\r\n\r\n");
        (before + 1..=all.len()).find(ends).map(|at| at - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_writes_ends_no_stream() {
        let mut ends = EventEnds::default();
        assert!(ends.say_all(b"data: [DONE]\n\n") && ends.say_all(b"data: x\n\nevent: message_stop\n"));
        assert!(!ends.say_all(b"data: {\"text\":\"data: [DONE]\"}\n\n"));
        ends.passed(b"data: {\"text\":\"");
        assert!(!ends.say_all(b"data: [DONE]"));
        ends.passed(b"\"}\n\n");
        assert!(ends.say_all(b"data: [DONE]"));
    }

    #[test]
    fn a_stream_ends_behind_a_whole_event() {
        let mut ends = EventEnds::default();
        ends.passed(b"data: one\n\ndata: t");
        assert_eq!(ends.last_of(b"wo\n", true), Last::All);
        assert_eq!(ends.last_of(b"\ndata: three\n\n", false), Last::Until(1));
        for (first, then, expected) in [
            (&b"a\n\nb"[..], &b""[..], Last::Until(3)),
            (b"a\r\n\r\nb", b"", Last::Until(5)),
            (b"a\n\n", b"data: more\n\n", Last::Until(0)),
            (b"a\n\n", b"event: message_stop\ndata: {}\n\n", Last::All),
            (b"a\n\n", b"data: [DONE]\n\n", Last::All),
            (b"a\n\ndata: [DONE]\n\n", b"", Last::All),
        ] {
            let mut ends = EventEnds::default();
            let mut said = ends.last_of(first, true);
            if !then.is_empty() {
                assert_eq!(said, Last::All);
                said = ends.last_of(then, false);
            }
            assert_eq!(said, expected, "{first:?} {then:?}");
        }
        let mut ends = EventEnds::default();
        assert_eq!(ends.last_of(&[b'x'; 40_000], true), Last::All);
        assert_eq!(ends.last_of(&[b'x'; 40_000], false), Last::Never);
    }
}
