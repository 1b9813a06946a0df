//! VMMs that carry a guest's vsock over Unix sockets: they connect to `PATH_PORT`.

use std::{
    fs,
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
};

use footbridge_calls::auth::Peer;
use footbridge_edge::listener::{BindError, Listen, Listener, Listeners};
use nix::unistd::geteuid;

use crate::places::{folder, leave_dead, mode, names};

fn bind(path: &Path, port: u32) -> Result<Listener, BindError> {
    let endpoint = format!("vsock-mux:{}:{port}", path.display()).parse().unwrap();
    Listeners::default().bind(&Listen::at(endpoint))
}

#[tokio::test]
async fn a_vmm_finds_the_socket_of_its_port_and_shows_as_one() {
    let folder = folder();
    let path = folder.path().join("v.sock");
    // What the VMM itself listens on is nothing to us.
    let vmms = UnixListener::bind(&path).unwrap();
    let (one, two) = (bind(&path, 7179).unwrap(), bind(&path, 0).unwrap());
    assert_eq!(names(folder.path()), ["v.sock", "v.sock_0", "v.sock_7179"]);
    assert_eq!(mode(&folder.path().join("v.sock_7179")), 0o600);
    assert_eq!(one.endpoint().unwrap().to_string(), format!("vsock-mux:{}:7179", path.display()));
    let client = UnixStream::connect(folder.path().join("v.sock_7179")).unwrap();
    let (_stream, peer) = one.accept(|_, _| {}).await.unwrap();
    assert_eq!(peer, Peer::Vmm { uid: geteuid().as_raw(), pid: Some(std::process::id().cast_signed()) });
    assert!(peer.to_string().starts_with("vmm:uid="), "{peer}");
    drop((one, two, client));
    assert_eq!(names(folder.path()), ["v.sock"]);
    drop(vmms);
}

#[tokio::test]
async fn it_is_as_careful_as_any_other_socket() {
    let folder = folder();
    let path = folder.path().join("v.sock");
    let first = bind(&path, 7).unwrap();
    let error = bind(&path, 7).unwrap_err();
    assert!(error.to_string().contains("v.sock:7 is in use"), "{error}");
    drop(first);
    fs::create_dir(folder.path().join("v.sock_8")).unwrap();
    let error = bind(&path, 8).unwrap_err().to_string();
    assert!(error.contains("v.sock_8 exists and is a folder"), "{error}");
    leave_dead(&folder.path().join("v.sock_9"));
    assert!(bind(&path, 9).is_ok(), "a dead one is replaced");
}
