//! Reaching a virtual machine through its VMM's Unix socket: `CONNECT PORT` and a line's end, then a line `OK ...`.
//!
//! Some VMMs drop a request that comes in two parts, and others lose what follows it before they have answered. So it
//! is one write, nothing is sent until the answer is there, and the answer is read no further than its line's end.

use std::{io, time::Duration};

use footbridge_proto::{endpoint::MuxEndpoint, text::Escaped};
use tokio::{net::UnixStream, time::timeout};

/// How long the VMM and its guest may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// Longest answer: `OK ` and a number are 13 bytes.
const ANSWER_BYTES: usize = 64;

/// Why the VMM did not connect.
#[derive(Debug, thiserror::Error)]
enum MuxError {
    #[error("the VMM hung up on CONNECT {0}: nothing listens on this port in the VM (yet)")]
    Refused(u32),
    #[error("the VMM did not answer CONNECT {0} within {ANSWER_LIMIT:?}: the VM may still be starting")]
    Silent(u32),
    #[error(
        "the VMM answered CONNECT {port} with \"{}\" and not with OK: is this the socket of a VMM?",
        Escaped(answer)
    )]
    Odd { port: u32, answer: String },
    #[error("the VMM's socket took only a part of the request")]
    Split,
}

impl From<MuxError> for io::Error {
    fn from(error: MuxError) -> Self {
        let kind = match error {
            MuxError::Refused(_) => io::ErrorKind::ConnectionRefused,
            MuxError::Silent(_) => io::ErrorKind::TimedOut,
            MuxError::Odd { .. } | MuxError::Split => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

/// Connects once.
pub(super) async fn open(to: &MuxEndpoint) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(to.connecting().as_path()).await?;
    let port = to.port();
    let answered = timeout(ANSWER_LIMIT, handshake(&stream, port)).await;
    answered.unwrap_or_else(|_| Err(MuxError::Silent(port).into()))?;
    Ok(stream)
}

async fn handshake(stream: &UnixStream, port: u32) -> io::Result<()> {
    let request = format!("CONNECT {port}\n");
    stream.writable().await?;
    match stream.try_write(request.as_bytes()) {
        Ok(wrote) if wrote == request.len() => {}
        Ok(_) => return Err(MuxError::Split.into()),
        Err(e) if hung_up(&e) => return Err(MuxError::Refused(port).into()),
        Err(e) => return Err(e),
    }
    let answer = line(stream, port).await?;
    if answer.starts_with(b"OK ") && answer.ends_with(b"\n") {
        return Ok(());
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    Err(MuxError::Odd { port, answer }.into())
}

/// What comes up to a line's end, the limit or the end.
async fn line(stream: &UnixStream, port: u32) -> io::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(ANSWER_BYTES);
    while line.len() < ANSWER_BYTES && !line.ends_with(b"\n") {
        let mut byte = [0];
        stream.readable().await?;
        match stream.try_read(&mut byte) {
            Ok(0) if line.is_empty() => return Err(MuxError::Refused(port).into()),
            Ok(0) => break,
            Ok(_) => line.push(byte[0]),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) if hung_up(&e) => return Err(MuxError::Refused(port).into()),
            Err(e) => return Err(e),
        }
    }
    Ok(line)
}

fn hung_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
