//! Where tokens go: into files that are there as a whole, and into the session's own folder, from which a sandbox that
//! runs has the next one too. And sessions that are asked for again.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
    process::Command,
};

use footbridge_tests::{Daemon, Host, Running, Servers, programs};
use serde_json::Value;

use super::LIST;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// What the daemon says to `ensure` with these words.
fn ensures(daemon: &Daemon, words: &[&str]) -> Value {
    let words = [&["ensure", "agent", "--policy", "open", "--json"][..], words].concat();
    serde_json::from_str(&daemon.host.session(&words).well()).unwrap()
}

#[test]
fn a_client_that_reads_its_token_from_the_folder_has_the_next_one_at_once() {
    let daemon = Host::with(&Servers::demo()).serves();
    let created = daemon.creates("agent", &["--socket-mode", "0666"]);
    let folder = Path::new(created["folder"].as_str().unwrap());
    assert_eq!(folder, daemon.host.own_socket("agent").parent().unwrap());
    let token = folder.join("token");
    assert_eq!(fs::read_to_string(&token).unwrap().trim(), created["token"].as_str().unwrap());
    assert_eq!(mode(&token), 0o444);
    let call = || {
        let mut tool_cli = Command::new(programs::tool_cli());
        tool_cli.args(["demo", "now"]).env_clear().env("TOOL_CLI_TOKEN_FILE", &token);
        Running::start(tool_cli.env("TOOL_CLI_SOCKET", folder.join("footbridge.sock"))).ends()
    };
    let _now = call().well();
    let files = || fs::read_dir(folder).unwrap().count();
    let (before, count) = (fs::metadata(&token).unwrap().ino(), files());
    assert_ne!(daemon.rotates("agent"), created["token"].as_str().unwrap());
    let _now = call().well();
    assert_ne!(fs::metadata(&token).unwrap().ino(), before, "replaced as a whole");
    assert_eq!(files(), count);
    let people = daemon.host.session(&["create", "other", "--policy", "open"]).well();
    let own = daemon.host.own_socket("other");
    assert!(people.contains(&format!("folder:   {}\n", own.parent().unwrap().display())), "{people}");
    assert_eq!(mode(&own.with_file_name("token")), 0o400);
    assert_eq!(daemon.creates("elsewhere", &["--listen", "tcp:127.0.0.1:0"])["folder"], Value::Null);
}

#[test]
fn files_for_a_token_are_for_their_owner_alone_and_a_rotation_replaces_them() {
    let daemon = Host::with(&Servers::demo()).serves();
    let (env, token) = (daemon.host.work().join("agent.env"), daemon.host.work().join("token"));
    let (env_path, token_path) = (env.to_str().unwrap(), token.to_str().unwrap());
    let told = daemon.host.session(&["create", "agent", "--policy", "open", "--env-file", env_path]).well();
    assert!(!told.contains("fbt_") && told.contains(&format!("set -a; . {env_path}; set +a; tool-cli")), "{told}");
    daemon.host.session(&["create", "other", "--env-file", env_path]).fails(1, &[env_path, "choose a new name"]);
    let sourced = || {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("set -a; . {env_path}; set +a; \"$0\" demo now")]).arg(programs::tool_cli());
        Running::start(shell.env_clear()).ends()
    };
    let _now = sourced().well();
    for (flag, path) in [("--token-file", token_path), ("--token-file", token_path), ("--env-file", env_path)] {
        let told = daemon.host.session(&["rotate", "agent", flag, path]).well();
        assert!(!told.contains("fbt_") && told.contains(path), "{told}");
    }
    let _now = sourced().well();
    assert_eq!((mode(&env), mode(&token)), (0o600, 0o600));
    let left: Vec<_> = fs::read_dir(daemon.host.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn no_session_takes_the_file_that_holds_another_one_s_token() {
    let daemon = Host::with(&Servers::demo()).serves();
    let file = daemon.host.work().join("one.env");
    let path = file.to_str().unwrap();
    let ensure = |name: &str| daemon.host.session(&["ensure", name, "--policy", "open", "--env-file", path]);
    let _made = ensure("one").well();
    let before = fs::read_to_string(&file).unwrap();
    ensure("other").fails(1, &["that file holds the token of session one"]);
    let _made = daemon.host.session(&["create", "third", "--policy", "open"]).well();
    daemon.host.session(&["rotate", "third", "--env-file", path]).fails(1, &["the token of session one"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    daemon.host.session(&["show", "other"]).fails(1, &["there is no session other"]);
    // Of one that is no more it is free.
    assert_eq!(daemon.host.session(&["revoke", "one"]).status, 0);
    let _made = ensure("other").well();
    assert_ne!(fs::read_to_string(&file).unwrap(), before);
}

#[test]
fn a_session_that_nobody_can_reach_is_not_ensured_and_keeps_its_token() {
    let daemon = Host::with(&Servers::demo()).serves();
    let made = ensures(&daemon, &[]);
    let folder = std::path::Path::new(made["folder"].as_str().unwrap());
    let token = fs::read_to_string(folder.join("token")).unwrap();
    fs::remove_file(folder.join("footbridge.sock")).unwrap();
    let ensure = || daemon.host.session(&["ensure", "agent", "--policy", "open"]);
    ensure().fails(1, &["nobody can connect to it", "its socket was removed", "revoke it"]);
    let elsewhere = daemon.host.work().join("elsewhere");
    fs::rename(folder, &elsewhere).unwrap();
    daemon.host.session(&["rotate", "agent"]).fails(1, &["keeps its token", "session revoke agent"]);
    fs::rename(&elsewhere, folder).unwrap();
    assert_eq!(fs::read_to_string(folder.join("token")).unwrap(), token);
    let _rotated = daemon.host.session(&["rotate", "agent"]).well();
    assert_ne!(fs::read_to_string(folder.join("token")).unwrap(), token);
}

#[test]
fn a_session_that_is_ensured_is_made_once_and_one_that_differs_is_named() {
    let mut daemon = Host::with(&Servers::demo()).serves();
    let words = ["--ttl", "8h", "--label", "team=a"];
    let made = ensures(&daemon, &words);
    assert_eq!(made["was_there"], Value::Null);
    let again = ensures(&daemon, &words);
    assert_eq!((&again["was_there"], &again["token"]), (&true.into(), &made["token"]), "as its folder has it");
    daemon.ends();
    daemon.starts();
    assert_eq!(ensures(&daemon, &words)["token"], made["token"], "after a restart too");
    // Who comes later finds the folder, and no token of a session that was there in a script's output.
    let folder = made["folder"].as_str().unwrap();
    let shown: Value = serde_json::from_str(&daemon.host.session(&["show", "agent", "--json"]).well()).unwrap();
    assert_eq!((&shown["folder"], &daemon.list()[0]["folder"]), (&made["folder"], &made["folder"]));
    assert!(daemon.host.session(&["show", "agent"]).well().contains(&format!("folder:      {folder}\n")));
    let told = daemon.host.session(&[&["ensure", "agent", "--policy", "open"], &words[..]].concat()).well();
    assert!(told.contains(&format!("token:    in {folder}/token\n")), "{told}");
    assert!(!told.contains(made["token"].as_str().unwrap()), "{told}");
    let differs = |words: &[&str], says: &[&str]| {
        daemon.host.session(&[&["ensure", "agent"], words].concat()).fails(1, says);
    };
    differs(
        &["--ttl", "1h", "--label", "team=b", "--policy", "readonly"],
        &["--policy is open, not readonly", "--ttl is 8h, not 1h", "--label is team=a, not team=b", "revoke it first"],
    );
    // A token of which only the digest is kept: what was written for it is left, and without that it has to be rotated.
    let file = daemon.host.work().join("elsewhere.env");
    let ask = ["ensure", "elsewhere", "--listen", "tcp:127.0.0.1:0", "--env-file", file.to_str().unwrap()];
    let _made = daemon.host.session(&ask).well();
    let kept = fs::read_to_string(&file).unwrap();
    let told = daemon.host.session(&ask).well();
    assert!(told.contains(&format!("token:    in {}", file.display())), "{told}");
    assert_eq!(fs::read_to_string(&file).unwrap(), kept);
    fs::remove_file(&file).unwrap();
    daemon.host.session(&ask).fails(1, &["footbridge session rotate elsewhere", "same flag"]);
    let told = daemon.host.session(&ask[..4]).well();
    assert!(told.contains("token:    as it was; only its digest is kept"), "{told}");
    assert_eq!(daemon.list().len(), 2);
}

#[test]
fn a_guest_that_writes_its_folder_keeps_no_rotation_from_it() {
    let daemon = Host::with(&Servers::none()).serves();
    let guest = daemon.opens("agent", &[]);
    let token = daemon.host.own_socket("agent").with_file_name("token");
    fs::remove_file(&token).unwrap();
    fs::create_dir_all(token.join("in/the/way")).unwrap();
    let new = guest.showing(&daemon.rotates("agent"));
    assert_eq!((guest.posts(LIST).status, new.posts(LIST).status), (401, 200));
    assert_eq!(fs::read_to_string(&token).unwrap().trim(), new.token);
}

#[test]
fn a_shell_completes_the_names_of_sessions() {
    let daemon = Host::with(&Servers::none()).serves();
    let _created = (daemon.creates("agent-1", &[]), daemon.creates("other", &[]));
    let completes = |words: &[&str]| {
        let words: Vec<&OsStr> = ["__complete"].iter().chain(words).map(OsStr::new).collect();
        Running::start(&mut daemon.host.footbridge(&words)).ends().well()
    };
    assert_eq!(completes(&["session", "revoke", ""]), "agent-1\nother\n");
    assert_eq!(completes(&["call", "--via", "ag"]), "agent-1\n");
    assert_eq!(completes(&["session", "create", ""]), "", "that is a new name");
}
