//! The copy loop: two directions that end apart.
//!
//! A direction waits for its source without holding a buffer, reads into the one scratch of the relay, and writes. What
//! did not fit is spilled into memory of its own, and nothing more is read until that is written, which is the
//! back-pressure. Many bytes go through a pipe instead where that is cheaper (`scratch`).
//!
//! While a sink is full nobody reads from the source, so its end would not be seen: a client that was reset or closed is
//! looked for then, and nothing is held for it.
//!
//! A direction that ends tells its sink, and sets the other one a limit on silence: short once the local client is
//! gone, since the harness must learn that; longer once the harness is, since the client may still read. A broken
//! connection sets none at all. Nothing is cut while bytes move. A sink that broke only ends its own direction: the
//! other one may still carry an answer.

use std::{io, time::Duration};

use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    direction::Direction,
    scratch::{MANY_BYTES, Pipe, Scratch},
    stream::Stream,
};

/// How much a direction moves before others get their turn.
const TURN_BYTES: usize = 512 << 10;

/// How often a full sink lets look whether its source is still there.
const LOOK_FOR_SOURCE: Duration = Duration::from_secs(1);

/// How long things may be silent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The harness, once the client sends nothing more.
    pub(crate) client_gone: Duration,
    /// The client, once the harness sends nothing more.
    pub(crate) harness_gone: Duration,
    /// The client, before its first byte.
    pub(crate) first_byte: Duration,
}

impl Limits {
    /// What the relay uses.
    pub(crate) const DEFAULT: Self = Self {
        client_gone: Duration::from_secs(2),
        harness_gone: Duration::from_secs(60),
        first_byte: Duration::from_secs(60),
    };
}

/// How the client stood when both directions had ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// It had said all, or is gone.
    Done,
    /// It was still sending, and nobody takes it any more.
    Sending,
}

/// Copies both ways until both have ended.
pub(crate) async fn join(client: &Stream, harness: &Stream, scratch: &Scratch, limits: Limits) -> Client {
    let (up, down) = (Direction::default(), Direction::default());
    let first_byte = Some(Instant::now() + limits.first_byte);
    let to_harness = Pump { source: client, sink: harness, scratch, mine: &up, other: &down, ends_with_source: true };
    let to_client = Pump { source: harness, sink: client, scratch, mine: &down, other: &up, ends_with_source: false };
    let run_up = to_harness.run(first_byte, limits.client_gone);
    let (up, _) = tokio::join!(run_up, to_client.run(None, limits.harness_gone));
    match up {
        Ok(End::SinkBroke) => Client::Sending,
        Ok(End::SourceEnded | End::Silence) | Err(_) => Client::Done,
    }
}

struct Pump<'a> {
    source: &'a Stream,
    sink: &'a Stream,
    scratch: &'a Scratch,
    mine: &'a Direction,
    other: &'a Direction,
    /// Whether what was read is for nobody once its source is gone: a request is, an answer is not.
    ends_with_source: bool,
}

/// Why a direction ended; a source that broke is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    SourceEnded,
    SinkBroke,
    /// The other direction had ended, and nothing came for too long.
    Silence,
}

/// What one read and write came to.
enum Moved {
    /// All that was read was written.
    All(usize),
    /// The sink is full; this is left.
    Spill(Vec<u8>),
    /// The same, in a pipe.
    Held(Pipe),
    /// There was nothing to read.
    Nothing,
    /// There will be nothing more.
    End(End),
}

impl Pump<'_> {
    async fn run(&self, first_byte: Option<Instant>, grace: Duration) -> io::Result<End> {
        let end = self.copy(first_byte).await;
        self.sink.shut_write();
        self.mine.end(if end.is_ok() { grace } else { Duration::ZERO });
        end
    }

    async fn copy(&self, mut first_byte: Option<Instant>) -> io::Result<End> {
        let mut turn = 0;
        let mut many = false;
        loop {
            let moved = if many { self.splice()? } else { self.step()? };
            many = match moved {
                Moved::All(bytes) => bytes >= MANY_BYTES,
                Moved::Spill(_) | Moved::Held(_) => true,
                Moved::Nothing | Moved::End(_) => many,
            };
            match moved {
                Moved::All(bytes) => {
                    first_byte = None;
                    turn += bytes;
                }
                Moved::Spill(rest) => {
                    first_byte = None;
                    if let Some(end) = self.write_all(&rest).await? {
                        return Ok(end);
                    }
                }
                Moved::Held(pipe) => {
                    if let Some(end) = self.pour_all(pipe).await? {
                        return Ok(end);
                    }
                }
                Moved::Nothing => {
                    turn = 0;
                    if !self.wait(first_byte).await? {
                        return Ok(End::Silence);
                    }
                }
                Moved::End(end) => return Ok(end),
            }
            if turn >= TURN_BYTES {
                turn = 0;
                tokio::task::yield_now().await;
            }
        }
    }

    /// By the buffer.
    fn step(&self) -> io::Result<Moved> {
        let mut scratch = self.scratch.bytes.borrow_mut();
        let read = match self.source.try_read(&mut scratch) {
            Ok(0) => return Ok(Moved::End(End::SourceEnded)),
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Moved::Nothing),
            Err(e) => return Err(e),
        };
        match self.sink.try_write(&scratch[..read]) {
            Ok(wrote) if wrote == read => Ok(Moved::All(read)),
            Ok(wrote) => Ok(Moved::Spill(scratch[wrote..read].to_vec())),
            Err(_) => Ok(Moved::End(End::SinkBroke)),
        }
    }

    /// By a pipe, or where that cannot be by the buffer.
    fn splice(&self) -> io::Result<Moved> {
        let Some(mut pipe) = self.scratch.pipe(self.source, self.sink) else { return self.step() };
        let moved = match pipe.fill(self.source) {
            Ok(0) => Moved::End(End::SourceEnded),
            Ok(read) => match pipe.pour(self.sink) {
                Ok(true) => Moved::All(read),
                Ok(false) => return Ok(Moved::Held(pipe)),
                Err(e) if self.scratch.is_refusal(&e) => return pipe.empty().map(Moved::Spill),
                Err(_) => return Ok(Moved::End(End::SinkBroke)),
            },
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Moved::Nothing,
            Err(e) if self.scratch.is_refusal(&e) => return self.step(),
            Err(e) => return Err(e),
        };
        self.scratch.put_back(pipe);
        Ok(moved)
    }

    /// Gives the sink all of it, unless it breaks. A source that is gone is an error.
    async fn write_all(&self, mut bytes: &[u8]) -> io::Result<Option<End>> {
        loop {
            match self.sink.try_write(bytes) {
                Ok(wrote) => bytes = &bytes[wrote..],
                Err(_) => return Ok(Some(End::SinkBroke)),
            }
            if bytes.is_empty() {
                return Ok(None);
            }
            if let Some(end) = self.room().await? {
                return Ok(Some(end));
            }
        }
    }

    /// As [`Self::write_all`], of what is in a pipe.
    async fn pour_all(&self, mut pipe: Pipe) -> io::Result<Option<End>> {
        loop {
            match pipe.pour(self.sink) {
                Ok(true) => break,
                Ok(false) => {}
                Err(_) => return Ok(Some(End::SinkBroke)),
            }
            if let Some(end) = self.room().await? {
                return Ok(Some(end));
            }
        }
        self.scratch.put_back(pipe);
        Ok(None)
    }

    /// Waits for room in the sink, and looks meanwhile whether the source is still there.
    async fn room(&self) -> io::Result<Option<End>> {
        loop {
            tokio::select! {
                room = self.sink.writable() => return Ok(room.err().map(|_| End::SinkBroke)),
                () = sleep(LOOK_FOR_SOURCE), if self.ends_with_source => {
                    if self.source.is_gone(&self.scratch.orphans) {
                        return Err(io::ErrorKind::ConnectionReset.into());
                    }
                }
            }
        }
    }

    /// Waits for something to read; false when there was silence for too long.
    async fn wait(&self, first_byte: Option<Instant>) -> io::Result<bool> {
        let never_sent = async {
            match first_byte {
                Some(limit) => sleep_until(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ready = self.source.readable() => ready.map(|()| true),
            () = self.other.silent() => Ok(false),
            () = never_sent => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::UnixStream,
    };

    use super::*;

    const NEVER: Duration = Duration::from_secs(3600);
    const SOON: Duration = Duration::from_millis(20);
    const PATIENT: Limits = Limits { client_gone: NEVER, harness_gone: NEVER, first_byte: NEVER };

    /// Joins two streams and gives their far ends to a test; resolves when both the copy and the test are done. What
    /// the test gives back stays open until then.
    async fn joined<T, F: Future<Output = T>>(
        limits: Limits,
        test: impl FnOnce(UnixStream, UnixStream) -> F,
    ) -> Client {
        let (client, near_client) = UnixStream::pair().unwrap();
        let (harness, near_harness) = UnixStream::pair().unwrap();
        let scratch = Scratch::new(std::rc::Rc::new(crate::descriptors::Pairs::new(8)));
        let copy = async {
            let (client, harness) = (Stream::Unix(near_client), Stream::Unix(near_harness));
            join(&client, &harness, &scratch, limits).await
        };
        tokio::join!(copy, test(client, harness)).0
    }

    #[tokio::test]
    async fn a_client_that_never_says_a_word_is_let_go() {
        let limits = Limits { first_byte: SOON, ..PATIENT };
        let end = joined(limits, |mut client, mut harness| async move {
            assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
            assert_eq!(harness.read(&mut [0; 1]).await.unwrap(), 0);
        });
        assert_eq!(end.await, Client::Done);
    }

    #[tokio::test]
    async fn a_client_that_said_a_word_may_be_silent() {
        // So long that the word comes in time on any machine.
        let limits = Limits { first_byte: SOON * 25, ..PATIENT };
        joined(limits, |mut client, mut harness| async move {
            client.write_all(b"x").await.unwrap();
            harness.read_exact(&mut [0; 1]).await.unwrap();
            assert!(tokio::time::timeout(SOON * 30, client.read(&mut [0; 1])).await.is_err(), "it is still open");
        })
        .await;
    }

    #[tokio::test]
    async fn a_silent_harness_is_left_once_its_client_is_gone() {
        let limits = Limits { client_gone: SOON, ..PATIENT };
        joined(limits, |client, mut harness| async move {
            drop(client);
            assert_eq!(harness.read(&mut [0; 1]).await.unwrap(), 0);
            // Only the full close is an error here.
            while harness.write_all(b"x").await.is_ok() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    #[tokio::test]
    async fn a_client_that_lingers_is_left_once_the_harness_is_gone() {
        let limits = Limits { harness_gone: SOON, ..PATIENT };
        joined(limits, |mut client, harness| async move {
            drop(harness);
            assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
            client
        })
        .await;
    }
}
