//! A terminal for a test.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::{
    fs::{File, OpenOptions},
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt},
};

use nix::{
    fcntl::OFlag,
    pty::{grantpt, posix_openpt, ptsname_r, unlockpt},
};

/// The two ends of a new terminal. Neither passes an exec: what other tests start at this moment must not hold it open.
pub(crate) fn terminal() -> (File, File) {
    let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let flags = OFlag::O_NOCTTY.bits();
    let slave =
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(ptsname_r(&master).unwrap()).unwrap();
    (OwnedFd::from(master).into(), slave)
}
