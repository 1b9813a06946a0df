//! Executing a program by name or path, in the environment it is given.
//!
//! As shells do: a name without a slash is looked for in the PATH of the new environment, and a script without an
//! interpreter line is run by /bin/sh. The error is that of the likeliest meant file: one that is there but not
//! allowed counts more than ones that are not there.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use nix::errno::Errno;
use nix::unistd::execve;

use super::order::Order;

/// Where programs are looked for when the environment has no PATH.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Replaces this process; returns only if that failed.
pub(super) fn execute(order: &Order) -> Errno {
    match prepare_and_execute(order) {
        Ok(never) => match never {},
        Err(errno) => errno,
    }
}

fn prepare_and_execute(order: &Order) -> nix::Result<std::convert::Infallible> {
    let mut argv = vec![c_string(&order.program)?];
    for argument in &order.args {
        argv.push(c_string(argument)?);
    }
    let mut env = Vec::new();
    for (name, value) in &order.env {
        let mut pair = name.clone();
        pair.push("=");
        pair.push(value);
        env.push(c_string(&pair)?);
    }
    let mut denied = None;
    for candidate in candidates(order) {
        match execute_one(&candidate, &argv, &env) {
            Errno::ENOENT | Errno::ENOTDIR => {}
            Errno::EACCES => denied = Some(Errno::EACCES),
            other => return Err(other),
        }
    }
    Err(denied.unwrap_or(Errno::ENOENT))
}

fn candidates(order: &Order) -> Vec<OsString> {
    if order.program.as_bytes().contains(&b'/') {
        return vec![order.program.clone()];
    }
    if order.program.is_empty() {
        return Vec::new();
    }
    let path = order.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH)).as_bytes();
    let in_folder = |folder: &[u8]| {
        let folder = if folder.is_empty() { Path::new(".") } else { Path::new(OsStr::from_bytes(folder)) };
        folder.join(&order.program).into_os_string()
    };
    path.split(|byte| *byte == b':').map(in_folder).collect()
}

fn execute_one(path: &OsStr, argv: &[CString], env: &[CString]) -> Errno {
    let Ok(file) = c_string(path) else { return Errno::EINVAL };
    let outcome = execve(&file, argv, env);
    let Err(Errno::ENOEXEC) = outcome else { return outcome.err().unwrap_or(Errno::EINVAL) };
    let mut through_shell = vec![c"/bin/sh".to_owned(), file];
    through_shell.extend(argv.iter().skip(1).cloned());
    execve(c"/bin/sh", &through_shell, env).err().unwrap_or(Errno::EINVAL)
}

fn c_string(text: &OsStr) -> nix::Result<CString> {
    CString::new(text.to_owned().into_vec()).map_err(|_| Errno::EINVAL)
}
