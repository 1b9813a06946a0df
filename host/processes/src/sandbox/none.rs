//! No isolation: CMD under a keeper, in a session of its own.
//!
//! It promises nothing against code of the same user. What is left: nothing stays behind, no descriptor but 0, 1, 2,
//! no variable that the configuration refers to, and a terminal of its own.

use std::ffi::OsStr;

use crate::keeper::{Kept, KeptCommand};

/// The command as it is; it still needs its environment, streams and working folder.
pub fn command(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> KeptCommand {
    Kept::command(program).args(args)
}
