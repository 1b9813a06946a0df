//! What a child of the tests changes about itself.

use std::{os::unix::process::CommandExt as _, process::Command};

use nix::sys::signal::{SigHandler, Signal, signal};

/// Has a command take the signals that a shell may have the tests ignore, as nohup does, and a shell without job control.
pub(crate) fn take_signals(command: &mut Command) {
    let prepare = || {
        for taken in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
            // SAFETY: the default disposition runs no code of ours.
            #[expect(unsafe_code, reason = "what is set is no handler")]
            unsafe { signal(taken, SigHandler::SigDfl) }?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec `prepare` makes only system calls and allocates nothing.
    #[expect(unsafe_code, reason = "what a child changes about itself must be done in the child")]
    unsafe {
        command.pre_exec(prepare)
    };
}
