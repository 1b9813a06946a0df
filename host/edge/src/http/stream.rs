//! A connection with limits on how long it may be slow.
//!
//! hyper has no limit on an answer that nobody reads, and its limit on heads ends idle connections too. So the limits
//! are here, below it. A connection is in one of three states, and only two have a deadline:
//!
//! - idle: nothing of a request was read yet; ends after `idle_time`.
//! - head: its first byte was read; ends after `head_time`.
//! - busy: the request was handed to its handler, which has limits of its own, until the answer is written.
//!
//! A connection that has become a tunnel has none of these limits any more: whoever carries it has its own. One whose request
//! goes on behind its answer, since its body still comes, has no deadline for reading, and ends with that request.
//!
//! A client that leaves while its request is handled is noticed, also where bytes lie behind that: hyper reads no further
//! then, so a few are read ahead here.
//!
//! A client of HTTP/1.0 reads an answer to the end of its connection where that has no length. So that it takes none that broke
//! off for whole, such a connection is reset, where it can be.
//!
//! An answer of a service may be unread for as long as its service may be silent, and read for as long as its request may
//! take: who reads slowly, or stops to ask somebody, loses nothing.
//!
//! In any state a write that makes no progress for `write_time` ends the connection, and so does an answer that is not
//! written whole within `answer_time`: a reader that takes a byte now and then holds it all the same. In a stream of
//! events each event is an answer of its own, and between them the stream may be as quiet as its call is.

use std::{
    future::Future,
    io,
    mem::MaybeUninit,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

use crate::listener::Abort;
use footbridge_core::limits::EdgeLimits;

/// How many bytes are read ahead of what hyper asks for, to see whether the end comes behind them.
const AHEAD: usize = 4 * 1024;

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const BUSY: u8 = 2;
const ANSWERED: u8 = 3;
const TUNNEL: u8 = 4;
const GOES_ON: u8 = 5;

/// The handler's end of a connection's state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Phase(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    phase: AtomicU8,
    /// Whether its client may take the end of the connection for the end of an answer.
    ends_answers: AtomicBool,
    /// Whether it ends before its answer does.
    aborts: AtomicBool,
    /// How many answers have begun within streams; only whether it changes counts.
    answers: AtomicU32,
    /// How long its answer may be unread; none where the limits of the connection alone say that.
    unread: Mutex<Option<Unread>>,
    /// Whether it ended since nothing of its answer was read for so long.
    is_unread: AtomicBool,
}

/// How long an answer may be unread.
#[derive(Debug, Clone, Copy)]
struct Unread {
    /// Without anything that is read.
    time: Duration,
    /// In all.
    until: Instant,
}

impl Phase {
    /// A head is complete; its handler works.
    pub(crate) fn busy(&self) {
        self.set_unread(None);
        self.set(BUSY);
    }

    /// Nothing of the answer may be read for so long, and all of it is to be read by then. The limits of the connection are
    /// the least of both.
    pub(crate) fn may_be_unread(&self, time: Duration, until: Instant) {
        self.set_unread(Some(Unread { time, until }));
    }

    fn set_unread(&self, unread: Option<Unread>) {
        *self.0.unread.lock().unwrap_or_else(PoisonError::into_inner) = unread;
    }

    /// Whether the connection ended since nothing was read for too long.
    pub(crate) fn is_unread(&self) -> bool {
        self.0.is_unread.load(Ordering::Relaxed)
    }

    /// How long an answer may be unread, where that is its own.
    fn unread(&self) -> Option<Unread> {
        *self.0.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handler is done; once its answer is written the connection is idle, if it has not become a tunnel.
    pub(crate) fn answered(&self) {
        if !matches!(self.get(), TUNNEL | GOES_ON) {
            self.set(ANSWERED);
        }
    }

    /// Its request goes on behind its answer, and ends it: whoever reads that has limits of its own.
    pub(crate) fn goes_on(&self) {
        self.set(GOES_ON);
    }

    /// Whether that is so.
    pub(crate) fn is_going_on(&self) -> bool {
        self.get() == GOES_ON
    }

    /// It is no HTTP any more once its answer is written.
    pub(crate) fn becomes_tunnel(&self) {
        self.set(TUNNEL);
    }

    /// Its client knows no other end of an answer than that of its connection, as one of HTTP/1.0.
    pub(crate) fn ends_answers(&self) {
        self.0.ends_answers.store(true, Ordering::Relaxed);
    }

    /// It ends early. A client that could take that for the end of its answer has it reset.
    pub(crate) fn breaks_off(&self) {
        self.0.aborts.store(self.0.ends_answers.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// What is written from now on has `answer_time` of its own.
    pub(crate) fn answer_begins(&self) {
        self.0.answers.fetch_add(1, Ordering::Relaxed);
    }

    fn answers(&self) -> u32 {
        self.0.answers.load(Ordering::Relaxed)
    }

    fn get(&self) -> u8 {
        self.0.phase.load(Ordering::Relaxed)
    }

    fn set(&self, phase: u8) {
        self.0.phase.store(phase, Ordering::Relaxed);
    }
}

/// The connection.
#[derive(Debug)]
pub(crate) struct Timed<S: Abort> {
    stream: S,
    /// What was read and hyper has not asked for.
    ahead: Vec<u8>,
    phase: Phase,
    reading: Pin<Box<Sleep>>,
    writing: Option<Pin<Box<Sleep>>>,
    /// Since when a write has made no progress.
    stuck: Option<Instant>,
    /// When what is being written must be through.
    through: Option<Instant>,
    /// The answer that `through` is about.
    answer: u32,
    head_time: Duration,
    idle_time: Duration,
    write_time: Duration,
    answer_time: Duration,
}

impl<S: Abort> Timed<S> {
    pub(crate) fn new(stream: S, limits: &EdgeLimits) -> Self {
        Self {
            stream,
            ahead: Vec::new(),
            phase: Phase::default(),
            reading: Box::pin(sleep_until(Instant::now() + limits.idle_time)),
            writing: None,
            stuck: None,
            through: None,
            answer: 0,
            head_time: limits.head_time,
            idle_time: limits.idle_time,
            write_time: limits.write_time,
            answer_time: limits.answer_time,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.clone()
    }

    fn after_write<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() || self.phase.get() == TUNNEL {
            (self.writing, self.stuck) = (None, None);
            return done;
        }
        let now = Instant::now();
        let answer = self.phase.answers();
        if answer != self.answer {
            (self.answer, self.through) = (answer, None);
        }
        let (through, write_time) = match self.phase.unread() {
            Some(Unread { time, until }) => (until.max(now + self.answer_time), time.max(self.write_time)),
            None => (now + self.answer_time, self.write_time),
        };
        let through = *self.through.get_or_insert(through);
        let until = through.min(*self.stuck.get_or_insert(now) + write_time);
        let timer = self.writing.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if timer.deadline() != until {
            timer.as_mut().reset(until);
        }
        ready!(timer.as_mut().poll(cx));
        self.phase.0.is_unread.store(true, Ordering::Relaxed);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: Abort> Drop for Timed<S> {
    fn drop(&mut self) {
        if self.phase.0.aborts.load(Ordering::Relaxed) {
            self.stream.abort();
        }
    }
}

impl<S: AsyncRead + Abort + Unpin> Timed<S> {
    fn poll_next(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let taken = self.ahead.len().min(buffer.remaining());
        buffer.put_slice(&self.ahead[..taken]);
        self.ahead.drain(..taken);
        if buffer.remaining() > 0 {
            // An end, or an error, is there again at the next read.
            let _as_far_as_it_goes = Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads ahead while a request is handled; an error where its client left.
    fn watch(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while matches!(self.phase.get(), BUSY | GOES_ON) && self.ahead.len() < AHEAD {
            let mut bytes = [const { MaybeUninit::uninit() }; AHEAD];
            let mut buffer = ReadBuf::uninit(&mut bytes[..AHEAD - self.ahead.len()]);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Pending => return Ok(()),
                Poll::Ready(read) => read?,
            }
            if buffer.filled().is_empty() {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "its client left"));
            }
            self.ahead.extend_from_slice(buffer.filled());
        }
        Ok(())
    }
}

impl<S: AsyncRead + Abort + Unpin> AsyncRead for Timed<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        match this.poll_next(cx, buffer) {
            Poll::Ready(Ok(())) => {
                if buffer.filled().len() > before && this.phase.get() == IDLE {
                    this.phase.set(HEAD);
                    this.reading.as_mut().reset(Instant::now() + this.head_time);
                }
                if this.phase.get() == HEAD && this.reading.is_elapsed() {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                Poll::Ready(Ok(()))
            }
            Poll::Pending if matches!(this.phase.get(), IDLE | HEAD) => {
                ready!(this.reading.as_mut().poll(cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            other => other,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Abort + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.after_write(cx, done)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.after_write(cx, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.stream).poll_flush(cx);
        if matches!(done, Poll::Ready(Ok(()))) {
            this.through = None;
        }
        if matches!(done, Poll::Ready(Ok(()))) && this.phase.get() == ANSWERED {
            this.phase.set(IDLE);
            this.reading.as_mut().reset(Instant::now() + this.idle_time);
            // hyper may have asked for the next request already, and asks again only once it is woken.
            let _wakes_it = this.reading.as_mut().poll(cx);
        }
        this.watch(cx)?;
        this.after_write(cx, done)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let done = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.after_write(cx, done)
    }
}

#[cfg(test)]
mod tests;
