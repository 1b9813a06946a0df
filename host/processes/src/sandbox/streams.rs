//! The three standard streams of a sandboxed command: terminals of its own, and devices that hold nothing and are not its
//! user's, it gets as they are, and everything else is carried through a pipe.
//!
//! A descriptor is more than what is read or written through it. By one of a folder the command reaches every file
//! above it; a file that was opened to read can be opened again to write, a log that only grows can be cut, and the mode
//! of either can be changed, as can that of /dev/null by its owner. A socket that is connected can be connected elsewhere, and the pipe of a shell's loop can be
//! written by whoever reads it. So it gets bytes, by a pipe that nobody else has.
//!
//! A file on standard input stands, when the command has ended, behind what the command read, as it does without a
//! sandbox: what reads on from there, as a shell's loop does, finds the rest.
//!
//! Failure: a folder, and what is neither read nor written, is refused by name ([`StreamError`]); what cannot be carried
//! to its end is said in the log.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Seek as _, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::thread;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{major, minor};
use nix::unistd::geteuid;
use rustix::io::ioctl_fionread;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;
use tokio::sync::oneshot;

use crate::keeper::ProgramStream;

/// Minor numbers of the memory devices that hold nothing: null, zero, full, random, urandom.
const HOLD_NOTHING: [u64; 5] = [3, 5, 7, 8, 9];
/// The number of the memory devices.
const MEMORY_DEVICES: u64 = 1;
/// Most bytes that are read of a file at a time.
const CHUNK: usize = 64 * 1024;
/// What people call the streams.
const NAMES: [&str; 3] = ["standard input", "standard output", "standard error"];

/// A standard stream that no sandbox gets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// It leads to files.
    #[error(
        "{0} is a folder, through which the sandbox would reach the files of the host: give a file, a pipe or /dev/null"
    )]
    Folder(&'static str),
    /// It is neither read nor written.
    #[error("{0} is nothing that can be read or written as a stream: give a file, a pipe or /dev/null")]
    NoStream(&'static str),
    /// It cannot be looked at, or there is no pipe for it.
    #[error("{stream} cannot be carried into the sandbox: {source}")]
    Io {
        /// Which.
        stream: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// What is done about a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The command gets it.
    Itself,
    /// Its bytes are carried.
    Carried,
}

/// What carries bytes for a command.
#[derive(Debug, Default)]
pub struct Carriers {
    input: Option<FileInput>,
    outputs: Vec<Output>,
}

/// A stream that the command writes, and the thread that carries it.
#[derive(Debug)]
struct Output {
    ended: oneshot::Receiver<Result<(), (&'static str, io::Error)>>,
    /// Closed once all that the command could write is in the pipe.
    running: PipeWriter,
}

/// A pipe that is read to its end, or, once nothing is left of the command, as far as that can have written: it may have handed
/// the pipe to others, who go on.
struct Written {
    pipe: PipeReader,
    /// Its other end is open as long as the command may write.
    running: PipeReader,
    /// What is still to be read, once that is known.
    left: Option<u64>,
}

impl Read for Written {
    fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        while self.left.is_none() {
            let mut both =
                [&self.pipe as &dyn AsFd, &self.running].map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN));
            match poll(&mut both, PollTimeout::NONE) {
                Err(nix::Error::EINTR) => continue,
                ready => ready?,
            };
            let [pipe, running] = both.map(|end| end.any().unwrap_or(true));
            if running {
                self.left = Some(ioctl_fionread(&self.pipe)?);
            } else if pipe {
                match self.pipe.read(chunk) {
                    // Whoever else has the pipe took it.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return read,
                }
            }
        }
        let left = self.left.unwrap_or_default();
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
        let count = match chunk.get_mut(..most).map(|chunk| self.pipe.read(chunk)) {
            // Whoever else has the pipe took some of it.
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Some(read) => read?,
            None => 0,
        };
        self.left = Some(left - count as u64);
        Ok(count)
    }
}

impl AsFd for Written {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// A file on standard input, and the pipe that the command has of it.
#[derive(Debug)]
struct FileInput {
    file: File,
    start: u64,
    sent: u64,
    writer: Option<Sender>,
    /// For what the command left in the pipe.
    reader: PipeReader,
}

/// Replaces streams of this process that a sandboxed command must not have.
///
/// # Errors
/// [`StreamError`].
pub fn carried(streams: [ProgramStream; 3]) -> Result<([ProgramStream; 3], Carriers), StreamError> {
    let mut carriers = Carriers::default();
    let [stdin, stdout, stderr] = streams;
    let stdin = carriers.carry(0, stdin, File::from(own(0)?), |carriers, file| carriers.input(file))?;
    let (out, err) = (File::from(own(1)?), File::from(own(2)?));
    let both = matches!((&stdout, &stderr), (ProgramStream::Inherit, ProgramStream::Inherit))
        && same(&out, &err).map_err(|source| StreamError::Io { stream: NAMES[2], source })?;
    let stdout = carriers.carry(1, stdout, out, |carriers, file| carriers.output(NAMES[1], file))?;
    let stderr = match &stdout {
        // One file for both keeps what is written in its order.
        ProgramStream::Given(pipe) if both => {
            let io = |source| StreamError::Io { stream: NAMES[2], source };
            ProgramStream::Given(pipe.try_clone().map_err(io)?)
        }
        _ => carriers.carry(2, stderr, err, |carriers, file| carriers.output(NAMES[2], file))?,
    };
    Ok(([stdin, stdout, stderr], carriers))
}

fn own(number: usize) -> Result<OwnedFd, StreamError> {
    let own = match number {
        0 => io::stdin().as_fd().try_clone_to_owned(),
        1 => io::stdout().as_fd().try_clone_to_owned(),
        _ => io::stderr().as_fd().try_clone_to_owned(),
    };
    own.map_err(|source| StreamError::Io { stream: NAMES[number], source })
}

fn same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

fn way(name: &'static str, file: &File) -> Result<Way, StreamError> {
    let io = |source| StreamError::Io { stream: name, source };
    let meta = file.metadata().map_err(io)?;
    let kind = meta.file_type();
    let device = meta.rdev();
    if kind.is_dir() {
        return Err(StreamError::Folder(name));
    }
    let holds_nothing = major(device) == MEMORY_DEVICES && HOLD_NOTHING.contains(&minor(device));
    if kind.is_char_device() && holds_nothing && meta.uid() != geteuid().as_raw() {
        return Ok(Way::Itself);
    }
    let is_device = kind.is_char_device() || kind.is_block_device();
    let is_stream = kind.is_file() || kind.is_fifo() || kind.is_socket() || is_device;
    if is_stream { Ok(Way::Carried) } else { Err(StreamError::NoStream(name)) }
}

/// Copies to the end. By read and write: what `io::copy` does instead, splice(2), waits for bytes with the place in the
/// file that it had before, and then writes over what this process and others have written there since.
///
/// What does not block is waited for: that is kept with what is open, and others who have it too may have said so.
fn copy(from: &mut (impl Read + AsFd), to: &mut (impl Write + AsFd)) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) => {
                wait_after(error, from, PollFlags::POLLIN)?;
                continue;
            }
        };
        let mut left = chunk.get(..count).unwrap_or_default();
        while !left.is_empty() {
            match to.write(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => left = left.get(count..).unwrap_or_default(),
                Err(error) => wait_after(error, to, PollFlags::POLLOUT)?,
            }
        }
    }
}

/// Waits until there is something to read or room to write, where that is all that is wrong.
fn wait_after(error: io::Error, stream: &impl AsFd, events: PollFlags) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(()),
        io::ErrorKind::WouldBlock => match poll(&mut [PollFd::new(stream.as_fd(), events)], PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        },
        _ => Err(error),
    }
}

impl Carriers {
    fn carry(
        &mut self,
        number: usize,
        stream: ProgramStream,
        file: File,
        by: impl FnOnce(&mut Self, File) -> io::Result<OwnedFd>,
    ) -> Result<ProgramStream, StreamError> {
        let name = NAMES[number];
        if !matches!(stream, ProgramStream::Inherit) || way(name, &file)? == Way::Itself {
            return Ok(stream);
        }
        by(self, file).map(ProgramStream::Given).map_err(|source| StreamError::Io { stream: name, source })
    }

    /// Gives the end that the command reads from.
    fn input(&mut self, mut file: File) -> io::Result<OwnedFd> {
        let (reader, mut writer) = io::pipe()?;
        let theirs = reader.try_clone()?.into();
        if file.metadata()?.is_file() {
            let start = file.stream_position()?;
            let writer = Some(Sender::from_owned_fd(writer.into())?);
            self.input = Some(FileInput { file, start, sent: 0, writer, reader });
        } else {
            // It ends with this process, if not before: it may wait for what never comes.
            thread::Builder::new().name("stdin".to_owned()).spawn(move || {
                if let Err(error) = copy(&mut file, &mut writer)
                    && error.kind() != io::ErrorKind::BrokenPipe
                {
                    tracing::warn!(%error, "standard input cannot be read on");
                }
            })?;
        }
        Ok(theirs)
    }

    /// Gives the end that the command writes to.
    fn output(&mut self, name: &'static str, mut file: File) -> io::Result<OwnedFd> {
        let (pipe, writer) = io::pipe()?;
        let (still, running) = io::pipe()?;
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let mut reader = Written { pipe, running: still, left: None };
        let (done, ended) = oneshot::channel();
        thread::Builder::new().name(name.replace("standard ", "std")).spawn(move || {
            let copied = match copy(&mut reader, &mut file) {
                // Who read it left: the command hears of it as its own pipe is gone.
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err((name, error)),
                _ => Ok(()),
            };
            drop(reader);
            // Nobody waits where the harness itself ends.
            let _ = done.send(copied);
        })?;
        self.outputs.push(Output { ended, running });
        Ok(writer.into())
    }

    /// Carries a file on standard input, for as long as it is polled. It never ends.
    pub async fn feed(&mut self) -> std::convert::Infallible {
        if let Some(input) = &mut self.input
            && let Err(error) = input.feed().await
        {
            // Its end is all that the command hears of it.
            input.writer = None;
            if error.kind() != io::ErrorKind::BrokenPipe {
                tracing::warn!(%error, "standard input cannot be read on");
            }
        }
        std::future::pending().await
    }

    /// Waits until all that the command wrote is where it goes, and gives whether it is; and has a file on standard input
    /// stand behind what was read of it. Whoever reads the output may take their time, as a person in front of a pager
    /// does. Where something of the command may be left, all that has its pipes is waited for.
    pub async fn end(self, is_over: bool) -> bool {
        if let Some(input) = self.input
            && let Err(error) = input.end()
        {
            tracing::warn!(%error, "standard input does not stand behind what the command read of it");
        }
        let mut is_whole = true;
        for Output { ended, running } in self.outputs {
            let _still = (!is_over).then_some(running);
            match ended.await {
                Ok(Ok(())) => continue,
                Ok(Err((stream, error))) => tracing::error!(%error, "{stream} of the command could not be written"),
                Err(_gone) => tracing::error!("what carried the command's output is gone"),
            }
            is_whole = false;
        }
        is_whole
    }
}

impl FileInput {
    async fn feed(&mut self) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        while let Some(writer) = &mut self.writer {
            let count = self.file.read_at(&mut chunk, self.start + self.sent)?;
            let Some(mut left) = chunk.get(..count).filter(|left| !left.is_empty()) else {
                self.writer = None;
                break;
            };
            while !left.is_empty() {
                let written = writer.write(left).await?;
                self.sent += written as u64;
                left = left.get(written..).unwrap_or_default();
            }
        }
        Ok(())
    }

    fn end(mut self) -> io::Result<()> {
        self.writer = None;
        fcntl(&self.reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let (mut chunk, mut unread) = (vec![0; CHUNK], 0);
        loop {
            match self.reader.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => unread += count as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.file.seek(SeekFrom::Start(self.start + self.sent.saturating_sub(unread))).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;

    fn way_of(file: impl Into<OwnedFd>) -> Result<Way, StreamError> {
        way(NAMES[0], &File::from(file.into()))
    }

    #[test]
    fn only_what_holds_nothing_is_given_and_everything_else_is_carried() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let fifo = File::options().read(true).write(true).open(fifo).unwrap();
        assert_eq!(way_of(io::pipe().unwrap().0).unwrap(), Way::Carried);
        assert_eq!(way_of(UnixStream::pair().unwrap().0).unwrap(), Way::Carried);
        let null = if geteuid().is_root() { Way::Carried } else { Way::Itself };
        assert_eq!(way_of(File::open("/dev/null").unwrap()).unwrap(), null);
        assert_eq!(way_of(fifo).unwrap(), Way::Carried);
        assert_eq!(way_of(tempfile::tempfile().unwrap()).unwrap(), Way::Carried);
        assert!(matches!(way_of(File::open(folder.path()).unwrap()), Err(StreamError::Folder(_))));
    }

    #[tokio::test]
    async fn a_file_stands_behind_what_was_read_of_it() {
        let mut file = tempfile::tempfile().unwrap();
        let text: Vec<u8> = (0..300_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
        file.write_all(&text).unwrap();
        file.seek(SeekFrom::Start(7)).unwrap();
        let mut carriers = Carriers::default();
        let theirs = carriers.input(file.try_clone().unwrap()).unwrap();
        let mut reader = PipeReader::from(theirs);
        let mut read = vec![0; 200_000];
        let reading = tokio::task::spawn_blocking(move || reader.read_exact(&mut read).map(|()| read));
        let read = tokio::select! {
            read = reading => read.unwrap().unwrap(),
            never = carriers.feed() => match never {},
        };
        assert_eq!(read, text[7..200_007]);
        assert!(carriers.end(true).await);
        assert_eq!(file.stream_position().unwrap(), 200_007);
    }

    #[tokio::test]
    async fn what_is_written_is_there_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "before\n").unwrap();
        let log = File::options().append(true).open(&path).unwrap();
        let mut carriers = Carriers::default();
        let theirs = carriers.output(NAMES[1], log).unwrap();
        PipeWriter::from(theirs).write_all(b"after\n").unwrap();
        assert!(carriers.end(true).await);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before\nafter\n");
    }

    #[tokio::test]
    async fn what_others_keep_from_blocking_is_waited_for() {
        let bytes = 1 << 20;
        let unblocked = |end: OwnedFd| {
            fcntl(&end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
            File::from(end)
        };
        let (all, count) = (vec![7; bytes], |mut reader: PipeReader| io::copy(&mut reader, &mut io::sink()));
        let ((reader, mut writer), mut carriers) = (io::pipe().unwrap(), Carriers::default());
        let theirs = carriers.input(unblocked(reader.into())).unwrap();
        let read = tokio::task::spawn_blocking(move || count(theirs.into()));
        writer.write_all(&all).unwrap();
        drop(writer);
        assert_eq!(read.await.unwrap().unwrap(), bytes as u64);

        let (reader, writer) = io::pipe().unwrap();
        let theirs = carriers.output(NAMES[1], unblocked(writer.into())).unwrap();
        let read = tokio::task::spawn_blocking(move || count(reader));
        let _left = PipeWriter::from(theirs).write_all(&all);
        assert!(carriers.end(true).await);
        assert_eq!(read.await.unwrap().unwrap(), bytes as u64);
    }

    #[tokio::test]
    async fn whoever_was_handed_the_pipe_and_goes_on_is_not_waited_for_once_the_command_is_gone() {
        let (reader, to) = io::pipe().unwrap();
        let mut carriers = Carriers::default();
        let mut command = PipeWriter::from(carriers.output(NAMES[1], File::from(OwnedFd::from(to))).unwrap());
        let mut others = command.try_clone().unwrap();
        command.write_all(b"all of it\n").unwrap();
        drop(command);
        let is_whole = tokio::time::timeout(Duration::from_secs(60), carriers.end(true)).await;
        assert!(is_whole.expect("it waits for the others"));
        assert_eq!(io::read_to_string(reader).unwrap(), "all of it\n");
        assert_eq!(others.write_all(b"more\n").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn a_command_of_which_something_may_be_left_is_waited_for() {
        let (reader, to) = io::pipe().unwrap();
        let mut carriers = Carriers::default();
        let mut left = PipeWriter::from(carriers.output(NAMES[1], File::from(OwnedFd::from(to))).unwrap());
        let writing = tokio::task::spawn_blocking(move || {
            thread::sleep(Duration::from_millis(50));
            left.write_all(b"late\n").unwrap();
        });
        assert!(carriers.end(false).await);
        writing.await.unwrap();
        assert_eq!(io::read_to_string(reader).unwrap(), "late\n");
    }

    #[tokio::test]
    async fn what_a_full_disk_does_not_take_is_known_at_the_end() {
        let mut carriers = Carriers::default();
        let theirs = carriers.output(NAMES[1], File::options().write(true).open("/dev/full").unwrap()).unwrap();
        PipeWriter::from(theirs).write_all(b"lost\n").unwrap();
        assert!(!carriers.end(true).await);
    }

    #[tokio::test]
    async fn what_others_write_to_the_same_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = File::create(&path).unwrap();
        let mut carriers = Carriers::default();
        let theirs = carriers.output(NAMES[2], log.try_clone().unwrap()).unwrap();
        let mut command = PipeWriter::from(theirs);
        command.write_all(b"command\n").unwrap();
        while std::fs::read_to_string(&path).unwrap().is_empty() {
            thread::yield_now();
        }
        // The carrier waits for more by now, or soon.
        thread::sleep(Duration::from_millis(50));
        log.write_all(b"harness\n").unwrap();
        command.write_all(b"again\n").unwrap();
        drop(command);
        assert!(carriers.end(true).await);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "command\nharness\nagain\n");
    }
}
