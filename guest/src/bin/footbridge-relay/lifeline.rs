//! The lifeline: one connection to the harness that shows whether it still lives.
//!
//! A `GET /healthz` every 20 s on a connection kept open; any HTTP answer is a sign of life, and so is the open
//! connection in between. Gone is counted from the moment the connection broke or a question went unanswered, and a
//! single answer ends it.

use std::{io, time::Duration};

use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::{
    reach::{Pause, Reach},
    stream::Stream,
};

/// How often to ask.
const INTERVAL: Duration = Duration::from_secs(20);
/// How long one answer may take before the connection counts as broken.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Longest head of an answer.
const HEAD_BYTES: usize = 8 << 10;

const QUESTION: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Resolves when the harness has been gone for `grace`; never where that is zero.
pub(crate) async fn gone(reach: &Reach, grace: Duration) {
    if grace.is_zero() {
        return std::future::pending().await;
    }
    let mut since = Instant::now();
    let mut pause = Pause::new();
    loop {
        let broke = talk(reach, since + grace).await;
        if let Some(at) = broke {
            since = at;
            pause = Pause::new();
        }
        if since.elapsed() >= grace {
            return;
        }
        sleep_until((Instant::now() + pause.next()).min(since + grace)).await;
    }
}

/// One connection's life. Gives the moment it broke if it ever answered.
async fn talk(reach: &Reach, limit: Instant) -> Option<Instant> {
    let stream = timeout_at(limit, reach.connect_once()).await.ok()?.ok()?;
    let first = limit.min(Instant::now() + ANSWER_LIMIT);
    let mut kept = timeout_at(first, ask(&stream)).await.ok()?.ok()?;
    while kept {
        if let Err(at) = rest(&stream).await {
            return Some(at);
        }
        let asked = Instant::now();
        kept = match timeout_at(asked + ANSWER_LIMIT, ask(&stream)).await {
            Ok(Ok(kept)) => kept,
            _ => return Some(asked),
        };
    }
    // It answered and does not keep connections: ask anew later.
    drop(stream);
    sleep(INTERVAL).await;
    Some(Instant::now())
}

/// Sits out the interval; an error is the moment at which the connection broke.
async fn rest(stream: &Stream) -> Result<(), Instant> {
    let until = Instant::now() + INTERVAL;
    let mut byte = [0; 1];
    loop {
        match timeout_at(until, stream.readable()).await {
            Err(_) => return Ok(()),
            Ok(Err(_)) => return Err(Instant::now()),
            Ok(Ok(())) => match stream.try_read(&mut byte) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // The end, or a byte that nobody asked for.
                _ => return Err(Instant::now()),
            },
        }
    }
}

/// Asks once. True if the connection can be asked again: an answer without a body that does not close.
async fn ask(stream: &Stream) -> io::Result<bool> {
    stream.write_all(QUESTION).await?;
    let mut head = Vec::new();
    let mut part = [0; 512];
    loop {
        stream.readable().await?;
        match stream.try_read(&mut part) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => head.extend_from_slice(&part[..n]),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => continue,
            Err(e) => return Err(e),
        }
        if !head.starts_with(&b"HTTP/1."[..head.len().min(7)]) || head.len() > HEAD_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(keeps(&head));
        }
    }
}

fn keeps(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    text.get(8..).is_some_and(|rest| rest.starts_with(" 204"))
        && text.ends_with("\r\n\r\n")
        && !text.lines().any(|line| line.starts_with("connection:") && line.contains("close"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bare_answer_keeps_its_connection() {
        assert!(keeps(b"HTTP/1.1 204 No Content\r\ndate: x\r\n\r\n"));
        assert!(!keeps(b"HTTP/1.1 204 No Content\r\nConnection: Close\r\n\r\n"));
        assert!(!keeps(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 2\r\n\r\n{}"));
    }
}
