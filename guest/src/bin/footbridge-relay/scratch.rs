//! What connections share while they move bytes: one buffer, and pipes.
//!
//! A pipe moves bytes from a TCP to a Unix socket by reference, splice(2): measured, a third faster than the buffer and
//! half the processor time. It is only for these, and only for many bytes at a time. From Unix to TCP the buffer is a
//! quarter faster, few bytes cost less by it, and vsock takes only small writes.
//!
//! Nobody holds the buffer across an await. A pipe that could not be emptied stays with its direction until it is; none
//! belongs to a connection that is idle. Where the system refuses to splice, all goes by the buffer.

use std::{
    cell::{Cell, RefCell},
    fs::File,
    io::{self, Read},
    os::fd::OwnedFd,
    rc::Rc,
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    unistd::pipe2,
};

use crate::{
    descriptors::{Pair, Pairs},
    orphans::Orphans,
    stream::Stream,
};

/// How much one read takes. From a Unix socket, a quarter of it takes 1.7 times as long.
const SCRATCH_BYTES: usize = 256 << 10;
/// How much in one read lets expect more, so that a pipe is worth it.
pub(crate) const MANY_BYTES: usize = 16 << 10;
/// How much a pipe holds, where the system allows it. With 64 KiB it gains half as much, with a MiB no more.
const PIPE_BYTES: i32 = 256 << 10;
/// Pipes that are kept for later; more are needed only while sinks are full.
const SPARE_PIPES: usize = 4;

/// The shared buffer and the pipes that nobody uses.
pub(crate) struct Scratch {
    pub(crate) bytes: RefCell<Box<[u8]>>,
    spare: RefCell<Vec<Pipe>>,
    pairs: Rc<Pairs>,
    refused: Cell<bool>,
    /// Clients that are gone and have not been read to their end.
    pub(crate) orphans: Orphans,
}

impl Scratch {
    /// With pipes that take these.
    pub(crate) fn new(pairs: Rc<Pairs>) -> Self {
        let bytes = RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice());
        let spare = RefCell::default();
        Self { bytes, spare, pairs, refused: Cell::new(false), orphans: Orphans::default() }
    }

    /// An empty pipe. None where these streams are not for it, or there is none to be had.
    pub(crate) fn pipe(&self, source: &Stream, sink: &Stream) -> Option<Pipe> {
        if self.refused.get() || !matches!((source, sink), (Stream::Tcp(_), Stream::Unix(_))) {
            return None;
        }
        let spare = self.spare.borrow_mut().pop();
        // Where there are no descriptors for one the buffer does it too.
        spare.or_else(|| Pipe::new(self.pairs.for_pipe()?).ok())
    }

    /// Takes an empty pipe back.
    pub(crate) fn put_back(&self, pipe: Pipe) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE_PIPES && !self.pairs.are_scarce() {
            spare.push(pipe);
        }
    }

    /// Whether the error says that this system does not splice; it is not tried again then.
    pub(crate) fn is_refusal(&self, error: &io::Error) -> bool {
        let refusals = [Errno::EINVAL, Errno::ENOSYS, Errno::EPERM, Errno::EACCES];
        let refused = error.raw_os_error().is_some_and(|errno| refusals.contains(&Errno::from_raw(errno)));
        self.refused.set(self.refused.get() || refused);
        refused
    }
}

/// A pipe on the way from one stream to another.
pub(crate) struct Pipe {
    out: File,
    into: OwnedFd,
    held: usize,
    _pair: Pair,
}

impl Pipe {
    fn new(pair: Pair) -> nix::Result<Self> {
        let (out, into) = pipe2(OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)?;
        // A small one carries all the same.
        let _ = fcntl(&into, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES));
        Ok(Self { out: out.into(), into, held: 0, _pair: pair })
    }

    /// Takes in what the source has; zero is its end. Only for an empty pipe: of a full one, "would block" says
    /// nothing.
    pub(crate) fn fill(&mut self, source: &Stream) -> io::Result<usize> {
        self.held = source.try_splice_to(&self.into, PIPE_BYTES.unsigned_abs() as usize)?;
        Ok(self.held)
    }

    /// Gives the sink what it takes; true once all is given.
    pub(crate) fn pour(&mut self, sink: &Stream) -> io::Result<bool> {
        while self.held > 0 {
            match sink.try_splice_from(&self.out, self.held) {
                // It would be asked for ever.
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(poured) => self.held -= poured,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    /// What it holds, copied out.
    pub(crate) fn empty(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.held];
        self.out.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream, UnixStream},
    };

    use super::*;

    /// Both streams of a pipe, and their far ends.
    async fn streams() -> (TcpStream, Stream, Stream, UnixStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let source = Stream::tcp(listener.accept().await.unwrap().0);
        let (near, harness) = UnixStream::pair().unwrap();
        (client, source, Stream::Unix(near), harness)
    }

    /// A pipe that holds what the client sent.
    async fn filled(scratch: &Scratch, source: &Stream, sink: &Stream) -> Pipe {
        let mut pipe = scratch.pipe(source, sink).unwrap();
        loop {
            source.readable().await.unwrap();
            match pipe.fill(source) {
                Ok(_) => return pipe,
                Err(e) => assert_eq!(e.kind(), io::ErrorKind::WouldBlock),
            }
        }
    }

    #[tokio::test]
    async fn a_pipe_gives_all_that_it_took() {
        let (mut client, source, sink, mut harness) = streams().await;
        let scratch = Scratch::new(Rc::new(Pairs::new(8)));
        client.write_all(b"by reference").await.unwrap();
        let mut pipe = filled(&scratch, &source, &sink).await;
        assert!(pipe.pour(&sink).unwrap());
        let mut got = [0; 12];
        harness.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"by reference");
        client.write_all(b"by copy").await.unwrap();
        assert_eq!(filled(&scratch, &source, &sink).await.empty().unwrap(), b"by copy");
    }

    #[tokio::test]
    async fn there_are_no_more_pipes_than_there_is_place_for() {
        let (_client, source, sink, _harness) = streams().await;
        let scratch = Scratch::new(Rc::new(Pairs::new(4)));
        let pipe = || scratch.pipe(&source, &sink);
        let (one, other) = (pipe().unwrap(), pipe().unwrap());
        assert!(pipe().is_none());
        // A connection that broke takes its pipe with it, and one that nobody uses is used again.
        drop(one);
        scratch.put_back(other);
        let both = (pipe().unwrap(), pipe().unwrap());
        assert!(pipe().is_none());
        drop(both);
    }

    #[tokio::test]
    async fn pipes_are_only_for_tcp_to_unix_and_only_where_they_are_not_refused() {
        let (_client, source, sink, _harness) = streams().await;
        let scratch = Scratch::new(Rc::new(Pairs::new(8)));
        assert!(scratch.pipe(&source, &sink).is_some());
        assert!(scratch.pipe(&sink, &source).is_none());
        assert!(!scratch.is_refusal(&Errno::EPIPE.into()));
        assert!(scratch.pipe(&source, &sink).is_some());
        assert!(scratch.is_refusal(&Errno::EPERM.into()));
        assert!(scratch.pipe(&source, &sink).is_none());
    }
}
