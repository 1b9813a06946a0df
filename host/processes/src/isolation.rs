//! What a child of the keeper does to itself before it becomes the first program of a sandbox.
//!
//! It is born into new namespaces and gives them what they lack: users, mounts, the interface `lo`. Then it gives up
//! its privileges. There are two user namespaces, one in the other: the outer one owns the mounts, and the program lives
//! in the inner one, so that even a capability it should never get would not let it take a mount away. And it gets a
//! domain that writes in its own places alone, since a descriptor that another sandbox hands over leads past its mounts.
//!
//! Another kind of child only lays a layer over a folder, holds links where they are, covers what may be gone soon and makes
//! devices read-only, in a mount namespace of its own, for a program that makes a sandbox by itself and cannot do that.
//!
//! Failure: any step that does not work ends the start with a [`StartRefusal`] that names it. There is no half sandbox.
//! It refuses to know why a path is hidden, and what the program is.

mod held;
mod identity;
mod layer;
mod mounts;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use footbridge_domains::{Nesting, refuse_calls, write_below};
use nix::sched::CloneFlags;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use serde::{Deserialize, Serialize};

use crate::file_plan::FilePlan;
use crate::refusal::{StartRefusal, Step};
use crate::sys;
pub(crate) use identity::map as map_identity;
pub(crate) use mounts::{can_cover, cover, of_the_machine};

/// What is to be done, as the keeper is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Isolation {
    kind: IsolationKind,
    uid: u32,
    gid: u32,
}

#[derive(Debug, Serialize, Deserialize)]
enum IsolationKind {
    /// The whole sandbox.
    Sandbox { files: FilePlan, nesting: Nesting },
    /// A mount namespace in which a folder shows elsewhere, with a layer over it, links of these files cannot be replaced,
    /// what they hide is covered, and modes of devices cannot be changed.
    Mounts { layer: Option<[OsString; 2]>, files: FilePlan },
}

impl Isolation {
    /// A sandbox with these files, for this process's user.
    pub(crate) fn sandbox(files: FilePlan, nesting: Nesting) -> Self {
        Self::of(IsolationKind::Sandbox { files, nesting })
    }

    /// Shows the first folder at the other, with all that is written there in a layer that is gone when nobody sees it any
    /// more, keeps links and devices of these files as they are, and covers what they hide.
    pub(crate) fn mounts(layer: Option<[&Path; 2]>, files: FilePlan) -> Self {
        Self::of(IsolationKind::Mounts { layer: layer.map(|paths| paths.map(OsString::from)), files })
    }

    fn of(kind: IsolationKind) -> Self {
        Self { kind, uid: nix::unistd::geteuid().as_raw(), gid: nix::unistd::getegid().as_raw() }
    }

    /// The namespaces that the child is born into.
    pub(crate) fn namespaces(&self) -> CloneFlags {
        let mounts = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS;
        match self.kind {
            IsolationKind::Mounts { .. } => mounts,
            IsolationKind::Sandbox { .. } => {
                mounts | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWNET
            }
        }
    }

    /// Sets the namespaces up, as their first process, and becomes the caller's user in them.
    pub(crate) fn enter(&self) -> Result<(), StartRefusal> {
        let files = match &self.kind {
            IsolationKind::Sandbox { files, .. } => files,
            IsolationKind::Mounts { layer, files } => {
                identity::map(self.uid, self.uid, self.gid, self.gid).map_err(StartRefusal::io_at(Step::Identity))?;
                mounts::cut_off()?;
                mounts::prepare(files)?;
                return layer.as_ref().map_or(Ok(()), |[folder, at]| layer::lay_over(Path::new(folder), Path::new(at)));
            }
        };
        // The first namespace needs a user 0, or the kernel mounts no /dev/pts for it.
        identity::map(0, self.uid, 0, self.gid).map_err(StartRefusal::io_at(Step::Identity))?;
        mounts::build_view(files)?;
        let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None);
        any.and_then(sys::bring_loopback_up).map_err(StartRefusal::at(Step::Loopback))?;
        nix::sched::unshare(CloneFlags::CLONE_NEWUSER).map_err(StartRefusal::at(Step::Namespaces))?;
        identity::map(self.uid, 0, self.gid, 0).map_err(StartRefusal::io_at(Step::Identity))
    }

    /// The last step before the program: no capability, none to get, a domain that writes in its own places alone, and the
    /// system call filter. A program that makes the sandbox by itself does that itself too.
    pub(crate) fn give_up_privileges(&self) -> Result<(), StartRefusal> {
        let IsolationKind::Sandbox { nesting, files } = &self.kind else { return Ok(()) };
        sys::drop_capabilities().map_err(StartRefusal::at(Step::Capabilities))?;
        nix::sys::prctl::set_no_new_privs().map_err(StartRefusal::at(Step::Filter))?;
        if *nesting == Nesting::Refused {
            // Sandboxes in this one have to mount.
            write_below(files.written().iter().map(PathBuf::as_path)).map_err(StartRefusal::at(Step::OwnPlaces))?;
        }
        refuse_calls(*nesting).map_err(|error| StartRefusal { step: Step::Filter, errno: error.errno() as i32 })
    }
}
