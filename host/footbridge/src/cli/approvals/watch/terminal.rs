//! The terminal: the alternate screen, keys one by one and unseen, and signals.

use std::{
    io::{self, Write as _},
    os::fd::AsFd,
    time::Duration,
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
        termios::{
            FlushArg, InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcflush, tcgetattr, tcsetattr,
        },
    },
};

/// What happened at the terminal.
#[derive(Debug)]
pub(super) enum Event {
    /// Nothing, or the window has another size.
    Nothing,
    /// These keys.
    Keys(Vec<u8>),
    /// It is closed, or a signal says to end.
    End,
}

/// The terminal while it is ours. Dropping it gives it back as it was.
pub(super) struct Terminal {
    before: Termios,
    signals: SignalFd,
    drawn: String,
}

impl Terminal {
    /// Takes the terminal. What was typed before is forgotten.
    pub(super) fn open() -> anyhow::Result<Self> {
        let mut set = SigSet::empty();
        [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGWINCH]
            .into_iter()
            .for_each(|signal| set.add(signal));
        set.thread_block()?;
        let signals = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let before = tcgetattr(io::stdin())?;
        let mut ours = before.clone();
        ours.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG | LocalFlags::IEXTEN);
        // Ctrl-S would stop what is shown, and with it whoever shows it.
        ours.input_flags.remove(InputFlags::IXON);
        ours.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        ours.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &ours)?;
        let terminal = Self { before, signals, drawn: String::new() };
        write("\x1b[?1049h")?;
        Ok(terminal)
    }

    /// Forgets keys that nobody has read.
    pub(super) fn forget_keys(&self) -> io::Result<()> {
        Ok(tcflush(io::stdin(), FlushArg::TCIFLUSH)?)
    }

    /// Rows and columns.
    pub(super) fn size(&self) -> Option<(u16, u16)> {
        footbridge_processes::terminal::window::size(io::stdout())
    }

    /// Shows this, unless it is what is shown.
    pub(super) fn draw(&mut self, text: String) -> io::Result<()> {
        if text != self.drawn {
            write(&text)?;
            self.drawn = text;
        }
        Ok(())
    }

    /// Waits for a key or a signal, at most this long.
    pub(super) fn wait(&mut self, time: Duration) -> anyhow::Result<Event> {
        let stdin = io::stdin();
        let mut both =
            [PollFd::new(stdin.as_fd(), PollFlags::POLLIN), PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        poll(&mut both, PollTimeout::try_from(time)?)?;
        let keys = both[0].revents().unwrap_or(PollFlags::empty());
        while let Some(signal) = self.signals.read_signal()? {
            if signal.ssi_signo != Signal::SIGWINCH as u32 {
                return Ok(Event::End);
            }
            self.drawn.clear();
        }
        if keys.is_empty() {
            return Ok(Event::Nothing);
        }
        let mut bytes = [0; 256];
        match nix::unistd::read(&stdin, &mut bytes)? {
            0 => Ok(Event::End),
            count => Ok(Event::Keys(bytes[..count].to_vec())),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The terminal may be gone; then there is nothing to give back.
        let _ = write("\x1b[2J\x1b[?1049l");
        let _ = tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &self.before);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
