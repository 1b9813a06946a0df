//! Many requests at once over few connections, each kept for the next request, without threads: whoever has them polls.
//!
//! A connection that its other side closed while nothing was under way is replaced. One that breaks under a request is
//! that request's error, and the call may have had its effect. Nothing is sent twice.

use std::time::Instant;

use nix::poll::PollFd;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    error::ClientError,
    events::Event,
    http::Manner,
    request::{SentRequest, WrittenRequest},
    settings::ClientSettings,
};

/// Requests under way, and connections for more.
pub struct ManyRequests {
    settings: ClientSettings,
    most: usize,
    last_id: u64,
    under_way: Vec<NumberedRequest>,
    idle: Vec<SentRequest>,
}

/// A request under way.
struct NumberedRequest {
    number: usize,
    sent: SentRequest,
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
        let manner = Manner { watches: true, waits: true, keeps: true };
        let request = WrittenRequest::new(&self.settings, self.last_id, method, params, manner)?;
        self.idle.retain(SentRequest::is_open);
        let sent = match self.idle.pop() {
            Some(kept) => kept.again(request),
            None => SentRequest::begin(&self.settings, request)?,
        };
        self.under_way.push(NumberedRequest { number, sent });
        Ok(())
    }

    /// What to wait for.
    pub fn polled(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.under_way.iter().map(|request| request.sent.polled())
    }

    /// When the time of the first request is up.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.under_way.iter().map(|request| request.sent.deadline(&self.settings)).min()
    }

    /// Reads and writes what is possible now, and gives what came of the requests that are over, each with the number
    /// that it was sent with. What happens before that goes to `watch`.
    pub fn go_on(&mut self, watch: &mut dyn FnMut(Event)) -> Vec<(usize, Result<Box<RawValue>, ClientError>)> {
        let (mut over, mut at) = (Vec::new(), 0);
        while let Some(request) = self.under_way.get_mut(at) {
            let Some(result) = request.sent.go_on(&self.settings, watch) else {
                at += 1;
                continue;
            };
            let NumberedRequest { number, sent } = self.under_way.remove(at);
            over.push((number, result));
            if sent.is_reusable() {
                self.idle.push(sent);
            }
        }
        over
    }
}
