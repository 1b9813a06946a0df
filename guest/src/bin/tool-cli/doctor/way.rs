//! The way to the harness: a Unix socket, a TCP port, the relay and its vsock. What keeps a known kind of sandbox from
//! going it is told by its signature.

use std::{
    io::{Error, ErrorKind},
    net::{TcpStream, ToSocketAddrs as _},
    os::unix::{
        fs::{FileTypeExt as _, MetadataExt as _},
        net::UnixStream,
    },
    path::Path,
    time::Duration,
};

use footbridge_cli::findings::Finding;
use footbridge_guest::sockets::stranger_at;
use footbridge_proto::{endpoint::Endpoint, vars};
use nix::{
    errno::Errno,
    sys::socket::{AddressFamily, SockFlag, SockType, socket as open_socket},
};

use super::around::Around;

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// Where the relay is told to connect to.
const TO: &str = "FOOTBRIDGE_TO";
/// What mends most of it.
const MOUNT_ITS_FOLDER: &str = "mount the folder of the socket, not the socket, and start the sandbox again";

/// A Unix socket: there, a socket, and somebody listening.
pub(super) fn socket(check: &str, path: &Path, around: &Around) -> Finding {
    let shown = path.display();
    let meta = match path.metadata() {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Finding::problem(check, format!("{shown} is not there"))
                .means("its folder is not mounted here, or the session has ended")
                .mend(format!("on the host: footbridge session list; {MOUNT_ITS_FOLDER}"));
        }
        Err(error) => return denied(check, &format!("{shown} cannot be looked at: {error}"), None, around),
    };
    if meta.is_dir() {
        return Finding::problem(check, format!("{shown} is a directory"))
            .means("the engine made it: there was no socket yet when the sandbox was started")
            .mend(format!("on the host remove it (rmdir), create the session first; {MOUNT_ITS_FOLDER}"));
    }
    if !meta.file_type().is_socket() {
        return Finding::problem(check, format!("{shown} is no socket")).mend(MOUNT_ITS_FOLDER);
    }
    let error = match UnixStream::connect(path) {
        Ok(_) => return Finding::ok(check, format!("{shown} takes connections")),
        Err(error) => error,
    };
    let found = format!("{shown}: {error}");
    let mount = around.mount_of(path);
    if around.is_gvisor() {
        return Finding::problem(check, found)
            .means("gVisor connects to no socket of the host unless it is told to")
            .mend("start runsc with --host-uds=open, and mount the folder of the socket");
    }
    if let Some(mount) = mount.as_ref().filter(|mount| ["virtiofs", "9p"].contains(&mount.kind.as_str())) {
        return Finding::problem(check, found)
            .means(format!(
                "sockets do not work through {}, the shared folder of a virtual machine (Kata and others)",
                mount.kind
            ))
            .mend("use vsock: footbridge session create NAME --listen vsock:any:7179 --peer-cid CID");
    }
    match error.kind() {
        ErrorKind::PermissionDenied => denied(check, &found, Some(meta.uid()), around),
        ErrorKind::ConnectionRefused if mount.is_some_and(|mount| mount.at == path) => Finding::problem(check, found)
            .means(
                "the socket itself is mounted: when the harness starts again it makes a new one, and this one is dead",
            )
            .mend(MOUNT_ITS_FOLDER),
        _ => Finding::problem(check, found)
            .means("nobody listens: the harness has ended, or the session is broken")
            .mend("on the host: footbridge session list"),
    }
}

/// Who or what keeps this process out, as far as that shows.
fn denied(check: &str, found: &str, owner: Option<u32>, around: &Around) -> Finding {
    let finding = Finding::problem(check, found);
    if around.is_codex() {
        return codex(finding);
    }
    if let Some(label) = around.label() {
        return finding
            .means(format!("SELinux keeps {label} from it"))
            .mend("start the container with --security-opt label=disable (an option of the engine)");
    }
    let unmapped = around.unmapped_user();
    if unmapped.is_some() && (owner == unmapped || owner.is_none()) {
        return finding
            .means("its owner has no number in this sandbox (a rootless user map), so its mode keeps others out")
            .mend("on the host: footbridge session create NAME --socket-mode 0666, in a folder that is mounted");
    }
    let owner = owner.map(|owner| format!(" of user {owner}")).unwrap_or_default();
    let user = nix::unistd::geteuid();
    finding
        .means(format!("the socket{owner}, or a folder above it, is closed to user {user}"))
        .mend(format!("on the host: footbridge session create NAME --socket-mode 0666 --allow-uid {user}"))
}

fn codex(finding: Finding) -> Finding {
    finding
        .means("Codex runs commands in a sandbox of its own, without network")
        .mend("write network_access = true under [sandbox_workspace_write] of its config.toml, or start tool-cli as its MCP server")
}

/// A TCP port: somebody listening, who is no stranger.
pub(super) fn port(host: &str, port: u16, known: Option<u32>, around: &Around) -> Vec<Finding> {
    let addresses = match (host, port).to_socket_addrs() {
        Ok(addresses) => addresses,
        Err(error) => {
            return vec![Finding::problem("port", format!("{host}: {error}")).mend(format!("set {}", vars::HOST))];
        }
    };
    let mut last = Error::from(ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                return vec![Finding::ok("port", format!("{address} takes connections")), owner(&stream, known)];
            }
            Err(error) => last = error,
        }
    }
    vec![no_port(host, port, &last, around)]
}

fn no_port(host: &str, port: u16, error: &Error, around: &Around) -> Finding {
    let finding = Finding::problem("port", format!("{host} port {port}: {error}"));
    if around.is_codex() && error.kind() != ErrorKind::ConnectionRefused {
        return codex(finding);
    }
    match (error.kind(), around.first_process().as_deref()) {
        (ErrorKind::ConnectionRefused, Some("footbridge-rela" | "footbridge-relay")) => finding
            .means("the relay of this sandbox listens on another port")
            .mend(format!("set {} as the first process has it", vars::PORT)),
        (ErrorKind::ConnectionRefused, _) => finding
            .means("nobody listens there: the relay does not run here, or the harness has ended")
            .mend("start footbridge-relay --to ENDPOINT in this sandbox; on the host: footbridge session list"),
        _ => finding
            .means("this sandbox does not reach that address")
            .mend(format!("use the relay's port on loopback: unset {}", vars::HOST)),
    }
}

fn owner(stream: &TcpStream, known: Option<u32>) -> Finding {
    let (Ok(local), Ok(remote)) = (stream.local_addr(), stream.peer_addr()) else {
        return Finding::skipped("owner of the port", "the connection ended");
    };
    match stranger_at(local, remote) {
        Some(uid) if known != Some(uid) => Finding::problem("owner of the port", format!("it belongs to user {uid}"))
            .means("that is neither root, you nor the relay, so the token is not sent")
            .mend(format!("end that program; if it is your bridge after all, set {}={uid}", vars::LISTENER_UID)),
        _ => Finding::ok("owner of the port", "root, you, the relay, or nobody that the kernel tells of"),
    }
}

/// What the relay is told, where that shows here.
pub(super) fn relay(around: &Around) -> Vec<Finding> {
    let Some(to) = around.var(TO) else { return Vec::new() };
    match to.parse::<Endpoint>() {
        Err(error) => vec![Finding::problem("relay", format!("{TO} is {to:?}: {error}"))],
        Ok(Endpoint::Unix(path)) => vec![socket("relay's socket", path.as_path(), around)],
        Ok(Endpoint::Vsock(_)) => {
            vec![vsock(around, open_socket(AddressFamily::Vsock, SockType::Stream, SockFlag::empty(), None).err())]
        }
        Ok(_) => vec![Finding::ok("relay", format!("{TO} is {to}"))],
    }
}

fn vsock(around: &Around, error: Option<Errno>) -> Finding {
    match error {
        Some(error @ (Errno::EPERM | Errno::EACCES)) => Finding::problem(
            "vsock",
            format!("no such socket can be opened: {error}"),
        )
        .means("a seccomp filter refuses AF_VSOCK")
        .mend(
            "start the relay outside of that filter; for Docker use a seccomp profile that allows socket with AF_VSOCK",
        ),
        Some(error) => Finding::problem("vsock", format!("no such socket can be opened: {error}"))
            .means("the kernel of this machine has no vsock, or its module is not loaded")
            .mend("modprobe vmw_vsock_virtio_transport, and give the machine a vsock device"),
        None if !around.has("dev/vsock") => {
            Finding::note("vsock", "sockets can be opened, and /dev/vsock is not there")
                .means("the machine may have no vsock device")
        }
        None => Finding::ok("vsock", "sockets can be opened"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn vsock_found(root: &Path, error: Option<Errno>) -> Finding {
        vsock(&Around::of(root, &[]), error)
    }

    pub(in super::super) fn denied_by(root: &Path, vars: &[(&str, &str)], owner: Option<u32>) -> Finding {
        denied("socket", "x", owner, &Around::of(root, vars))
    }
}
