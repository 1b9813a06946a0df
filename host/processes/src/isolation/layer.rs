//! A folder of the host's whose writes go elsewhere: an overlay, in a user namespace.
//!
//! The upper layer is in memory and has no name: it is covered by the very folder that shows it, and gone with the
//! last process that sees that. Sockets of the host's that lie in the folder lead nowhere through an overlay, which has
//! files of its own for them.

use std::fs::{DirBuilder, Permissions, set_permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use nix::mount::{MsFlags, mount};

use super::held::{Held, open};
use crate::refusal::{StartRefusal, Step};

/// Shows a folder at `at`, an existing folder, with writes in a layer.
pub(super) fn lay_over(folder: &Path, at: &Path) -> Result<(), StartRefusal> {
    lay(&open(folder)?, at)
}

/// As [`lay_over`], for a folder that was opened before.
pub(super) fn lay(lower: &Held, at: &Path) -> Result<(), StartRefusal> {
    let failed = || Step::Layer(at.to_string_lossy().into_owned());
    let private = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let target = open(at)?;
    mount(Some("tmpfs"), &target.through_descriptor(), Some("tmpfs"), private, Some("mode=0700"))
        .map_err(StartRefusal::at(failed()))?;
    for name in ["upper", "work"] {
        DirBuilder::new().mode(0o755).create(at.join(name)).map_err(StartRefusal::io_at(failed()))?;
    }
    // The folder itself shows with the mode of the upper one; the host's is what programs expect.
    let mode = nix::sys::stat::fstat(&lower.fd).map_err(StartRefusal::at(failed()))?.st_mode & 0o7777;
    set_permissions(at.join("upper"), Permissions::from_mode(mode)).map_err(StartRefusal::io_at(failed()))?;
    let (upper, work, over) = (open(&at.join("upper"))?, open(&at.join("work"))?, open(at)?);
    let [lower, upper, work] = [lower, &upper, &work].map(|held| format!("/proc/self/fd/{}", held.fd.as_raw_fd()));
    let options = format!("userxattr,lowerdir={lower},upperdir={upper},workdir={work}");
    mount(Some("overlay"), &over.through_descriptor(), Some("overlay"), private, Some(options.as_str()))
        .map_err(StartRefusal::at(failed()))
}
