//! Every limit in one place, each with its default and its reason.
//!
//! Times are durations, sizes are bytes. `table` has their names and bounds, `overrides` what one session has instead.

pub mod overrides;
mod services;
pub mod table;

use std::time::Duration;

use footbridge_proto::json::{MAX_ARGUMENT_DEPTH, MAX_BODY_DEPTH};
use serde::Deserialize;
pub use services::{BudgetLimits, ServiceLimits};

use crate::human::{duration, size};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The largest result that a session may have, whatever its limits say.
pub const MAX_RESULT_BYTES: usize = 256 * MIB;

/// All limits of one harness.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Of the listeners and what comes in through them.
    pub edge: EdgeLimits,
    /// Of calls.
    pub calls: CallLimits,
    /// Of requests to services.
    pub services: ServiceLimits,
    /// What one session may use of services over its whole life.
    pub budget: BudgetLimits,
    /// Of MCP servers and what they send.
    pub servers: ServerLimits,
    /// Of the record.
    pub audit: AuditLimits,
    /// Of approvals.
    pub approval: ApprovalLimits,
}

/// Limits on what a guest may send and hold.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EdgeLimits {
    /// Request head: a client of the bridge needs a few hundred bytes.
    #[serde(deserialize_with = "size")]
    pub head_bytes: usize,
    /// Headers in a head.
    pub headers: usize,
    /// Request body.
    #[serde(deserialize_with = "size")]
    pub body_bytes: usize,
    /// Deepest nesting of a body.
    pub body_depth: usize,
    /// From the first byte of a head to its end: a slow head holds a connection and nothing else.
    #[serde(deserialize_with = "duration")]
    pub head_time: Duration,
    /// From the end of the head to the end of the body.
    #[serde(deserialize_with = "duration")]
    pub body_time: Duration,
    /// Bytes a second that are read of the bodies of one session, in the long run; what is beyond waits where it is.
    #[serde(deserialize_with = "size")]
    pub body_rate: usize,
    /// An idle keep-alive connection; the relay's lifeline asks every 20 s.
    #[serde(deserialize_with = "duration")]
    pub idle_time: Duration,
    /// How long an answer may wait for its reader before the connection is cut.
    #[serde(deserialize_with = "duration")]
    pub write_time: Duration,
    /// How long an answer may take in all to be read: its bytes are held meanwhile.
    #[serde(deserialize_with = "duration")]
    pub answer_time: Duration,
    /// A stream of events that has nothing to say says that it lives: hops on the way end what is idle.
    #[serde(deserialize_with = "duration")]
    pub heartbeat_time: Duration,
    /// Open connections of one session.
    pub connections_per_session: usize,
    /// Open connections in all.
    pub connections: usize,
    /// Of these, how many each session always has, whatever the others do.
    pub connections_reserved: usize,
    /// Bytes held for bodies, lines and results, in all.
    #[serde(deserialize_with = "size")]
    pub held_bytes: usize,
    /// Bytes of arguments parsed into values at a time, which then may take 36 times as much; what takes more counts more.
    #[serde(deserialize_with = "size")]
    pub parsed_bytes: usize,
    /// How long a wrong token waits for its answer.
    #[serde(deserialize_with = "duration")]
    pub wrong_token_delay: Duration,
}

impl Default for EdgeLimits {
    fn default() -> Self {
        Self {
            head_bytes: 16 * KIB,
            headers: 64,
            body_bytes: footbridge_proto::wire::MAX_REQUEST_BYTES,
            body_depth: MAX_BODY_DEPTH,
            head_time: Duration::from_secs(5),
            body_time: Duration::from_secs(10),
            body_rate: 8 * MIB,
            idle_time: Duration::from_secs(60),
            write_time: Duration::from_secs(30),
            answer_time: Duration::from_secs(120),
            heartbeat_time: Duration::from_secs(15),
            connections_per_session: 128,
            connections: 1024,
            connections_reserved: 4,
            held_bytes: 32 * MIB,
            parsed_bytes: MIB,
            wrong_token_delay: Duration::from_millis(250),
        }
    }
}

/// Limits on calls.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallLimits {
    /// Calls in flight of one session.
    pub in_flight_per_session: usize,
    /// Calls in flight of one session on one server, so that a slow server does not take all of them.
    pub in_flight_per_session_and_server: usize,
    /// Calls in flight on one server.
    pub in_flight_per_server: usize,
    /// How long a call waits for its place before it is told `busy`.
    #[serde(deserialize_with = "duration")]
    pub busy_after: Duration,
    /// Calls a second of one session, in the long run.
    pub per_second: u32,
    /// Calls of one session at once.
    pub burst: u32,
    /// Listings a second of one session, in the long run: they touch no server and leave no record.
    pub listings_per_second: u32,
    /// Listings of one session at once.
    pub listing_burst: u32,
    /// Deepest nesting of the arguments of a call.
    pub argument_depth: usize,
    /// A call without an answer or progress.
    #[serde(deserialize_with = "duration")]
    pub idle_time: Duration,
    /// A call, whatever happens.
    #[serde(deserialize_with = "duration")]
    pub total_time: Duration,
    /// Result that goes to the guest.
    #[serde(deserialize_with = "size")]
    pub result_bytes: usize,
    /// How long a call waits for a server that is still starting.
    #[serde(deserialize_with = "duration")]
    pub server_wait: Duration,
    /// How long `listServers` waits for servers that are still starting.
    #[serde(deserialize_with = "duration")]
    pub list_wait: Duration,
    /// How long calls may still run when the harness ends.
    #[serde(deserialize_with = "duration")]
    pub drain_time: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            in_flight_per_session: 32,
            in_flight_per_session_and_server: 4,
            in_flight_per_server: 32,
            busy_after: Duration::from_secs(1),
            per_second: 20,
            burst: 100,
            listings_per_second: 100,
            listing_burst: 500,
            argument_depth: MAX_ARGUMENT_DEPTH,
            idle_time: Duration::from_secs(60),
            total_time: Duration::from_secs(600),
            result_bytes: 16 * MIB,
            server_wait: Duration::from_secs(10),
            list_wait: Duration::from_secs(2),
            drain_time: Duration::from_secs(2),
        }
    }
}

/// Limits on MCP servers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerLimits {
    /// From start to the answer of the first request.
    #[serde(deserialize_with = "duration")]
    pub start_time: Duration,
    /// A listing's page.
    #[serde(deserialize_with = "duration")]
    pub list_time: Duration,
    /// How old a listing gets before a use has it made again, where the server cannot say that it changed.
    #[serde(deserialize_with = "duration")]
    pub list_age: Duration,
    /// Connecting to an HTTP server.
    #[serde(deserialize_with = "duration")]
    pub connect_time: Duration,
    /// One line of standard output, or one event over HTTP.
    #[serde(deserialize_with = "size")]
    pub line_bytes: usize,
    /// What is kept of standard error.
    #[serde(deserialize_with = "size")]
    pub stderr_bytes: usize,
    /// Tools, resources, templates or prompts of one server.
    pub entries: usize,
    /// Pages of one listing.
    pub pages: usize,
    /// All entries of one server together, as text.
    #[serde(deserialize_with = "size")]
    pub catalogue_bytes: usize,
    /// A description; longer ones are cut and say so.
    #[serde(deserialize_with = "size")]
    pub description_bytes: usize,
    /// A schema; a tool with a larger one is left out.
    #[serde(deserialize_with = "size")]
    pub schema_bytes: usize,
    /// Starts within [`Self::restart_window`] before the server is left alone for [`Self::breaker_time`].
    pub restarts: usize,
    /// See [`Self::restarts`].
    #[serde(deserialize_with = "duration")]
    pub restart_window: Duration,
    /// See [`Self::restarts`].
    #[serde(deserialize_with = "duration")]
    pub breaker_time: Duration,
    /// The pause before the first restart; it doubles with each.
    #[serde(deserialize_with = "duration")]
    pub first_pause: Duration,
    /// From closing standard input to being asked to end (SIGTERM); at most half of `close_time`.
    #[serde(deserialize_with = "duration")]
    pub leave_time: Duration,
    /// From closing standard input to the end by force.
    #[serde(deserialize_with = "duration")]
    pub close_time: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            start_time: Duration::from_secs(60),
            list_time: Duration::from_secs(30),
            list_age: Duration::from_secs(60),
            connect_time: Duration::from_secs(10),
            line_bytes: 16 * MIB,
            stderr_bytes: MIB,
            entries: 2_000,
            pages: 64,
            catalogue_bytes: 8 * MIB,
            description_bytes: 16 * KIB,
            schema_bytes: 256 * KIB,
            restarts: 5,
            restart_window: Duration::from_secs(60),
            breaker_time: Duration::from_secs(60),
            first_pause: Duration::from_millis(100),
            leave_time: Duration::from_secs(1),
            close_time: Duration::from_secs(2),
        }
    }
}

/// Limits on the record.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditLimits {
    /// How long a call waits for its intent to be durable.
    #[serde(deserialize_with = "duration")]
    pub intent_time: Duration,
    /// Records that wait for the writer; beyond it callers wait.
    pub queue: usize,
    /// Room reserved on disk for the outcome of each call that was let go, bytes.
    #[serde(deserialize_with = "size")]
    pub outcome_reserve: usize,
}

impl Default for AuditLimits {
    fn default() -> Self {
        Self { intent_time: Duration::from_secs(2), queue: 1024, outcome_reserve: 4 * KIB }
    }
}

/// Limits on approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalLimits {
    /// Pending ones of one session: more is a flood that nobody reads.
    pub pending_per_session: usize,
    /// How long one waits for an answer; then it is expired, and the call is refused.
    #[serde(deserialize_with = "duration")]
    pub pending_time: Duration,
    /// How long a grant waits for its call.
    #[serde(deserialize_with = "duration")]
    pub grant_time: Duration,
    /// How long the same call is refused unasked after somebody denied it.
    #[serde(deserialize_with = "duration")]
    pub denial_time: Duration,
    /// When a call that waits for a person is answered `approval_required`: before clients give up, 30 s for most.
    #[serde(deserialize_with = "duration")]
    pub answer_after: Duration,
    /// How long the operator's command may take to answer.
    #[serde(deserialize_with = "duration")]
    pub command_time: Duration,
}

impl Default for ApprovalLimits {
    fn default() -> Self {
        Self {
            pending_per_session: 10,
            pending_time: Duration::from_secs(300),
            grant_time: Duration::from_secs(60),
            denial_time: Duration::from_secs(60),
            answer_after: Duration::from_secs(20),
            command_time: Duration::from_secs(60),
        }
    }
}

#[cfg(test)]
mod tests;
