//! How tokens and sessions end, and what their guests notice.

use std::{
    io::Read as _,
    os::unix::net::UnixStream,
    process::{Command, Stdio},
};

use footbridge_tests::{Address, Guest, Host, PATIENCE, Servers, Tape, goes};
use serde_json::json;

use super::{LIST, calls};

fn socket(guest: &Guest) -> &std::path::Path {
    let Address::Socket(path) = &guest.address else { panic!("not a socket: {guest:?}") };
    path
}

#[test]
fn a_token_is_of_its_own_session_alone() {
    let daemon = Host::with(&Servers::demo()).serves();
    let (one, two) = (daemon.opens("one", &[]), daemon.opens("two", &["--listen", "tcp:127.0.0.1:0"]));
    assert_eq!((one.posts(LIST).status, two.posts(LIST).status), (200, 200));
    assert_eq!((one.showing(&two.token).posts(LIST).status, two.showing(&one.token).posts(LIST).status), (401, 401));
    calls(&one);
    calls(&two);
    let by_session =
        |name| daemon.host.record().iter().filter(|line| line["type"] == "intent" && line["session"] == name).count();
    assert_eq!((by_session("one"), by_session("two")), (1, 1));
}

#[test]
fn a_new_token_works_at_once_the_old_one_no_more_and_a_call_that_runs_goes_on() {
    let mut tape = Tape::new();
    let servers = Servers::none().recording("slow", &["slow-with-progress", "40"], &tape);
    let daemon = Host::with(&servers).serves();
    let guest = daemon.opens("one", &[]);
    let call = guest.starts_to_ask("callTool", json!({"server": "slow", "tool": "echo", "arguments": {}}));
    let _id = tape.hears("tools/call");
    let new = guest.showing(&daemon.rotates("one"));
    assert_ne!(new.token, guest.token);
    assert_eq!((guest.posts(LIST).status, new.posts(LIST).status), (401, 200));
    let answer = call.answer().json();
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(tape.count("notifications/cancelled"), 0);
    assert!(daemon.host.record().iter().any(|line| line["type"] == "session_rotated"));
}

#[test]
fn revoking_cuts_connections_cancels_calls_and_removes_the_socket() {
    let mut tape = Tape::new();
    let servers = Servers::none().recording("slow", &["never-answers-call"], &tape);
    let daemon = Host::with(&servers).serves();
    let (guest, other) = (daemon.opens("one", &[]), daemon.opens("other", &[]));
    let call = guest.starts_to_ask("callTool", json!({"server": "slow", "tool": "echo", "arguments": {}}));
    let id = tape.hears("tools/call");
    let mut idle = UnixStream::connect(socket(&guest)).unwrap();
    idle.set_read_timeout(Some(PATIENCE)).unwrap();
    let ran = daemon.host.session(&["revoke", "one"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, "session one has ended\n"), "{ran:?}");
    assert!(!socket(&guest).exists() && !socket(&guest).parent().unwrap().parent().unwrap().exists());
    assert_eq!(tape.hears("notifications/cancelled"), id);
    // Cut, by an end or by a reset.
    let mut byte = [0];
    assert!(!matches!(idle.read(&mut byte), Ok(1..)));
    drop(call);
    assert_eq!(other.posts(LIST).status, 200, "its neighbour goes on");
    let names: Vec<_> = daemon.list().iter().map(|session| session["name"].clone()).collect();
    assert_eq!(names, ["other"]);
    let ended = daemon.host.record().into_iter().find(|line| line["type"] == "session_ended").unwrap();
    assert_eq!((ended["session"].as_str(), ended["why"].as_str()), (Some("one"), Some("revoked")));
    // Its name is free, for a session with another token.
    let again = daemon.opens("one", &[]);
    assert_eq!((again.posts(LIST).status, again.showing(&guest.token).posts(LIST).status), (200, 401));
}

#[test]
fn a_session_ends_when_its_time_is_over() {
    let daemon = Host::with(&Servers::none()).serves();
    let guest = daemon.opens("short", &["--ttl", "1s"]);
    goes(socket(&guest));
    daemon.lists("empty", <[_]>::is_empty);
    let ended = daemon.host.record().into_iter().find(|line| line["type"] == "session_ended").unwrap();
    assert_eq!(ended["why"], "expired");
}

#[test]
fn a_session_ends_with_its_process() {
    let daemon = Host::with(&Servers::none()).serves();
    let mut process = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let guest = daemon.opens("with", &["--with-pid", &process.id().to_string()]);
    assert_eq!(guest.posts(LIST).status, 200);
    assert_eq!(daemon.list()[0]["pid"], process.id());
    drop(process.stdin.take());
    goes(socket(&guest));
    process.wait().unwrap();
    daemon.lists("empty", <[_]>::is_empty);
    let ended = daemon.host.record().into_iter().find(|line| line["type"] == "session_ended").unwrap();
    assert_eq!(ended["why"], "process_gone");
}
