//! The only place with unsafe code in this crate: system calls that nix does not offer, or offers only as unsafe.
//!
//! Each function is safe to call from anywhere: it checks by itself what the call needs (one thread before a fork, a
//! length before a read). They return the kernel's errno and know nothing of what they are for.
//!
//! It also holds the hardening of the harness process and the notes about how it was started.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::mount::MsFlags;
use nix::sched::CloneFlags;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{ForkResult, Pid};
use serde::{Deserialize, Serialize};
use tokio::io::unix::AsyncFd;

/// Gives memory that is free back to the system. The allocator keeps what was freed in the middle of its arenas, of which
/// each thread may have one, until it is told to look there, malloc_trim(3).
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it touches nothing but the allocator's own lists, under their locks.
    #[expect(unsafe_code, reason = "a call of the C library that has no wrapper")]
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Gives back the pages of the program's own code. What is used comes in again, from the file as the system keeps it in
/// memory; what only the start needed does not.
pub fn release_code() {
    let here = release_code as *const () as usize;
    let mapping = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let (start, end) = (address(start)?, address(end)?);
        // Nothing else is ever written there, so that the file has all of it.
        (rest.starts_with("r-xp ") && (start..end).contains(&here)).then_some((start, end))
    };
    // Without it, the memory stays in use.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    if let Some((start, end)) = maps.lines().find_map(mapping) {
        let code = std::ptr::with_exposed_provenance_mut(start);
        #[expect(unsafe_code, reason = "pages of a file that are mapped to be read and executed alone come in again")]
        let _last = unsafe { libc::madvise(code, end - start, libc::MADV_DONTNEED) };
    }
}

/// Above this, what is allocated is a mapping of its own and goes back once it is free, bytes.
const OWN_MAPPING: libc::c_int = 256 * 1024;

/// What an arena keeps free at its end, bytes.
const KEPT_FREE: libc::c_int = 512 * 1024;

/// Arenas besides those of busy threads: the first thread's, and one that all others share.
const OTHER_ARENAS: usize = 2;

/// Has the allocator keep little of what was freed, mallopt(3): by itself it keeps up to 64 MiB an arena after large
/// things, at the arena's end, where [`release_free_memory`] does not reach, and has eight arenas a processor. Threads
/// that are busy at once, so many of them, do not wait for each other's. For a program of its own, before it has other
/// threads.
pub fn keep_little_free_memory(busy_threads: usize) {
    #[cfg(target_env = "gnu")]
    {
        let arenas = libc::c_int::try_from(busy_threads + OTHER_ARENAS).unwrap_or(libc::c_int::MAX);
        // SAFETY: it sets parameters of the allocator, under its lock.
        #[expect(unsafe_code, reason = "a call of the C library that has no wrapper")]
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, arenas);
            libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_MAPPING);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_FREE);
        };
    }
}

/// How this process was started: what its children get back, since the harness hardens itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inherited {
    /// File mode creation mask.
    pub umask: u32,
    /// Soft and hard limit of core files.
    pub core: (u64, u64),
    /// Soft and hard limit of open files.
    pub files: (u64, u64),
    /// Ignored signals, bit 0 is signal 1.
    pub ignored: u64,
    /// Blocked signals, bit 0 is signal 1.
    pub blocked: u64,
}

static INHERITED: OnceLock<Inherited> = OnceLock::new();

impl Inherited {
    /// What was noted first in this process; [`crate::keeper::become_one_if_told`] does it before anything is changed.
    pub fn of_this_process() -> Self {
        *INHERITED.get_or_init(Self::read)
    }

    fn read() -> Self {
        // This thread's own file: another may just be in a call that blocks every signal for a moment.
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let field = |name: &str, radix| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            u64::from_str_radix(line.trim(), radix).ok()
        };
        // The runtime of Rust ignores SIGPIPE before main, which is not what we were started with.
        let pipe = 1 << (libc::SIGPIPE - 1);
        Self {
            umask: field("Umask:", 8).and_then(|mask| u32::try_from(mask).ok()).unwrap_or(0o022),
            core: getrlimit(Resource::RLIMIT_CORE).unwrap_or((0, libc::RLIM_INFINITY)),
            files: getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((1024, 4096)),
            ignored: field("SigIgn:", 16).unwrap_or(0) & !pipe,
            blocked: field("SigBlk:", 16).unwrap_or(0),
        }
    }
}

/// Makes this process unreadable for others of the same user: not dumpable, no core files, umask 0077. And a file size
/// limit becomes an error where it is met, as a full disk is, and no longer the end of the process.
///
/// Notes first what was there before, for the children.
pub fn harden() -> nix::Result<()> {
    let before = Inherited::of_this_process();
    umask(Mode::from_bits_truncate(0o077));
    setrlimit(Resource::RLIMIT_CORE, 0, before.core.1)?;
    ignore_file_size_signal();
    nix::sys::prctl::set_dumpable(false)
}

fn ignore_file_size_signal() {
    #[expect(unsafe_code, reason = "no handler is installed; children get the action back that was there before")]
    let _before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

fn only_one_thread() -> nix::Result<()> {
    let threads = std::fs::read_dir("/proc/self/task").map_err(|_| Errno::ENOENT)?.count();
    if threads == 1 { Ok(()) } else { Err(Errno::EDEADLK) }
}

/// Forks; EDEADLK where this process has more than one thread.
pub(crate) fn fork() -> nix::Result<ForkResult> {
    only_one_thread()?;
    #[expect(unsafe_code, reason = "fork is sound here: no other thread can hold a lock that the child would need")]
    unsafe {
        nix::unistd::fork()
    }
}

/// Forks into new namespaces: the child is pid 1 where `namespaces` has a pid namespace. EDEADLK as [`fork`].
pub(crate) fn fork_into(namespaces: CloneFlags) -> nix::Result<ForkResult> {
    only_one_thread()?;
    let flags = libc::c_long::from(namespaces.bits() | libc::SIGCHLD);
    let none: libc::c_long = 0;
    #[expect(unsafe_code, reason = "clone with no stack of its own behaves as fork, and there is only one thread")]
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    match libc::pid_t::try_from(Errno::result(pid)?) {
        Ok(0) => Ok(ForkResult::Child),
        Ok(child) => Ok(ForkResult::Parent { child: Pid::from_raw(child) }),
        Err(_) => Err(Errno::EOVERFLOW),
    }
}

/// Marks every descriptor above 2 to be closed by exec. Linux 5.11 or later.
pub(crate) fn close_on_exec_above_stderr() -> nix::Result<()> {
    let (first, last, flags): (libc::c_uint, libc::c_uint, libc::c_uint) = (3, libc::c_uint::MAX, 4);
    #[expect(unsafe_code, reason = "close_range is not in nix; it sets flags of descriptors and touches no memory")]
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    Errno::result(done).map(drop)
}

/// For calls on mounts: what the descriptor itself leads to, and what is mounted below that.
const EMPTY_PATH: libc::c_uint = 0x1000;
const WITH_MOUNTS_BELOW: libc::c_uint = 0x8000;

/// A copy of what is mounted where the descriptor leads, with all that is mounted below it; it is nowhere in the file
/// system yet. Linux 5.2 or later.
pub(crate) fn copy_of_mount(at: impl AsFd) -> nix::Result<OwnedFd> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | EMPTY_PATH | WITH_MOUNTS_BELOW;
    let fd = at.as_fd().as_raw_fd();
    #[expect(unsafe_code, reason = "open_tree reads an empty string and gives a new descriptor")]
    let copy = unsafe { libc::syscall(libc::SYS_open_tree, fd, c"".as_ptr(), flags) };
    let copy = RawFd::try_from(Errno::result(copy)?).map_err(|_| Errno::EOVERFLOW)?;
    #[expect(unsafe_code, reason = "the kernel made this descriptor for this call; nobody else owns it")]
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Puts such a copy where another descriptor leads.
pub(crate) fn place_mount(copy: impl AsFd, at: impl AsFd) -> nix::Result<()> {
    // MOVE_MOUNT_F_EMPTY_PATH and MOVE_MOUNT_T_EMPTY_PATH.
    let flags: libc::c_uint = 0x4 | 0x40;
    let (from, to) = (copy.as_fd().as_raw_fd(), at.as_fd().as_raw_fd());
    let none = c"".as_ptr();
    #[expect(unsafe_code, reason = "move_mount reads two empty strings")]
    let done = unsafe { libc::syscall(libc::SYS_move_mount, from, none, to, none, flags) };
    Errno::result(done).map(drop)
}

/// Takes rights from what is mounted where the descriptor leads, and with `all` from what is mounted below it: `MS_RDONLY`,
/// `MS_NOSUID` and `MS_NODEV`, as mount(2) has them. What is set there stays set, and other mounts of the same files are as before.
/// Linux 5.12 or later.
pub(crate) fn limit_mount(at: impl AsFd, limits: MsFlags, all: bool) -> nix::Result<()> {
    let below = if all { WITH_MOUNTS_BELOW } else { 0 };
    // MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID and MOUNT_ATTR_NODEV.
    let bits = [(MsFlags::MS_RDONLY, 0x1), (MsFlags::MS_NOSUID, 0x2), (MsFlags::MS_NODEV, 0x4)];
    let set = bits.into_iter().filter(|(limit, _)| limits.contains(*limit)).fold(0, |set, (_, bit)| set | bit);
    // struct mount_attr: flags to set, flags to clear, propagation, a user namespace.
    let attributes: [u64; 4] = [set, 0, 0, 0];
    let (fd, size) = (at.as_fd().as_raw_fd(), size_of::<[u64; 4]>());
    #[expect(unsafe_code, reason = "mount_setattr reads an empty string and the one struct that it is given")]
    let done = unsafe {
        libc::syscall(libc::SYS_mount_setattr, fd, c"".as_ptr(), EMPTY_PATH | below, attributes.as_ptr(), size)
    };
    Errno::result(done).map(drop)
}

/// The lengths of turns of this thread, as sched_setattr(2) has them for a thread like others: while it waits, one with
/// longer turns is interrupted for it. What it starts has the usual ones. EINVAL where the kernel knows no such thing.
/// Linux 6.12 or later.
pub(crate) fn set_turns(length: Duration) -> nix::Result<()> {
    // What it was before stays as it is.
    let sched_nice =
        rustix::process::getpriority_process(None).map_err(|error| Errno::from_raw(error.raw_os_error()))?;
    let attributes = libc::sched_attr {
        size: 48,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        sched_nice,
        sched_priority: 0,
        sched_runtime: u64::try_from(length.as_nanos()).map_err(|_| Errno::EOVERFLOW)?,
        sched_deadline: 0,
        sched_period: 0,
    };
    let (this_thread, flags): (libc::pid_t, libc::c_uint) = (0, 0);
    #[expect(unsafe_code, reason = "sched_setattr reads the one struct that it is given, and its size in it")]
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, this_thread, &raw const attributes, flags) };
    Errno::result(done).map(drop)
}

/// Closes every descriptor from this number on. Linux 5.9 or later.
pub(crate) fn close_from(first: libc::c_uint) -> nix::Result<()> {
    let (last, flags): (libc::c_uint, libc::c_uint) = (libc::c_uint::MAX, 0);
    #[expect(unsafe_code, reason = "whoever calls it never comes back to use one of these descriptors")]
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    Errno::result(done).map(drop)
}

/// Gives every signal its default action, but for those of the set (bit 0 is signal 1), which are ignored.
pub(crate) fn reset_signal_actions(ignored: u64) {
    for signal in 1..=64 {
        let action = if ignored >> (signal - 1) & 1 == 1 { libc::SIG_IGN } else { libc::SIG_DFL };
        #[expect(unsafe_code, reason = "no handler is installed, only the default action or none")]
        let _not_for_kill_and_stop = unsafe { libc::signal(signal, action) };
    }
}

/// Has the kernel keep what became of children until they are waited for, whatever started this process: one that ignores
/// the signal hands that on.
pub(crate) fn wait_for_children() {
    #[expect(unsafe_code, reason = "no handler is installed, only the default action")]
    let _before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Blocks exactly the signals of the set, bit 0 is signal 1.
pub(crate) fn set_blocked_signals(blocked: u64) -> nix::Result<()> {
    let none: *mut u64 = std::ptr::null_mut();
    #[expect(unsafe_code, reason = "the kernel's own mask is 8 bytes; nix's sets cannot hold real-time signals")]
    let done = unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const blocked, none, size_of::<u64>())
    };
    Errno::result(done).map(drop)
}

/// Owns descriptors that came in a message.
pub(crate) fn own_received(descriptors: Vec<RawFd>) -> Vec<OwnedFd> {
    let own = |fd| {
        #[expect(unsafe_code, reason = "the kernel made these descriptors for this message; nobody else owns them")]
        unsafe {
            OwnedFd::from_raw_fd(fd)
        }
    };
    descriptors.into_iter().map(own).collect()
}

/// Lets the runtime wait for a descriptor.
pub fn watched(descriptor: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    #[expect(unsafe_code, reason = "an OwnedFd is open and stays the same as long as it lives")]
    let watched = unsafe { AsyncFd::register(descriptor) };
    watched.map_err(std::io::Error::from)
}

/// Makes the terminal the controlling one of this session.
pub(crate) fn take_controlling_terminal(terminal: impl AsFd) -> nix::Result<()> {
    let fd = terminal.as_fd().as_raw_fd();
    #[expect(unsafe_code, reason = "TIOCSCTTY takes a number and touches no memory")]
    let done = unsafe { libc::ioctl(fd, libc::TIOCSCTTY, 0) };
    Errno::result(done).map(drop)
}

/// The size of a terminal's window.
pub fn window(terminal: impl AsFd) -> nix::Result<libc::winsize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    let fd = terminal.as_fd().as_raw_fd();
    #[expect(unsafe_code, reason = "TIOCGWINSZ writes the one struct winsize it is given")]
    let read = unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size) };
    Errno::result(read).map(|_| size)
}

/// Sets the size of a terminal's window.
pub(crate) fn set_window(terminal: impl AsFd, size: &libc::winsize) -> nix::Result<()> {
    let fd = terminal.as_fd().as_raw_fd();
    #[expect(unsafe_code, reason = "TIOCSWINSZ reads the one struct winsize it is given")]
    let written = unsafe { libc::ioctl(fd, libc::TIOCSWINSZ, &raw const *size) };
    Errno::result(written).map(drop)
}

/// Brings the interface `lo` of this network namespace up, through any socket.
pub(crate) fn bring_loopback_up(socket: impl AsFd) -> nix::Result<()> {
    let mut name: [libc::c_char; libc::IFNAMSIZ] = [0; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().zip(b"lo") {
        *to = libc::c_char::try_from(*from).unwrap_or(0);
    }
    let flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).map_err(|_| Errno::EOVERFLOW)?;
    let request = libc::ifreq { ifr_name: name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags } };
    let fd = socket.as_fd().as_raw_fd();
    #[expect(unsafe_code, reason = "SIOCSIFFLAGS reads the one struct ifreq it is given")]
    let done = unsafe { libc::ioctl(fd, libc::SIOCSIFFLAGS as libc::Ioctl, &raw const request) };
    Errno::result(done).map(drop)
}

fn prctl(option: libc::c_int, argument: libc::c_ulong) -> nix::Result<()> {
    let none: libc::c_ulong = 0;
    #[expect(unsafe_code, reason = "the options used in this file take numbers and touch no memory")]
    let done = unsafe { libc::prctl(option, argument, none, none, none) };
    Errno::result(done).map(drop)
}

/// `SECBIT_NOROOT`, `NO_SETUID_FIXUP` and `NO_CAP_AMBIENT_RAISE`, and the locks of these three and of `KEEP_CAPS`.
const NO_WAY_BACK: libc::c_ulong = 0b1110_1111;

/// Gives up every capability for good: no exec, set-user-id file or identity change brings one back.
pub(crate) fn drop_capabilities() -> nix::Result<()> {
    for capability in 0..=63 {
        match prctl(libc::PR_CAPBSET_DROP, capability) {
            Err(Errno::EINVAL) => break,
            other => other?,
        }
    }
    let clear_all = libc::c_ulong::try_from(libc::PR_CAP_AMBIENT_CLEAR_ALL).map_err(|_| Errno::EOVERFLOW)?;
    prctl(libc::PR_CAP_AMBIENT, clear_all)?;
    prctl(libc::PR_SET_SECUREBITS, NO_WAY_BACK)?;
    // Version 3, this process; then effective, permitted and inheritable, twice 32 bits each.
    let (header, sets): ([u32; 2], [u32; 6]) = ([0x2008_0522, 0], [0; 6]);
    #[expect(unsafe_code, reason = "capset reads a header of 8 and sets of 24 bytes, which these arrays are")]
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const sets) };
    Errno::result(done).map(drop)
}

/// The sockets above 2 that this process was started with. They stay open for as long as it lives.
static INHERITED_SOCKETS: Mutex<BTreeSet<RawFd>> = Mutex::new(BTreeSet::new());

/// Notes the sockets that this process was started with, once, and marks them to be closed by exec. Those that are
/// opened later are never among them.
pub fn note_inherited_sockets() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Ok(numbers) = std::fs::read_dir("/proc/self/fd") else { return };
        let is_socket =
            |path: &Path| path.read_link().is_ok_and(|to| to.as_os_str().as_bytes().starts_with(b"socket:"));
        let sockets = numbers.flatten().filter(|entry| is_socket(&entry.path()));
        let numbers = sockets.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
        let mut noted = INHERITED_SOCKETS.lock().unwrap_or_else(PoisonError::into_inner);
        noted.extend(numbers.filter(|number| *number > libc::STDERR_FILENO));
        for number in noted.iter() {
            #[expect(unsafe_code, reason = "F_SETFD takes a number and touches no memory")]
            let _open = unsafe { libc::fcntl(*number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    });
}

/// A socket that this process was started with; nothing for any other number.
pub fn inherited_socket(number: RawFd) -> Option<BorrowedFd<'static>> {
    let noted = INHERITED_SOCKETS.lock().unwrap_or_else(PoisonError::into_inner);
    #[expect(unsafe_code, reason = "it was open before this process opened anything, and nothing ever closes it")]
    noted.contains(&number).then(|| unsafe { BorrowedFd::borrow_raw(number) })
}

/// Gives a variable's value and takes it out of the environment; where there are several threads it stays there.
pub fn take_variable(name: &str) -> Option<OsString> {
    let value = std::env::var_os(name)?;
    if only_one_thread().is_ok() {
        #[expect(unsafe_code, reason = "no other thread can be reading the environment: there is none")]
        unsafe {
            std::env::remove_var(name);
        }
    }
    Some(value)
}

/// Lets the kernel hold this many unread bytes of a vsock connection, and of those that come by a listening socket.
pub fn set_vsock_window(socket: impl AsFd, bytes: u64) -> nix::Result<()> {
    let size = libc::socklen_t::try_from(size_of::<u64>()).map_err(|_| Errno::EOVERFLOW)?;
    let fd = socket.as_fd().as_raw_fd();
    // Of linux/vm_sockets.h, and in this order, since the size is cut to the largest that is allowed.
    const SO_VM_SOCKETS_BUFFER_MAX_SIZE: libc::c_int = 2;
    const SO_VM_SOCKETS_BUFFER_SIZE: libc::c_int = 0;
    for option in [SO_VM_SOCKETS_BUFFER_MAX_SIZE, SO_VM_SOCKETS_BUFFER_SIZE] {
        #[expect(unsafe_code, reason = "both options read the one u64 that they are given")]
        let done = unsafe { libc::setsockopt(fd, libc::AF_VSOCK, option, (&raw const bytes).cast(), size) };
        Errno::result(done)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is resident of files, KiB.
    fn of_files() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn code_that_is_given_back_is_not_resident_and_runs_all_the_same() {
        let before = of_files();
        release_code();
        let after = of_files();
        assert!(after < before, "{after} of {before} KiB");
    }
}
