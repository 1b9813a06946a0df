//! What the harness knows a client by, and how its requests are written. It knows no connection.

use footbridge_proto::{rpc::notification, wire::TELLS_APPROVALS};
use serde::Deserialize;

use super::message::Message;
use crate::settings::ClientSettings;

/// The client's handshake, and what came of it.
#[derive(Debug)]
pub(super) struct HttpSession {
    path: String,
    /// The client's `initialize`, to be said again.
    handshake: Option<Vec<u8>>,
    id: Option<String>,
    version: Option<String>,
    /// It was known, and is not any more.
    is_lost: bool,
    /// Whether the client is done with its handshake, so that it may be told what changes.
    pub(super) listens: bool,
    /// That the handshake is done is still to be said.
    pub(super) is_to_be_said: bool,
}

/// What is read of the answer to `initialize`.
#[derive(Deserialize)]
struct Initialized {
    result: Negotiated,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Negotiated {
    protocol_version: String,
}

/// The path of an endpoint.
pub(super) fn path(server: Option<&str>, search: bool) -> String {
    let mut path = "/mcp".to_owned();
    if let Some(server) = server {
        path.push('/');
        for byte in server.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => path.push(char::from(byte)),
                other => path.push_str(&format!("%{other:02X}")),
            }
        }
    }
    if search {
        path.push_str("?mode=search");
    }
    path
}

impl HttpSession {
    /// None yet, with the endpoint of this path.
    pub(super) fn at(path: String) -> Self {
        let (handshake, id, version) = (None, None, None);
        Self { path, handshake, id, version, is_lost: false, listens: false, is_to_be_said: false }
    }

    /// Takes note of what the client says.
    pub(super) fn heard(&mut self, message: &Message) {
        if message.is("initialize") {
            let path = std::mem::take(&mut self.path);
            *self = Self { handshake: Some(message.line.clone()), ..Self::at(path) };
        } else if message.is("notifications/initialized") {
            self.listens = true;
        }
    }

    /// Takes note of the answer to the handshake.
    pub(super) fn begun(&mut self, id: Option<String>, answer: &[u8]) {
        let read = serde_json::from_slice::<Initialized>(answer).ok();
        self.version = read.map(|read| read.result.protocol_version);
        self.id = id;
        self.is_lost = false;
    }

    /// Whether a request showed the session that there is, or that there was until a moment ago.
    pub(super) fn is_shown_by(&self, message: &Message) -> bool {
        (self.id.is_some() || self.is_lost) && message.version.is_none() && !message.is("initialize")
    }

    /// The harness does not know it.
    pub(super) fn lost(&mut self) {
        if self.handshake.is_some() {
            (self.id, self.version, self.is_lost) = (None, None, true);
        }
    }

    /// The handshake, where it is to be said again.
    pub(super) fn to_repeat(&self) -> Option<Vec<u8>> {
        self.handshake.clone().filter(|_| self.is_lost)
    }

    /// What says that the handshake is done.
    pub(super) fn said(&self) -> Vec<u8> {
        notification("notifications/initialized", None).into_bytes()
    }

    /// Whether the harness would tell what changes.
    pub(super) fn may_listen(&self) -> bool {
        self.listens && self.id.is_some()
    }

    /// A message as a request.
    pub(super) fn request(&self, settings: &ClientSettings, message: &Message) -> Vec<u8> {
        let mut head = self.head(settings, "POST");
        if message.version.is_some() {
            head.push_str(&message.repeated());
        } else if !message.is("initialize") {
            head.push_str(&self.shown());
        }
        head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", message.line.len()));
        [head.as_bytes(), &message.line].concat()
    }

    /// The request for what changes.
    pub(super) fn listening(&self, settings: &ClientSettings) -> Vec<u8> {
        (self.head(settings, "GET") + &self.shown() + "\r\n").into_bytes()
    }

    fn head(&self, settings: &ClientSettings, method: &str) -> String {
        let mut head = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n\
             {TELLS_APPROVALS}: 1\r\n",
            self.path,
            settings.target.host_header()
        );
        if let Some(token) = &settings.token {
            head.push_str(&format!("Authorization: Bearer {}\r\n", token.expose()));
        }
        head
    }

    fn shown(&self) -> String {
        let shown = [("Mcp-Session-Id", &self.id), ("MCP-Protocol-Version", &self.version)];
        let lines = shown.iter().filter_map(|(name, value)| Some(format!("{name}: {}\r\n", value.as_ref()?)));
        lines.collect()
    }
}
