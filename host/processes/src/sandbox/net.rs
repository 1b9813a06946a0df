//! Own namespaces, made without any other program.
//!
//! The network namespace has nothing but `lo`; what crosses is one Unix socket in a folder that stays visible. Inside
//! it is the same user as outside. What is described here is done by `isolation`, in the keeper's child.
//!
//! The program given here is pid 1: when it ends, or the keeper does, the kernel ends everything else inside.
//!
//! Failure: any step that does not work ends the start with a refusal that names it. There is no half sandbox.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::isolation::Isolation;
use crate::keeper::{Kept, KeptCommand};

/// Hidden always: what would do things outside the sandbox for the caller's own user.
///
/// The device lets a process pose as a virtual machine and so get round the refusal of AF_VSOCK. Behind each socket is
/// a service that runs what it is told, outside. A socket that is a container's only link to an engine can still be
/// reached under another name: this hides the usual ones, not every one.
const HIDDEN_ALWAYS: [&str; 8] = [
    "/dev/vhost-vsock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/dbus/system_bus_socket",
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/snapd.socket",
    "/run/systemd/private",
];

/// Terminal multiplexers: each types what it is told into the caller's other terminals.
fn multiplexers(uid: u32) -> [OsString; 2] {
    [format!("/tmp/tmux-{uid}").into(), "/run/screen".into()]
}

/// What the sandbox must not see, and the one folder it must.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Folders that show as empty. One that is missing is made, or the command could make it and fill it.
    pub hidden_folders: Vec<PathBuf>,
    /// Files that show as empty, and folders that do if they exist. What is missing is passed over.
    pub hidden_files: Vec<PathBuf>,
    /// The session's socket folder; it shows, read-only, even below a hidden folder.
    pub socket_folder: PathBuf,
}

impl View {
    /// What shows as empty where it exists: what is asked for, and what always is.
    pub(super) fn all_hidden_files(&self) -> Vec<OsString> {
        let mut all = strings(&self.hidden_files);
        all.extend(HIDDEN_ALWAYS.map(OsString::from));
        all.extend(multiplexers(nix::unistd::geteuid().as_raw()));
        all
    }
}

pub(super) fn strings(paths: &[PathBuf]) -> Vec<OsString> {
    paths.iter().map(|path| path.clone().into_os_string()).collect()
}

/// The command whose program becomes pid 1 of the sandbox, normally the relay by its absolute path.
///
/// It still needs its environment, streams and working folder. Nothing hides the program itself: keep it out of the
/// hidden folders.
pub fn command(
    program: impl AsRef<OsStr>,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    view: &View,
) -> KeptCommand {
    let isolation = Isolation::new(&view.hidden_folders, view.all_hidden_files(), &view.socket_folder);
    Kept::command(program).args(args).isolated(isolation)
}

/// The relay's arguments: where it listens inside, the socket it forwards to, and the command it runs.
pub fn relay_args(listen: &str, socket: &Path, command: &[OsString]) -> Vec<OsString> {
    let mut to = OsString::from("unix:");
    to.push(socket);
    let mut args: Vec<OsString> = vec!["--listen".into(), listen.into(), "--to".into(), to, "--".into()];
    args.extend_from_slice(command);
    args
}
