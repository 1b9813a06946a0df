//! What an operator can get wrong: each error names the thing, the cause and the next step, and changes nothing.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        net::UnixListener,
    },
    process::Command,
};

use footbridge_tests::{Host, Running, Servers, programs};

#[test]
fn without_a_daemon_the_error_says_how_to_start_one() {
    let host = Host::with(&Servers::none());
    for words in [&["create", "a"][..], &["list"], &["show", "a"], &["rotate", "a"], &["revoke", "a"]] {
        host.session(words).fails(1, &["no footbridge daemon is running", "footbridge serve"]);
    }
}

#[test]
fn what_is_in_the_way_is_named_and_nothing_is_made() {
    let daemon = Host::with(&Servers::none()).serves();
    let folder = daemon.host.work();
    let taken = folder.join("taken.sock");
    let _theirs = UnixListener::bind(&taken).unwrap();
    let file = folder.join("file");
    fs::write(&file, "kept").unwrap();
    drop(daemon.creates("first", &["--listen", &format!("unix:{}", folder.join("a.sock").display())]));
    let listen = |name: &str| format!("unix:{}", folder.join(name).display());
    for (words, status, says) in [
        (vec!["first"], 1, "there is a session first already"),
        (vec!["Bad"], 2, "a-z, 0-9 and -"),
        (vec!["x", "--listen", "udp:1"], 2, "unknown scheme \"udp\""),
        (vec!["x", "--listen", "exec:sh"], 1, "nothing to listen on"),
        (vec!["x", "--listen", "tcp:0.0.0.0:0"], 1, "choose a loopback address"),
        (vec!["x", "--listen", &listen("taken.sock")], 1, "is in use"),
        (vec!["x", "--listen", &listen("a.sock")], 1, "a.sock is where session first listens"),
        (vec!["x", "--listen", &listen("file")], 1, "no socket"),
        (vec!["x", "--listen", "tcp:127.0.0.1:0", "--listen", &listen("taken.sock")], 1, "is in use"),
        (vec!["x", "--listen", "vsock:any:7179"], 1, "--peer-cid"),
        (vec!["x", "--peer-cid", "4"], 1, "--listen vsock:"),
        (vec!["x", "--policy", "lax"], 1, "no policy \"lax\""),
        (vec!["x", "--with-pid", "2147483647"], 1, "no process 2147483647"),
        (vec!["x", "--ttl", "5"], 2, "--ttl 8h"),
        (vec!["x", "--ttl", "9999d"], 1, "at most 3650d"),
        (vec!["x", "--socket-mode", "0999"], 2, "--socket-mode 0666"),
        (vec!["x", "--label", "team"], 2, "KEY=VALUE"),
        (vec!["x", "--env", "--json"], 2, "cannot be used with"),
    ] {
        let words = [vec!["create"], words].concat();
        daemon.host.session(&words).fails(status, &[says]);
    }
    daemon.host.session(&["show", "nobody"]).fails(1, &["no session nobody", "session list"]);
    daemon.host.session(&["rotate", "nobody"]).fails(1, &["no session nobody"]);
    daemon.host.session(&["revoke", "nobody"]).fails(1, &["no session nobody"]);
    let names: Vec<_> = daemon.list().iter().map(|session| session["name"].clone()).collect();
    assert_eq!(names, ["first"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    assert_eq!(fs::read_dir(daemon.host.runtime().join("sessions")).map_or(0, Iterator::count), 0);
}

#[test]
fn a_token_goes_where_it_was_asked_for_and_nowhere_else() {
    let daemon = Host::with(&Servers::none()).serves();
    let file = daemon.host.work().join("token");
    let path = file.to_str().unwrap();
    let told = daemon.host.session(&["create", "a", "--token-file", path]).well();
    let token = fs::read_to_string(&file).unwrap();
    assert!(token.starts_with("fbt_") && !told.contains("fbt_") && told.contains("TOOL_CLI_TOKEN_FILE="), "{told}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    daemon.host.session(&["create", "b", "--token-file", path]).fails(1, &[path, "choose a new name"]);
    let link = daemon.host.work().join("link");
    symlink(daemon.host.work().join("target"), &link).unwrap();
    daemon.host.session(&["create", "b", "--token-file", link.to_str().unwrap()]).fails(1, &["choose a new name"]);
    assert!(!daemon.host.work().join("target").exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), token);
    assert_eq!(daemon.list().len(), 1, "no session without a place for its token");
    let unmade = daemon.host.work().join("unmade");
    daemon.host.session(&["create", "a", "--token-file", unmade.to_str().unwrap()]).fails(1, &["already"]);
    assert!(!unmade.exists());
    let env = daemon.host.session(&["create", "b", "--env"]).well();
    let lines: Vec<&str> = env.lines().collect();
    assert!(lines[0].starts_with("TOOL_CLI_TOKEN=fbt_") && lines[1].starts_with("FOOTBRIDGE_TO=unix:/"), "{env}");
    // As `env $(footbridge session create b --env) tool-cli` does it.
    let mut tool_cli = Command::new(programs::tool_cli());
    tool_cli.env_clear().envs(lines.iter().filter_map(|line| line.split_once('=')));
    let _servers = Running::start(&mut tool_cli).ends().well();
    for (options, is_said) in [(&["--socket-mode", "0666"][..], true), (&["--allow-uid", "7"], true), (&[], false)] {
        let ran = daemon.host.session(&[&["create", "shared"], options].concat());
        assert_eq!((ran.status, ran.stderr.contains("--listen unix:/PATH")), (0, is_said), "{ran:?}");
        assert_eq!(daemon.host.session(&["revoke", "shared"]).status, 0);
    }
    let people = daemon.host.session(&["create", "c"]).well();
    assert!(people.contains("TOOL_CLI_SOCKET=") && people.contains("token:    fbt_"), "{people}");
    // Shown once, and in no log, record, list or store.
    let tokens: Vec<String> = [token.trim(), &lines[0]["TOOL_CLI_TOKEN=".len()..]].map(str::to_owned).into();
    let mut everything = daemon.host.session(&["list", "--json"]).well() + &daemon.host.session(&["show", "b"]).well();
    everything += &serde_json::json!(daemon.host.record()).to_string();
    let host_state = daemon.host.state();
    let mut daemon = daemon;
    everything += &daemon.ends().stderr;
    for entry in fs::read_dir(host_state).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            everything += &String::from_utf8_lossy(&fs::read(path).unwrap());
        }
    }
    assert!(tokens.iter().all(|token| !everything.contains(token.as_str())));
}
