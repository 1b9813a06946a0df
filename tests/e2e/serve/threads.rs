//! A daemon for which the machine has no thread any more: what needs one is done by those that are there.

use std::{os::unix::process::CommandExt as _, process::Command};

use footbridge_tests::{Host, NOBODY, Running, Servers, skipped};
use nix::{sys::signal::Signal, unistd::geteuid};
use serde_json::json;

/// From now on this process of an ordinary user starts no process and no thread.
fn limit(pid: i32) {
    let mut command = Command::new("prlimit");
    command.args(["--pid", &pid.to_string(), "--nproc=0:"]);
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let _nothing = Running::start(&mut command).ends().well();
}

#[test]
fn what_is_large_is_read_and_commands_are_carried_out_without_a_new_thread() {
    if Command::new("prlimit").arg("--version").output().is_err() {
        return skipped(
            "what_is_large_is_read_and_commands_are_carried_out_without_a_new_thread",
            "prlimit is not there",
        );
    }
    let host = Host::with(&Servers::none().misbehaving("ok", &["ok"]));
    let host = if geteuid().is_root() { host.as_user(NOBODY) } else { host };
    let mut daemon = host.serves();
    let [one, _two] = ["one", "two"].map(|name| daemon.opens(name, &["--policy", "open"]));
    let echo = |text: &str| {
        let answer = one.asks("callTool", json!({"server": "ok", "tool": "echo", "arguments": {"text": text}}));
        assert!(answer["result"]["content"].is_array(), "{answer}");
    };
    echo("its schema is compiled");
    let pid = daemon.process().pid();
    limit(pid);
    // More than is read on a worker, of a guest and of a server.
    echo(&"x".repeat(400_000));
    let found = one.asks("searchTools", json!({"query": "echo"}));
    assert_eq!(found["result"]["tools"][0]["name"], "echo", "{found}");
    assert_eq!(daemon.host.session(&["revoke", "two"]).status, 0);
    assert_eq!(daemon.host.configuration(&["reload"]).status, 0);
    daemon.process().signal(Signal::SIGHUP);
    daemon.process().stderr.shows("the configuration was read again");
    let ended = daemon.ends();
    assert!(ended.status == 0 && !ended.stderr.contains("panicked"), "{ended:?}");
}
