//! Every limit in one place, each with its default and its reason.
//!
//! Times are durations, sizes are bytes.

use std::time::Duration;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// All limits of one harness.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Of the listeners and what comes in through them.
    pub edge: EdgeLimits,
    /// Of calls.
    pub calls: CallLimits,
    /// Of MCP servers and what they send.
    pub servers: ServerLimits,
    /// Of the record.
    pub audit: AuditLimits,
}

/// Limits on what a guest may send and hold.
#[derive(Debug, Clone)]
pub struct EdgeLimits {
    /// Request head: a client of the bridge needs a few hundred bytes.
    pub head_bytes: usize,
    /// Headers in a head.
    pub headers: usize,
    /// Request body.
    pub body_bytes: usize,
    /// From the first byte of a head to its end: a slow head holds a connection and nothing else.
    pub head_time: Duration,
    /// From the end of the head to the end of the body.
    pub body_time: Duration,
    /// An idle keep-alive connection; the relay's lifeline asks every 20 s.
    pub idle_time: Duration,
    /// How long an answer may wait for its reader before the connection is cut.
    pub write_time: Duration,
    /// Open connections of one session.
    pub connections_per_session: usize,
    /// Open connections in all.
    pub connections: usize,
    /// Bytes held for bodies, lines and results, in all.
    pub held_bytes: usize,
    /// Bytes of arguments parsed into values at a time: a value costs up to 35 times its text.
    pub parsed_bytes: usize,
    /// How long a wrong token waits for its answer.
    pub wrong_token_delay: Duration,
}

impl Default for EdgeLimits {
    fn default() -> Self {
        Self {
            head_bytes: 16 * KIB,
            headers: 64,
            body_bytes: footbridge_proto::wire::MAX_REQUEST_BYTES,
            head_time: Duration::from_secs(5),
            body_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(60),
            write_time: Duration::from_secs(30),
            connections_per_session: 64,
            connections: 1024,
            held_bytes: 32 * MIB,
            parsed_bytes: MIB,
            wrong_token_delay: Duration::from_millis(250),
        }
    }
}

/// Limits on calls.
#[derive(Debug, Clone)]
pub struct CallLimits {
    /// Calls in flight of one session.
    pub in_flight_per_session: usize,
    /// Calls in flight of one session on one server, so that a slow server does not take all of them.
    pub in_flight_per_session_and_server: usize,
    /// Calls in flight on one server.
    pub in_flight_per_server: usize,
    /// How long a call waits for its place before it is told `busy`.
    pub busy_after: Duration,
    /// Calls a second of one session, in the long run.
    pub per_second: u32,
    /// Calls of one session at once.
    pub burst: u32,
    /// A call without an answer or progress.
    pub idle_time: Duration,
    /// A call, whatever happens.
    pub total_time: Duration,
    /// Result that goes to the guest.
    pub result_bytes: usize,
    /// How long a call waits for a server that is still starting.
    pub server_wait: Duration,
    /// How long `listServers` waits for servers that are still starting.
    pub list_wait: Duration,
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
            idle_time: Duration::from_secs(60),
            total_time: Duration::from_secs(600),
            result_bytes: 16 * MIB,
            server_wait: Duration::from_secs(10),
            list_wait: Duration::from_secs(2),
        }
    }
}

/// Limits on MCP servers.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// From start to the answer of the first request.
    pub start_time: Duration,
    /// A listing's page.
    pub list_time: Duration,
    /// Connecting to an HTTP server.
    pub connect_time: Duration,
    /// One line of standard output, or one event over HTTP.
    pub line_bytes: usize,
    /// What is kept of standard error.
    pub stderr_bytes: usize,
    /// Tools, resources or templates of one server.
    pub entries: usize,
    /// Pages of one listing.
    pub pages: usize,
    /// All entries of one server together, as text.
    pub catalogue_bytes: usize,
    /// A description; longer ones are cut and say so.
    pub description_bytes: usize,
    /// A schema; a tool with a larger one is left out.
    pub schema_bytes: usize,
    /// Starts within [`Self::restart_window`] before the server is left alone for [`Self::breaker_time`].
    pub restarts: usize,
    /// See [`Self::restarts`].
    pub restart_window: Duration,
    /// See [`Self::restarts`].
    pub breaker_time: Duration,
    /// The pause before the first restart; it doubles with each.
    pub first_pause: Duration,
    /// From closing standard input to the end by force.
    pub close_time: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            start_time: Duration::from_secs(60),
            list_time: Duration::from_secs(30),
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
            close_time: Duration::from_secs(2),
        }
    }
}

/// Limits on the record.
#[derive(Debug, Clone)]
pub struct AuditLimits {
    /// How long a call waits for its intent to be durable.
    pub intent_time: Duration,
    /// Records that wait for the writer; beyond it callers wait.
    pub queue: usize,
    /// Room reserved on disk for the outcome of each call that was let go, bytes.
    pub outcome_reserve: usize,
}

impl Default for AuditLimits {
    fn default() -> Self {
        Self { intent_time: Duration::from_secs(2), queue: 1024, outcome_reserve: 4 * KIB }
    }
}
