//! What is kept about a terminal in the terminal itself: its settings, its size, and whether it is lent to somebody.
//!
//! The keeper restores by it what a killed harness has left behind, so nothing here depends on memory of a process.
//!
//! It refuses to know whose terminal it is, and what is carried to and from it.

pub mod window;

use std::os::fd::OwnedFd;

use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sys::stat::Mode;
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::write;

/// Whether a terminal controls this process, so that it can be reached by keys there. Once that is closed, none does.
pub fn has_controlling_terminal() -> bool {
    let flags = OFlag::O_RDONLY | OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    open("/dev/tty", flags, Mode::empty()).is_ok()
}

/// See [`mark`].
const LENT: OFlag = OFlag::O_APPEND;

/// Gives the terminal back where there is nobody whose modes would have to be set again.
pub(crate) const LEAVE: &str = "\x18\x1b\\\x1b[0m\x1b[2J\x1b[<u\x1b[?1049l\x1b[?25h";

/// Raw settings; with `ends_lines` all but what happens to what is written.
pub(crate) fn raw(before: &Termios, ends_lines: bool) -> Termios {
    let mut raw = before.clone();
    cfmakeraw(&mut raw);
    if ends_lines {
        raw.output_flags = before.output_flags;
    }
    // As a terminal gives them back: otherwise they differ from what was set by what is behind the flags.
    Termios::from(nix::libc::termios::from(raw))
}

/// Gives a terminal these settings back if it is raw, and takes it off the screen of a borrower.
pub(crate) fn restore_to(terminal: &OwnedFd, before: &Termios) {
    if fcntl(terminal, FcntlArg::F_GETFL).is_ok_and(|flags| OFlag::from_bits_retain(flags).contains(LENT)) {
        let _terminal_may_be_gone = write(terminal, LEAVE.as_bytes());
        let _it_is_only_for_us = mark(terminal, false);
    }
    // A shell may have made it its own already.
    if tcgetattr(terminal).is_ok_and(|now| now == raw(before, true) || now == raw(before, false)) {
        let _terminal_may_be_gone = tcsetattr(terminal, SetArg::TCSANOW, before);
    }
}

/// Notes whether a borrower has the terminal, where the keeper finds it though this process is killed: as a flag of the
/// opened file, which both share and nobody else has. For a terminal it means nothing.
pub(crate) fn mark(terminal: &OwnedFd, lent: bool) -> nix::Result<()> {
    let mut flags = OFlag::from_bits_retain(fcntl(terminal, FcntlArg::F_GETFL)?);
    flags.set(LENT, lent);
    fcntl(terminal, FcntlArg::F_SETFL(flags)).map(drop)
}

#[cfg(test)]
mod tests {
    use nix::pty::openpty;

    use super::*;

    #[test]
    fn a_raw_terminal_is_given_its_settings_back_whether_or_not_it_ends_lines() {
        for ends_lines in [true, false] {
            let pty = openpty(None, None).unwrap();
            let before = tcgetattr(&pty.slave).unwrap();
            tcsetattr(&pty.slave, SetArg::TCSANOW, &raw(&before, ends_lines)).unwrap();
            assert_ne!(tcgetattr(&pty.slave).unwrap(), before);
            restore_to(&pty.slave, &before);
            assert_eq!(tcgetattr(&pty.slave).unwrap(), before, "{ends_lines}");
        }
    }
}
