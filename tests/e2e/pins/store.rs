//! A store that pins cannot be written to, or that cannot be used at all: what is not pinned is refused.

use std::{fs, os::unix::fs::PermissionsExt as _};

use footbridge_tests::{Guest, Host, NOBODY, Servers, skipped};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

#[test]
fn what_cannot_be_pinned_on_a_full_disk_is_refused_and_the_rest_goes_on() {
    if !nix::unistd::geteuid().is_root() {
        let test = "what_cannot_be_pinned_on_a_full_disk_is_refused_and_the_rest_goes_on";
        return skipped(test, "needs root to mount a small file system");
    }
    let host = Host::with(&Servers::demo());
    let mut running = host.serves_on_a_small_disk("");
    running.stderr.shows("footbridge: ready");
    let created: Value = serde_json::from_str(&host.session(&["create", "one", "--json"]).well()).unwrap();
    let guest = Guest::at_socket(host.own_socket("one"), created["token"].as_str().unwrap());
    let tools = |server: &str| guest.asks("listTools", json!({ "server": server }));
    assert!(tools("demo")["result"].is_object());
    running.hears("full\n");
    running.stderr.shows("full done");
    // More than there is room for in what the store has already.
    let tool =
        |n: u32| json!({"name": format!("t{n}"), "description": "x".repeat(2_000), "inputSchema": {"type": "object"}});
    let listing = host.path().join("tools");
    fs::write(&listing, json!((0..20).map(tool).collect::<Vec<_>>()).to_string()).unwrap();
    let more = Servers::demo().misbehaving("new", &["listing-of-a-file", listing.to_str().unwrap()]);
    fs::write(host.servers_file(), more.text(host.path())).unwrap();
    running.signal(Signal::SIGHUP);
    running.stderr.shows("tools of an MCP server cannot be pinned");
    running.stderr.shows("state.db cannot be written: the disk is full; make room, then try again");
    let refused = tools("new");
    assert_eq!(refused["error"]["data"]["reason"], "server_unavailable", "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("\"new\"") && message.contains("ask the operator") && !message.contains('/'), "{message}");
    assert!(tools("demo")["result"].is_object(), "what is pinned needs no room");
    running.hears("room\n");
    running.stderr.shows("room done");
    assert!(tools("new")["result"].is_object(), "it recovers by itself");
    running.signal(Signal::SIGTERM);
    assert_eq!(running.ends().status, 0);
}

/// A host of another user, with a demo server that this user can start.
fn of_nobody() -> Host {
    let host = Host::with(&Servers::none());
    let own = json!({"mcpServers": {"demo": {"command": host.path().join("bin/footbridge"), "args": ["demo-server"]}}});
    fs::write(host.servers_file(), own.to_string()).unwrap();
    host.as_user(NOBODY)
}

#[test]
fn a_run_does_not_start_with_a_store_that_it_must_not_write() {
    if !nix::unistd::geteuid().is_root() {
        let test = "a_run_does_not_start_with_a_store_that_it_must_not_write";
        return skipped(test, "needs root to become another user");
    }
    let host = of_nobody();
    let ran = host.runs(&["true"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let store = host.state().join("state.db");
    fs::set_permissions(&store, fs::Permissions::from_mode(0o400)).unwrap();
    let ran = host.runs_script("tool-cli demo now '{}'");
    ran.fails(125, &["state.db cannot be written: it is read-only", "mode 0600"]);
    assert_eq!(ran.stdout, "");
    fs::set_permissions(&store, fs::Permissions::from_mode(0o600)).unwrap();
    let ran = host.runs_script("tool-cli demo now '{}'");
    assert_eq!(ran.status, 0, "{ran:?}");
}

#[test]
fn a_run_does_not_start_with_a_store_that_cannot_be_trusted_or_read() {
    let host = Host::with(&Servers::demo());
    assert_eq!(host.runs_script("tool-cli demo now '{}'").status, 0);
    let path = host.state().join("state.db");
    let good = fs::read(&path).unwrap();
    let mut newer = good.clone();
    // The version of the file's contents, at offset 60 of the header.
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    for (bytes, says) in [(b"rubbish".repeat(1000), "is damaged"), (newer, "written by a newer footbridge")] {
        fs::write(&path, &bytes).unwrap();
        let ran = host.runs_script("echo never");
        ran.fails(125, &[path.to_str().unwrap(), says]);
        assert!(ran.stdout.is_empty() && fs::read(&path).unwrap() == bytes, "{says}: it was changed");
    }
    fs::write(&path, good).unwrap();
    assert_eq!(host.runs_script("tool-cli demo now '{}'").status, 0);
}
