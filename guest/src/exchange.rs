//! One request over HTTP, on a connection of its own, which waits for nothing: whoever polls says when there is something
//! to read or room to write. Closing it ends the call that it is about; once its answer is whole it may carry the next.

mod arriving;

use std::{
    io::{self, ErrorKind, Read, Write},
    os::fd::AsFd as _,
    time::Instant,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::{
    http::HttpError,
    settings::ClientSettings,
    wire::{Stream, Wire},
};
pub(crate) use arriving::Arriving;

/// One request and its answer.
pub(crate) struct Exchange<P> {
    /// What it is for.
    pub(crate) purpose: P,
    stream: Stream,
    request: Vec<u8>,
    sent: usize,
    pub(crate) arriving: Arriving,
    /// When anything was last heard, or it began.
    pub(crate) heard: Instant,
}

/// Where an exchange stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Going,
    /// The answer is whole.
    Done,
}

impl<P> Exchange<P> {
    /// Connects, to send this.
    pub(crate) fn begin(settings: &ClientSettings, purpose: P, request: Vec<u8>) -> io::Result<Self> {
        let wire = Wire::connect(&settings.target, settings.timeout)?;
        let known = |uid: &u32| settings.token.is_none() || Some(*uid) == settings.listener_uid;
        if let Some(uid) = wire.stranger().filter(|uid| !known(uid)) {
            let why = format!("another user of this machine listens there (uid {uid})");
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        let stream = wire.into_stream();
        stream.set_nonblocking()?;
        Ok(Self { purpose, stream, request, sent: 0, arriving: Arriving::new(), heard: Instant::now() })
    }

    /// The next request on the same connection.
    pub(crate) fn again(self, purpose: P, request: Vec<u8>) -> Self {
        Self { purpose, request, sent: 0, arriving: Arriving::new(), heard: Instant::now(), ..self }
    }

    /// Whether the connection may carry another request: its answer is whole, and nothing came behind it.
    pub(crate) fn is_reusable(&self) -> bool {
        self.sent == self.request.len() && self.arriving.leaves_open()
    }

    /// Whether the other side has left it open, with nothing to say.
    pub(crate) fn is_open(&self) -> bool {
        let mut polled = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut polled, PollTimeout::ZERO), Ok(0))
    }

    /// What it waits for.
    pub(crate) fn polled(&self) -> PollFd<'_> {
        let writes = if self.sent < self.request.len() { PollFlags::POLLOUT } else { PollFlags::empty() };
        PollFd::new(self.stream.as_fd(), PollFlags::POLLIN | writes)
    }

    /// Writes and reads what is possible now, and gives what arrived.
    pub(crate) fn go_on(&mut self, take: &mut dyn FnMut(&str, Vec<u8>)) -> Result<Standing, HttpError> {
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
                    self.heard = Instant::now();
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
