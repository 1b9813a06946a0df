//! A request to the bridge: how it is written, and what comes of it, in the same words for one alone and for one of many.

use std::time::Instant;

use footbridge_proto::{rpc::Request, wire::MOST_REQUEST_BYTES};
use nix::poll::PollFd;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    error::ClientError,
    events::{AwaitedApproval, Event},
    exchange::{Exchange, Standing},
    http::{self, Ask, HttpError, Manner},
    response::read_answer,
    settings::ClientSettings,
};

/// A request as it goes out.
pub(crate) struct WrittenRequest {
    id: u64,
    bytes: Vec<u8>,
}

impl WrittenRequest {
    /// With an error there is nothing to send.
    pub(crate) fn new(
        settings: &ClientSettings,
        id: u64,
        method: &str,
        params: &impl Serialize,
        manner: Manner,
    ) -> Result<Self, ClientError> {
        let body = serde_json::to_vec(&Request::new(id, method, params)).map_err(ClientError::Params)?;
        if body.len() > MOST_REQUEST_BYTES {
            return Err(ClientError::RequestTooLarge(body.len()));
        }
        let host = settings.target.host_header();
        let ask = Ask { host: &host, token: settings.token.as_ref(), body: &body, manner };
        Ok(Self { id, bytes: http::request(&ask) })
    }
}

/// A request under way, known by its id.
pub(crate) struct SentRequest {
    exchange: Exchange<u64>,
    awaited: AwaitedApproval,
}

impl SentRequest {
    /// On a connection of its own. With an error nothing was sent.
    pub(crate) fn begin(settings: &ClientSettings, request: WrittenRequest) -> Result<Self, ClientError> {
        let exchange = Exchange::begin(settings, request.id, request.bytes)?;
        Ok(Self { exchange, awaited: AwaitedApproval::default() })
    }

    /// On the connection of one that is over.
    pub(crate) fn again(self, request: WrittenRequest) -> Self {
        let exchange = self.exchange.again(request.id, request.bytes);
        Self { exchange, awaited: AwaitedApproval::default() }
    }

    /// Whether its connection may carry another one.
    pub(crate) fn is_reusable(&self) -> bool {
        self.exchange.is_reusable()
    }

    /// Whether the other side has left its connection open.
    pub(crate) fn is_open(&self) -> bool {
        self.exchange.is_open()
    }

    /// What it waits for.
    pub(crate) fn polled(&self) -> PollFd<'_> {
        self.exchange.polled()
    }

    /// When its time is up.
    pub(crate) fn deadline(&self, settings: &ClientSettings) -> Instant {
        self.exchange.deadline(settings)
    }

    /// What is said of it where it cannot go on.
    pub(crate) fn failed(&self, settings: &ClientSettings, error: HttpError) -> ClientError {
        self.exchange.failed(settings, error)
    }

    /// Reads and writes what is possible now, and gives what came of it once it is over. What happens before that goes to
    /// `watch`; what comes behind the result is not waited for.
    pub(crate) fn go_on(
        &mut self,
        settings: &ClientSettings,
        watch: &mut dyn FnMut(Event),
    ) -> Option<Result<Box<RawValue>, ClientError>> {
        let Self { exchange, awaited } = self;
        let mut body = None;
        let stands = exchange.go_on(&mut |kind, data| match kind {
            _ if body.is_some() => {}
            None | Some("result") => body = Some(data),
            Some(kind) => {
                if let Some(event) = Event::read(kind, &data) {
                    awaited.hears(&event);
                    watch(event);
                }
            }
        });
        let (status, id) = (exchange.arriving.status.unwrap_or_default(), exchange.purpose);
        match (stands, body) {
            (_, Some(body)) => Some(read_answer(status, &body, id)),
            (Ok(Standing::Going), None) if Instant::now() < exchange.deadline(settings) => None,
            (Ok(Standing::Going), None) => Some(Err(awaited.or_late(exchange.late(settings)))),
            (Ok(Standing::Done), None) if exchange.arriving.is_stream() => {
                Some(Err(exchange.failed(settings, HttpError::Cut)))
            }
            (Ok(Standing::Done), None) => Some(read_answer(status, &[], id)),
            (Err(error), None) => Some(Err(exchange.failed(settings, error))),
        }
    }
}
