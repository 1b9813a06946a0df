//! Who may come in by a Unix socket, as the kernel names them.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::Path,
    sync::Arc,
};

use footbridge_calls::auth::Peer;
use footbridge_edge::listener::{Access, Listener};
use nix::unistd::geteuid;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinHandle,
    time::timeout,
};

use crate::{
    places::{LONG, NOBODY, as_ordinary_user, bind_with, given, must_pass},
    skipped::skipped,
};

/// A folder that others can look for a socket in, and a socket that they can connect to.
fn open_to(allowed_uids: Option<&[u32]>) -> (tempfile::TempDir, Arc<Listener>) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let allowed_uids = allowed_uids.map(|uids| BTreeSet::from_iter(uids.iter().copied()));
    let access = Access { mode: 0o666, owner: None, allowed_uids };
    let listener = Arc::new(bind_with(&folder.path().join("s"), access).unwrap());
    (folder, listener)
}

/// Accepts one, greets it, and says who it was.
fn greet_one(listener: &Arc<Listener>) -> JoinHandle<Peer> {
    let listener = Arc::clone(listener);
    tokio::spawn(async move {
        let (mut stream, peer) = listener.accept(|_, _| {}).await.unwrap();
        stream.read_u8().await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        peer
    })
}

async fn another_user(part: &'static str, folder: &Path) {
    let command = as_ordinary_user(part, folder);
    tokio::task::spawn_blocking(move || must_pass(command)).await.unwrap();
}

fn hears(path: &Path) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    // Closed ones may be gone already.
    let _ = stream.write_all(b"x");
    let mut text = String::new();
    match stream.read_to_string(&mut text) {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => String::new(),
        other => other.map(|_| text).unwrap(),
    }
}

#[tokio::test]
#[ignore = "a part that another test starts"]
async fn hears_nothing() {
    for _ in 0..5 {
        assert_eq!(hears(&given().join("s")), "");
    }
}

#[tokio::test]
#[ignore = "a part that another test starts"]
async fn is_greeted() {
    assert_eq!(hears(&given().join("s")), "hello");
}

#[tokio::test]
async fn a_user_who_is_not_named_is_closed_at_once_and_this_one_never() {
    let test = "a_user_who_is_not_named_is_closed_at_once_and_this_one_never";
    if !geteuid().is_root() {
        return skipped(test, "it takes root to be another user");
    }
    for allowed in [&[][..], &[12345]] {
        let (folder, listener) = open_to(Some(allowed));
        let accepted = greet_one(&listener);
        another_user("visitors::hears_nothing", folder.path()).await;
        assert!(!accepted.is_finished(), "none of them was accepted");
        let path = folder.path().join("s");
        let ours = tokio::task::spawn_blocking(move || hears(&path));
        let Peer::Unix { uid, pid } = timeout(LONG, accepted).await.unwrap().unwrap() else { panic!("another kind") };
        assert_eq!((uid, pid), (0, Some(std::process::id().cast_signed())));
        assert_eq!(ours.await.unwrap(), "hello");
    }
}

#[tokio::test]
async fn a_user_who_is_named_comes_in_and_without_names_everybody_does() {
    let test = "a_user_who_is_named_comes_in_and_without_names_everybody_does";
    if !geteuid().is_root() {
        return skipped(test, "it takes root to be another user");
    }
    for allowed in [Some(&[12345, NOBODY][..]), None] {
        let (folder, listener) = open_to(allowed);
        let accepted = greet_one(&listener);
        another_user("visitors::is_greeted", folder.path()).await;
        let Peer::Unix { uid, .. } = timeout(LONG, accepted).await.unwrap().unwrap() else { panic!("another kind") };
        assert_eq!(uid, NOBODY);
    }
}
