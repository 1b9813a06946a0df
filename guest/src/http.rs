//! As much HTTP/1.1 as one exchange needs: a POST in one write, and in `arriving` an answer with a length, in chunks, or
//! until the connection ends, as one body or as a stream of events. It knows no connection, and waits for nothing.
//!
//! It refuses what would be ambiguous (a length beside chunks, two lengths), and anything beyond its limits.

mod arriving;

use std::io;

use footbridge_proto::token::Token;

use crate::sse::EventTooLarge;
pub(crate) use arriving::{Arriving, Take};

/// Largest answer that is read: the largest result that a harness lets through, and what is around it.
pub(crate) const MAX_ANSWER_BYTES: usize = 257 << 20;

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

/// What is asked.
pub(crate) struct Ask<'a> {
    pub(crate) host: &'a str,
    pub(crate) token: Option<&'a Token>,
    pub(crate) body: &'a [u8],
    pub(crate) manner: Manner,
}

/// How it is asked, and how its answer may come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// The answer may be a stream of events.
    pub(crate) watches: bool,
    /// False: the bridge answers at once that a person has to be asked, instead of waiting for one.
    pub(crate) waits: bool,
    /// The connection stays open for another request.
    pub(crate) keeps: bool,
}

/// As it is sent.
pub(crate) fn request(ask: &Ask<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + ask.body.len());
    let Manner { watches, waits, keeps } = ask.manner;
    let accept = if watches { "application/json, text/event-stream" } else { "application/json" };
    for part in [
        "POST / HTTP/1.1\r\nHost: ",
        ask.host,
        "\r\nContent-Type: application/json\r\nAccept: ",
        accept,
        if waits { "\r\n" } else { "\r\nFootbridge-Wait: 0\r\n" },
    ] {
        out.extend_from_slice(part.as_bytes());
    }
    if let Some(token) = ask.token {
        for part in ["Authorization: Bearer ", token.expose(), "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    let connection = if keeps { "" } else { "Connection: close\r\n" };
    out.extend_from_slice(format!("{connection}Content-Length: {}\r\n\r\n", ask.body.len()).as_bytes());
    out.extend_from_slice(ask.body);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_has_one_length_and_the_token_once() {
        let token = Token::parse("fbt_x").unwrap();
        let manner = Manner { watches: false, waits: true, keeps: false };
        let ask = Ask { host: "127.0.0.1:1", token: Some(&token), body: b"{}", manner };
        let text = String::from_utf8(request(&ask)).unwrap();
        assert!(text.starts_with("POST / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"), "{text}");
        assert_eq!(text.matches("Authorization: Bearer fbt_x\r\n").count(), 1);
        assert!(text.ends_with("Content-Length: 2\r\n\r\n{}"), "{text}");
    }
}
