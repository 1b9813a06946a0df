//! A terminal that a test holds the far end of, and how a program is started in front of it. Included by the tests of
//! several packages.

use std::{
    fs::{File, OpenOptions},
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt as _},
    process::Command,
};

use nix::{
    fcntl::OFlag,
    pty::{grantpt, posix_openpt, ptsname_r, unlockpt},
};

/// A terminal of 33 rows and 77 columns: its far end, and itself.
pub(crate) fn opened() -> (File, OwnedFd) {
    // Closed when a program starts: what other tests start at this moment must not hold it open.
    let far_end = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
    grantpt(&far_end).unwrap();
    unlockpt(&far_end).unwrap();
    let mut how = OpenOptions::new();
    how.read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits());
    let terminal: OwnedFd = how.open(ptsname_r(&far_end).unwrap()).unwrap().into();
    let mut size = Command::new("stty");
    assert!(size.args(["rows", "33", "cols", "77"]).stdin(terminal.try_clone().unwrap()).status().unwrap().success());
    (OwnedFd::from(far_end).into(), terminal)
}

/// Starts what is added in a session of its own, whose terminal is its standard input. As in front of a terminal no
/// signal is ignored, though these tests may run where some are: under nohup, or from a script's background.
pub(crate) fn in_front() -> Command {
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", "env", "--default-signal"]);
    command
}
