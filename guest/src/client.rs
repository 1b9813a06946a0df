//! One request to the bridge, and its answer.
//!
//! Each request opens a connection of its own and closes it, which is also what cancels a call: a bridge drops the
//! call of a client that left. Ids count up from 1 and an answer must carry the id of its request. The client does
//! not call `getBridgeInfo` first: it would cost a second round trip each time, the answers of both generations are
//! read alike, and a server that is no bridge shows as such in its first answer.

use std::{io, path::PathBuf, time::Duration};

use footbridge_proto::{
    endpoint::{EndpointError, SocketPath},
    rpc::{Request, Response},
    text::Escaped,
    token::Token,
    wire::MAX_REQUEST_BYTES,
};
use serde::{
    Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::value::RawValue;

use crate::{
    error::ClientError,
    events::Event,
    http::{self, HttpError},
    settings::{BridgeAddress, ClientSettings, SettingsError},
    wire::Wire,
};

/// Longest part of a body that an error quotes.
const QUOTED_BYTES: usize = 4096;
/// The same of one that no bridge writes.
const QUOTED_CHARACTERS: usize = 80;

/// A client of one bridge. What it can ask for by name is in `methods`.
#[derive(Debug, Clone)]
pub struct Client {
    settings: ClientSettings,
    last_id: u64,
    waits: bool,
}

impl Client {
    /// A client with these settings.
    #[must_use]
    pub fn new(settings: ClientSettings) -> Self {
        Self { settings, last_id: 0, waits: true }
    }

    /// A client with the settings of the environment.
    ///
    /// # Errors
    /// [`SettingsError`], naming the variable.
    pub fn from_env() -> Result<Self, SettingsError> {
        ClientSettings::from_env().map(Self::new)
    }

    /// A client of the bridge on a Unix socket, with the default timeout.
    ///
    /// # Errors
    /// [`EndpointError`] when the path is not absolute or too long.
    pub fn unix(path: impl Into<PathBuf>, token: Token) -> Result<Self, EndpointError> {
        Ok(Self::new(ClientSettings::of(BridgeAddress::Unix(SocketPath::new(path)?), token)))
    }

    /// A client of the bridge on a TCP port, with the default timeout. The host is an address or a name.
    ///
    /// # Errors
    /// [`SettingsError::Host`] when it can be neither.
    pub fn tcp(host: &str, port: u16, token: Token) -> Result<Self, SettingsError> {
        Ok(Self::new(ClientSettings::of(BridgeAddress::tcp(host, port)?, token)))
    }

    /// The same, with another limit on the time that one request may take; for one that is watched, on how long
    /// nothing at all may be heard.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// The same, but where a person has to be asked first, the bridge answers so at once instead of waiting.
    #[must_use]
    pub fn without_waiting(mut self) -> Self {
        self.waits = false;
        self
    }

    /// What it was made with.
    #[must_use]
    pub fn settings(&self) -> &ClientSettings {
        &self.settings
    }

    /// Sends one request and gives the result as its text.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn request(&mut self, method: &str, params: &impl Serialize) -> Result<Box<RawValue>, ClientError> {
        self.send(method, params, None)
    }

    /// Sends one request and gives the result as its text. What happens before it goes to `watch`, if the bridge can
    /// tell; every sign of life from it puts the timeout off.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn request_watched(
        &mut self,
        method: &str,
        params: &impl Serialize,
        watch: &mut dyn FnMut(Event),
    ) -> Result<Box<RawValue>, ClientError> {
        self.send(method, params, Some(watch))
    }

    fn send(
        &mut self,
        method: &str,
        params: &impl Serialize,
        watch: Option<&mut dyn FnMut(Event)>,
    ) -> Result<Box<RawValue>, ClientError> {
        self.last_id += 1;
        let body = serde_json::to_vec(&Request::new(self.last_id, method, params)).map_err(ClientError::Params)?;
        if body.len() > MAX_REQUEST_BYTES {
            return Err(ClientError::RequestTooLarge(body.len()));
        }
        let http::Answer { status, body } = self.exchange(&body, watch)?;
        read_answer(status, body, self.last_id)
    }

    /// Sends one request and reads the result as a `T`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn request_as<T: DeserializeOwned>(
        &mut self,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<T, ClientError> {
        let raw = self.request(method, params)?;
        parse_result(method, &raw)
    }

    fn exchange(&self, body: &[u8], watch: Option<&mut dyn FnMut(Event)>) -> Result<http::Answer, ClientError> {
        let ClientSettings { target, token, timeout, listener_uid, .. } = &self.settings;
        let mut wire = Wire::connect(target, *timeout).map_err(|source| match source.kind() {
            io::ErrorKind::TimedOut => ClientError::TimedOut { after: *timeout, sent: false },
            _ => ClientError::Connect { target: target.to_string(), source },
        })?;
        let stranger = wire.stranger().filter(|uid| token.is_some() && Some(*uid) != *listener_uid);
        if let Some(uid) = stranger {
            return Err(ClientError::Stranger { target: target.to_string(), uid });
        }
        let ask =
            http::Ask { host: &target.host_header(), token: token.as_ref(), body, waits: self.waits, keeps: false };
        http::post(&mut wire, &ask, watch).map_err(|error| match error {
            HttpError::Io(e) if e.kind() == io::ErrorKind::TimedOut => {
                if wire.measures_silence() {
                    ClientError::Silent { after: *timeout }
                } else {
                    ClientError::TimedOut { after: *timeout, sent: true }
                }
            }
            HttpError::Io(e) => ClientError::Cut { target: target.to_string(), why: e.to_string() },
            HttpError::Cut => ClientError::Cut { target: target.to_string(), why: "it closed".to_owned() },
            HttpError::TooLarge => ClientError::AnswerTooLarge(http::MAX_ANSWER_BYTES),
            HttpError::Malformed(why) => ClientError::NotBridge(why.to_owned()),
        })
    }
}

/// Parameters of `callTool`, with the arguments as they were written.
#[derive(Debug, Serialize)]
pub struct CallParams<'a> {
    /// The server.
    pub server: &'a str,
    /// Its tool.
    pub tool: &'a str,
    /// A JSON object.
    pub arguments: &'a RawValue,
}

/// Reads the result of a method as a `T`.
///
/// # Errors
/// [`ClientError::Shape`] when it is something else.
pub fn parse_result<T: DeserializeOwned>(method: &'static str, raw: &RawValue) -> Result<T, ClientError> {
    serde_json::from_str(raw.get()).map_err(|source| ClientError::Shape { method, source })
}

/// Reads an answer to the request of this id.
pub(crate) fn read_answer(status: u16, body: Vec<u8>, id: u64) -> Result<Box<RawValue>, ClientError> {
    match status {
        200 => read_response(&body, id),
        _ => Err(refused(&http::Answer { status, body })),
    }
}

fn refused(answer: &http::Answer) -> ClientError {
    if answer.status == 401 {
        return ClientError::Unauthorized;
    }
    let response: Option<Response> = serde_json::from_slice(&answer.body).ok();
    let error = response.and_then(|response| response.error).map(Box::new);
    let says = error.as_ref().map_or_else(|| quote(&answer.body), |error| error.message.clone());
    ClientError::Status { status: answer.status, says, is_foreign: is_foreign(&answer.body), error }
}

/// Whether no bridge writes this: its bodies are JSON, or empty.
fn is_foreign(body: &[u8]) -> bool {
    !body.is_empty() && serde_json::from_slice::<IgnoredAny>(body).is_err()
}

/// What a body says: the `error` of a short JSON error, or its text, of which little is shown where it is no JSON.
fn quote(body: &[u8]) -> String {
    let object: Option<serde_json::Map<String, serde_json::Value>> = serde_json::from_slice(body).ok();
    if let Some(text) = object.as_ref().and_then(|o| o.get("error").or(o.get("message"))).and_then(|v| v.as_str()) {
        return text.to_owned();
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(QUOTED_BYTES)]);
    if is_foreign(body) {
        let text = text.trim();
        let shown: String = text.chars().take(QUOTED_CHARACTERS).collect();
        return format!("{}{}", Escaped(&shown), if shown.len() < text.len() { "..." } else { "" });
    }
    match body.len() {
        0 => "an empty body".to_owned(),
        length if length > QUOTED_BYTES => format!("{} ({length} bytes in all)", text.trim()),
        _ => text.trim().to_owned(),
    }
}

fn read_response(body: &[u8], id: u64) -> Result<Box<RawValue>, ClientError> {
    let response: Response = serde_json::from_slice(body)
        .map_err(|e| ClientError::NotBridge(format!("its answer is no JSON-RPC response, {e}: {}", quote(body))))?;
    if !response.has_version() {
        return Err(ClientError::NotBridge(format!("its answer is of JSON-RPC {:?}", response.jsonrpc)));
    }
    // A bridge that could not read the request cannot know its id.
    let echoed = response.id.as_ref().map_or("null", |raw| raw.get());
    if echoed != id.to_string() && !(echoed == "null" && response.error.is_some()) {
        return Err(ClientError::WrongId { sent: id, got: echoed.to_owned() });
    }
    match (response.result, response.error) {
        (_, Some(error)) => Err(ClientError::Refused(Box::new(error))),
        (Some(result), None) => Ok(result),
        (None, None) => Err(ClientError::NotBridge("its answer holds neither a result nor an error".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_must_carry_the_id_of_its_request() {
        assert_eq!(read_response(br#"{"jsonrpc":"2.0","result":7,"id":3}"#, 3).unwrap().get(), "7");
        for other in ["4", "\"3\"", "null", "3.0"] {
            let body = format!(r#"{{"jsonrpc":"2.0","result":7,"id":{other}}}"#);
            assert!(matches!(read_response(body.as_bytes(), 3), Err(ClientError::WrongId { .. })), "{other}");
        }
    }

    #[test]
    fn an_error_without_an_id_is_still_the_error() {
        let body = br#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}"#;
        assert!(matches!(read_response(body, 1), Err(ClientError::Refused(e)) if e.code == -32700));
    }

    #[test]
    fn what_is_no_response_is_named_with_what_it_says() {
        for body in ["<html>hello", "{}", r#"{"jsonrpc":"1.0","result":1,"id":1}"#, r#"{"jsonrpc":"2.0","id":1}"#] {
            let error = read_response(body.as_bytes(), 1).unwrap_err();
            assert!(matches!(error, ClientError::NotBridge(_)), "{error}");
        }
        let error = read_response(b"<html>hello", 1).unwrap_err().to_string();
        assert!(error.contains("<html>hello"), "{error}");
    }

    #[test]
    fn a_status_is_told_with_its_body_and_the_next_step() {
        let answer = |status, body: &str| http::Answer { status, body: body.into() };
        assert!(matches!(refused(&answer(401, "{\"error\":\"Unauthorized\"}")), ClientError::Unauthorized));
        let text = refused(&answer(403, "{\"error\":\"Host not allowed\"}")).to_string();
        assert!(text.starts_with("the bridge answered HTTP 403: Host not allowed. It refuses"), "{text}");
        let rpc = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Request too large"},"id":null}"#;
        assert!(refused(&answer(413, rpc)).to_string().contains("Request too large"), "{rpc}");
    }

    #[test]
    fn another_server_s_page_is_said_to_be_no_bridge_s_and_not_shown_whole() {
        let page = format!("<!DOCTYPE HTML>\n{}", "x".repeat(10_000));
        let text = refused(&http::Answer { status: 501, body: page.clone().into() }).to_string();
        assert!(text.starts_with(
            "what listens there is no Footbridge bridge: it answered HTTP 501 with \"<!DOCTYPE HTML>\\nxx"
        ));
        assert!(text.contains("xxx...\". Check TOOL_CLI_PORT") && text.len() < 250, "{text}");
        let text = read_response(page.as_bytes(), 1).unwrap_err().to_string();
        assert!(text.len() < 300, "{text}");
    }
}
