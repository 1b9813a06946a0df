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

/// See [`mark_unended`]. Only whose terminal it is can set this one.
const UNENDED: OFlag = OFlag::O_NOATIME;

/// Gives the terminal back where there is nobody whose modes would have to be set again.
pub(crate) const LEAVE: &str = "\x18\x1b\\\x1b[0m\x1b[2J\x1b[<u\x1b[?1049l\x1b[?25h";

/// Ends every sequence and string that is not whole, and what else would keep text from the screen: VT52 mode, and
/// printing instead of showing.
pub(crate) const CLEAN: &str = "\x18\x1b\\\x1b<\x1b[4i";

/// Leaves the alternate screen without moving the cursor, so that it does nothing on the other one.
pub(crate) const MAIN_SCREEN: &str = "\x1b[?47l";

/// Switches off what programs switch on for themselves alone, and what would change how text looks. Some of the modes move
/// the cursor, which is put back: the text goes on there.
pub(crate) const SWITCHED_OFF: &str = "\x1b[>4m\x1b[=0u\x1b[0m\x1b(B\x0f\x1b>\x1b7\x1b[2l\x1b[4l\x1b[20l\x1b[12h\
     \x1b[?1l\x1b[?5l\x1b[?6l\x1b[?69l\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\
     \x1b[?1015l\x1b[?1016l\x1b[?2004l\x1b[?2026l\x1b[?2031l\x1b[?2048l\x1b[?9001l\x1b[r\x1b8\x1b[?7h\x1b[?25h";

/// Raw settings; with `ends_lines` all but what happens to what is written.
pub(crate) fn raw(before: &Termios, ends_lines: bool) -> Termios {
    let mut raw = before.clone();
    cfmakeraw(&mut raw);
    if !ends_lines {
        return raw;
    }
    // As a terminal gives them back: set by the flags alone, they would differ from that by what is behind these.
    let mut raw = nix::libc::termios::from(raw);
    raw.c_oflag = before.output_flags.bits();
    Termios::from(raw)
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

/// As [`restore_to`], for a harness that was killed: what its command was writing is ended here, whatever it did to the
/// terminal. A shell may have its own settings by then, and knows nothing of modes.
pub(crate) fn restore_unended(terminal: &OwnedFd, before: &Termios) {
    if fcntl(terminal, FcntlArg::F_GETFL).is_ok_and(|flags| OFlag::from_bits_retain(flags).contains(UNENDED)) {
        let text = [CLEAN, MAIN_SCREEN, SWITCHED_OFF].concat();
        // In one go or not at all: a terminal that takes nothing must not hold up the end.
        let _as_far_as_there_is_room = write(terminal, text.as_bytes());
        let _it_is_only_for_us = mark_unended(terminal, false);
    }
    restore_to(terminal, before);
}

/// Notes whether a command writes to the terminal and nobody has ended that yet, as [`mark`] does.
pub(crate) fn mark_unended(terminal: &OwnedFd, unended: bool) -> nix::Result<()> {
    set_flag(terminal, UNENDED, unended)
}

/// Notes whether a borrower has the terminal, where the keeper finds it though this process is killed: as a flag of the
/// opened file, which both share and nobody else has. For a terminal it means nothing.
pub(crate) fn mark(terminal: &OwnedFd, lent: bool) -> nix::Result<()> {
    set_flag(terminal, LENT, lent)
}

fn set_flag(terminal: &OwnedFd, flag: OFlag, is_set: bool) -> nix::Result<()> {
    let mut flags = OFlag::from_bits_retain(fcntl(terminal, FcntlArg::F_GETFL)?);
    flags.set(flag, is_set);
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
            let set = tcgetattr(&pty.slave).unwrap();
            assert_eq!(set.output_flags == before.output_flags, ends_lines);
            assert_ne!(set, before);
            restore_to(&pty.slave, &before);
            assert_eq!(tcgetattr(&pty.slave).unwrap(), before, "{ends_lines}");
        }
    }
}
