//! What a child of the keeper does to itself before it becomes the first program of a sandbox.
//!
//! It is born into new namespaces and gives them what they lack: users, mounts, the interface `lo`. Then it gives up
//! its privileges. There are two user namespaces, one in the other: the outer one owns the mounts, and the program lives
//! in the inner one, so that even a capability it should never get would not let it take a mount away.
//!
//! Failure: any step that does not work ends the start with a [`StartRefusal`] that names it. There is no half sandbox.
//! It refuses to know why a path is hidden, and what the program is.

pub(crate) mod filter;
mod identity;
mod mounts;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::sched::CloneFlags;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use serde::{Deserialize, Serialize};

use crate::refusal::{StartRefusal, Step};
use crate::sys;
pub(crate) use mounts::paths_to_hide;

/// The view and the identity, as the keeper is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Isolation {
    hidden_folders: Vec<OsString>,
    hidden_files: Vec<OsString>,
    shown: OsString,
    uid: u32,
    gid: u32,
}

impl Isolation {
    /// For this process's user. What is hidden shows as empty, folders that are missing too; `shown` stays visible.
    pub(crate) fn new(hidden_folders: &[PathBuf], hidden_files: Vec<OsString>, shown: &Path) -> Self {
        Self {
            hidden_folders: hidden_folders.iter().map(|path| path.clone().into_os_string()).collect(),
            hidden_files,
            shown: shown.as_os_str().to_owned(),
            uid: nix::unistd::geteuid().as_raw(),
            gid: nix::unistd::getegid().as_raw(),
        }
    }

    /// The namespaces that the child is born into.
    pub(crate) fn namespaces() -> CloneFlags {
        CloneFlags::CLONE_NEWUSER
            | CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWPID
            | CloneFlags::CLONE_NEWIPC
            | CloneFlags::CLONE_NEWNET
    }

    /// Sets the namespaces up, as their first process, and becomes the caller's user in them.
    pub(crate) fn enter(&self) -> Result<(), StartRefusal> {
        // The first namespace needs a user 0, or the kernel mounts no /dev/pts for it.
        identity::map(0, self.uid, 0, self.gid).map_err(StartRefusal::io_at(Step::Identity))?;
        mounts::build_view(self)?;
        let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None);
        any.and_then(sys::bring_loopback_up).map_err(StartRefusal::at(Step::Loopback))?;
        nix::sched::unshare(CloneFlags::CLONE_NEWUSER).map_err(StartRefusal::at(Step::Namespaces))?;
        identity::map(self.uid, 0, self.gid, 0).map_err(StartRefusal::io_at(Step::Identity))
    }

    /// The last step before the program: no capability, none to get, and the system call filter.
    pub(crate) fn give_up_privileges() -> Result<(), StartRefusal> {
        sys::drop_capabilities().map_err(StartRefusal::at(Step::Capabilities))?;
        nix::sys::prctl::set_no_new_privs().map_err(StartRefusal::at(Step::Filter))?;
        filter::install().map_err(|error| StartRefusal { step: Step::Filter, errno: error.errno() })
    }
}
