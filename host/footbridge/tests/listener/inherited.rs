//! Sockets that this program is started with. Each case runs in a process of its own: a shell gives it the socket.

use std::{
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        fd::OwnedFd,
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    path::Path,
    process::{Command, Stdio},
};

use footbridge_calls::auth::Peer;
use footbridge_edge::listener::{BindError, Listen, Listener, Listeners, address_of};
use tokio::runtime::Runtime;

use crate::places::{folder, given, must_pass, part_args, unix};

/// Runs a part with a socket as its descriptor of this number.
pub(crate) fn with_socket(part: &str, folder: &Path, number: u32, socket: OwnedFd) {
    with_socket_and(part, folder, "LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=fb", number, socket);
}

fn with_socket_and(part: &str, folder: &Path, variables: &str, number: u32, socket: OwnedFd) {
    let script = format!("export {variables}; exec \"$0\" \"$@\" {number}<&0 0</dev/null");
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(program).args(part_args(part)).env("FOLDER", folder);
    command.stdin(Stdio::from(socket));
    must_pass(command);
}

/// What `main` does first, and then a runtime.
pub(crate) fn begin() -> Runtime {
    footbridge::hidden::dispatch();
    Runtime::new().unwrap()
}

fn bind(text: &str) -> Result<Listener, BindError> {
    Listeners::default().bind(&Listen::at(text.parse().unwrap()))
}

/// What no child may have.
fn must_pass_no_socket_on() {
    let output = Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    let listing = String::from_utf8(output.stdout).unwrap();
    assert!(listing.contains("/proc/") && !listing.contains("socket:"), "{listing}");
}

#[test]
fn a_unix_socket_is_taken_over_by_one_session_at_a_time() {
    let folder = folder();
    let socket = UnixListener::bind(folder.path().join("s")).unwrap();
    with_socket("inherited::takes_over_unix", folder.path(), 5, socket.into());
    assert!(folder.path().join("s").exists(), "its file is not ours to remove");
}

#[test]
#[ignore = "a part that another test starts"]
fn takes_over_unix() {
    let runtime = begin();
    let _inside = runtime.enter();
    must_pass_no_socket_on();
    let path = given().join("s");
    let listener = bind("fd:5").unwrap();
    assert_eq!(listener.endpoint().unwrap(), unix(&path));
    let client = UnixStream::connect(&path).unwrap();
    let (stream, peer) = runtime.block_on(listener.accept(|_, _| {})).unwrap();
    assert!(matches!(peer, Peer::Unix { .. }), "{peer}");
    assert!(matches!(bind("fd:5"), Err(BindError::InUse(_))), "it is taken");
    for wrong in ["fd:6", "fd:0", "fd:2", "fd:4294967295"] {
        let error = bind(wrong).unwrap_err();
        assert!(matches!(error, BindError::Inherited { .. }) && error.to_string().starts_with(wrong), "{error}");
    }
    // What this process opened itself is nobody's to take.
    let own = UnixListener::bind(given().join("own")).unwrap();
    assert!(bind(&format!("fd:{}", std::os::fd::AsRawFd::as_raw_fd(&own))).is_err());
    must_pass_no_socket_on();
    drop((listener, client, stream));
    let _waits = UnixStream::connect(&path).unwrap();
    let next = bind("fd:5").unwrap();
    assert!(runtime.block_on(next.accept(|_, _| {})).is_ok(), "the next session has it, and who waited");
}

#[test]
fn tcp_on_loopback_is_taken_over() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    with_socket("inherited::takes_over_tcp", folder().path(), 7, socket.into());
}

#[test]
#[ignore = "a part that another test starts"]
fn takes_over_tcp() {
    let runtime = begin();
    let _inside = runtime.enter();
    let listener = bind("fd:7").unwrap();
    let address = listener.endpoint().unwrap().to_string();
    assert_eq!(address_of(&"fd:7".parse().unwrap()).to_string(), address);
    let _client = TcpStream::connect(address.strip_prefix("tcp:").unwrap()).unwrap();
    assert!(matches!(runtime.block_on(listener.accept(|_, _| {})), Ok((_, Peer::Tcp(_)))));
}

#[test]
fn systemd_s_socket_is_taken_over_by_its_name() {
    let folder = folder();
    let socket = UnixListener::bind(folder.path().join("s")).unwrap();
    with_socket("inherited::takes_over_named", folder.path(), 3, socket.into());
}

#[test]
#[ignore = "a part that another test starts"]
fn takes_over_named() {
    let runtime = begin();
    let _inside = runtime.enter();
    let error = bind("sd:other").unwrap_err().to_string();
    assert!(error.starts_with("sd:other") && error.contains("FileDescriptorName="), "{error}");
    let listener = bind("sd:fb").unwrap();
    let path = given().join("s");
    assert_eq!(address_of(&"sd:fb".parse().unwrap()).to_string(), format!("unix:{}", path.display()));
    let _client = UnixStream::connect(path).unwrap();
    assert!(runtime.block_on(listener.accept(|_, _| {})).is_ok());
    assert!(bind("sd:fb").is_err() && bind("fd:3").is_err(), "it is taken");
}

#[test]
fn what_systemd_meant_for_others_or_what_makes_no_sense_is_nothing() {
    let folder = folder();
    for variables in [
        "LISTEN_PID=1 LISTEN_FDS=1 LISTEN_FDNAMES=fb",
        "LISTEN_PID=$$x LISTEN_FDS=1 LISTEN_FDNAMES=fb",
        "LISTEN_FDS=1 LISTEN_FDNAMES=fb",
        "LISTEN_PID=$$ LISTEN_FDS=-1 LISTEN_FDNAMES=fb",
        "LISTEN_PID=$$ LISTEN_FDS=99999999999999 LISTEN_FDNAMES=fb",
        "LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=fb:other",
    ] {
        let socket = UnixListener::bind(folder.path().join("s")).unwrap();
        std::fs::remove_file(folder.path().join("s")).unwrap();
        with_socket_and("inherited::finds_nothing_named", folder.path(), variables, 3, socket.into());
    }
}

#[test]
#[ignore = "a part that another test starts"]
fn finds_nothing_named() {
    let runtime = begin();
    let _inside = runtime.enter();
    let error = bind("sd:fb").unwrap_err().to_string();
    assert!(error.contains("no sockets to this process"), "{error}");
    assert!(bind("fd:3").is_ok(), "its number is enough");
}

#[test]
fn what_sessions_cannot_be_served_on_is_refused_with_the_reason() {
    let abstracted = SocketAddr::from_abstract_name(format!("footbridge-test-{}", std::process::id())).unwrap();
    let sockets: [(&str, OwnedFd); 4] = [
        ("refuses_others", UdpSocket::bind("127.0.0.1:0").unwrap().into()),
        ("refuses_others", UnixStream::pair().unwrap().0.into()),
        ("refuses_abstract", UnixListener::bind_addr(&abstracted).unwrap().into()),
        ("refuses_wide", TcpListener::bind("0.0.0.0:0").unwrap().into()),
    ];
    for (part, socket) in sockets {
        with_socket(&format!("inherited::{part}"), folder().path(), 5, socket);
    }
}

fn must_be_refused(says: &str) {
    let runtime = begin();
    let _inside = runtime.enter();
    let error = bind("fd:5").unwrap_err();
    assert!(matches!(error, BindError::Inherited { .. }) && error.to_string().contains(says), "{error}");
}

#[test]
#[ignore = "a part that another test starts"]
fn refuses_others() {
    must_be_refused("no stream socket that listens");
}

#[test]
#[ignore = "a part that another test starts"]
fn refuses_abstract() {
    must_be_refused("abstract sockets have no permissions");
}

#[test]
#[ignore = "a part that another test starts"]
fn refuses_wide() {
    must_be_refused("other machines can reach it");
}
