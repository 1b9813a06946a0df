//! The system calls that a sandboxed command is refused, and why each.
//!
//! - `socket` and `socketpair` of AF_VSOCK: vsock knows no network namespaces before Linux 7.0; and of AF_QIPCRTR, by which
//!   the firmware of modems and radios is reached, and AF_IUCV, between guests of a mainframe, which know none at all.
//! - `io_uring_setup`: a ring makes sockets past any such filter.
//! - `keyctl`, `add_key`, `request_key`: the session keyring is the caller's own, with whatever the login put in it.
//! - User namespaces, unless they are asked for: `clone` and `unshare` with CLONE_NEWUSER, and `setns`. In one, a
//!   process has every capability, and with them much more of the kernel to try.
//! - Cgroup namespaces, where user namespaces are asked for, and only then possible: `clone` and `unshare` with
//!   CLONE_NEWCGROUP. By one, whoever is root outside mounts the machine's cgroups anew, and writes to them.
//! - The set-user-id bit of files, unless user namespaces are asked for, whose sandboxes and images have such files:
//!   any user of the host could run one that is left in the folder of work, and would be the user of the command. The
//!   bit of a group is not refused, since folders have it for good reasons.
//!
//! All get EPERM. What `clone3` and `openat2` are asked is in memory, which a filter cannot read, so they get ENOSYS,
//! `openat2` only where user namespaces are refused; libraries fall back to `clone` and `openat`. Calls by another architecture's numbers
//! (32-bit programs) are killed; x32 has its own numbers here.

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
    /// The kernel's reason.
    #[must_use]
    pub fn errno(&self) -> Errno {
        match self {
            Self::Install(seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error)) => {
                error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw)
            }
            Self::Compile(_) | Self::Install(_) => Errno::ENOSYS,
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

/// A rule for a call by both of its numbers: it holds where all of one of these do, and without any always.
fn refuse(rules: &mut Rules, call: i64, when: &[Vec<SeccompCondition>]) -> Result<(), FilterError> {
    for number in [call, call | X32] {
        let alternatives = when.iter().map(|all| SeccompRule::new(all.clone()));
        rules.insert(number, alternatives.collect::<Result<_, _>>()?);
    }
    Ok(())
}

/// That an argument has all of these bits.
fn has(argument: u8, bits: u32) -> Result<SeccompCondition, FilterError> {
    let bits = u64::from(bits);
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), bits)?)
}

/// Families of sockets that know no network namespaces: AF_VSOCK, AF_IUCV and AF_QIPCRTR.
const UNBOUNDED: [u64; 3] = [libc::AF_VSOCK.unsigned_abs() as u64, 32, 42];

/// Calls that give a file its mode, and which argument that is.
const MODES: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_mknodat, 2),
    // fchmodat2, of Linux 6.6, has this number everywhere.
    (452, 2),
];

/// Calls that do so where they make one, and which argument has the flags that say it; the next one is the mode.
const OPENS: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

fn refuse_set_user_id(rules: &mut Rules) -> Result<(), FilterError> {
    for (call, mode) in MODES {
        refuse(rules, *call, &[vec![has(*mode, libc::S_ISUID)?]])?;
    }
    // O_TMPFILE is more than the bit that says it.
    let making = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY].map(libc::c_int::unsigned_abs);
    for (call, flags) in OPENS {
        let [create, unnamed] = making.map(|flag| has(*flags, flag));
        let mode = has(*flags + 1, libc::S_ISUID)?;
        refuse(rules, *call, &[vec![create?, mode.clone()], vec![unnamed?, mode]])?;
    }
    Ok(())
}

fn program(nesting: Nesting) -> Result<BpfProgram, FilterError> {
    let mut rules = BTreeMap::new();
    let mut unbounded = Vec::new();
    for family in UNBOUNDED {
        unbounded.push(vec![SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, family)?]);
    }
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        refuse(&mut rules, call, &unbounded)?;
    }
    for call in [libc::SYS_io_uring_setup, libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key] {
        refuse(&mut rules, call, &[])?;
    }
    let namespace = match nesting {
        Nesting::Refused => libc::CLONE_NEWUSER,
        Nesting::Allowed => libc::CLONE_NEWCGROUP,
    };
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        refuse(&mut rules, call, &[vec![has(0, namespace.unsigned_abs())?]])?;
    }
    if nesting == Nesting::Refused {
        refuse(&mut rules, libc::SYS_setns, &[])?;
        refuse_set_user_id(&mut rules)?;
    }
    let refused = SeccompAction::Errno(Errno::EPERM as u32);
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture)?;
    let missing: &[i64] = match nesting {
        Nesting::Refused => &[libc::SYS_clone3, libc::SYS_openat2],
        Nesting::Allowed => &[libc::SYS_clone3],
    };
    let mut program = without(missing);
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// The first steps of a program in which these calls do not exist; everything else goes on to what follows. Another
/// architecture's calls of those numbers get ENOSYS too, which no program can do anything with.
fn without(calls: &[i64]) -> BpfProgram {
    // BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET | BPF_K; the number is at 0 in struct seccomp_data.
    let (load, jump_if_equal, give) = (0x20, 0x15, 0x06);
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let numbers = calls.iter().flat_map(|call| [*call, call | X32]);
    let numbers = numbers.map(|call| u32::try_from(call).unwrap_or(u32::MAX));
    // Over those that follow; the last one goes over the answer, too, where it is another call.
    let left = (0..u8::try_from(2 * calls.len()).unwrap_or(u8::MAX)).rev();
    let tests = numbers.zip(left).map(|(number, left)| step(jump_if_equal, left, u8::from(left == 0), number));
    let mut program = vec![step(load, 0, 0, 0)];
    program.extend(tests);
    if !calls.is_empty() {
        program.push(step(give, 0, 0, libc::SECCOMP_RET_ERRNO | Errno::ENOSYS as u32));
    }
    program
}

/// Installs the filter for this thread, with no new privileges, and for all that comes of it.
///
/// # Errors
/// [`FilterError`].
pub fn refuse_calls(nesting: Nesting) -> Result<(), FilterError> {
    Ok(apply_filter(&program(nesting)?)?)
}

/// The same filter as `bwrap --seccomp FD` reads it.
///
/// # Errors
/// [`FilterError::Compile`].
pub fn filter_bytes(nesting: Nesting) -> Result<Vec<u8>, FilterError> {
    let mut bytes = Vec::new();
    for step in program(nesting)? {
        bytes.extend_from_slice(&step.code.to_ne_bytes());
        bytes.extend_from_slice(&[step.jt, step.jf]);
        bytes.extend_from_slice(&step.k.to_ne_bytes());
    }
    Ok(bytes)
}
