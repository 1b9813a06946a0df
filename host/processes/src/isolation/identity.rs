//! Which user one is inside a new user namespace.

use std::fs::write;
use std::io;

/// Maps one user and one group of the parent namespace to one of this; supplementary groups cannot be changed.
///
/// For a process in a namespace that it has just made; it must be dumpable.
pub(crate) fn map(uid: u32, outer_uid: u32, gid: u32, outer_gid: u32) -> io::Result<()> {
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", format!("{uid} {outer_uid} 1"))?;
    write("/proc/self/gid_map", format!("{gid} {outer_gid} 1"))
}
