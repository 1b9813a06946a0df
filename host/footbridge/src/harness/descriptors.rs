//! What the descriptors of this process are for: sessions and connections are admitted against their part, and the rest
//! is there for the record, the store, servers and operators, whatever guests do.

use footbridge_core::limits::Limits;
use footbridge_mcp::{ServerSpec, TransportSpec};

/// The record, the store, the runtime, logs, and what is open for a moment.
const OWN: usize = 64;
/// Clients that are told that there is no place for them, and commands of operators.
const TOLD_AND_OPERATORS: usize = 64 + 128;
/// The pipes of a program, its keeper, and what starting it takes for a moment.
const STDIO_SERVER: usize = 16;
/// A program that runs for one call.
const PROGRAM: usize = 6;
/// Connections beside those of calls.
const HTTP_SERVER: usize = 8;
/// What watches a session's process; and a listener's socket and its folder.
const SESSION: usize = 1;
const LISTENER: usize = 2;

/// What a session has besides its connections.
pub(crate) fn of_session(listeners: usize) -> usize {
    SESSION + LISTENER * listeners
}

/// What is kept for everything but sessions and their connections.
fn reserved(servers: &[ServerSpec], limits: &Limits) -> usize {
    let of = |spec: &ServerSpec| match spec.transport {
        TransportSpec::Stdio(_) => STDIO_SERVER,
        TransportSpec::Cli(_) => STDIO_SERVER + PROGRAM * limits.calls.in_flight_per_server,
        TransportSpec::Lacking { .. } => 0,
        TransportSpec::Http(_) | TransportSpec::Sse(_) => HTTP_SERVER + limits.calls.in_flight_per_server,
    };
    OWN + TOLD_AND_OPERATORS + servers.iter().map(of).sum::<usize>()
}

/// How many of those for sessions and connections are for connections to services: one for two of guests.
pub(crate) fn for_services(descriptors: usize) -> usize {
    descriptors / 3
}

/// How many a harness needs with this many sessions, of one listener each.
pub(crate) fn needed(sessions: usize, servers: &[ServerSpec], limits: &Limits) -> usize {
    let of_sessions = sessions.saturating_mul(of_session(1) + limits.edge.connections_reserved);
    let of_guests = of_sessions.saturating_add(limits.edge.connections);
    reserved(servers, limits).saturating_add(of_guests).saturating_add(of_guests / 2)
}

/// How many of `limit` there are for sessions and connections; half of them at least, so that few are not none.
pub(crate) fn for_sessions(limit: usize, servers: &[ServerSpec], limits: &Limits) -> usize {
    limit.saturating_sub(reserved(servers, limits)).max(limit / 2)
}
