//! One request over HTTP, on a connection of its own, which waits for nothing: whoever polls says when there is something
//! to read or room to write. Closing it ends the call that it is about; once its answer is whole it may carry the next.
//!
//! A bridge may answer before it has read the whole request, so a failed write is only an error if no answer came either.

use std::{
    io::{self, ErrorKind, Read, Write},
    os::fd::AsFd as _,
    time::Instant,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::{
    error::ClientError,
    http::{Arriving, HttpError, MAX_ANSWER_BYTES, Take},
    settings::ClientSettings,
    wire::Wire,
};

/// How much one read asks for.
const READ_BYTES: usize = 16 << 10;
/// Reads at a time, so that an answer that comes on and on holds up no other.
const READS: usize = 64;

/// One request and its answer.
pub(crate) struct Exchange<P> {
    /// What it is for.
    pub(crate) purpose: P,
    wire: Wire,
    request: Vec<u8>,
    sent: usize,
    /// Why the rest of it could not be sent.
    unsent: Option<io::Error>,
    pub(crate) arriving: Arriving,
    began: Instant,
    /// When anything was last heard, or it began.
    heard: Instant,
}

/// Where an exchange stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Going,
    /// The answer is whole.
    Done,
}

impl<P> Exchange<P> {
    /// Connects, to send this. With an error nothing was sent.
    pub(crate) fn begin(settings: &ClientSettings, purpose: P, request: Vec<u8>) -> Result<Self, ClientError> {
        let ClientSettings { target, token, timeout, listener_uid, .. } = settings;
        let began = Instant::now();
        let wire = Wire::connect(target, began + *timeout).map_err(|source| match source.kind() {
            ErrorKind::TimedOut => ClientError::TimedOut { after: *timeout, sent: false },
            _ => ClientError::Connect { target: target.to_string(), source },
        })?;
        let stranger = wire.stranger().filter(|uid| token.is_some() && Some(*uid) != *listener_uid);
        if let Some(uid) = stranger {
            return Err(ClientError::Stranger { target: target.to_string(), uid });
        }
        Ok(Self { purpose, wire, request, sent: 0, unsent: None, arriving: Arriving::new(), began, heard: began })
    }

    /// The next request on the same connection.
    pub(crate) fn again(self, purpose: P, request: Vec<u8>) -> Self {
        let now = Instant::now();
        Self { purpose, request, sent: 0, unsent: None, arriving: Arriving::new(), began: now, heard: now, ..self }
    }

    /// Whether the connection may carry another request: its answer is whole, and nothing came behind it.
    pub(crate) fn is_reusable(&self) -> bool {
        self.sent == self.request.len() && self.arriving.leaves_open()
    }

    /// Whether the other side has left it open, with nothing to say.
    pub(crate) fn is_open(&self) -> bool {
        let mut polled = [PollFd::new(self.wire.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut polled, PollTimeout::ZERO), Ok(0))
    }

    /// What it waits for.
    pub(crate) fn polled(&self) -> PollFd<'_> {
        let writes = if self.is_to_write() { PollFlags::POLLOUT } else { PollFlags::empty() };
        PollFd::new(self.wire.as_fd(), PollFlags::POLLIN | writes)
    }

    /// When its time is up: that of a stream of events is measured by silence.
    pub(crate) fn deadline(&self, settings: &ClientSettings) -> Instant {
        let since = if self.arriving.is_stream() { self.heard } else { self.began };
        since + settings.timeout
    }

    /// What is said where that has passed.
    pub(crate) fn late(&self, settings: &ClientSettings) -> ClientError {
        let after = settings.timeout;
        if self.arriving.is_stream() {
            ClientError::Silent { after }
        } else {
            ClientError::TimedOut { after, sent: true }
        }
    }

    /// Writes and reads what is possible now, and gives what arrived.
    pub(crate) fn go_on(&mut self, take: Take<'_>) -> Result<Standing, HttpError> {
        while self.is_to_write() {
            match self.wire.write(&self.request[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => self.unsent = Some(error),
            }
        }
        self.read_some(take).map_err(|error| self.unsent.take().map_or(error, HttpError::Io))
    }

    /// What is said of it where its answer cannot be read.
    pub(crate) fn failed(&self, settings: &ClientSettings, error: HttpError) -> ClientError {
        let has_begun = self.arriving.has_begun();
        let cut = |why: String| ClientError::Cut { target: settings.target.to_string(), why, has_begun };
        match error {
            HttpError::Io(error) => cut(error.to_string()),
            HttpError::Cut => cut("it closed".to_owned()),
            HttpError::TooLarge => ClientError::AnswerTooLarge(MAX_ANSWER_BYTES),
            HttpError::Malformed(why) => ClientError::NotBridge(why.to_owned()),
        }
    }

    fn is_to_write(&self) -> bool {
        self.sent < self.request.len() && self.unsent.is_none()
    }

    fn read_some(&mut self, take: Take<'_>) -> Result<Standing, HttpError> {
        let mut buffer = [0; READ_BYTES];
        for _ in 0..READS {
            match self.wire.read(&mut buffer) {
                Ok(0) => return self.arriving.ends(take).map(|()| Standing::Done),
                Ok(count) => {
                    self.heard = Instant::now();
                    if self.arriving.feed(&buffer[..count], take)? {
                        return Ok(Standing::Done);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Standing::Going)
    }
}
