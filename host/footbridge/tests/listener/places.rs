//! Places for sockets, and the parts of tests that run in a process of their own.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use footbridge_edge::listener::{Access, BindError, Listen, Listener, Listeners};
use footbridge_proto::endpoint::{Endpoint, SocketPath};
use nix::unistd::geteuid;

/// Longer than anything takes here, on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) const NOBODY: u32 = 65534;

/// Leaves a socket there at which nobody listens any more. A child that another test starts has it too, until it is another
/// program.
pub(crate) fn leave_dead(path: &Path) {
    drop(UnixListener::bind(path).unwrap());
    let deadline = Instant::now() + LONG;
    while UnixStream::connect(path).is_ok() {
        assert!(Instant::now() < deadline, "{} lives on", path.display());
    }
}

pub(crate) fn unix(path: &Path) -> Endpoint {
    Endpoint::Unix(SocketPath::new(path).unwrap())
}

pub(crate) fn bind(path: &Path) -> Result<Listener, BindError> {
    bind_with(path, Access::default())
}

/// A folder of this user alone.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
    folder
}

pub(crate) fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

/// The names in a folder, less the locks.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.ends_with(".lock"));
    names.sort();
    names
}

pub(crate) fn bind_with(path: &Path, access: Access) -> Result<Listener, BindError> {
    Listeners::default().bind(&Listen { access, ..Listen::at(unix(path)) })
}

/// This test program again, for one part, with this folder.
pub(crate) fn part(part: &str, folder: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(part_args(part)).env("FOLDER", folder);
    command
}

pub(crate) fn part_args(part: &str) -> [&str; 5] {
    ["--ignored", "--exact", part, "--nocapture", "--quiet"]
}

/// The same as another user, or as this one where that is no root.
pub(crate) fn as_ordinary_user(name: &str, folder: &Path) -> Command {
    let mut command = part(name, folder);
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Runs a part to its end; it must be there, and go well.
pub(crate) fn must_pass(mut part: Command) {
    let (shown, child) = (format!("{part:?}"), part.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    // It holds what it gives the part as standard input.
    drop(part);
    let output = child.wait_with_output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{shown}: {text}");
}

/// The folder that a part was given.
pub(crate) fn given() -> PathBuf {
    std::env::var_os("FOLDER").unwrap().into()
}
