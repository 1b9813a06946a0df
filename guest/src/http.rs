//! As much HTTP/1.1 as one POST needs: a request in one write, and an answer with a length, in chunks, or until the
//! connection ends, as one body or as a stream of events.
//!
//! It refuses what would be ambiguous (a length beside chunks, two lengths), and anything beyond its limits. A bridge
//! may answer before it has read the whole request, so a failed write is only an error if no answer came either.

mod incoming;

use std::io::{self, Read, Write};

use footbridge_proto::token::Token;

use crate::{
    events::Event,
    sse::{EventTooLarge, Parser},
};
use incoming::{Framing, Head, Incoming};

/// Largest answer that is read: the largest result that a harness lets through, and what is around it.
pub(crate) const MAX_ANSWER_BYTES: usize = 257 << 20;
/// Most answers of a bridge that only say that another one will come.
const MOST_INTERIM: usize = 16;
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

impl From<EventTooLarge> for HttpError {
    fn from(EventTooLarge: EventTooLarge) -> Self {
        Self::TooLarge
    }
}

/// What is asked, and how its answer may come.
pub(crate) struct Ask<'a> {
    pub(crate) host: &'a str,
    pub(crate) token: Option<&'a Token>,
    pub(crate) body: &'a [u8],
    /// False: the bridge answers at once that a person has to be asked, instead of waiting for one.
    pub(crate) waits: bool,
    /// The connection stays open for another request.
    pub(crate) keeps: bool,
}

/// A connection whose patience can be that of a stream.
pub(crate) trait Connection: Read + Write {
    /// From now on time is up after a silence, not after all of it.
    fn measure_silence(&mut self);
}

/// Sends one POST and reads its answer. With `watch` that may be a stream of events; the answer is what its last one
/// holds, and all others go to `watch`.
pub(crate) fn post(
    wire: &mut impl Connection,
    ask: &Ask<'_>,
    watch: Option<&mut dyn FnMut(Event)>,
) -> Result<Answer, HttpError> {
    let sent = wire.write_all(&request(ask, watch.is_some()));
    match (read_answer(wire, watch), sent) {
        (Ok(answer), _) => Ok(answer),
        (Err(_), Err(e)) => Err(HttpError::Io(e)),
        (Err(e), Ok(())) => Err(e),
    }
}

/// As it is sent.
pub(crate) fn request(ask: &Ask<'_>, watched: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + ask.body.len());
    let accept = if watched { "application/json, text/event-stream" } else { "application/json" };
    for part in [
        "POST / HTTP/1.1\r\nHost: ",
        ask.host,
        "\r\nContent-Type: application/json\r\nAccept: ",
        accept,
        if ask.waits { "\r\n" } else { "\r\nFootbridge-Wait: 0\r\n" },
    ] {
        out.extend_from_slice(part.as_bytes());
    }
    if let Some(token) = ask.token {
        for part in ["Authorization: Bearer ", token.expose(), "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    let connection = if ask.keeps { "" } else { "Connection: close\r\n" };
    out.extend_from_slice(format!("{connection}Content-Length: {}\r\n\r\n", ask.body.len()).as_bytes());
    out.extend_from_slice(ask.body);
    out
}

fn read_answer(wire: &mut impl Connection, watch: Option<&mut dyn FnMut(Event)>) -> Result<Answer, HttpError> {
    let mut incoming = Incoming::new(wire);
    let mut head = incoming.head()?;
    for _ in 0..MOST_INTERIM {
        match head.status {
            101 => return Err(HttpError::Malformed("it switched protocols")),
            100..200 => head = incoming.head()?,
            _ => break,
        }
    }
    let Head { status, framing, events } = head;
    if (100..200).contains(&status) {
        return Err(HttpError::Malformed("it goes on saying that it will answer"));
    }
    let body = match (framing, watch) {
        _ if matches!(status, 204 | 304) => Vec::new(),
        (framing, Some(watch)) if events => {
            incoming.wire.measure_silence();
            result_of(&mut incoming, &framing, watch)?
        }
        (Framing::Length(length), _) => incoming.exactly(length)?,
        (framing, _) => {
            let mut body = Vec::new();
            incoming.pieces(&framing, &mut |part| {
                if body.len() + part.len() > MAX_ANSWER_BYTES {
                    return Err(HttpError::TooLarge);
                }
                body.extend_from_slice(part);
                Ok(true)
            })?;
            body
        }
    };
    Ok(Answer { status, body })
}

/// What the `result` event of a stream holds. What comes after it is not waited for.
fn result_of(
    incoming: &mut Incoming<'_, impl Read>,
    framing: &Framing,
    watch: &mut dyn FnMut(Event),
) -> Result<Vec<u8>, HttpError> {
    let (mut parser, mut result) = (Parser::new(MAX_ANSWER_BYTES), None);
    incoming.pieces(framing, &mut |part| {
        let more = parser.feed(part, &mut |kind, data| {
            if kind == "result" {
                result = Some(data);
                return false;
            }
            if let Some(event) = Event::read(kind, &data) {
                watch(event);
            }
            true
        });
        Ok(more?)
    })?;
    result.ok_or(HttpError::Cut)
}

#[cfg(test)]
mod tests;
