//! A client of HTTP/1.1 in the plain, over one connection that is kept: for benches, which ask much and read little.

use std::{
    io::{BufRead as _, BufReader, Error, ErrorKind, Read as _, Result, Write as _},
    net::TcpStream,
};

/// A connection that is kept.
#[derive(Debug)]
pub struct KeptConnection(BufReader<TcpStream>);

impl KeptConnection {
    /// To a port of 127.0.0.1.
    ///
    /// # Errors
    /// Where nobody listens.
    pub fn to(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a request as it is, and reads its answer: head and body, which has a length or chunks.
    ///
    /// # Errors
    /// Where it breaks off.
    pub fn asks(&mut self, request: &str) -> Result<(String, Vec<u8>)> {
        self.0.get_mut().write_all(request.as_bytes())?;
        let (mut head, mut length, mut chunked) = (String::new(), 0, false);
        while !head.ends_with("\r\n\r\n") {
            let before = head.len();
            if self.0.read_line(&mut head)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let line = head[before..].to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            chunked |= line.starts_with("transfer-encoding:") && line.contains("chunked");
        }
        let mut body = Vec::new();
        loop {
            if chunked {
                let mut size = String::new();
                self.0.read_line(&mut size)?;
                length = usize::from_str_radix(size.trim(), 16).map_err(Error::other)?;
            }
            let at = body.len();
            body.resize(at + length, 0);
            self.0.read_exact(&mut body[at..])?;
            if chunked {
                self.0.read_line(&mut String::new())?;
            }
            if !chunked || length == 0 {
                return Ok((head, body));
            }
        }
    }
}

/// A client of MCP over HTTP (its revision 2025-06-18), with a session where it is given one.
#[derive(Debug)]
pub struct HttpClient {
    connection: KeptConnection,
    head: String,
    /// The id of the last request.
    pub last: u64,
}

const CLIENT: &str =
    r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

impl HttpClient {
    /// One that has said nothing yet.
    ///
    /// # Errors
    /// Where nobody listens.
    pub fn connect(port: u16, path: &str, token: Option<&str>) -> Result<Self> {
        let token = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{token}"
        );
        Ok(Self { connection: KeptConnection::to(port)?, head, last: 0 })
    }

    /// One that has shaken hands.
    ///
    /// # Errors
    /// Where that fails.
    pub fn begin(port: u16, path: &str, token: Option<&str>) -> Result<Self> {
        let mut client = Self::connect(port, path, token)?;
        let (head, _) = client.posts(&client.request("initialize", CLIENT))?;
        let session = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
        });
        if let Some(session) = session {
            client.head.push_str(&format!("Mcp-Session-Id: {session}\r\n"));
        }
        client.head.push_str("Mcp-Protocol-Version: 2025-06-18\r\n");
        client.posts(INITIALIZED)?;
        Ok(client)
    }

    fn request(&self, method: &str, params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}"#, self.last)
    }

    /// Makes a request, and gives what it is answered with.
    ///
    /// # Errors
    /// Where it is not answered.
    pub fn asks(&mut self, method: &str, params: &str) -> Result<String> {
        self.last += 1;
        let body = self.request(method, params);
        self.posts(&body).map(|(_, answer)| answer)
    }

    /// Posts a message as it is, and gives head and body of what comes back.
    ///
    /// # Errors
    /// Where one is not taken.
    pub fn posts(&mut self, body: &str) -> Result<(String, String)> {
        let request = format!("{}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        let (head, answer) = self.connection.asks(&request)?;
        Ok((head, String::from_utf8_lossy(&answer).into_owned()))
    }
}
