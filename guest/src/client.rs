//! One request to the bridge, and its answer.
//!
//! Each request opens a connection of its own and closes it, which is also what cancels a call: a bridge drops the
//! call of a client that left. Ids count up from 1 and an answer must carry the id of its request. The client does
//! not call `getBridgeInfo` first: it would cost a second round trip each time, the answers of both generations are
//! read alike, and a server that is no bridge shows as such in its first answer.

use std::{path::PathBuf, time::Duration};

use footbridge_proto::{
    endpoint::{EndpointError, SocketPath},
    token::Token,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    error::ClientError,
    events::Event,
    http::Manner,
    input,
    request::{SentRequest, WrittenRequest},
    settings::{BridgeAddress, ClientSettings, SettingsError},
};

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
        mut watch: Option<&mut dyn FnMut(Event)>,
    ) -> Result<Box<RawValue>, ClientError> {
        self.last_id += 1;
        let manner = Manner { watches: watch.is_some(), waits: self.waits, keeps: false };
        let request = WrittenRequest::new(&self.settings, self.last_id, method, params, manner)?;
        let mut sent = SentRequest::begin(&self.settings, request)?;
        let mut tell = |event| {
            if let Some(watch) = &mut watch {
                watch(event);
            }
        };
        loop {
            if let Some(result) = sent.go_on(&self.settings, &mut tell) {
                return result;
            }
            let until = sent.deadline(&self.settings);
            input::wait(&mut [sent.polled()], Some(until)).map_err(|e| sent.failed(&self.settings, e.into()))?;
        }
    }

    /// When to ask again, where nothing was done and waiting helps; not where people have to answer first, and this does not
    /// wait for them.
    #[must_use]
    pub fn come_back(&self, error: &ClientError) -> Option<Duration> {
        error.come_back().filter(|_| self.waits || !error.waits_for_people())
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
