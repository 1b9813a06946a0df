//! Runs side by side: what one holds opens nothing of another's, and the end of one is nothing to another.

use std::{fs, path::PathBuf};

use footbridge_tests::{Guest, Host, Running, Servers, Tape};
use serde_json::json;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"listServers"}"#;

/// The socket of the only run that is not among these.
fn socket_of_the_newest(host: &Host, known: &[PathBuf]) -> PathBuf {
    let sockets = host.run_folders().into_iter().map(|path| path.join("s/footbridge.sock"));
    let new: Vec<PathBuf> = sockets.filter(|path| !known.contains(path)).collect();
    assert_eq!(new.len(), 1, "{new:?}");
    new[0].clone()
}

/// Starts a run that tells its token and ends when it is told to.
fn start(host: &Host) -> (Running, String) {
    let mut running = host.starts_script("echo $TOOL_CLI_TOKEN; while read -r line; do eval \"$line\"; done");
    let token = running.stdout.line();
    (running, token)
}

#[test]
fn a_token_opens_its_own_run_and_no_other() {
    let host = Host::with(&Servers::demo());
    let (first, first_token) = start(&host);
    let first_socket = socket_of_the_newest(&host, &[]);
    let (second, second_token) = start(&host);
    let second_socket = socket_of_the_newest(&host, std::slice::from_ref(&first_socket));
    assert_ne!(first_token, second_token);
    let status = |socket: &PathBuf, token: &str| Guest::at_socket(socket, token).posts(LIST).status;
    assert_eq!((status(&first_socket, &first_token), status(&second_socket, &second_token)), (200, 200));
    assert_eq!((status(&first_socket, &second_token), status(&second_socket, &first_token)), (401, 401));
    let stranger = Guest::at_socket(&first_socket, &second_token).runs(&["--exit-codes", "demo"]);
    stranger.fails(4, &["Authentication failed"]);
    assert_eq!(second.ends().status, 0);
    assert_eq!(status(&first_socket, &first_token), 200);
    assert_eq!(first.ends().status, 0);
    assert!(!first_socket.exists() && !second_socket.exists());
}

#[test]
fn two_runs_see_nothing_of_each_other_and_one_s_end_is_nothing_to_the_other() {
    let host = Host::with(&Servers::demo());
    let (mut first, _) = start(&host);
    let (mut second, _) = start(&host);
    let folders = format!("find {} -mindepth 1 -maxdepth 1 | wc -l\n", host.runtime().display());
    for run in [&mut first, &mut second] {
        run.hears(&folders);
        assert_eq!(run.stdout.line(), "1", "only its own folder");
    }
    first.hears("tool-cli demo add_note '{\"text\":\"of the first\"}' --json\n");
    assert!(first.stdout.line().contains("note:///1"));
    second.hears("tool-cli demo list_notes '{}' --json\n");
    assert!(second.stdout.line().contains("\"notes\":[]"), "each run has servers of its own");
    first.killed();
    second.hears("tool-cli demo list_notes '{}' --json\n");
    assert!(second.stdout.line().contains("\"notes\":[]"));
    assert_eq!(second.ends().status, 0);
    let record = host.record_files();
    assert_eq!(record.len(), 2, "each has a record of its own");
}

#[test]
fn a_socket_can_be_reached_by_its_own_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let host = Host::with(&Servers::demo());
    let (running, _) = start(&host);
    let socket = socket_of_the_newest(&host, &[]);
    let mode = |path: &std::path::Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&socket), 0o600);
    // The inner one can be passed through, for containers whose users are others; nobody gets to it.
    for (folder, expected) in socket.ancestors().skip(1).zip([0o711, 0o700, 0o700]) {
        assert_eq!(mode(folder), expected, "{}", folder.display());
    }
    assert_eq!(running.ends().status, 0);
}

#[test]
fn a_slow_call_of_one_server_holds_up_no_other() {
    let mut tape = Tape::new();
    let servers = Servers::none().recording("stuck", &["never-answers-call"], &tape).misbehaving("ok", &["ok"]);
    let four = "[limits.calls]\nin_flight_per_session_and_server = 4\n";
    let bridge = Host::with(&servers).settings(four).opens();
    let stuck: Vec<_> =
        (0..4).map(|_| bridge.guest.starts_to_ask("callTool", json!({"server": "stuck", "tool": "echo"}))).collect();
    (0..4).for_each(|_| drop(tape.hears("tools/call")));
    let fifth = bridge.guest.calls("stuck", "echo", json!({}));
    assert_eq!(fifth["error"]["data"]["reason"], "busy", "{fifth}");
    for n in 0..20 {
        let answer = bridge.guest.calls("ok", "add", json!({"a": n, "b": 1}));
        assert_eq!(answer["result"]["content"][0]["text"], (n + 1).to_string(), "{answer}");
    }
    drop(stuck);
}

#[test]
fn sixteen_clients_at_once_each_get_their_own_answer() {
    let bridge = Host::with(&Servers::none().misbehaving("ok", &["ok"])).opens();
    let answers = |n: u32| {
        for round in 0..5 {
            let ran = bridge.guest.runs(&["ok", "echo", &format!("{{\"client\":{n},\"round\":{round}}}")]);
            // Four at a time on one server; beyond that a client is told to come back.
            if ran.status != 0 {
                assert!(ran.stderr.contains("at once"), "{ran:?}");
                continue;
            }
            assert_eq!(ran.stdout, format!("{{\"client\":{n},\"round\":{round}}}\n"));
        }
    };
    std::thread::scope(|scope| {
        for n in 0..16 {
            scope.spawn(move || answers(n));
        }
    });
}
