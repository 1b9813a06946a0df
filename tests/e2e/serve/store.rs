//! A store that cannot be used: the daemon says so and leaves it as it is; what cannot be stored does not exist.

use std::fs;

use footbridge_tests::{Host, Running, Servers, skipped};

use crate::LIST;

#[test]
fn a_damaged_or_newer_store_stops_the_start_and_stays_as_it_is() {
    let mut daemon = Host::with(&Servers::none()).serves();
    let guest = daemon.opens("one", &[]);
    assert_eq!(daemon.ends().status, 0);
    let path = daemon.host.state().join("state.db");
    let good = fs::read(&path).unwrap();
    let mut newer = good.clone();
    // The version of the file's contents, at offset 60 of the header.
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    let mut torn = good.clone();
    torn[4096..8192].fill(0xa5);
    for (bytes, says) in
        [(b"rubbish".repeat(1000), "is damaged"), (torn, "is damaged"), (newer, "written by a newer footbridge")]
    {
        fs::write(&path, &bytes).unwrap();
        let ran = Running::start(&mut daemon.host.serve_of()).ends();
        ran.fails(125, &[path.to_str().unwrap(), says]);
        assert!(fs::read(&path).unwrap() == bytes, "{says}: it was changed");
    }
    fs::write(&path, good).unwrap();
    daemon.starts();
    assert_eq!(guest.posts(LIST).status, 200);
}

#[test]
fn a_daemon_does_not_start_on_a_full_disk_and_says_why() {
    let test = "a_daemon_does_not_start_on_a_full_disk_and_says_why";
    if !nix::unistd::geteuid().is_root() {
        return skipped(test, "needs root to mount a small file system");
    }
    let host = Host::with(&Servers::none());
    let ran = host.serves_on_a_small_disk(&format!("cat /dev/zero >{}/fill;", host.state().display())).ends();
    ran.fails(125, &["serve.lock", "No space left on device"]);
}

#[test]
fn a_session_that_cannot_be_stored_is_not_created() {
    let test = "a_session_that_cannot_be_stored_is_not_created";
    if !nix::unistd::geteuid().is_root() {
        return skipped(test, "needs root to mount a small file system");
    }
    let host = Host::with(&Servers::none());
    let mut running = host.serves_on_a_small_disk("");
    running.stderr.shows("footbridge: ready");
    assert_eq!(host.session(&["create", "before"]).status, 0);
    assert_eq!(host.session(&["create", "other"]).status, 0);
    running.hears("full\n");
    running.stderr.shows("full done");
    let ran = host.session(&["create", "one"]);
    ran.fails(1, &["nothing was changed", "state.db", "disk is full", "make room"]);
    host.session(&["rotate", "before"]).fails(1, &["nothing was changed", "disk is full"]);
    assert!(!host.own_socket("one").parent().unwrap().exists());
    host.session(&["revoke", "other"]).fails(1, &["has ended, but would be back", "make room", "revoke it again"]);
    assert!(!host.own_socket("other").exists());
    host.session(&["rotate", "other"]).fails(1, &["no session other"]);
    let list = host.session(&["list"]).well();
    assert!(list.contains("before") && list.contains("closed") && !list.contains("one"), "{list}");
    running.hears("room\n");
    running.stderr.shows("room done");
    let ran = host.session(&["create", "one"]);
    assert_eq!(ran.status, 0, "it recovers by itself: {ran:?}");
    assert_eq!(host.session(&["revoke", "other"]).status, 0);
    running.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(running.ends().status, 0);
}
