//! Commands that print secrets, and take their time: at the start, while the configuration is read again, in the end.

use std::fs;

use footbridge_tests::{Host, Running, Servers, processes};
use nix::{
    sys::{signal::Signal, stat::Mode},
    unistd::mkfifo,
};
use serde_json::{Value, json};

/// Servers one of which has a variable that this script prints.
fn printed_by(host: &Host, script: &str) -> String {
    let mut file: Value = serde_json::from_str(&Servers::demo().text(host.path())).unwrap();
    file["mcpServers"]["demo"]["env"]["API_KEY"] = json!({"command": ["sh", "-c", script]});
    file.to_string()
}

#[test]
fn readings_do_not_pile_up_and_the_last_one_holds() {
    let mut daemon = Host::with(&Servers::demo()).serves();
    let fifo = daemon.host.path().join("value");
    mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    let script = format!("echo asked >&2; cat {}", fifo.display());
    fs::write(daemon.host.servers_file(), printed_by(&daemon.host, &script)).unwrap();
    daemon.process().signal(Signal::SIGHUP);
    daemon.process().stderr.shows("reading the configuration again");
    daemon.process().stderr.shows("asked");
    daemon.process().stderr.shows("waiting for the command of a secret");
    for _ in 0..2 {
        daemon.process().signal(Signal::SIGHUP);
        daemon.process().stderr.shows("read once more after that");
    }
    assert_eq!(processes::with_argument(&format!("cat {}", fifo.display())).len(), 2, "the shell and its child");
    let servers = Servers::demo().misbehaving("second", &["ok"]);
    fs::write(daemon.host.servers_file(), servers.text(daemon.host.path())).unwrap();
    fs::write(&fifo, "s3cret-value\n").unwrap();
    daemon.process().stderr.shows("restarted=\"demo\"");
    daemon.process().stderr.shows("added=\"second\"");
}

#[test]
fn one_that_hangs_ends_with_the_daemon() {
    let mut daemon = Host::with(&Servers::demo()).serves();
    let text = printed_by(&daemon.host, "echo asked >&2; sleep 1000 & wait");
    fs::write(daemon.host.servers_file(), text).unwrap();
    daemon.process().signal(Signal::SIGHUP);
    daemon.process().stderr.shows("asked");
    assert_eq!(daemon.ends().status, 0);
    daemon.host.leaves_nothing_behind();
}

#[test]
fn one_that_holds_up_the_start_is_named_and_ends_with_it() {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let host = Host::with(&Servers::demo());
        fs::write(host.servers_file(), printed_by(&host, "sleep 1000 & wait")).unwrap();
        let mut starting = Running::start(&mut host.serve_of());
        starting.stderr.shows("waiting for the command of a secret program=\"sh\" limit=30s");
        starting.signal(signal);
        let _by_the_signal = starting.status();
        host.leaves_nothing_behind();
    }
}
