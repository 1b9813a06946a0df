//! Server-sent events from the pieces of a response body, with a bound on each event.
//!
//! An event whose data is too long is not kept: its bytes stream by and only its JSON-RPC id is found, as with a line
//! over stdio, so that the one caller is told and the stream goes on.

use footbridge_proto::events::{EventFields, EventPart, EventStream};

use super::message_buffer::{BufferedMessage, LostAnswer, MessageBuffer, Room};

/// Longest line that is not data, and longest id of an event.
const MAX_FIELD: usize = 1024;

/// The state between two pieces.
#[derive(Debug)]
pub(super) struct Events {
    stream: EventStream,
    data: MessageBuffer,
}

/// One event.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) event: Option<String>,
    pub(super) id: Option<String>,
    pub(super) retry: Option<u64>,
    pub(super) data: Option<BufferedMessage>,
}

impl Events {
    /// Waits until an event that takes from the budget is overdue.
    pub(super) async fn overdue(&self) {
        self.data.overdue().await;
    }

    /// An answer that is being dropped, once.
    pub(super) fn lost(&mut self) -> Option<LostAnswer> {
        self.data.lost()
    }

    /// Gives it up.
    pub(super) fn give_up(&mut self) {
        self.data.give_up();
    }

    /// The start of a stream.
    pub(super) fn new(room: Room) -> Self {
        Self { stream: EventStream::new(MAX_FIELD), data: MessageBuffer::new(room) }
    }

    /// Whether data is being kept of an event that is not complete.
    pub(super) fn is_keeping(&self) -> bool {
        !self.data.is_empty() && self.data.dropping().is_none()
    }

    /// Takes bytes up to the end of the next event. Gives the event, if one is complete, and how many bytes it took.
    pub(super) async fn take(&mut self, bytes: &[u8]) -> (usize, Option<Event>) {
        let mut rest = bytes;
        while let Some(part) = self.stream.next(&mut rest) {
            match part {
                EventPart::DataLine if self.data.is_empty() => {}
                EventPart::DataLine => self.data.push(b"\n").await,
                EventPart::Data(part) => self.data.push(part).await,
                EventPart::LongLine => {}
                EventPart::End(fields) => {
                    if let Some(event) = self.end_event(fields) {
                        return (bytes.len() - rest.len(), Some(event));
                    }
                }
            }
        }
        (bytes.len(), None)
    }

    fn end_event(&mut self, fields: EventFields) -> Option<Event> {
        let EventFields { kind: event, id, retry, .. } = fields;
        let data = if self.data.is_empty() { None } else { Some(self.data.finish()) };
        let is_empty = event.is_none() && id.is_none() && retry.is_none() && data.is_none();
        if is_empty { None } else { Some(Event { event, id, retry, data }) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use footbridge_core::budget::Budget;

    async fn events(text: &[u8], piece: usize, limit: usize) -> Vec<(Option<String>, String)> {
        let mut events = Events::new(Room {
            limit,
            share: Budget::new(1 << 20).share(),
            patience: Duration::from_millis(1),
            beyond: super::super::message_buffer::Beyond::default(),
        });
        let mut out = Vec::new();
        for piece in text.chunks(piece) {
            let mut rest = piece;
            while !rest.is_empty() {
                let (used, event) = events.take(rest).await;
                rest = &rest[used..];
                if let Some(event) = event {
                    let data = match event.data {
                        Some(BufferedMessage::Whole(bytes, _)) => String::from_utf8(bytes).unwrap(),
                        Some(BufferedMessage::Dropped { id, .. }) => format!("dropped {id:?}"),
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
