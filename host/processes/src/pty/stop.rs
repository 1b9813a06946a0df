//! Being stopped and going on, as a job of a shell is: the shell finds its terminal as it was, and the command has it
//! again afterwards.
//!
//! SIGTSTP is taken and SIGSTOP follows once the terminal is restored. Who sends SIGSTOP itself gets no restored one.
//! The command goes on meanwhile, until what it writes has no room.

use std::io;
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{Signal, raise};
use nix::sys::termios::{SetArg, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp, write};
use tokio::signal::unix::{self, SignalKind, signal};

use super::{Attached, Modes, SAVED, write_all};
use crate::terminal::{LEAVE, mark, mark_unended, window};

/// Turns to the alternate screen, which a stop leaves.
pub(super) const ALTERNATE: &str = "\x1b[?1049h";

/// What happens to the local terminal or to its job.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// Its window has another size.
    Resized,
    /// The job is to stop.
    Stop,
    /// The job goes on.
    Continued,
}

/// The signals that tell of it.
#[derive(Debug)]
pub(super) struct Events {
    resized: unix::Signal,
    /// Stopped and continued.
    job: Option<(unix::Signal, unix::Signal)>,
    /// Whether the screen was left, and is not taken again.
    left: bool,
}

impl Events {
    /// Listens. Where the terminal is not raw nothing has to be restored, and being stopped is left to the kernel.
    pub(super) fn listen(raw: bool) -> io::Result<Self> {
        let number = |signal: Signal| SignalKind::from_raw(signal as i32);
        let job = || Ok::<_, io::Error>((signal(number(Signal::SIGTSTP))?, signal(number(Signal::SIGCONT))?));
        Ok(Self {
            resized: signal(SignalKind::window_change())?,
            job: if raw { Some(job()?) } else { None },
            left: false,
        })
    }

    /// The next one. Dropping the future loses none.
    pub(super) async fn next(&mut self) -> Event {
        let Self { resized, job, left } = self;
        let job = async {
            match job {
                Some((stop, continued)) => tokio::select! {
                    Some(()) = stop.recv() => {
                        *left = true;
                        Event::Stop
                    }
                    Some(()) = continued.recv() => Event::Continued,
                    else => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(()) = resized.recv() => Event::Resized,
            event = job => event,
        }
    }

    /// Says, once after each stop, that the screen has to be taken again.
    pub(super) fn went_on(&mut self) -> bool {
        std::mem::take(&mut self.left)
    }
}

impl Attached {
    /// Restores the terminal and stops this process. When it goes on, [`Event::Continued`] is next. `modes` are the
    /// command's, unless a borrower has the screen.
    pub(super) fn stop(&self, modes: Option<&Mutex<Modes>>) {
        let terminal = self.local.get_ref();
        let taken = modes.map(|modes| modes.lock().unwrap_or_else(PoisonError::into_inner).taken(None));
        let text = format!("{}{}", taken.unwrap_or_default(), LEAVE);
        // In one go or not at all: a terminal that takes nothing now must not hold up the stop.
        let _as_far_as_there_is_room = write(terminal, text.as_bytes());
        let _it_is_only_for_us = mark(terminal, false);
        // Until it goes on, the terminal is the shell's.
        let _it_is_only_for_us = mark_unended(terminal, false);
        if let Some((_, before, _)) = &*SAVED.lock().unwrap_or_else(PoisonError::into_inner) {
            let _terminal_may_be_gone = tcsetattr(terminal, SetArg::TCSANOW, before);
        }
        // It cannot fail: SIGSTOP is a signal, and this process may signal itself.
        let _stopped_and_continued = raise(Signal::SIGSTOP);
    }

    /// Makes the terminal raw again, and follows the window, whose size may be another one. In the background it does
    /// not: the terminal is somebody else's.
    pub(super) fn resume(&self) -> bool {
        let terminal = self.local.get_ref();
        if !tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()) {
            return false;
        }
        if let Some((_, _, raw)) = &*SAVED.lock().unwrap_or_else(PoisonError::into_inner) {
            let _terminal_may_be_gone = tcsetattr(terminal, SetArg::TCSANOW, raw);
        }
        let _it_is_only_for_us = mark_unended(terminal, window::draws());
        self.resize();
        true
    }

    /// Gives the command its screen again after a stop.
    pub(super) async fn give_back_again(&self, modes: &Mutex<Modes>) -> io::Result<()> {
        let given_back = modes.lock().unwrap_or_else(PoisonError::into_inner).given_back();
        // As if a borrower had been there.
        let text = [format!("{ALTERNATE}\x1b[>0u").into_bytes(), given_back].concat();
        write_all(&self.local, &text, |_| ()).await
    }
}
