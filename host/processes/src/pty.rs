//! The local terminal while a command with a terminal of its own runs.
//!
//! The command never holds the local terminal: it cannot type into it, read from it or draw over it past this file.
//! Bytes are carried both ways, the window's size follows, and the local terminal is raw meanwhile so that every key,
//! Ctrl-C included, goes to the command.
//!
//! A [`Borrower`] can have the local terminal for a while: then nothing is carried, what the command writes backs up in
//! its own terminal, and afterwards it has its screen and modes again (`modes`).
//!
//! Once the command has ended, what it was writing is ended, too (`leave`): what is said then shows.
//!
//! States: found, attached (raw), lent (raw, and marked so), restored. It is restored by the end of
//! [`Attached::carry`], by dropping it, by a panic anywhere, and by [`restore`] for exits that drop nothing; the keeper
//! does it when the harness is killed. Failure paths: a side that closes ends its direction only; what the command
//! wrote before it ended is still shown; a borrower for whom the terminal is gone is not let in again.

mod leave;
mod lend;
mod modes;
mod stop;

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, isatty, read, tcgetpgrp, ttyname, write};
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until, timeout};

use crate::keeper::ProgramStream;
use crate::sys;
use crate::terminal::{mark_unended, raw, restore_to, window};
pub use lend::{BorrowedTerminal, Borrower, NoBorrower};
use modes::Modes;
use stop::{Event, Events};

/// One read from either side.
const CHUNK: usize = 16 * 1024;

/// How long the last output may take to be shown; a terminal stopped with Ctrl-S would hold it for ever.
const LAST_OUTPUT: Duration = Duration::from_secs(5);

/// What raw mode has to undo, and its own settings.
static SAVED: Mutex<Option<(OwnedFd, Termios, Termios)>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// Why the local terminal cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TerminalError {
    /// It cannot be opened a second time.
    #[error("cannot open the terminal again; redirect stdin, stdout and stderr to run without one")]
    Open(#[source] io::Error),
    /// Its settings cannot be changed.
    #[error("cannot change the terminal's settings")]
    Settings(#[source] io::Error),
    /// It cannot be waited for.
    #[error("cannot wait for the terminal; are too many files open (ulimit -n)?")]
    Watch(#[source] io::Error),
}

/// Why a person cannot be asked on this process's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unaskable {
    /// No stream is one.
    #[error("standard input, output and error are none")]
    Nowhere,
    /// No keys come.
    #[error("standard input is none")]
    Input,
    /// Nobody sees what is written.
    #[error("standard error is none")]
    Error,
    /// It could reach the same terminal past this file.
    #[error("standard output goes through a pipe, not to one or into a file")]
    Piped,
    /// The keys are the shell's.
    #[error("this one runs in the background of its own")]
    Background,
    /// It understands nothing that moves its cursor.
    #[error("this one draws nothing (TERM=dumb)")]
    Dumb,
}

/// The terminal among this process's stdin, stdout and stderr.
#[derive(Debug)]
pub struct Local {
    terminal: OwnedFd,
    is_terminal: [bool; 3],
    name: Option<PathBuf>,
    forwards_keys: bool,
}

impl Local {
    /// Finds it; none if no stream is a terminal.
    pub fn find() -> Result<Option<Self>, TerminalError> {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let streams: [BorrowedFd<'_>; 3] = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        let is_terminal = streams.map(|fd| isatty(fd).unwrap_or(false));
        let Some(fd) = streams.into_iter().zip(is_terminal).find(|(_, is)| *is).map(|(fd, _)| fd) else {
            return Ok(None);
        };
        let terminal = open_again(fd).map_err(|errno| TerminalError::Open(errno.into()))?;
        // A job in the background must not take keys from the shell.
        let in_front = tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp());
        let forwards_keys = is_terminal[0] && in_front;
        Ok(Some(Self { name: ttyname(fd).ok(), terminal, is_terminal, forwards_keys }))
    }

    /// Why no person can be asked something here. They can be where it draws, they see what is written, their keys come
    /// here, and what the command writes can be held meanwhile.
    pub fn unaskable(&self) -> Option<Unaskable> {
        let kind = fstat(io::stdout()).map(|to| SFlag::from_bits_truncate(to.st_mode) & SFlag::S_IFMT);
        let piped = kind.is_ok_and(|kind| kind == SFlag::S_IFIFO || kind == SFlag::S_IFSOCK);
        let all = [
            (!self.is_terminal[0], Unaskable::Input),
            (!self.is_terminal[2], Unaskable::Error),
            (piped, Unaskable::Piped),
            (!self.forwards_keys, Unaskable::Background),
            (!window::draws(), Unaskable::Dumb),
        ];
        all.into_iter().find(|(is, _)| *is).map(|(_, why)| why)
    }

    /// The command's streams: its own terminal where there is one here, the rest as they are.
    pub fn streams(&self) -> [ProgramStream; 3] {
        self.is_terminal.map(|is| if is { ProgramStream::Terminal } else { ProgramStream::Inherit })
    }

    /// The terminal's device, which a sandbox should hide: reading from it takes keys, writing to it draws.
    pub fn name(&self) -> Option<&PathBuf> {
        self.name.as_ref()
    }

    /// A second descriptor, for [`crate::keeper::KeptCommand::local_terminal`].
    pub fn duplicate(&self) -> Result<OwnedFd, TerminalError> {
        self.terminal.try_clone().map_err(TerminalError::Open)
    }

    /// Puts this terminal in front of the command's; `command` is [`crate::keeper::Kept::terminal`].
    pub fn attach(self, command: OwnedFd) -> Result<Attached, TerminalError> {
        let flags = fcntl(&command, FcntlArg::F_GETFL).map(OFlag::from_bits_truncate);
        flags
            .and_then(|flags| fcntl(&command, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)))
            .map_err(|errno| TerminalError::Settings(errno.into()))?;
        // What goes past this file to the same terminal, as through `| tee`, still needs its lines ended.
        let ends_lines = !(self.is_terminal[1] && self.is_terminal[2]);
        let raw = if self.forwards_keys { Some(Raw::enter(&self.terminal, ends_lines)?) } else { None };
        let local = sys::watched(self.terminal).map_err(TerminalError::Watch)?;
        let command = sys::watched(command).map_err(TerminalError::Watch)?;
        Ok(Attached { local, command, raw })
    }
}

/// Opens the same terminal anew: to be non-blocking is a property of an opened file, and the shell shares ours.
fn open_again(fd: BorrowedFd<'_>) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let by_number = format!("/proc/self/fd/{}", fd.as_raw_fd());
    // After su the device belongs to somebody else, but the name of the controlling terminal still opens it.
    open(by_number.as_str(), flags, Mode::empty()).or_else(|_| open("/dev/tty", flags, Mode::empty()))
}

/// The local terminal in front of a command's.
#[derive(Debug)]
pub struct Attached {
    local: AsyncFd<OwnedFd>,
    command: AsyncFd<OwnedFd>,
    raw: Option<Raw>,
}

impl Attached {
    /// Carries bytes both ways until `ended` is ready and everything that the command wrote is shown; then ends what it
    /// was writing, and restores the local terminal.
    pub async fn carry<T>(self, ended: impl Future<Output = T>) -> Result<T, TerminalError> {
        self.carry_with(&mut NoBorrower, ended).await
    }

    /// As [`Self::carry`], with a borrower. Without keys from the local terminal there is none.
    pub async fn carry_with<T>(
        self,
        borrower: &mut impl Borrower,
        ended: impl Future<Output = T>,
    ) -> Result<T, TerminalError> {
        let mut events = Events::listen(self.raw.is_some()).map_err(TerminalError::Watch)?;
        // For the keeper, should this process be killed.
        let _whose_terminal_it_is_may_do_so = mark_unended(self.local.get_ref(), self.raw.is_some() && window::draws());
        // The window may have changed between the start and now.
        self.resize();
        let modes = Mutex::new(Modes::default());
        let note = |bytes: &[u8]| modes.lock().unwrap_or_else(PoisonError::into_inner).feed(bytes);
        let (mut keys_go, mut output_comes, mut lends) = (self.raw.is_some(), true, self.raw.is_some());
        // Until then the window is a row smaller, for the command's screen to be drawn again.
        let mut smaller_until = None;
        let mut ended = pin!(ended);
        let mut keys = pin!(pump(&self.local, &self.command, |_| ()));
        let mut output = pin!(pump(&self.command, &self.local, note));
        let value = loop {
            tokio::select! {
                value = &mut ended => break value,
                event = events.next() => match event {
                    Event::Resized => self.resize(),
                    Event::Stop => self.stop(Some(&modes)),
                    Event::Continued if !self.resume() => {}
                    Event::Continued => {
                        if events.went_on() {
                            let _terminal_may_be_gone = self.give_back_again(&modes).await;
                        }
                        smaller_until = self.draw_again(&modes);
                    }
                },
                () = sleep_until(smaller_until.unwrap_or_else(Instant::now)), if smaller_until.is_some() => {
                    smaller_until = None;
                    self.resize();
                }
                _closed = &mut keys, if keys_go => keys_go = false,
                _closed = &mut output, if output_comes => output_comes = false,
                () = borrower.wants(), if lends => tokio::select! {
                    value = &mut ended => {
                        let _given_back_or_too_slow = timeout(LAST_OUTPUT, self.give_back(&modes)).await;
                        break value;
                    }
                    used = self.lend(borrower, &modes, &mut events) => {
                        lends = used.is_ok();
                        smaller_until = self.draw_again(&modes);
                    }
                },
            }
        };
        if output_comes {
            let _shown_or_too_slow = timeout(LAST_OUTPUT, output).await;
        }
        let _left_or_too_slow = timeout(LAST_OUTPUT, self.leave(&modes)).await;
        Ok(value)
    }

    fn resize(&self) {
        let _either_may_be_gone = window::copy(&self.local, &self.command);
    }
}

/// Carries bytes one way until a side is closed; `note` is told what has gone.
async fn pump(from: &AsyncFd<OwnedFd>, to: &AsyncFd<OwnedFd>, note: impl Fn(&[u8])) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = from.async_io(tokio::io::Interest::READABLE, |fd| again(|| read(fd, &mut chunk))).await?;
        let rest = chunk.get(..count).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        write_all(to, rest, &note).await?;
    }
}

async fn write_all(to: &AsyncFd<OwnedFd>, mut rest: &[u8], note: impl Fn(&[u8])) -> io::Result<()> {
    while !rest.is_empty() {
        let written = to.async_io(tokio::io::Interest::WRITABLE, |fd| write_if_open(fd, rest)).await?;
        note(rest.get(..written).unwrap_or_default());
        rest = rest.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// One write. A full terminal whose other side is closed has no room again, and counts as ready all the same: whoever waited
/// for room would ask again without end, and nothing else would get its turn.
fn write_if_open(to: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    match again(|| write(to, bytes)) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock && is_closed(to) => Err(Errno::EIO.into()),
        written => written,
    }
}

fn is_closed(terminal: &OwnedFd) -> bool {
    let mut looked_at = [PollFd::new(terminal.as_fd(), PollFlags::empty())];
    poll(&mut looked_at, PollTimeout::ZERO).is_ok()
        && looked_at[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP))
}

fn again(mut call: impl FnMut() -> nix::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Raw mode of one terminal, as long as this lives.
#[derive(Debug)]
struct Raw(());

impl Raw {
    fn enter(terminal: &OwnedFd, ends_lines: bool) -> Result<Self, TerminalError> {
        let settings = |errno: Errno| TerminalError::Settings(errno.into());
        let before = tcgetattr(terminal).map_err(settings)?;
        let raw = raw(&before, ends_lines);
        let copy = terminal.try_clone().map_err(TerminalError::Open)?;
        HOOK.call_once(|| {
            let previous = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                restore();
                previous(info);
            }));
        });
        *SAVED.lock().unwrap_or_else(PoisonError::into_inner) = Some((copy, before, raw.clone()));
        tcsetattr(terminal, SetArg::TCSADRAIN, &raw).map_err(settings)?;
        Ok(Self(()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the local terminal if it is raw. For exits of the process that drop nothing; otherwise not needed.
pub fn restore() {
    if let Some((terminal, before, _)) = SAVED.lock().unwrap_or_else(PoisonError::into_inner).take() {
        restore_to(&terminal, &before);
    }
}
