//! A pid namespace for a program and all that comes of it: once its first process is gone, the kernel kills every other,
//! whatever session it is in. That first process is a copy of the keeper that only waits, and dies with the keeper: so
//! nothing is left where the harness and its keepers are killed at once.
//!
//! Where such a namespace is refused nothing is changed: as an ordinary user it needs a user namespace, which some
//! kernels and container engines do not give. Then the program dies with its keeper, and what it started may outlive both.
//! Where it cannot be found out, as where the machine has no process for the try, there is no program: by using up what the
//! machine has, nobody gets one that is not kept apart.
//!
//! The program sees the processes of its namespace only, in a /proc of its own. In the user namespace it is the same
//! user, and all files are as they were, but for those that are the harness's own: what a server could write there would
//! be obeyed, or taken for the record.

use std::io;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_dumpable;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Gid, Uid, pause, pipe2};

use super::tie::tie_to_keeper;
use crate::file_plan::FilePlan;
use crate::isolation::{can_cover, cover, map_identity};
use crate::refusal::{StartRefusal, Step};
use crate::sys;

/// Bit of SIGCHLD in a set of signals.
const CHILD_ENDED: u64 = 1 << (Signal::SIGCHLD as u64 - 1);

/// What the keeper has of the namespace: its end of a pipe, by whose other end the first process is sure that the keeper
/// still lived when it asked to die with it.
#[derive(Debug)]
pub(super) struct OwnProcesses(#[expect(dead_code, reason = "it is held, not used")] OwnedFd);

impl OwnProcesses {
    /// From now on what this process forks is born into a new namespace. None where that cannot be: then nothing has
    /// changed. For a process with one thread that is dumpable, and has nothing to hide yet.
    ///
    /// # Errors
    /// Where it worked in a try, and then did not, or could not be tried.
    pub(super) fn begin() -> nix::Result<Option<Self>> {
        if !works()? {
            return Ok(None);
        }
        enter_namespaces().map_err(errno_of)?;
        let (tie, theirs) = pipe2(OFlag::O_CLOEXEC)?;
        match sys::fork()? {
            ForkResult::Parent { .. } => Ok(Some(Self(tie))),
            ForkResult::Child => {
                drop(tie);
                wait_for_the_end(&theirs)
            }
        }
    }
}

/// What the program's own process does: it sees the processes of its namespace, and no others, and files with these
/// steps taken.
pub(super) fn show_them(files: &FilePlan) -> Result<(), StartRefusal> {
    let proc = || {
        let none: Option<&str> = None;
        unshare(CloneFlags::CLONE_NEWNS)?;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
        mount(Some("proc"), "/proc", Some("proc"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC, none)
    };
    proc().map_err(StartRefusal::at(Step::Proc))?;
    cover(files)
}

/// Whether all of it works here: tried by a process of its own, since of what works in part nothing can be undone.
///
/// # Errors
/// Where it cannot be found out.
fn works() -> nix::Result<bool> {
    let tried = || {
        enter_namespaces().map_err(errno_of)?;
        in_a_child(|| {
            show_them(&FilePlan::default()).map_err(|refusal| refusal.cause())?;
            can_cover()
        })
    };
    match in_a_child(tried) {
        Ok(()) => Ok(true),
        Err(Errno::EAGAIN | Errno::ENOMEM | Errno::EMFILE | Errno::ENFILE | Errno::ECHILD) => Err(Errno::EAGAIN),
        // Too many, which may be none at all.
        Err(Errno::ENOSPC | Errno::EUSERS) if !are_none_allowed() => Err(Errno::EAGAIN),
        Err(_refused) => Ok(false),
    }
}

/// Whether this machine gives nobody such namespaces.
fn are_none_allowed() -> bool {
    let is_none =
        |name: &str| std::fs::read_to_string(format!("/proc/sys/user/{name}")).is_ok_and(|text| text.trim() == "0");
    ["max_pid_namespaces", "max_user_namespaces", "max_mnt_namespaces"].into_iter().any(is_none)
}

/// What came of this in a child, which does nothing else.
fn in_a_child(work: impl FnOnce() -> nix::Result<()>) -> nix::Result<()> {
    match sys::fork()? {
        // Numbers of errors fit into a status.
        ForkResult::Child => std::process::exit(work().map_or_else(|errno| errno as i32, |()| 0)),
        ForkResult::Parent { child } => loop {
            match waitpid(child, None) {
                Err(Errno::EINTR) => {}
                Ok(WaitStatus::Exited(_, 0)) => return Ok(()),
                Ok(WaitStatus::Exited(_, errno)) => return Err(Errno::from_raw(errno)),
                // As some service managers do with what may not be called.
                Ok(WaitStatus::Signaled(_, Signal::SIGSYS, _)) => return Err(Errno::EPERM),
                // It was killed, or nobody knows.
                Ok(_) | Err(_) => return Err(Errno::ECHILD),
            }
        },
    }
}

/// Root needs no user namespace, and would not be root in one.
fn enter_namespaces() -> io::Result<()> {
    let (uid, gid) = (Uid::effective(), Gid::effective());
    if uid.is_root() {
        return Ok(unshare(CloneFlags::CLONE_NEWPID)?);
    }
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID)?;
    map_identity(uid.as_raw(), uid.as_raw(), gid.as_raw(), gid.as_raw())
}

fn errno_of(error: io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EINVAL as i32))
}

/// The whole life of the first process: the kernel takes its orphans off it, and kills it with the keeper.
fn wait_for_the_end(tie: &OwnedFd) -> ! {
    sys::reset_signal_actions(CHILD_ENDED);
    let ready = set_dumpable(false).map_err(StartRefusal::at(Step::Tie)).and_then(|()| tie_to_keeper(tie));
    if ready.is_ok() && sys::close_from(0).is_ok() {
        loop {
            pause();
        }
    }
    std::process::exit(1)
}
