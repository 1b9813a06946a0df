//! Subcommands that only Footbridge itself starts, by re-executing its own binary.
//!
//! They need a process with one thread and no runtime: a threaded process can neither make a user namespace nor fork
//! safely. So [`dispatch`] is the very first thing that `main` does. It returns when the arguments name no hidden
//! subcommand, and otherwise never: the process ends with the subcommand's status.

use footbridge_edge::listener;
use footbridge_processes::keeper;

/// Becomes the hidden subcommand that the arguments name, if they name one; call it before anything else in `main`.
///
/// For any other command it notes the umask, limits and signals that this process was started with, so that children
/// can have them back, and the sockets, so that they can be listened on and children do not have them; then it returns.
pub fn dispatch() {
    keeper::become_one_if_told();
    listener::note_inherited();
}
