//! What a session is after the daemon ended, in order or not.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use footbridge_tests::{Daemon, Host, NOBODY, PATIENCE, Servers};
use serde_json::json;

use super::{LIST, calls, weather};

#[test]
fn after_kill_9_and_a_new_start_the_same_sockets_and_tokens_work() {
    let mut daemon = Host::with(&Servers::demo()).serves();
    let own = daemon.opens("own", &["--label", "team=search"]);
    let port = daemon.opens("port", &["--listen", "tcp:127.0.0.1:0"]);
    assert!(weather(&own).contains("Bern") && weather(&port).contains("Bern"));
    let folder = daemon.host.own_socket("own").parent().unwrap().to_owned();
    let inode = fs::metadata(&folder).unwrap().ino();
    // What was spent is told by a test of its own.
    let listed = |daemon: &Daemon| {
        let mut all = daemon.list();
        all.iter_mut().for_each(|session| drop(session.as_object_mut().unwrap().remove("budgets")));
        all
    };
    let before = listed(&daemon);
    for orderly in [false, true] {
        if orderly {
            assert_eq!(daemon.ends().status, 0);
            assert!(!daemon.host.own_socket("own").exists());
        } else {
            daemon.killed();
        }
        daemon.starts();
        assert!(weather(&own).contains("Bern") && weather(&port).contains("Bern"), "orderly: {orderly}");
        assert_eq!(fs::metadata(&folder).unwrap().ino(), inode, "what a container mounted is the same folder");
        assert_eq!(listed(&daemon), before);
    }
    let record = daemon.host.record();
    let sessions = record.iter().filter(|line| line["type"] == "session" && line["session"] == "own").count();
    assert_eq!(sessions, 3, "one a start");
}

#[test]
fn a_new_token_stays_the_new_one_and_a_session_that_ended_stays_ended() {
    let mut daemon = Host::with(&Servers::demo()).serves();
    let (kept, gone) = (daemon.opens("kept", &[]), daemon.opens("gone", &[]));
    let new = kept.showing(&daemon.rotates("kept"));
    assert_eq!(daemon.host.session(&["revoke", "gone"]).status, 0);
    daemon.killed();
    daemon.starts();
    assert_eq!((kept.posts(LIST).status, new.posts(LIST).status), (401, 200));
    assert_eq!(daemon.list().len(), 1);
    let footbridge_tests::Address::Socket(path) = &gone.address else { panic!("not a socket") };
    assert!(!path.exists());
}

#[test]
fn what_ended_meanwhile_is_ended_and_said() {
    let mut daemon = Host::with(&Servers::none()).serves();
    let mut process = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    drop(daemon.creates("with", &["--with-pid", &process.id().to_string()]));
    drop(daemon.creates("stays", &["--with-pid", &std::process::id().to_string(), "--ttl", "1h"]));
    drop(daemon.creates("short", &["--ttl", "3s"]));
    let since = Instant::now();
    daemon.killed();
    drop(process.stdin.take());
    process.wait().unwrap();
    // Its time is over then, by the clock that it was given.
    thread::sleep(Duration::from_secs(4).saturating_sub(since.elapsed()));
    daemon.starts();
    let names: Vec<_> = daemon.list().iter().map(|session| session["name"].clone()).collect();
    assert_eq!(names, ["stays"]);
    assert!(!daemon.host.own_socket("short").parent().unwrap().exists());
    let record = daemon.host.record();
    let ended: Vec<_> = record.iter().filter(|line| line["type"] == "session_ended").collect();
    assert_eq!(ended.len(), 2, "{ended:?}");
    let said = daemon.ends().stderr;
    assert!(said.contains("short") && said.contains("expired"), "{said}");
    assert!(said.contains("with") && said.contains("process_gone"), "{said}");
}

#[test]
fn a_listener_that_is_taken_at_a_restart_shows_as_broken_and_is_tried_again() {
    let mut daemon = Host::with(&Servers::demo()).serves();
    let created = daemon.creates("two", &["--listen", "tcp:127.0.0.1:0", "--listen", "tcp:127.0.0.1:0"]);
    let token = created["token"].as_str().unwrap();
    let port =
        |at: usize| -> u16 { created["endpoints"][at].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap() };
    daemon.killed();
    // Bound with the same flag as the daemon's own, or what is left of its connections would be in the way.
    let deadline = Instant::now() + PATIENCE;
    let taken = loop {
        match std::net::TcpListener::bind(("127.0.0.1", port(0))) {
            Ok(taken) => break taken,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    };
    daemon.starts();
    let list = daemon.list();
    let broken = list[0]["listeners"][0]["broken"].as_str().unwrap();
    assert!(broken.contains("is in use") && list[0]["listeners"][1].get("broken").is_none(), "{list:#?}");
    let shown = daemon.host.session(&["list"]).well();
    assert!(shown.contains("broken"), "{shown}");
    calls(&footbridge_tests::Guest::at_port(port(1), token));
    drop(taken);
    daemon.lists("whole", |list| list[0]["listeners"][0].get("broken").is_none());
    calls(&footbridge_tests::Guest::at_port(port(0), token));
    let record = daemon.host.record();
    assert!(record.iter().any(|line| line["type"] == "session_listens" && line["session"] == "two"), "{record:#?}");
}

#[test]
fn a_folder_that_is_lost_with_the_runtime_folder_is_made_again() {
    let mut daemon = Host::with(&Servers::demo()).serves();
    let guest = daemon.opens("own", &[]);
    daemon.killed();
    fs::remove_dir_all(daemon.host.runtime()).unwrap();
    daemon.starts();
    assert_eq!(guest.asks("listServers", json!({}))["result"]["servers"][0]["name"], "demo");
}

#[test]
fn modes_users_and_virtual_machines_are_kept_too() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut daemon = Host::with(&Servers::none()).serves();
    let vm = daemon.host.work().join("v.sock");
    let created = daemon.creates("vm", &["--listen", &format!("vsock-mux:{}:7179", vm.display())]);
    assert_eq!(created["endpoints"][0], "vsock:host:7179", "as the guest goes there");
    let token = created["token"].as_str().unwrap();
    let socket = daemon.host.work().join("v.sock_7179");
    let uid = nix::unistd::geteuid().as_raw().to_string();
    let mapped = daemon.opens("mapped", &["--socket-mode", "0666", "--allow-uid", &uid, "--allow-uid", "100000"]);
    let before = daemon.list();
    for _ in 0..2 {
        let mode = fs::metadata(daemon.host.own_socket("mapped")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
        assert_eq!(footbridge_tests::Guest::at_socket(&socket, token).posts(LIST).status, 200);
        assert_eq!(mapped.posts(LIST).status, 200);
        let shown = daemon.host.session(&["show", "mapped"]).well();
        assert!(shown.contains("mode 0666, for uid") && shown.contains("100000"), "{shown}");
        assert_eq!(daemon.list(), before);
        daemon.killed();
        daemon.starts();
    }
}

#[test]
fn a_socket_may_belong_to_another_user_where_the_daemon_is_roots() {
    use std::os::unix::fs::MetadataExt as _;
    if !nix::unistd::geteuid().is_root() {
        let test = "a_socket_may_belong_to_another_user_where_the_daemon_is_roots";
        return footbridge_tests::skipped(test, "needs root to give a file away");
    }
    let mut daemon = Host::with(&Servers::none()).serves();
    let socket = daemon.host.work().join("given.sock");
    let listen = format!("unix:{}", socket.display());
    let given = daemon.opens("given", &["--listen", &listen, "--socket-owner", &NOBODY.to_string()]);
    for _ in 0..2 {
        let file = fs::metadata(&socket).unwrap();
        assert_eq!((file.uid(), file.mode() & 0o777), (NOBODY, 0o600));
        assert_eq!(given.posts(LIST).status, 200);
        assert!(daemon.host.session(&["show", "given"]).well().contains(&format!("mode 0600, of uid {NOBODY}\n")));
        daemon.killed();
        daemon.starts();
    }
    let daemon = Host::with(&Servers::none()).as_user(NOBODY).serves();
    let listen = format!("unix:{}", daemon.host.work().join("given.sock").display());
    let create = ["create", "given", "--listen", &listen, "--socket-owner", "7"];
    daemon.host.session(&create).fails(1, &["cannot give", "only root may"]);
}

#[test]
fn a_folder_that_was_mounted_before_leads_to_the_daemon_that_came_after() {
    if !nix::unistd::geteuid().is_root() {
        let test = "a_folder_that_was_mounted_before_leads_to_the_daemon_that_came_after";
        return footbridge_tests::skipped(test, "needs root to mount a folder");
    }
    let mut daemon = Host::with(&Servers::demo()).serves();
    let guest = daemon.opens("one", &[]);
    let there = daemon.host.work().join("there");
    fs::create_dir(&there).unwrap();
    let script =
        r#"mount --bind -o ro "$1" "$2" && echo ready; read -r go; exec "$3" demo get_weather '{"city":"Bern"}'"#;
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "sh", "-c", script, "sh"]).arg(daemon.host.own_socket("one").parent().unwrap()).arg(&there);
    inside.arg(footbridge_tests::programs::tool_cli()).env("TOOL_CLI_TOKEN", &guest.token);
    inside.env("TOOL_CLI_SOCKET", there.join("footbridge.sock"));
    let mut inside = footbridge_tests::Running::start(&mut inside);
    inside.stdout.shows("ready\n");
    // Not by `killed`, which looks for whatever names the folder: that is `inside`.
    daemon.process().killed();
    daemon.starts();
    inside.hears("go\n");
    let ran = inside.ends();
    assert!(ran.status == 0 && ran.stdout.contains("Bern"), "{ran:?}");
}
