//! Streams that wait, also where they are told not to.
//!
//! Whether a stream blocks is kept with what is open, not with a descriptor of it: another program that has the same pipe,
//! as one whose runtime sets `O_NONBLOCK` on what it inherits, decides it for all. Clearing it would take it from that one.

use std::{
    io::{self, Read, Write},
    os::fd::AsFd,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A stream, whose reads and writes wait.
#[derive(Debug)]
pub struct Blocking<S>(pub S);

impl<S: AsFd> Blocking<S> {
    /// Does it, and again whenever there is something to do it with.
    fn until_done<T>(&mut self, events: PollFlags, mut act: impl FnMut(&mut S) -> io::Result<T>) -> io::Result<T> {
        loop {
            match act(&mut self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match poll(&mut [PollFd::new(self.0.as_fd(), events)], PollTimeout::NONE) {
                        Ok(_) | Err(nix::Error::EINTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                done => return done,
            }
        }
    }
}

impl<S: Read + AsFd> Read for Blocking<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.until_done(PollFlags::POLLIN, |stream| stream.read(buffer))
    }
}

impl<S: Write + AsFd> Write for Blocking<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_done(PollFlags::POLLOUT, |stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.until_done(PollFlags::POLLOUT, Write::flush)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use nix::fcntl::{FcntlArg, OFlag, fcntl};

    use super::*;

    /// More than a pipe holds.
    const BYTES: usize = 1 << 20;

    fn whole(mut reader: impl Read, mut writer: impl Write + Send) -> usize {
        thread::scope(|scope| {
            scope.spawn(move || writer.write_all(&vec![7; BYTES]).and_then(|()| writer.flush()));
            let mut read = Vec::new();
            reader.read_to_end(&mut read).map(|_| read.len()).unwrap()
        })
    }

    #[test]
    fn nothing_is_lost_where_either_end_of_a_pipe_does_not_block() {
        let unblocked = |end: &dyn AsFd| fcntl(end.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let (reader, writer) = io::pipe().unwrap();
        unblocked(&writer);
        assert_eq!(whole(reader, Blocking(writer)), BYTES);
        let (reader, writer) = io::pipe().unwrap();
        unblocked(&reader);
        assert_eq!(whole(Blocking(reader), writer), BYTES);
    }

    #[test]
    fn a_reader_that_left_is_no_reason_to_wait() {
        let (reader, writer) = io::pipe().unwrap();
        fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let mut writer = Blocking(writer);
        thread::scope(|scope| {
            scope.spawn(move || drop(reader));
            let error = writer.write_all(&vec![7; BYTES]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        });
    }
}
