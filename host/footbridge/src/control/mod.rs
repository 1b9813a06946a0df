//! How commands talk to a running harness: one Unix socket, one JSON object a line each way (JSON-RPC 2.0).
//!
//! Each harness that can be talked to has `<runtime>/<its folder>/control.sock`; for `serve` the folder is `serve`.
//! Nothing that a guest can do may get in: `peer` refuses whoever is not a process of our own user in our own user, pid
//! and network namespaces; nor may what this harness started. What can be asked is a closed enum, [`wire::ControlRequest`].
//!
//! Failure paths: a peer that is refused is cut off without a word, or with one where it came of this harness; a line
//! that is too long, too late or no JSON ends its connection; a request that cannot be read or carried out is answered
//! with an error.

pub(crate) mod approvals;
pub(crate) mod client;
mod idle;
mod peer;
pub(crate) mod server;
pub(crate) mod servers;
#[cfg(test)]
mod tests;
pub(crate) mod wire;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The socket's name in the folder of its harness.
const SOCKET: &str = "control.sock";

/// The folder of `serve` in the runtime folder.
const SERVE: &str = "serve";

/// The control socket of `serve`.
#[must_use]
pub(crate) fn of_serve(runtime: &Path) -> PathBuf {
    runtime.join(SERVE).join(SOCKET)
}

/// The control socket of a harness with this folder.
#[must_use]
pub(crate) fn in_folder(folder: &Path) -> PathBuf {
    folder.join(SOCKET)
}

/// The control sockets of all harnesses of a runtime folder, those of dead ones too.
///
/// # Errors
/// When the folder cannot be read; one that is not there has none.
pub(crate) fn all(runtime: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(runtime) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let what = format!("cannot see which harnesses run in {}: {error}", runtime.display());
            return Err(io::Error::new(error.kind(), what));
        }
        Ok(entries) => entries,
    };
    let mut found = Vec::new();
    for entry in entries {
        let socket = in_folder(&entry?.path());
        if socket.symlink_metadata().is_ok() {
            found.push(socket);
        }
    }
    found.sort();
    Ok(found)
}
