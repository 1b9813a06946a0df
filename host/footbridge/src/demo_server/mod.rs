//! `footbridge demo-server`: a small stdio MCP server for the demo, for tests and for a first try.
//!
//! It offers made-up weather, the time, notes that live as long as the process, a slow tool with progress and a
//! destructive one. It needs no network, no files and no credentials, and knows nothing of the rest of Footbridge.
//!
//! One thread reads lines and answers them in order. Only `count_slowly` gets a thread of its own, so that it can be
//! cancelled while it counts. Failure paths: a line that is no JSON is answered with an error and the next one is
//! read; the end of the input, or a reader that went away, stops what still counts and ends the server.

mod arguments;
mod clock;
mod lines;
mod message;
mod notes;
mod outbox;
mod resources;
mod server;
mod slow;
mod tools;
mod weather;

use std::{
    io::{self, BufRead, Write},
    thread,
};

pub use clock::{Clock, SystemClock};
use lines::Line;
use message::RpcError;
use outbox::Outbox;
use server::Server;

/// Serves MCP over a pair of streams, one JSON-RPC message a line, until the input ends.
///
/// # Errors
/// When the input cannot be read or the output cannot be written. An output that nobody reads any more is no error.
pub fn run(input: impl BufRead, output: impl Write + Send, clock: impl Clock) -> io::Result<()> {
    let outbox = Outbox::new(output);
    let served = thread::scope(|scope| {
        // Dropped before the scope waits for its threads, and that stops them.
        let server = Server::new(&outbox, scope, clock);
        serve(input, &outbox, server)
    });
    match served {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        served => served,
    }
}

fn serve<W: Write + Send, C: Clock>(
    mut input: impl BufRead,
    outbox: &Outbox<W>,
    mut server: Server<'_, '_, W, C>,
) -> io::Result<()> {
    loop {
        match lines::next(&mut input)? {
            Line::End => return Ok(()),
            Line::Blank => {}
            Line::TooLong => outbox.refuse(None, &RpcError::parse("the line is too long"))?,
            Line::Text(line) => match message::parse(&line) {
                Ok(message) => server.take(message)?,
                Err((id, error)) => outbox.refuse(id.as_ref(), &error)?,
            },
        }
    }
}

#[cfg(test)]
mod tests;
