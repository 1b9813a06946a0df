//! The local terminal in the hands of somebody else for a while.
//!
//! Before: what was typed is forgotten, the screen is a clean one. After: what was typed and not read is forgotten, the
//! command's screen and modes are back. A command on the alternate screen has lost what was on it; it is made to draw
//! it again by a window that is a row smaller for a moment, since nothing else moves all programs to do so.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::termios::{FlushArg, tcflush};
use nix::unistd::{read, write};
use tokio::io::{Interest, unix::AsyncFd};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{
    Attached, Modes, again,
    stop::{self, Event, Events},
    write_all,
};
use crate::terminal::{mark, window};

/// How long the window is a row smaller: two changes that a program sees as one are none.
const SMALLER: Duration = Duration::from_millis(150);

/// Somebody who uses the local terminal now and then.
pub trait Borrower {
    /// Waits until it wants the terminal. Dropped and called again at any time.
    fn wants(&mut self) -> impl Future<Output = ()>;
    /// Uses it until it is done, or fails because the terminal is gone. Dropped when the command ends meanwhile.
    fn uses(&mut self, terminal: &BorrowedTerminal<'_>) -> impl Future<Output = io::Result<()>>;
}

/// Nobody who borrows it.
#[derive(Debug)]
pub struct NoBorrower;

impl Borrower for NoBorrower {
    async fn wants(&mut self) {
        std::future::pending().await
    }

    async fn uses(&mut self, _: &BorrowedTerminal<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// The local terminal as a borrower has it: raw, with a clean screen.
#[derive(Debug)]
pub struct BorrowedTerminal<'a> {
    local: &'a AsyncFd<OwnedFd>,
    command: &'a AsyncFd<OwnedFd>,
    resized: Notify,
}

impl BorrowedTerminal<'_> {
    /// Waits for keys.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub async fn keys(&self) -> io::Result<Vec<u8>> {
        let mut chunk = [0; 256];
        let count = self.local.async_io(Interest::READABLE, |fd| again(|| read(fd, &mut chunk))).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(chunk.get(..count).unwrap_or_default().to_vec())
    }

    /// Forgets keys that nobody has read.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn forget_keys(&self) -> io::Result<()> {
        Ok(tcflush(self.local, FlushArg::TCIFLUSH)?)
    }

    /// Writes.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub async fn write(&self, text: &str) -> io::Result<()> {
        write_all(self.local, text.as_bytes(), |_| ()).await
    }

    /// Interrupts the command as a typed Ctrl-C would: what that means is up to the command's terminal.
    pub fn interrupt(&self) {
        // One that reads no keys has no room for it either, as for one that is typed.
        let _no_room_or_gone = write(self.command, b"\x03");
    }

    /// Rows and columns, if they are known.
    pub fn size(&self) -> Option<(u16, u16)> {
        window::size(self.local)
    }

    /// Waits until the size is another one.
    pub async fn resized(&self) {
        self.resized.notified().await;
    }
}

impl Attached {
    /// Lets a borrower have the terminal, until it is done. When this is dropped, [`Self::give_back`] is still to come.
    pub(super) async fn lend(
        &self,
        borrower: &mut impl Borrower,
        modes: &Mutex<Modes>,
        events: &mut Events,
    ) -> io::Result<()> {
        mark(self.local.get_ref(), true)?;
        tcflush(&self.local, FlushArg::TCIFLUSH)?;
        let taken = || modes.lock().unwrap_or_else(PoisonError::into_inner).taken(window::size(&self.local));
        let lent = BorrowedTerminal { local: &self.local, command: &self.command, resized: Notify::new() };
        let used = async {
            lent.write(&taken()).await?;
            borrower.uses(&lent).await
        };
        let mut used = std::pin::pin!(used);
        let used = loop {
            tokio::select! {
                used = &mut used => break used,
                event = events.next() => {
                    match event {
                        Event::Resized => self.resize(),
                        Event::Stop => {
                            self.stop(None);
                            continue;
                        }
                        Event::Continued if !self.resume() => continue,
                        Event::Continued => {
                            mark(self.local.get_ref(), true)?;
                            if events.went_on() {
                                lent.write(&format!("{}{}", stop::ALTERNATE, taken())).await?;
                            }
                            lent.forget_keys()?;
                        }
                    }
                    lent.resized.notify_one();
                }
            }
        };
        self.give_back(modes).await?;
        used
    }

    /// Gives the terminal back to the command.
    pub(super) async fn give_back(&self, modes: &Mutex<Modes>) -> io::Result<()> {
        let given_back = modes.lock().unwrap_or_else(PoisonError::into_inner).given_back();
        // Before: who sees the command's screen again types for it.
        tcflush(&self.local, FlushArg::TCIFLUSH)?;
        write_all(&self.local, &given_back, |_| ()).await?;
        Ok(mark(self.local.get_ref(), false)?)
    }

    /// Has a command on the alternate screen draw it again: says until when its window is smaller.
    pub(super) fn draw_again(&self, modes: &Mutex<Modes>) -> Option<Instant> {
        let alternate = modes.lock().unwrap_or_else(PoisonError::into_inner).is_alternate();
        let smaller = alternate && window::shrink(&self.command).is_ok();
        smaller.then(|| Instant::now() + SMALLER)
    }
}
