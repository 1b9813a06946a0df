//! The daemon among other harnesses and under a service manager, and what signals ask of it.

use std::{
    fs::{self, File},
    os::unix::net::UnixDatagram,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use footbridge_tests::{Address, Guest, Host, PATIENCE, Running, Servers, Tape};
use nix::sys::signal::Signal;
use serde_json::json;

use super::{LIST, weather};

#[test]
fn a_second_one_on_the_same_state_folder_is_refused_and_told_who_is_there() {
    let mut daemon = Host::with(&Servers::none()).serves();
    let guest = daemon.opens("one", &[]);
    let pid = daemon.process().pid();
    let ran = Running::start(&mut daemon.host.serve_of()).ends();
    ran.fails(125, &[&format!("process {pid}"), "FOOTBRIDGE_STATE"]);
    // Nor does one with another state folder take over the control socket.
    let mut other = daemon.host.serve_of();
    other.env("FOOTBRIDGE_STATE", daemon.host.path().join("other"));
    Running::start(&mut other).ends().fails(125, &["has its sockets in", "FOOTBRIDGE_RUNTIME"]);
    assert_eq!(guest.posts(LIST).status, 200);
    assert_eq!(daemon.list().len(), 1);
}

#[test]
fn a_run_beside_it_works_and_sees_nothing_of_it() {
    let daemon = Host::with(&Servers::demo()).serves();
    let guest = daemon.opens("one", &[]);
    let script = format!(
        "tool-cli demo get_weather '{{\"city\":\"Bern\"}}' | grep -c Bern; find {} {} -name '*.sock' -o -name '*.db' | grep -v run- | wc -l",
        daemon.host.runtime().display(),
        daemon.host.state().display()
    );
    assert_eq!(daemon.host.runs_script(&script).well(), "1\n0\n");
    assert!(weather(&guest).contains("Bern"));
    assert_eq!(daemon.host.record_files().len(), 2, "each has a record of its own");
}

#[test]
fn it_ends_in_order_on_either_signal() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut daemon = Host::with(&Servers::demo()).serves();
        let guest = daemon.opens("one", &[]);
        assert!(weather(&guest).contains("Bern"));
        daemon.process().signal(signal);
        assert_eq!(daemon.process().status().code(), Some(0), "{signal}");
        daemon.host.leaves_nothing_behind();
        assert!(!daemon.host.own_socket("one").exists());
        assert!(!daemon.host.runtime().join("serve/control.sock").exists());
        daemon.starts();
        assert_eq!(guest.posts(LIST).status, 200, "its sessions are there again");
    }
}

#[test]
fn a_log_that_nobody_takes_stops_nothing() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let (reader, left) = std::io::pipe().unwrap();
    drop(reader);
    for stderr in [Stdio::from(full), Stdio::from(left)] {
        let host = Host::with(&Servers::demo());
        let child = host.serve_of().stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        let mut daemon = Running::watch(child);
        let deadline = Instant::now() + PATIENCE;
        while host.session(&["list"]).status != 0 {
            assert!(Instant::now() < deadline, "it is not ready in time");
            thread::sleep(Duration::from_millis(20));
        }
        let _created = host.session(&["create", "one", "--policy", "open"]).well();
        // Each of these is logged.
        let address = Address::Socket(host.own_socket("one"));
        let guest = Guest { address, token: "fbt_wrong".to_owned(), listener: None };
        assert_eq!(guest.posts(LIST).status, 401);
        let _said = host.configuration(&["reload"]).well();
        daemon.signal(Signal::SIGHUP);
        assert_eq!(host.session(&["revoke", "one"]).status, 0);
        daemon.signal(Signal::SIGTERM);
        assert_eq!(daemon.status().code(), Some(0));
        host.leaves_nothing_behind();
    }
}

/// A service manager that listens.
struct Manager(UnixDatagram);

impl Manager {
    /// The manager of this host.
    fn of(host: Host) -> (Self, Host) {
        let path = host.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_read_timeout(Some(PATIENCE)).unwrap();
        (Self(manager), host.env("NOTIFY_SOCKET", path))
    }

    fn hears(&self) -> String {
        let mut buffer = [0; 256];
        let count = self.0.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..count]).into_owned()
    }
}

#[test]
fn a_service_manager_hears_when_it_is_ready_and_when_it_ends() {
    let (manager, host) = Manager::of(Host::with(&Servers::none()));
    let mut daemon = host.serves();
    assert_eq!(manager.hears(), "READY=1");
    assert_eq!(daemon.ends().status, 0);
    assert_eq!(manager.hears(), "STOPPING=1");
}

#[test]
fn a_service_manager_hears_that_a_configuration_was_not_read_until_one_is() {
    let (manager, host) = Manager::of(Host::with(&Servers::none()));
    let mut daemon = host.serves();
    assert_eq!(manager.hears(), "READY=1");
    let file = daemon.host.servers_file();
    let whole = fs::read_to_string(&file).unwrap();
    for (text, status) in [
        ("{", "STATUS=the configuration was not read again: 1 mistake; everything is as it was before"),
        (whole.as_str(), "STATUS="),
    ] {
        fs::write(&file, text).unwrap();
        daemon.process().signal(Signal::SIGHUP);
        assert_eq!(manager.hears(), status);
    }
    assert_eq!(daemon.ends().status, 0);
    assert_eq!(manager.hears(), "STOPPING=1");
}

#[test]
fn a_service_manager_that_watches_hears_of_work_until_commands_are_not_answered() {
    let (manager, host) = Manager::of(Host::with(&Servers::none()));
    let mut daemon = host.env("WATCHDOG_USEC", "200000").serves();
    let mut heard = [manager.hears(), manager.hears()];
    heard.sort();
    assert_eq!(heard, ["READY=1", "WATCHDOG=1"]);
    assert_eq!((manager.hears(), manager.hears()), ("WATCHDOG=1".to_owned(), "WATCHDOG=1".to_owned()));
    fs::remove_file(daemon.host.runtime().join("serve/control.sock")).unwrap();
    daemon.process().stderr.shows("is not told that the daemon works");
    manager.0.set_nonblocking(true).unwrap();
    let mut buffer = [0; 64];
    while manager.0.recv(&mut buffer).is_ok() {}
    // It looked again, and said nothing.
    daemon.process().stderr.shows("is not told that the daemon works");
    assert!(manager.0.recv(&mut buffer).is_err());
    manager.0.set_nonblocking(false).unwrap();
    assert_eq!(daemon.ends().status, 0);
    assert_eq!(manager.hears(), "STOPPING=1");
}

#[test]
fn calls_that_run_when_it_ends_have_as_long_as_the_settings_say() {
    let mut tape = Tape::new();
    // 3 seconds, where the default is 2.
    let servers = Servers::none().recording("slow", &["slow-with-progress", "60"], &tape);
    let settings = "[limits.calls]\ndrain_time = \"30s\"\n";
    let mut daemon = Host::with(&servers).settings(settings).serves();
    let guest = daemon.opens("one", &[]);
    let call = guest.starts_to_ask("callTool", json!({"server": "slow", "tool": "echo", "arguments": {}}));
    let _id = tape.hears("tools/call");
    daemon.process().signal(Signal::SIGTERM);
    let answer = call.answer().json();
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(daemon.ends().status, 0);
}

#[test]
fn calls_that_run_are_not_waited_for_where_the_signal_comes_again() {
    let mut tape = Tape::new();
    let servers = Servers::none().recording("slow", &["slow-with-progress", "100000"], &tape);
    // Longer than this test would wait.
    let settings = "[limits.calls]\ndrain_time = \"1h\"\n";
    let mut daemon = Host::with(&servers).settings(settings).serves();
    let guest = daemon.opens("one", &[]);
    let call = guest.starts_to_ask("callTool", json!({"server": "slow", "tool": "echo", "arguments": {}}));
    let _id = tape.hears("tools/call");
    daemon.process().signal(Signal::SIGTERM);
    daemon.process().stderr.shows("ending");
    daemon.process().signal(Signal::SIGINT);
    daemon.process().stderr.shows("told to end once more");
    assert_eq!(daemon.ends().status, 0);
    let outcome = daemon.host.record().into_iter().find(|line| line["type"] == "outcome").unwrap();
    assert_eq!(outcome["outcome"], "unknown", "{outcome}");
    drop(call);
}

#[test]
fn a_configuration_that_does_not_parse_changes_nothing_and_says_so() {
    let mut daemon = Host::with(&Servers::demo()).serves();
    let guest = daemon.opens("one", &[]);
    let file = daemon.host.servers_file();
    let good = fs::read_to_string(&file).unwrap();
    fs::write(&file, "{\"mcpServers\": {\"demo\": {}").unwrap();
    daemon.process().signal(Signal::SIGHUP);
    daemon.process().stderr.shows("everything stays as it was");
    daemon.process().stderr.shows("servers.json");
    assert!(weather(&guest).contains("Bern"));
    fs::write(&file, good).unwrap();
}

#[test]
fn a_reload_that_failed_shows_until_one_succeeds() {
    let mut daemon = Host::with(&Servers::demo()).serves();
    let guest = daemon.opens("one", &[]);
    let file = daemon.host.servers_file();
    let good = fs::read_to_string(&file).unwrap();
    assert!(!daemon.host.session(&["list"]).stderr.contains("warning"));
    fs::write(&file, "{\"mcpServers\": {\"demo\": {}").unwrap();
    let failed = daemon.host.configuration(&["reload"]);
    assert!(
        failed.status == 1 && failed.stdout.contains("error: ") && failed.stdout.contains("servers.json"),
        "{failed:?}"
    );
    for words in [["list"].as_slice(), &["show", "one"]] {
        let shown = daemon.host.session(words);
        assert!(shown.status == 0 && shown.stderr.contains("warning: the daemon's configuration is not"), "{shown:?}");
    }
    assert!(weather(&guest).contains("Bern"));
    fs::write(&file, good).unwrap();
    daemon.process().signal(Signal::SIGHUP);
    daemon.process().stderr.shows("the configuration was read again");
    assert!(!daemon.host.session(&["list"]).stderr.contains("warning"));
    let done = daemon.host.configuration(&["reload", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert!(done.status == 0 && report["ok"] == true, "{done:?}");
    daemon.ends();
    daemon.host.configuration(&["reload"]).fails(1, &["no footbridge daemon is running"]);
}

#[test]
fn a_new_configuration_holds_at_once_and_what_it_does_not_touch_goes_on() {
    let mut daemon = Host::with(&Servers::demo()).serves();
    let guest = daemon.opens("one", &[]);
    let _noted = guest.runs(&["demo", "add_note", r#"{"text":"kept"}"#]).well();
    let servers = Servers::demo().misbehaving("second", &["ok"]);
    fs::write(daemon.host.servers_file(), servers.text(daemon.host.path())).unwrap();
    daemon.process().signal(Signal::SIGHUP);
    daemon.process().stderr.shows("added=\"second\" removed=\"\" restarted=\"\"");
    assert!(guest.runs(&["second", "add", r#"{"a":1,"b":2}"#]).well().contains('3'));
    assert!(guest.runs(&["demo", "list_notes", "{}"]).well().contains("kept"), "the same server process");
    fs::write(daemon.host.servers_file(), Servers::demo().text(daemon.host.path())).unwrap();
    daemon.process().signal(Signal::SIGHUP);
    daemon.process().stderr.shows("removed=\"second\"");
    guest.runs(&["second", "add", r#"{"a":1,"b":2}"#]).fails(1, &["\"second\" not found"]);
}
