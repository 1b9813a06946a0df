//! A client that says whatever it is told to, and reads answers one by one.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::bridge::LONG;

/// A good body.
pub(crate) const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"listServers"}"#;

/// A request with these headers and what its body needs.
pub(crate) fn post(headers: &[&str], body: &str) -> String {
    let length = format!("Content-Length: {}", body.len());
    let headers: Vec<&str> = headers.iter().copied().chain([length.as_str()]).collect();
    head("POST / HTTP/1.1", &headers) + body
}

/// A head with these headers behind a good `Host`.
pub(crate) fn head(line: &str, headers: &[&str]) -> String {
    let mut text = format!("{line}\r\nHost: localhost\r\n");
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    text + "\r\n"
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The body, which must be JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Whether it says that the connection ends.
    pub(crate) fn closes(&self) -> bool {
        self.head.to_ascii_lowercase().contains("\r\nconnection: close")
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        Self { stream, read: Vec::new() }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn port(&self) -> u16 {
        self.stream.local_addr().unwrap().port()
    }

    /// Sends bytes; the other end must take them.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends bytes; false where the other end has had enough.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Says that nothing more comes.
    pub(crate) fn finish(&self) {
        // The other end may be gone already.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The next answer.
    pub(crate) fn answer(&mut self) -> Answer {
        self.try_answer().expect("an answer")
    }

    /// The next head; none where the connection ends instead.
    pub(crate) fn head(&mut self) -> Option<String> {
        let end = loop {
            if let Some(end) = find(&self.read, b"\r\n\r\n") {
                break end + 4;
            }
            if !self.more() {
                assert!(self.read.is_empty(), "half a head: {:?}", String::from_utf8_lossy(&self.read));
                return None;
            }
        };
        Some(String::from_utf8(self.read.drain(..end).collect()).unwrap())
    }

    /// The next chunk of a body; none at its end.
    pub(crate) fn chunk(&mut self) -> Option<String> {
        self.try_chunk().expect("the body breaks off")
    }

    /// The next chunk of a body, or its end; none where the connection ends first.
    pub(crate) fn try_chunk(&mut self) -> Option<Option<String>> {
        let end = loop {
            match find(&self.read, b"\r\n") {
                Some(end) => break end + 2,
                None if self.more() => {}
                None => return None,
            }
        };
        let length = usize::from_str_radix(std::str::from_utf8(&self.read[..end - 2]).unwrap(), 16).unwrap();
        while self.read.len() < end + length + 2 {
            if !self.more() {
                return None;
            }
        }
        let chunk = self.read[end..end + length].to_vec();
        self.read.drain(..end + length + 2);
        Some((length > 0).then(|| String::from_utf8(chunk).unwrap()))
    }

    /// The next answer; none where the connection ends instead.
    pub(crate) fn try_answer(&mut self) -> Option<Answer> {
        let head = self.head()?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.to_ascii_lowercase().lines().find_map(|line| {
            let value = line.strip_prefix("content-length:")?;
            value.trim().parse::<usize>().ok()
        });
        let length = length.unwrap_or(0);
        while self.read.len() < length {
            assert!(self.more(), "half a body after {head}");
        }
        let body = String::from_utf8(self.read.drain(..length).collect()).unwrap();
        Some(Answer { status, head, body })
    }

    /// Whether an answer has started to come within a moment.
    pub(crate) fn hears(&mut self, within: Duration) -> bool {
        self.stream.set_read_timeout(Some(within)).unwrap();
        let heard = match self.stream.peek(&mut [0]) {
            Ok(_) => true,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        };
        self.stream.set_read_timeout(Some(LONG)).unwrap();
        heard
    }

    /// Waits for the end of the connection, and gives how long that took. Nothing else may come.
    pub(crate) fn must_end(&mut self) -> Duration {
        let start = Instant::now();
        while self.more() {}
        assert!(self.read.is_empty(), "{:?}", String::from_utf8_lossy(&self.read));
        start.elapsed()
    }

    /// Reads more; false at the end.
    fn more(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.read.extend_from_slice(&buffer[..count]);
                true
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("neither an answer nor an end after {LONG:?}")
            }
            Err(_) => false,
        }
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
