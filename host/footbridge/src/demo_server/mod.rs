//! `footbridge demo-server`: a small stdio MCP server for the demo, for tests and for a first try.
//!
//! It offers made-up weather, the time, notes that live as long as the process, a slow tool with progress and a
//! destructive one. It needs no network, no files and no credentials, and knows nothing of the rest of Footbridge.
//!
//! The protocol is rmcp's: it reads and writes lines, and runs each request in a task. Failure paths: a line that is
//! no message is passed over or answered with an error, and the next one is read; the end of the input, or a reader
//! that went away, stops what still counts and ends the server.

mod arguments;
mod clock;
mod notes;
mod notify;
mod resources;
mod server;
mod slow;
mod tools;
mod transport;
mod weather;

use rmcp::service::serve_directly;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinError,
};
use tokio_util::sync::CancellationToken;

pub(crate) use clock::{Clock, SystemClock};
use server::Server;
use transport::Lines;

/// Serves MCP over a pair of streams, one JSON-RPC message a line, until the input ends or nobody reads the output any
/// more. Without a handshake, too: what it says is the same in every revision. On a runtime of one thread, requests
/// begin in the order in which they came.
///
/// # Errors
/// When the task that serves panics.
pub(crate) async fn run<R, W, C>(input: R, output: W, clock: C) -> Result<(), JoinError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
    C: Clock + Send + Sync + 'static,
{
    let over = CancellationToken::new();
    let server = Server::new(clock, over.clone());
    serve_directly(server, Lines::new(input, output, over), None).waiting().await.map(drop)
}

#[cfg(test)]
mod tests;
