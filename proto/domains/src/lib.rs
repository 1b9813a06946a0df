//! Landlock domains and the system call filter: what a process takes from itself, for good, and from all that comes of it.
//!
//! [`Confinement`] keeps an MCP server away from other processes, [`write_below`] the command of a sandbox from all files
//! but those of its own places. The host enters the first and, where it makes the sandbox itself, the second; the relay
//! the second, where another program makes it. [`refuse_calls`] is the filter of every sandbox: the host installs it where it
//! makes the sandbox, or hands it to bubblewrap; the relay does in a container, whose engine refuses less.
//!
//! Failure: the kernel's reason, as a number; a kernel that has no such domain is none. It refuses to know what is started
//! and why.

mod confinement;
mod filter;
mod writes;

use nix::errno::Errno;

pub use confinement::Confinement;
pub use filter::{FilterError, Nesting, filter_bytes, refuse_calls};
pub use writes::write_below;

/// The kernel's reason, which the library has somewhere below its own.
fn errno_of(error: &(dyn std::error::Error + 'static)) -> Errno {
    let below = std::iter::successors(Some(error), |error| error.source());
    let numbers = below.filter_map(|error| error.downcast_ref::<std::io::Error>()?.raw_os_error());
    numbers.last().map_or(Errno::ENOSYS, Errno::from_raw)
}
