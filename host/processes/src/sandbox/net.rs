//! Own namespaces, made without any other program.
//!
//! The network namespace has nothing but `lo`; what crosses is one Unix socket in a folder that stays visible. Inside
//! it is the same user as outside. What is described here is done by `isolation`, in the keeper's child.
//!
//! The first of the view's programs is pid 1: when it ends, or the keeper does, the kernel ends everything else inside.
//!
//! Failure: any step that does not work ends the start with a refusal that names it. There is no half sandbox.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::Nesting;
use super::files::FilePlan;
use crate::isolation::Isolation;
use crate::keeper::{Kept, KeptCommand};

/// The command whose program becomes pid 1 of the sandbox, normally the relay.
///
/// It still needs its environment, streams and working folder.
pub fn command(files: FilePlan, args: impl IntoIterator<Item = impl AsRef<OsStr>>, nesting: Nesting) -> KeptCommand {
    let program = files.program.clone();
    Kept::command(program).args(args).isolated(Isolation::sandbox(files, nesting))
}

/// The relay's arguments: where it listens inside, the socket it forwards to, and the command it runs.
pub fn relay_args(listen: &str, socket: &Path, command: &[OsString]) -> Vec<OsString> {
    let mut to = OsString::from("unix:");
    to.push(socket);
    let mut args: Vec<OsString> = vec!["--listen".into(), listen.into(), "--to".into(), to, "--".into()];
    args.extend_from_slice(command);
    args
}
