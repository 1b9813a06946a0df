//! Which process a number means: process ids are used again, so one that is kept goes with the start of the process
//! and the boot of the machine.

use std::{
    fs, io,
    os::fd::{AsFd, OwnedFd},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use tokio::io::unix::AsyncFd;

use crate::sys;

/// One process of one boot of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Its id.
    pub pid: i32,
    /// When it started, clock ticks since the boot.
    pub started: u64,
    /// Which boot, as in `/proc/sys/kernel/random/boot_id`.
    pub boot: String,
}

/// A process that can be waited for, and that stays the same one.
#[derive(Debug)]
pub struct ProcessHandle(OwnedFd);

/// A process whose end is waited for.
#[derive(Debug)]
pub struct ProcessWatch(AsyncFd<OwnedFd>);

impl ProcessIdentity {
    /// The process that has this id now.
    ///
    /// # Errors
    /// `NotFound` where there is none, or whatever the system says.
    pub fn of(pid: i32) -> io::Result<Self> {
        Ok(Self { pid, started: started(pid)?, boot: boot()? })
    }

    /// A handle on exactly this process; nothing if it has ended.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn open(&self) -> io::Result<Option<ProcessHandle>> {
        let Some(handle) = ProcessHandle::open(self.pid)? else { return Ok(None) };
        // Asked after the handle was there: the process with this id is the handle's, or has ended.
        let same = match Self::of(self.pid) {
            Ok(now) => now == *self,
            Err(error) if is_gone(&error) => false,
            Err(error) => return Err(error),
        };
        Ok((same && !handle.has_ended()?).then_some(handle))
    }
}

impl ProcessHandle {
    /// A handle on whatever process has this id; nothing if there is none.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn open(pid: i32) -> io::Result<Option<Self>> {
        // A negative one means something else to the kernel, and to rustix a mistake.
        let Some(pid) = Pid::from_raw(pid.max(0)) else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => Ok(Some(Self(descriptor))),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// A handle from a descriptor of that kind.
    #[must_use]
    pub(crate) fn from_pidfd(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Whether it has ended.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn has_ended(&self) -> io::Result<bool> {
        let mut ended = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        Ok(poll(&mut ended, PollTimeout::ZERO)? > 0)
    }

    /// Lets the runtime wait for its end.
    ///
    /// # Errors
    /// When the runtime cannot.
    pub fn watch(self) -> io::Result<ProcessWatch> {
        sys::watched(self.0).map(ProcessWatch)
    }
}

impl ProcessWatch {
    /// Waits until it has ended.
    pub async fn ended(&self) {
        // An error means that the runtime is ending, and then nobody waits any more.
        if self.0.readable().await.is_err() {
            std::future::pending().await
        }
    }
}

/// Whether that is because there is no such process any more.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    // Read while it ends, the file of a process says ESRCH.
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(nix::libc::ESRCH)
}

/// The 22nd field of `/proc/PID/stat`. The second is a name in parentheses that may hold anything.
fn started(pid: i32) -> io::Result<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat"))?;
    let text = String::from_utf8_lossy(&stat);
    let after_name = text.rsplit_once(") ").map(|(_, rest)| rest);
    let field = after_name.and_then(|rest| rest.split(' ').nth(19)).and_then(|field| field.parse().ok());
    field.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its start cannot be read"))
}

fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[tokio::test]
    async fn a_process_is_waited_for_and_then_gone() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let identity = ProcessIdentity::of(child.id().cast_signed()).unwrap();
        let handle = identity.open().unwrap().unwrap();
        assert!(!handle.has_ended().unwrap());
        drop(child.stdin.take());
        tokio::time::timeout(std::time::Duration::from_secs(20), handle.watch().unwrap().ended()).await.unwrap();
        child.wait().unwrap();
        assert!(identity.open().unwrap().is_none());
        assert!(ProcessIdentity::of(identity.pid).is_err());
    }

    #[test]
    fn another_start_or_another_boot_is_another_process() {
        let own = ProcessIdentity::of(std::process::id().cast_signed()).unwrap();
        assert!(own.open().unwrap().is_some());
        let earlier = ProcessIdentity { started: own.started - 1, ..own.clone() };
        let other_boot = ProcessIdentity { boot: "x".into(), ..own };
        assert!(earlier.open().unwrap().is_none() && other_boot.open().unwrap().is_none());
        assert!(ProcessHandle::open(0).unwrap().is_none() && ProcessHandle::open(-1).unwrap().is_none());
    }
}
