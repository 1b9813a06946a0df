//! The few calls that the compiler cannot check. Nothing else in the package is `unsafe`.
//!
//! For this package's own binaries: each function says what makes it sound.

use std::{
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    process::Command,
};

use nix::{
    errno::Errno,
    libc,
    sys::{
        resource::{Resource, getrlimit, setrlimit},
        signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction},
    },
    unistd::Pid,
};

/// The highest signal number on Linux, signal(7).
const LAST_SIGNAL: libc::c_int = 64;

/// `SO_VM_SOCKETS_BUFFER_SIZE` and `SO_VM_SOCKETS_BUFFER_MAX_SIZE` of linux/vm_sockets.h.
const VSOCK_BUFFER_SIZE: libc::c_int = 0;
const VSOCK_BUFFER_MAX_SIZE: libc::c_int = 2;

/// Has the kernel keep what became of children until they are waited for, whatever started this process: one that ignores
/// SIGCHLD hands that on.
pub fn wait_for_children() {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    #[expect(unsafe_code, reason = "no handler is installed, only the default action")]
    let _before = unsafe { sigaction(Signal::SIGCHLD, &action) };
}

/// Makes SIGINT end the process with status 130 at once, unless it is ignored, as in a background job.
///
/// The kernel closes the connection, which cancels the call.
///
/// # Errors
/// What sigaction(2) says.
pub fn exit_on_interrupt() -> io::Result<()> {
    let action = SigAction::new(SigHandler::Handler(leave), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler calls only `_exit`, which is safe in a signal handler.
    #[expect(unsafe_code, reason = "a signal handler, whose body is one async-signal-safe call")]
    let before = unsafe { sigaction(Signal::SIGINT, &action) }?;
    if matches!(before.handler(), SigHandler::SigIgn) {
        set_disposition(Signal::SIGINT, SigHandler::SigIgn)?;
    }
    Ok(())
}

extern "C" fn leave(_: libc::c_int) {
    // SAFETY: `_exit` never returns and touches nothing of this process's memory.
    #[expect(unsafe_code, reason = "_exit is the async-signal-safe way to leave")]
    unsafe {
        libc::_exit(130)
    }
}

/// Signals that are ignored, as `nohup` has SIGHUP and a shell SIGINT in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ignored {
    /// Bit 0 is signal 1.
    bits: u64,
}

impl Ignored {
    /// Those of this process now: what it was started with, before it changes anything about them. Without SIGPIPE, which
    /// the runtime of Rust ignores, and SIGCHLD, which nobody means for what is started.
    #[must_use]
    pub fn now() -> Self {
        let ignored = (1..=LAST_SIGNAL).filter(|number| ![libc::SIGPIPE, libc::SIGCHLD].contains(number));
        Self { bits: ignored.filter(|number| is_ignored(*number)).fold(0, |bits, number| bits | bit(number)) }
    }

    /// Whether this signal is.
    #[must_use]
    pub fn has(self, signal: Signal) -> bool {
        self.bits & bit(signal as libc::c_int) != 0
    }
}

fn bit(number: libc::c_int) -> u64 {
    1 << (number - 1)
}

fn is_ignored(number: libc::c_int) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is set, and all zeroes are a whole sigaction, should nothing be written.
    #[expect(unsafe_code, reason = "nix only tells what was there before by setting something else")]
    unsafe {
        libc::sigaction(number, std::ptr::null(), now.as_mut_ptr()) == 0
            && now.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Ignores SIGTTOU, so that a process in the background may hand the terminal to another group.
///
/// # Errors
/// What sigaction(2) says.
pub fn ignore_terminal_output_stops() -> io::Result<()> {
    set_disposition(Signal::SIGTTOU, SigHandler::SigIgn)
}

/// Has what is written beyond the limit on the size of files (`ulimit -f`) be an error, as on a full disk, and not the end of
/// this process without a word.
///
/// # Errors
/// What sigaction(2) says.
pub fn outlive_file_size_limit() -> io::Result<()> {
    set_disposition(Signal::SIGXFSZ, SigHandler::SigIgn)
}

fn set_disposition(signal: Signal, handler: SigHandler) -> io::Result<()> {
    debug_assert!(matches!(handler, SigHandler::SigIgn | SigHandler::SigDfl), "no code of ours runs in a handler");
    let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    // SAFETY: the new disposition is SIG_IGN or SIG_DFL, so no handler of ours can run.
    #[expect(unsafe_code, reason = "nix marks every sigaction unsafe for the sake of handlers")]
    unsafe { sigaction(signal, &action) }?;
    Ok(())
}

/// Takes an inherited descriptor.
///
/// # Errors
/// `InvalidInput` for a standard stream, or what fcntl(2) says of a descriptor that is not open.
pub fn take_descriptor(number: RawFd) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: F_GETFD only looks whether the number is open.
    #[expect(unsafe_code, reason = "a raw number is all that a parent can pass")]
    let open = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if open < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and callers take it once, before they open anything, so nothing here owns it.
    #[expect(unsafe_code, reason = "a raw number is all that a parent can pass")]
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Sets how many unread bytes the peer of a vsock socket may have on the way. Before it connects.
///
/// # Errors
/// What setsockopt(2) says.
pub fn set_vsock_window(fd: &OwnedFd, bytes: u64) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<u64>()).map_err(io::Error::other)?;
    // The size is cut to the largest allowed one, so that goes first.
    for option in [VSOCK_BUFFER_MAX_SIZE, VSOCK_BUFFER_SIZE] {
        // SAFETY: the pointer is to a u64 that lives for the call, and the length is its size.
        #[expect(unsafe_code, reason = "options of vsock have no wrapper in nix")]
        let done = unsafe {
            libc::setsockopt(fd.as_raw_fd(), libc::AF_VSOCK, option, std::ptr::from_ref(&bytes).cast(), length)
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Marks every descriptor beyond 2 close-on-exec.
pub fn close_the_rest_on_exec() {
    // SAFETY: it sets a flag on descriptors and closes nothing.
    #[expect(unsafe_code, reason = "close_range has no wrapper in nix")]
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == 0 {
        return;
    }
    // Before Linux 5.11 there is no such flag.
    for number in 3..65_536 {
        // SAFETY: as above; numbers that are not open give EBADF.
        #[expect(unsafe_code, reason = "descriptors that nobody here owns have only their number")]
        unsafe {
            libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC)
        };
    }
}

/// Makes the terminal on stdin the controlling one. Only for a session leader that has none.
///
/// # Errors
/// What ioctl(2) says.
pub fn take_terminal() -> io::Result<()> {
    // SAFETY: TIOCSCTTY takes an integer and touches no memory.
    #[expect(unsafe_code, reason = "an ioctl without a wrapper in nix")]
    let done = unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The limit on open files, as it was before this process raised its own.
#[derive(Debug, Clone, Copy)]
pub struct OpenFiles {
    soft: u64,
    hard: u64,
}

impl OpenFiles {
    /// Raises it to as many as are allowed.
    ///
    /// # Errors
    /// What getrlimit(2) says.
    pub fn raise() -> io::Result<Self> {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        // A limit that cannot be raised is the limit; out of descriptors, accepting waits.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        Ok(Self { soft, hard })
    }

    /// How many more this process can open by its limit as it is now.
    ///
    /// # Errors
    /// What getrlimit(2) says.
    pub fn left() -> io::Result<usize> {
        let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
        // Without /proc, a few are.
        let open = std::fs::read_dir("/proc/self/fd").map_or(16, Iterator::count);
        Ok(usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(open))
    }
}

/// What became of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildChange {
    /// It ended and is reaped. The status is as shells have it: 128 and the signal's number where one ended it.
    Ended {
        /// Which one.
        pid: Pid,
        /// How.
        status: u8,
    },
    /// It was stopped.
    Stopped {
        /// Which one.
        pid: Pid,
    },
}

/// The next change of any child, without waiting for one; none where all of them go on.
///
/// nix has this too, but no number for the signals from 32 to 64: it reaps a child that one of them ended, and gives an
/// error in place of its end.
///
/// # Errors
/// What waitpid(2) says: `ECHILD` where there is no child.
pub fn next_child_change() -> nix::Result<Option<ChildChange>> {
    let mut status = 0;
    // SAFETY: the pointer is to an int that lives for the call.
    #[expect(unsafe_code, reason = "nix loses the ends of children that a real-time signal ended")]
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::WUNTRACED) };
    match Errno::result(pid)? {
        0 => Ok(None),
        pid if libc::WIFSTOPPED(status) => Ok(Some(ChildChange::Stopped { pid: Pid::from_raw(pid) })),
        pid => Ok(Some(ChildChange::Ended { pid: Pid::from_raw(pid), status: exit_status(status) })),
    }
}

/// The status of a child that ended, as shells have it.
fn exit_status(status: libc::c_int) -> u8 {
    let shown = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) };
    u8::try_from(shown & 0xff).unwrap_or(u8::MAX)
}

/// What a command gets back before it starts: its own process group, the terminal if `foreground`, the limit on open
/// files, default dispositions but for what is `ignored`, and an empty signal mask.
pub fn start_afresh(command: &mut Command, foreground: bool, open_files: OpenFiles, ignored: Ignored) {
    let prepare = move || {
        nix::unistd::setpgid(nix::unistd::Pid::from_raw(0), nix::unistd::Pid::from_raw(0))?;
        if foreground {
            // SIGTTOU is ignored here until the loop below; a terminal that went away is not an error.
            // SAFETY: system calls on numbers.
            #[expect(unsafe_code, reason = "a handle to stdin may allocate, which a forked child should not")]
            unsafe {
                libc::tcsetpgrp(0, libc::getpid())
            };
        }
        setrlimit(Resource::RLIMIT_NOFILE, open_files.soft, open_files.hard)?;
        for number in 1..=LAST_SIGNAL {
            let action = if ignored.bits & bit(number) == 0 { libc::SIG_DFL } else { libc::SIG_IGN };
            // SAFETY: neither runs code of ours. Numbers that nobody may set are refused, which is right.
            #[expect(unsafe_code, reason = "nix knows no real-time signals")]
            unsafe {
                libc::signal(number, action)
            };
        }
        SigSet::empty().thread_set_mask()?;
        Ok(())
    };
    // SAFETY: between fork and exec `prepare` makes only system calls and allocates nothing.
    #[expect(unsafe_code, reason = "what a child changes about itself must be done in the child")]
    unsafe {
        command.pre_exec(prepare)
    };
}
