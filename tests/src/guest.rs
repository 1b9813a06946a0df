//! Whatever is inside: plain HTTP to the byte, requests of the bridge, and the real `tool-cli`.

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::PathBuf,
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    PATIENCE, programs,
    running::{Ran, Running},
};

/// Where a session listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// On a port of 127.0.0.1.
    Port(u16),
    /// On a Unix socket.
    Socket(PathBuf),
}

/// Somebody who holds a token.
#[derive(Debug, Clone)]
pub struct Guest {
    /// Where it goes.
    pub address: Address,
    /// What it shows.
    pub token: String,
    /// Whose port it goes to, where that is none of its own.
    pub listener: Option<u32>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The head, as it came.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// The body as JSON.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A request that was sent and not yet answered. Dropping it is leaving.
#[derive(Debug)]
pub struct Sent(Wire);

impl Sent {
    /// Waits for the answer.
    #[track_caller]
    #[must_use]
    pub fn answer(self) -> Answer {
        read_answer(self.0)
    }

    /// Reads on until this has come, and gives all that came.
    ///
    /// # Panics
    /// When it does not come.
    #[track_caller]
    #[must_use]
    pub fn hears(&mut self, what: &str) -> String {
        let mut heard = Vec::new();
        while !heard.ends_with(what.as_bytes()) {
            let mut byte = [0];
            let read = self.0.read(&mut byte).unwrap_or(0);
            assert!(read > 0, "{what:?} did not come: {}", String::from_utf8_lossy(&heard));
            heard.extend_from_slice(&byte);
        }
        String::from_utf8(heard).unwrap()
    }

    /// The same; none where the connection is closed instead.
    #[track_caller]
    #[must_use]
    pub fn answer_if_any(self) -> Option<Answer> {
        let mut reader = BufReader::new(self.0);
        let is_closed = reader.fill_buf().map_or(true, <[u8]>::is_empty);
        (!is_closed).then(|| read_answer(reader))
    }
}

#[derive(Debug)]
enum Wire {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

/// Writes bytes to somebody who may have answered, and gone, before they came.
#[track_caller]
fn writes(mut stream: impl Write, bytes: &[u8]) {
    if let Err(error) = stream.write_all(bytes) {
        assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
    }
}

impl Guest {
    /// Somebody who goes to a port.
    #[must_use]
    pub fn at_port(port: u16, token: &str) -> Self {
        Self { address: Address::Port(port), token: token.to_owned(), listener: None }
    }

    /// Somebody who goes to a socket.
    #[must_use]
    pub fn at_socket(path: impl Into<PathBuf>, token: &str) -> Self {
        Self { address: Address::Socket(path.into()), token: token.to_owned(), listener: None }
    }

    /// The same with another token.
    #[must_use]
    pub fn showing(&self, token: &str) -> Self {
        Self { token: token.to_owned(), ..self.clone() }
    }

    /// Sends bytes on a connection of its own.
    #[track_caller]
    #[must_use]
    pub fn sends(&self, bytes: &[u8]) -> Sent {
        match &self.address {
            Address::Port(port) => {
                let mut stream = TcpStream::connect(("127.0.0.1", *port)).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                writes(&mut stream, bytes);
                Sent(Wire::Tcp(stream))
            }
            Address::Socket(path) => {
                let mut stream = UnixStream::connect(path).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                writes(&mut stream, bytes);
                Sent(Wire::Unix(stream))
            }
        }
    }

    /// The bytes of a good request with this body.
    #[must_use]
    pub fn request(&self, body: &str) -> Vec<u8> {
        let head = format!(
            "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer {}\r\n\
             Content-Length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        [head.as_bytes(), body.as_bytes()].concat()
    }

    /// Posts a body.
    #[track_caller]
    #[must_use]
    pub fn posts(&self, body: &str) -> Answer {
        self.sends(&self.request(body)).answer()
    }

    /// Asks for something and gives the whole response.
    #[track_caller]
    #[must_use]
    pub fn asks(&self, method: &str, params: Value) -> Value {
        let answer = self.starts_to_ask(method, params).answer();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Asks for something without waiting for the answer.
    #[track_caller]
    #[must_use]
    pub fn starts_to_ask(&self, method: &str, params: Value) -> Sent {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        self.sends(&self.request(&body))
    }

    /// Calls a tool and gives the whole response.
    #[track_caller]
    #[must_use]
    pub fn calls(&self, server: &str, tool: &str, arguments: Value) -> Value {
        self.asks("callTool", json!({"server": server, "tool": tool, "arguments": arguments}))
    }

    /// The real `tool-cli` with these arguments and an environment of nothing else.
    #[must_use]
    pub fn tool_cli(&self, args: &[&str]) -> Command {
        let mut command = Command::new(programs::tool_cli());
        command.args(args).env_clear().env("TOOL_CLI_TOKEN", &self.token);
        match &self.address {
            Address::Port(port) => command.env("TOOL_CLI_PORT", port.to_string()),
            Address::Socket(path) => command.env("TOOL_CLI_SOCKET", path),
        };
        command.envs(self.listener.map(|user| ("TOOL_CLI_LISTENER_UID", user.to_string())));
        command
    }

    /// Runs `tool-cli` to its end.
    #[track_caller]
    #[must_use]
    pub fn runs(&self, args: &[&str]) -> Ran {
        Running::start(&mut self.tool_cli(args)).ends()
    }
}

#[track_caller]
fn read_answer(wire: impl Read) -> Answer {
    let mut reader = BufReader::new(wire);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let count = reader.read_line(&mut head).unwrap_or_else(|error| panic!("no answer: {error}"));
        assert!(count > 0, "the connection ended after {head:?}");
    }
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{head:?}"));
    let mut answer = Answer { status, head, body: Vec::new() };
    if answer.header("transfer-encoding").is_some_and(|coding| coding == "chunked") {
        answer.body = read_chunks(&mut reader);
        return answer;
    }
    let length = answer.header("content-length").map_or(0, |text| text.parse().unwrap());
    answer.body = vec![0; length];
    reader.read_exact(&mut answer.body).unwrap();
    answer
}

fn read_chunks(reader: &mut impl BufRead) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        reader.read_line(&mut size).unwrap();
        let length = usize::from_str_radix(size.trim(), 16).unwrap_or_else(|error| panic!("{size:?}: {error}"));
        let mut chunk = vec![0; length + 2];
        reader.read_exact(&mut chunk).unwrap();
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&chunk[..length]);
    }
}
