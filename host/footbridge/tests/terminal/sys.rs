//! The only place with unsafe code among these tests: a call that no library offers.

use std::os::fd::{AsFd, AsRawFd};

use nix::libc;

/// Types a key into a terminal as if a person had. Some kernels refuse it.
pub(crate) fn type_into(terminal: impl AsFd, key: u8) {
    let number = terminal.as_fd().as_raw_fd();
    #[expect(unsafe_code, reason = "TIOCSTI reads one byte")]
    let _refused_by_some_kernels = unsafe { libc::ioctl(number, libc::TIOCSTI, &raw const key) };
}
