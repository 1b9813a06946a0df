//! Many requests at once over few connections, each kept for the next request, without threads: whoever has them polls.
//!
//! A connection that its other side closed while nothing was under way is replaced. One that breaks under a request is
//! that request's error, and the call may have had its effect. Nothing is sent twice.

use std::{io, time::Instant};

use footbridge_proto::{rpc::Request, wire::MAX_REQUEST_BYTES};
use nix::poll::PollFd;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    client,
    error::ClientError,
    events::Event,
    exchange::{Exchange, Standing},
    http::{self, Ask},
    settings::ClientSettings,
};

/// Requests under way, and connections for more.
pub struct ManyRequests {
    settings: ClientSettings,
    most: usize,
    last_id: u64,
    under_way: Vec<Exchange<SentRequest>>,
    idle: Vec<Exchange<SentRequest>>,
}

/// A request under way.
struct SentRequest {
    number: usize,
    id: u64,
}

impl ManyRequests {
    /// With so many at a time.
    #[must_use]
    pub fn new(settings: ClientSettings, most: usize) -> Self {
        Self { settings, most: most.max(1), last_id: 0, under_way: Vec::new(), idle: Vec::new() }
    }

    /// Whether one more may be sent now.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.under_way.len() < self.most
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Sends a request; what happens comes out of [`Self::go_on`] with this number.
    ///
    /// # Errors
    /// [`ClientError`], with which nothing was sent.
    pub fn send(&mut self, number: usize, method: &str, params: &impl Serialize) -> Result<(), ClientError> {
        self.last_id += 1;
        let id = self.last_id;
        let body = serde_json::to_vec(&Request::new(id, method, params)).map_err(ClientError::Params)?;
        if body.len() > MAX_REQUEST_BYTES {
            return Err(ClientError::RequestTooLarge(body.len()));
        }
        let (host, token) = (self.settings.target.host_header(), self.settings.token.as_ref());
        let ask = Ask { host: &host, token, body: &body, waits: true, keeps: true };
        let (request, sent) = (http::request(&ask, true), SentRequest { number, id });
        self.idle.retain(Exchange::is_open);
        let exchange = match self.idle.pop() {
            Some(kept) => kept.again(sent, request),
            None => Exchange::begin(&self.settings, sent, request).map_err(|source| match source.kind() {
                io::ErrorKind::TimedOut => ClientError::TimedOut { after: self.settings.timeout, sent: false },
                _ => ClientError::Connect { target: self.settings.target.to_string(), source },
            })?,
        };
        self.under_way.push(exchange);
        Ok(())
    }

    /// What to wait for.
    pub fn polled(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.under_way.iter().map(Exchange::polled)
    }

    /// When the first request has been silent for too long.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.under_way.iter().map(|exchange| exchange.heard + self.settings.timeout).min()
    }

    /// Reads and writes what is possible now, and gives what came of the requests that are over, each with the number
    /// that it was sent with. What happens before that goes to `watch`.
    pub fn go_on(&mut self, watch: &mut dyn FnMut(&Event)) -> Vec<(usize, Result<Box<RawValue>, ClientError>)> {
        let (mut over, mut at) = (Vec::new(), 0);
        while let Some(exchange) = self.under_way.get_mut(at) {
            let mut body = None;
            let stands = exchange.go_on(&mut |kind, data| match kind {
                "" | "result" => body = Some(data),
                kind => {
                    if let Some(event) = Event::read(kind, &data) {
                        watch(&event);
                    }
                }
            });
            let is_late = exchange.heard.elapsed() >= self.settings.timeout;
            let result = match (stands, body) {
                (Ok(Standing::Going), None) if !is_late => {
                    at += 1;
                    continue;
                }
                (Ok(Standing::Going), None) => Err(ClientError::Silent { after: self.settings.timeout }),
                // What comes behind a result is not waited for.
                (Ok(_), Some(body)) => {
                    client::read_answer(exchange.arriving.status.unwrap_or_default(), body, exchange.purpose.id)
                }
                (Ok(Standing::Done), None) => {
                    client::read_answer(exchange.arriving.status.unwrap_or_default(), Vec::new(), exchange.purpose.id)
                }
                (Err(error), _) => {
                    Err(ClientError::Cut { target: self.settings.target.to_string(), why: error.to_string() })
                }
            };
            let exchange = self.under_way.remove(at);
            over.push((exchange.purpose.number, result));
            if exchange.is_reusable() {
                self.idle.push(exchange);
            }
        }
        over
    }
}
