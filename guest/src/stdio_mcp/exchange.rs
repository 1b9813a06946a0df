//! One request over HTTP, on a connection of its own, which waits for nothing: whoever polls says when there is something
//! to read or room to write. Closing it ends the call that it is about.

use std::{
    io::{self, ErrorKind, Read, Write},
    os::fd::AsFd as _,
    time::Instant,
};

use nix::poll::{PollFd, PollFlags};

use super::{arriving::Arriving, message::Message};
use crate::{
    http::HttpError,
    settings::ClientSettings,
    wire::{Stream, Wire},
};

/// What an exchange is for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// A message of the client, and since when it waits.
    Message(Message, Instant),
    /// The handshake again, with a harness that does not know the client.
    Again,
    /// That the handshake is done, said again.
    SaidAgain,
    /// What changes meanwhile.
    Listen,
}

/// One request and its answer.
pub(super) struct Exchange {
    pub(super) purpose: Purpose,
    stream: Stream,
    request: Vec<u8>,
    sent: usize,
    pub(super) arriving: Arriving,
}

/// Where an exchange stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Going,
    /// The answer is whole.
    Done,
}

impl Exchange {
    /// Connects, to send this.
    pub(super) fn begin(settings: &ClientSettings, purpose: Purpose, request: Vec<u8>) -> io::Result<Self> {
        let wire = Wire::connect(&settings.target, settings.timeout)?;
        let known = |uid: &u32| settings.token.is_none() || Some(*uid) == settings.listener_uid;
        if let Some(uid) = wire.stranger().filter(|uid| !known(uid)) {
            let why = format!("another user of this machine listens there (uid {uid})");
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        let stream = wire.into_stream();
        stream.set_nonblocking()?;
        Ok(Self { purpose, stream, request, sent: 0, arriving: Arriving::new() })
    }

    /// What it waits for.
    pub(super) fn polled(&self) -> PollFd<'_> {
        let writes = if self.sent < self.request.len() { PollFlags::POLLOUT } else { PollFlags::empty() };
        PollFd::new(self.stream.as_fd(), PollFlags::POLLIN | writes)
    }

    /// Writes and reads what is possible now, and gives what arrived.
    pub(super) fn go_on(&mut self, take: &mut dyn FnMut(Vec<u8>)) -> Result<Standing, HttpError> {
        while self.sent < self.request.len() {
            match self.stream.write(&self.request[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The harness may have answered before it read everything.
                Err(_) => self.sent = self.request.len(),
            }
        }
        let mut buffer = [0; 16 << 10];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(HttpError::Cut),
                Ok(count) => {
                    if self.arriving.feed(&buffer[..count], take)? {
                        return Ok(Standing::Done);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Standing::Going),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
