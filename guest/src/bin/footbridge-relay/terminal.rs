//! The terminal, where there is one: the command's group is the foreground, so that Ctrl-C reaches it alone, once.
//!
//! Where the relay is pid 1 with a terminal that controls nobody, it takes it first. Where a shell stands above the
//! relay, a command that stops stops the relay too, so that the shell gets its terminal back.

use std::io::{self, IsTerminal};

use footbridge_guest::sys;
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill, killpg},
    unistd::{Pid, getpgrp, getpid, getsid, setsid, tcgetpgrp, tcsetpgrp},
};

/// Whether the relay may hand the terminal on standard input to the command.
pub(crate) fn is_ours() -> bool {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return false;
    }
    let ours = match tcgetpgrp(&stdin) {
        Ok(foreground) => foreground == getpgrp(),
        // It controls nobody's session, or somebody else's.
        Err(Errno::ENOTTY) if getpid().as_raw() == 1 => {
            // Fails where pid 1 leads a session already, as it should.
            let _ = setsid();
            sys::take_terminal().is_ok()
        }
        Err(_) => false,
    };
    ours && sys::ignore_terminal_output_stops().is_ok()
}

/// Takes the foreground back from the command.
pub(crate) fn take_back() {
    // A terminal that hung up has no foreground.
    let _ = tcsetpgrp(io::stdin(), getpgrp());
}

/// The command's group has stopped: stops with it where somebody can continue both, and else continues it.
pub(crate) fn stopped(group: Pid, ours: bool) {
    let alone = getpid().as_raw() == 1 || getsid(None).is_ok_and(|session| session == getpid());
    if !alone {
        if ours {
            take_back();
        }
        // Returns when the shell continues the relay.
        let _ = kill(getpid(), Signal::SIGSTOP);
        if ours && tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground == getpgrp()) {
            let _ = tcsetpgrp(io::stdin(), group);
        }
    }
    let _ = killpg(group, Signal::SIGCONT);
}
