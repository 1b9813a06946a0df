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
        Ok(Self { pid, started: Stat::of(pid)?.started, boot: boot()? })
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
    pub fn from_pidfd(descriptor: OwnedFd) -> Self {
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

/// How often the parents of a process are looked at until they are twice the same.
const LOOKS: usize = 8;
/// Most parents of a process, one above the other, that are looked at.
const MAX_PARENTS: usize = 256;

/// Whether a process was started by one of these, which live, or by what they started; orphans that they take in count
/// too.
///
/// # Errors
/// When the process is gone, when it cannot be told, or when somebody takes care that it cannot be told.
pub fn came_of(pid: i32, these: &[i32]) -> io::Result<bool> {
    let mut before = lineage(pid, these)?;
    for _ in 0..LOOKS {
        let line = lineage(pid, these)?;
        // Whoever was there both times, with the same parent, was there in between: no id was used again.
        if line == before {
            return Ok(line.last().is_some_and(|last| these.contains(&last.parent)));
        }
        before = line;
    }
    Err(io::Error::other("its parents change all the time"))
}

/// A process, its parent, the parent's parent, and so on, up to one whose parent is one of `ends`, or not
/// to be seen here.
fn lineage(pid: i32, ends: &[i32]) -> io::Result<Vec<Stat>> {
    let mut next = Stat::of(pid)?;
    let mut line = Vec::new();
    loop {
        let parent = next.parent;
        line.push(next);
        if ends.contains(&parent) || parent <= 0 {
            return Ok(line);
        }
        if line.len() > MAX_PARENTS {
            return Err(io::Error::other("it has too many parents"));
        }
        next = match Stat::of(parent) {
            Ok(stat) => stat,
            // One that is hidden (hidepid), or that ended just now: then the second look finds another line.
            Err(error) if is_gone(&error) => return Ok(line),
            Err(error) => return Err(error),
        };
    }
}

/// Whether that is because there is no such process any more.
pub fn is_gone(error: &io::Error) -> bool {
    // Read while it ends, the file of a process says ESRCH.
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(nix::libc::ESRCH)
}

/// What `/proc/PID/stat` says of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    pid: i32,
    /// 0 where that is outside of this pid namespace.
    parent: i32,
    /// Clock ticks since the boot.
    started: u64,
}

impl Stat {
    /// The 4th and the 22nd field. The second is a name in parentheses that may hold anything.
    fn of(pid: i32) -> io::Result<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat"))?;
        let text = String::from_utf8_lossy(&stat);
        let mut fields = text.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').skip(1);
        let parent = fields.next().and_then(|field| field.parse().ok());
        let started = fields.nth(17).and_then(|field| field.parse().ok());
        match (parent, started) {
            (Some(parent), Some(started)) => Ok(Self { pid, parent, started }),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "its parent and its start cannot be read")),
        }
    }
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
    fn a_child_an_orphan_and_nobody_else_came_of_a_process() {
        let own = std::process::id().cast_signed();
        let mut shell = Command::new("sh");
        // The inner shell's child outlives it, and belongs to whoever takes orphans in. Its number is told once the
        // inner shell is gone, which was its parent until then.
        let script = "orphan=$(sh -c 'cat <&3 >/dev/null 2>&1 & echo $!' 3<&0); echo $orphan; exec cat";
        let mut child = shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let pid = child.id().cast_signed();
        assert!(came_of(pid, &[own]).unwrap() && !came_of(own, &[pid]).unwrap() && !came_of(own, &[own]).unwrap());
        let mut orphan = String::new();
        let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut said, &mut orphan).unwrap();
        let orphan: i32 = orphan.trim().parse().unwrap();
        let taken_in_by = Stat::of(orphan).unwrap().parent;
        assert!(taken_in_by != own && came_of(orphan, &[taken_in_by]).unwrap());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(came_of(pid, &[own]).is_err());
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
