//! The system calls that a sandboxed command is refused, and why each.
//!
//! - `socket` and `socketpair` of AF_VSOCK: vsock knows no network namespaces before Linux 7.0.
//! - `io_uring_setup`: a ring makes sockets past any such filter.
//! - `keyctl`, `add_key`, `request_key`: the session keyring is the caller's own, with whatever the login put in it.
//!
//! All get EPERM. Calls by another architecture's numbers (32-bit programs) are killed; x32 has its own numbers here.

use std::collections::BTreeMap;

use nix::errno::Errno;
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

/// Added by x32 programs to the number of every call.
const X32: i64 = 0x4000_0000;

/// Why there is no filter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// The rules do not compile for this architecture.
    #[error("the system call filter cannot be made for this machine")]
    Compile(#[from] seccompiler::BackendError),
    /// The kernel does not take it.
    #[error("the system call filter cannot be installed; the kernel needs CONFIG_SECCOMP_FILTER")]
    Install(#[from] seccompiler::Error),
}

impl FilterError {
    pub(super) fn errno(&self) -> i32 {
        match self {
            Self::Install(seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error)) => {
                error.raw_os_error().unwrap_or(0)
            }
            Self::Compile(_) | Self::Install(_) => Errno::ENOSYS as i32,
        }
    }
}

fn program() -> Result<BpfProgram, FilterError> {
    let vsock = u64::from(libc::AF_VSOCK.unsigned_abs());
    let is_vsock = || SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, vsock);
    let mut rules = BTreeMap::new();
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        for number in [call, call | X32] {
            rules.insert(number, vec![SeccompRule::new(vec![is_vsock()?])?]);
        }
    }
    for call in [libc::SYS_io_uring_setup, libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key] {
        for number in [call, call | X32] {
            rules.insert(number, Vec::new());
        }
    }
    let refused = SeccompAction::Errno(Errno::EPERM as u32);
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture)?;
    Ok(BpfProgram::try_from(filter)?)
}

/// Installs the filter for this process and all that come of it.
pub(super) fn install() -> Result<(), FilterError> {
    Ok(apply_filter(&program()?)?)
}

/// The same filter as `bwrap --seccomp FD` reads it.
pub fn filter_bytes() -> Result<Vec<u8>, FilterError> {
    let mut bytes = Vec::new();
    for step in program()? {
        bytes.extend_from_slice(&step.code.to_ne_bytes());
        bytes.extend_from_slice(&[step.jt, step.jf]);
        bytes.extend_from_slice(&step.k.to_ne_bytes());
    }
    Ok(bytes)
}
