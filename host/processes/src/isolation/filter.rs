//! The system calls that a sandboxed command is refused, and why each.
//!
//! - `socket` and `socketpair` of AF_VSOCK: vsock knows no network namespaces before Linux 7.0.
//! - `io_uring_setup`: a ring makes sockets past any such filter.
//! - `keyctl`, `add_key`, `request_key`: the session keyring is the caller's own, with whatever the login put in it.
//! - User namespaces, unless they are asked for: `clone` and `unshare` with CLONE_NEWUSER, and `setns`. In one, a
//!   process has every capability, and with them much more of the kernel to try.
//!
//! All get EPERM. The flags of `clone3` are in memory, which a filter cannot read, so it gets ENOSYS where user
//! namespaces are refused; libraries fall back to `clone`. Calls by another architecture's numbers (32-bit programs) are
//! killed; x32 has its own numbers here.

use std::collections::BTreeMap;

use nix::errno::Errno;
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};
use serde::{Deserialize, Serialize};

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

/// Whether a command may make namespaces of its own, as another sandbox in this one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Nesting {
    /// It may not.
    #[default]
    Refused,
    /// It may make user namespaces, and in them any others.
    Allowed,
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// A rule for a call by both of its numbers; without a condition it holds always.
fn refuse(rules: &mut Rules, call: i64, when: Option<SeccompCondition>) -> Result<(), FilterError> {
    for number in [call, call | X32] {
        let conditions = when.iter().map(|condition| SeccompRule::new(vec![condition.clone()]));
        rules.insert(number, conditions.collect::<Result<_, _>>()?);
    }
    Ok(())
}

fn program(nesting: Nesting) -> Result<BpfProgram, FilterError> {
    let mut rules = BTreeMap::new();
    let vsock = u64::from(libc::AF_VSOCK.unsigned_abs());
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        let is_vsock = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, vsock)?;
        refuse(&mut rules, call, Some(is_vsock))?;
    }
    for call in [libc::SYS_io_uring_setup, libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key] {
        refuse(&mut rules, call, None)?;
    }
    if nesting == Nesting::Refused {
        let user = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
        for call in [libc::SYS_clone, libc::SYS_unshare] {
            let is_set = SeccompCmpOp::MaskedEq(user);
            refuse(&mut rules, call, Some(SeccompCondition::new(0, SeccompCmpArgLen::Dword, is_set, user)?))?;
        }
        refuse(&mut rules, libc::SYS_setns, None)?;
    }
    let refused = SeccompAction::Errno(Errno::EPERM as u32);
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture)?;
    let mut program = if nesting == Nesting::Refused { without_clone3() } else { BpfProgram::new() };
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// The first steps of a program in which `clone3` does not exist; everything else goes on to what follows. Another
/// architecture's call of that number gets ENOSYS too, which no program can do anything with.
fn without_clone3() -> BpfProgram {
    // BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET | BPF_K; the number is at 0 in struct seccomp_data.
    let (load, jump_if_equal, give) = (0x20, 0x15, 0x06);
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let number = |call: i64| u32::try_from(call).unwrap_or(u32::MAX);
    vec![
        step(load, 0, 0, 0),
        step(jump_if_equal, 1, 0, number(libc::SYS_clone3)),
        step(jump_if_equal, 0, 1, number(libc::SYS_clone3 | X32)),
        step(give, 0, 0, libc::SECCOMP_RET_ERRNO | Errno::ENOSYS as u32),
    ]
}

/// Installs the filter for this process and all that come of it.
pub(super) fn install(nesting: Nesting) -> Result<(), FilterError> {
    Ok(apply_filter(&program(nesting)?)?)
}

/// The same filter as `bwrap --seccomp FD` reads it.
pub fn filter_bytes(nesting: Nesting) -> Result<Vec<u8>, FilterError> {
    let mut bytes = Vec::new();
    for step in program(nesting)? {
        bytes.extend_from_slice(&step.code.to_ne_bytes());
        bytes.extend_from_slice(&[step.jt, step.jf]);
        bytes.extend_from_slice(&step.k.to_ne_bytes());
    }
    Ok(bytes)
}
