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
        termios::{FlushArg, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcflush, tcgetattr, tcsetattr},
    },
};

use super::page::Lines;

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
pub(super) struct Screen {
    before: Termios,
    signals: SignalFd,
    drawn: String,
}

impl Screen {
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
        ours.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        ours.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &ours)?;
        let screen = Self { before, signals, drawn: String::new() };
        write("\x1b[?1049h")?;
        Ok(screen)
    }

    /// Forgets keys that nobody has read.
    pub(super) fn forget_keys(&self) -> anyhow::Result<()> {
        Ok(tcflush(io::stdin(), FlushArg::TCIFLUSH)?)
    }

    /// Shows a page, a remark, and the word that is being typed; all of it is escaped before.
    pub(super) fn draw(&mut self, lines: &Lines, note: &str, typed: &str) -> io::Result<()> {
        let (rows, columns) = crate::sys::window_size(io::stdout()).unwrap_or((24, 80));
        let (rows, columns) = (usize::from(rows).max(4), usize::from(columns).max(20));
        let mut text = "\x1b[2J\x1b[H".to_owned();
        for line in lines.fit(rows - 2, columns) {
            text.push_str(&line);
            text.push_str("\r\n");
        }
        let note = footbridge_proto::text::Escaped(note).to_string();
        let cut = |text: &str| text.chars().take(columns - 1).collect::<String>();
        text.push_str(&format!("\x1b[{};1H{}", rows - 1, cut(&note)));
        text.push_str(&format!("\x1b[{rows};1H{}", cut(&format!("allow, deny, remember, all, next, quit> {typed}"))));
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

impl Drop for Screen {
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
