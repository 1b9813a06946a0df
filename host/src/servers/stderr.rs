//! What a server writes to its standard error: always read, so that it blocks nobody but who floods it, and
//! kept in a ring.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use footbridge_proto::text::Escaped;
use tokio::io::AsyncReadExt;

use super::{ServerName, lines::Reader, noise::Pace};
use crate::redact::Redactor;

/// Longest line that is shown or logged.
const LINE_BYTES: usize = 2_000;

/// The last bytes of standard error.
#[derive(Debug)]
pub(super) struct StderrRing {
    bytes: Mutex<VecDeque<u8>>,
    limit: usize,
}

impl StderrRing {
    /// An empty ring of this size.
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Mutex::default(), limit }
    }

    /// Adds bytes; the oldest go.
    pub(super) fn add(&self, more: &[u8]) {
        let more = &more[more.len().saturating_sub(self.limit)..];
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let over = (bytes.len() + more.len()).saturating_sub(self.limit);
        bytes.drain(..over);
        bytes.extend(more);
    }

    /// The last lines, oldest first, escaped and without the values of configured secrets.
    pub(super) fn last_lines(&self, count: usize, redactor: &Redactor) -> Vec<String> {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let tail: Vec<u8> = bytes.iter().rev().take(count * LINE_BYTES).rev().copied().collect();
        drop(bytes);
        let text = String::from_utf8_lossy(&tail);
        let text = redactor.scrub(&text);
        let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(count)..].iter().map(|line| shown(line)).collect()
    }
}

fn shown(line: &str) -> String {
    Escaped(&line[..line.floor_char_boundary(LINE_BYTES)]).to_string()
}

/// Reads standard error to its end.
pub(super) async fn drain(mut stderr: Reader, ring: &StderrRing, server: &ServerName, redactor: &Redactor) {
    let mut chunk = vec![0; 8 * 1024];
    let mut pace = Pace::new();
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        ring.add(&chunk[..read]);
        pace.unwanted(read).await;
        if tracing::enabled!(tracing::Level::DEBUG) {
            let text = String::from_utf8_lossy(&chunk[..read]);
            for line in redactor.scrub(&text).lines() {
                tracing::debug!(server = %server, line = %shown(line), "standard error of an MCP server");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_keeps_the_last_bytes_and_shows_them_escaped() {
        let ring = StderrRing::new(64);
        ring.add(&[b'x'; 1000]);
        ring.add(b"\nfirst\n\x1b[31mred\x1b[0m\nlast");
        let lines = ring.last_lines(2, &Redactor::default());
        assert_eq!(lines, ["\\u{1b}[31mred\\u{1b}[0m", "last"]);
        assert!(ring.bytes.lock().unwrap().len() <= 64);
    }
}
