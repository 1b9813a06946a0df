//! Server-sent events from the pieces of a response body, with a bound on each event.
//!
//! An event whose data is too long is not kept: its bytes stream by and only its JSON-RPC id is found, as with a line
//! over stdio, so that the one caller is told and the stream goes on.

use super::gather::{Gather, Gathered, Room};

/// Longest line that is not data, and longest id of an event.
const MAX_FIELD: usize = 1024;

/// The state between two pieces.
#[derive(Debug)]
pub(super) struct Events {
    data: Gather,
    event: Option<String>,
    id: Option<String>,
    retry: Option<u64>,
    field: Vec<u8>,
    line: Line,
    after_cr: bool,
}

/// Which line is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Its name is not complete.
    Name,
    /// Data; whether a blank after the colon may still come.
    Data { fresh: bool },
    /// One of no interest, or too long.
    Skip,
}

/// One event.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) event: Option<String>,
    pub(super) id: Option<String>,
    pub(super) retry: Option<u64>,
    pub(super) data: Option<Gathered>,
}

impl Events {
    /// Waits until an event that takes from the budget is overdue.
    pub(super) async fn overdue(&self) {
        self.data.overdue().await;
    }

    /// Gives it up.
    pub(super) fn give_up(&mut self) {
        self.data.give_up();
    }

    /// The start of a stream.
    pub(super) fn new(room: Room) -> Self {
        let data = Gather::new(room);
        Self { data, event: None, id: None, retry: None, field: Vec::new(), line: Line::Name, after_cr: false }
    }

    /// Whether data is being kept of an event that is not complete.
    pub(super) fn is_keeping(&self) -> bool {
        !self.data.is_empty() && self.data.dropping().is_none()
    }

    /// Takes bytes up to the end of the next event. Gives the event, if one is complete, and how many bytes it took.
    pub(super) async fn take(&mut self, bytes: &[u8]) -> (usize, Option<Event>) {
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                at += 1;
                continue;
            }
            if byte == b'\n' || byte == b'\r' {
                at += 1;
                self.after_cr = byte == b'\r';
                if let Some(event) = self.end_line() {
                    return (at, Some(event));
                }
                continue;
            }
            let end = bytes[at..].iter().position(|b| matches!(b, b'\n' | b'\r')).map_or(bytes.len(), |n| at + n);
            at += self.in_line(&bytes[at..end]).await;
        }
        (at, None)
    }

    async fn in_line(&mut self, bytes: &[u8]) -> usize {
        match self.line {
            Line::Skip => bytes.len(),
            Line::Data { fresh } => {
                let blank = usize::from(fresh && bytes[0] == b' ');
                self.line = Line::Data { fresh: false };
                self.data.push(&bytes[blank..]).await;
                bytes.len()
            }
            Line::Name => {
                self.field.push(bytes[0]);
                if self.field == b"data:" {
                    if !self.data.is_empty() {
                        self.data.push(b"\n").await;
                    }
                    self.field.clear();
                    self.line = Line::Data { fresh: true };
                } else if self.field.len() > MAX_FIELD || self.field == b":" {
                    self.field.clear();
                    self.line = Line::Skip;
                }
                1
            }
        }
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::replace(&mut self.line, Line::Name);
        let field = std::mem::take(&mut self.field);
        if line != Line::Name {
            return None;
        }
        if field.is_empty() {
            return self.end_event();
        }
        let text = String::from_utf8_lossy(&field);
        let (name, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => self.event = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" => self.retry = value.parse().ok(),
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<Event> {
        let data = if self.data.is_empty() { None } else { Some(self.data.finish()) };
        let event = Event { event: self.event.take(), id: self.id.take(), retry: self.retry.take(), data };
        let empty = event.event.is_none() && event.id.is_none() && event.retry.is_none() && event.data.is_none();
        if empty { None } else { Some(event) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use footbridge_core::budget::Budget;

    async fn events(text: &[u8], piece: usize, limit: usize) -> Vec<(Option<String>, String)> {
        let mut events =
            Events::new(Room { limit, share: Budget::new(1 << 20).share(), patience: Duration::from_millis(1) });
        let mut out = Vec::new();
        for piece in text.chunks(piece) {
            let mut rest = piece;
            while !rest.is_empty() {
                let (used, event) = events.take(rest).await;
                rest = &rest[used..];
                if let Some(event) = event {
                    let data = match event.data {
                        Some(Gathered::Whole(bytes, _)) => String::from_utf8(bytes).unwrap(),
                        Some(Gathered::Dropped { id, .. }) => format!("dropped {id:?}"),
                        None => "none".to_owned(),
                    };
                    out.push((event.id, data));
                }
            }
        }
        out
    }

    #[tokio::test]
    async fn events_are_the_same_however_they_are_cut() {
        let text =
            b": hello\r\nid: 1\r\nevent: message\r\ndata: {\"a\":\r\ndata:1}\r\n\r\n\r\ndata: x\n\nretry: 5\nid: 2\n\n";
        let expected = [(Some("1".to_owned()), "{\"a\":\n1}"), (None, "x"), (Some("2".to_owned()), "none")];
        for piece in [1, 2, 3, 7, 1000] {
            let found = events(text, piece, 1000).await;
            assert!(
                found.iter().map(|(i, d)| (i.clone(), d.as_str())).eq(expected.iter().cloned()),
                "{piece} {found:?}"
            );
        }
    }

    #[tokio::test]
    async fn an_event_that_is_too_long_is_dropped_and_the_next_one_arrives() {
        let long = format!("data: {{\"result\":\"{}\",\"id\":4}}\n\ndata: ok\n\n", "x".repeat(5000));
        assert_eq!(
            events(long.as_bytes(), 100, 1000).await,
            [(None, "dropped Some(4)".to_owned()), (None, "ok".to_owned())]
        );
    }
}
