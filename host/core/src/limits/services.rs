//! Limits on requests to services, each with its default and its reason.

use std::time::Duration;

use serde::Deserialize;

use super::{KIB, MIB};
use crate::human::{duration, size};

/// Limits on requests to services.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceLimits {
    /// Body of a request: the largest that model APIs take.
    #[serde(deserialize_with = "size")]
    pub request_bytes: usize,
    /// Body of a request that a person is asked about: it is held meanwhile, and shown.
    #[serde(deserialize_with = "size")]
    pub asked_bytes: usize,
    /// Connecting to an origin, its name's resolution and TLS included.
    #[serde(deserialize_with = "duration")]
    pub connect_time: Duration,
    /// Silence in either direction: models think.
    #[serde(deserialize_with = "duration")]
    pub silence_time: Duration,
    /// A request with its answer, whatever happens.
    #[serde(deserialize_with = "duration")]
    pub total_time: Duration,
    /// Requests in flight of one session.
    pub in_flight: usize,
    /// Tunnels of one session at once: clients keep them open while nothing passes.
    pub tunnels: usize,
    /// Requests a second of one session, in the long run.
    pub per_second: u32,
    /// Requests of one session at once.
    pub burst: u32,
    /// Head of an answer, and each of those that come before the final one.
    #[serde(deserialize_with = "size")]
    pub answer_head_bytes: usize,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        Self {
            request_bytes: 32 * MIB,
            asked_bytes: MIB,
            connect_time: Duration::from_secs(10),
            silence_time: Duration::from_secs(300),
            total_time: Duration::from_secs(3600),
            in_flight: 32,
            tunnels: 64,
            per_second: 50,
            burst: 200,
            answer_head_bytes: 64 * KIB,
        }
    }
}

/// What one session may use of services over its whole life. 0 is no budget.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetLimits {
    /// Requests and tunnels.
    pub requests: usize,
    /// Tokens of models, in and out, as their answers say.
    pub tokens: usize,
    /// Bytes of bodies of services, both ways.
    #[serde(deserialize_with = "size")]
    pub service_bytes: usize,
    /// Bytes through tunnels and of plain requests to a proxy, both ways.
    #[serde(deserialize_with = "size")]
    pub tunnel_bytes: usize,
}
