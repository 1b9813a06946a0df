//! The person in front of a one-shot call: asked on their terminal, whatever standard input and output are.
//!
//! The terminal is taken only while something waits for an answer, and is given back as it was when this ends or is
//! dropped. What is shown and what keys mean is [`prompt`]'s.
//!
//! [`prompt`]: crate::approvers::prompt

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    ops::ControlFlow::{Break, Continue},
    os::{fd::AsFd as _, unix::fs::OpenOptionsExt as _},
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, poll},
    sys::{
        signal::Signal,
        termios::{
            FlushArg, InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcflush, tcgetattr, tcsetattr,
        },
    },
};

use super::failure::OneShotFailure;
use crate::{
    approvers::prompt::{
        Prompt, PromptContext,
        loops::{AfterKey, OwnApprovals},
    },
    waiting::ScreenTaken,
};
use footbridge_calls::approval::Approvals;
use footbridge_processes::{sys::watched, terminal::window};

/// The terminal of this process, whatever its standard streams are.
const TERMINAL: &str = "/dev/tty";

/// What the terminal shows.
const HERE: PromptContext = PromptContext { name: "footbridge", leave: "quit", stop: None, others: false };

/// How long a terminal may take nothing, milliseconds.
const ROOM: u16 = 5_000;

/// How often it is looked how long is left, and whether the window has another size.
const EVERY: Duration = Duration::from_secs(1);

/// Whoever sits at the terminal that this process belongs to.
#[derive(Debug)]
pub(crate) struct Person(File);

impl Person {
    /// The person, if there is a terminal that draws.
    pub(crate) fn find() -> Option<Self> {
        if !window::draws() {
            return None;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC);
        options.open(TERMINAL).ok().map(Self)
    }
}

/// Whether a person is asked about a call. A server's question is one of a call that it has.
pub(super) fn waits_for_person(approvals: &Approvals) -> bool {
    approvals.pending().iter().any(|asked| asked.question.is_none())
}

/// Asks the person, if there is one, about all that waits. It ends only when they leave, or their terminal does.
pub(crate) async fn ask(person: Option<&Person>, approvals: &Approvals) -> OneShotFailure {
    let Some(Person(terminal)) = person else { return std::future::pending().await };
    match asks(terminal, approvals).await {
        Ok(()) if waits_for_person(approvals) => OneShotFailure::Interrupted(Signal::SIGINT),
        Ok(()) => OneShotFailure::InterruptedCall(Signal::SIGINT),
        Err(error) => OneShotFailure::Harness(anyhow::Error::new(error).context("the terminal cannot be used")),
    }
}

/// Until the person leaves.
async fn asks(terminal: &File, approvals: &Approvals) -> io::Result<()> {
    let look = || if approvals.pending().is_empty() { Continue(None) } else { Break(()) };
    loop {
        approvals.look_until(look).await;
        if asks_what_waits(terminal, approvals).await? == After::Leave {
            return Ok(());
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Stay,
    Leave,
}

async fn asks_what_waits(terminal: &File, approvals: &Approvals) -> io::Result<After> {
    let taken = TakenTerminal::take(terminal)?;
    let mut takes = OwnApprovals { approvals, means: "terminal of call", forget_keys: || taken.forget_keys() };
    let keys = watched(terminal.try_clone()?.into())?;
    let mut changed = approvals.watch();
    let mut prompt = Prompt::new(HERE, Instant::now());
    let mut drawn = String::new();
    loop {
        changed.borrow_and_update();
        let waiting = approvals.pending();
        let is_over = waiting.is_empty();
        prompt.renew(waiting, &mut takes)?;
        if is_over {
            return Ok(After::Stay);
        }
        let text = prompt.text(window::size(terminal));
        if text != drawn {
            taken.write(&text)?;
            drawn = text;
            prompt.drawn(Instant::now());
        }
        tokio::select! {
            ready = keys.readable() => {
                let mut ready = ready?;
                let mut bytes = [0; 256];
                match ready.try_io(|fd| Ok(nix::unistd::read(fd.get_ref(), &mut bytes)?)) {
                    Ok(Ok(0)) => return Ok(After::Leave),
                    Ok(Ok(count)) => for key in &bytes[..count] {
                        match prompt.typed(*key, &mut takes)? {
                            AfterKey::Stay | AfterKey::Answered => {}
                            AfterKey::Leave | AfterKey::Stop => return Ok(After::Leave),
                        }
                    },
                    Ok(Err(error)) => return Err(error),
                    Err(_not_yet) => {}
                }
            }
            _ = changed.changed() => {}
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

/// The terminal while it is ours: the alternate screen, keys one by one and unseen. Dropping it gives it back.
struct TakenTerminal<'t> {
    terminal: &'t File,
    before: Termios,
    _screen: ScreenTaken,
}

impl<'t> TakenTerminal<'t> {
    /// What was typed before is forgotten.
    fn take(terminal: &'t File) -> io::Result<Self> {
        let _screen = ScreenTaken::take();
        let before = tcgetattr(terminal)?;
        let mut ours = before.clone();
        ours.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG | LocalFlags::IEXTEN);
        // Ctrl-S would stop what is shown, and with it whoever shows it.
        ours.input_flags.remove(InputFlags::IXON);
        ours.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        ours.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(terminal, SetArg::TCSAFLUSH, &ours)?;
        let taken = Self { terminal, before, _screen };
        taken.write("\x1b[?1049h")?;
        Ok(taken)
    }

    fn forget_keys(&self) -> io::Result<()> {
        Ok(tcflush(self.terminal, FlushArg::TCIFLUSH)?)
    }

    /// A screen's worth. One on a slow line takes it bit by bit; one that takes nothing more for a while is gone.
    fn write(&self, text: &str) -> io::Result<()> {
        let (mut terminal, mut rest) = (self.terminal, text.as_bytes());
        while !rest.is_empty() {
            match terminal.write(rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut looked_at = [PollFd::new(self.terminal.as_fd(), PollFlags::POLLOUT)];
                    match poll(&mut looked_at, ROOM) {
                        Ok(0) => return Err(error),
                        Ok(_) | Err(Errno::EINTR) => {}
                        Err(errno) => return Err(errno.into()),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for TakenTerminal<'_> {
    fn drop(&mut self) {
        // The terminal may be gone; then there is nothing to give back.
        let _ = self.write("\x1b[2J\x1b[?1049l");
        let _ = tcsetattr(self.terminal, SetArg::TCSAFLUSH, &self.before);
    }
}
