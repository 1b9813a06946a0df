//! `footbridge doctor` and `tool-cli doctor`: what is well is said, and what is not with what mends it.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt as _,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use footbridge_tests::{Guest, Host, NOBODY, PATIENCE, Ran, Running, Servers};
use serde_json::{Value, json};

fn doctor(host: &Host, words: &[&str]) -> (Ran, Vec<Value>) {
    let file = host.servers_file();
    let all: Vec<&OsStr> = [OsStr::new("doctor"), OsStr::new("--json"), OsStr::new("--config"), file.as_os_str()]
        .into_iter()
        .chain(words.iter().map(OsStr::new))
        .collect();
    let ran = Running::start(&mut host.footbridge(&all)).ends();
    let checks = checks(&ran);
    (ran, checks)
}

fn checks(ran: &Ran) -> Vec<Value> {
    let found: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!(found["ok"] == true, ran.status == 0, "{ran:?}");
    found["checks"].as_array().unwrap().clone()
}

#[track_caller]
fn of<'c>(checks: &'c [Value], check: &str) -> &'c Value {
    checks.iter().find(|one| one["check"] == check).unwrap_or_else(|| panic!("{check}: {checks:#?}"))
}

#[test]
fn a_host_that_is_well_and_one_that_is_not() {
    let host = Host::with(&Servers::demo());
    let (ran, found) = doctor(&host, &[]);
    let start = of(&found, "demo: start");
    assert!(start["status"] == "ok" && start["found"].as_str().unwrap().contains("lists"), "{found:#?}");
    assert_eq!(of(&found, "demo: program")["status"], "ok");
    assert_eq!(ran.status, 0, "{found:#?}");
    let servers = Servers::demo()
        .and("gone", json!({"command": "no-such-program"}))
        .and("astray", json!({"command": "sh", "cwd": "/no/such/folder"}))
        .and("ends", json!({"command": "sh", "args": ["-c", "echo whatever is wrong >&2"]}));
    let host = Host::with(&servers);
    fs::write(
        host.path().join("steps.toml"),
        "command = \"no-such-program\"\n[[routines.x.steps]]\nname = \"y\"\ncommand = \"true\"\n",
    )
    .unwrap();
    let steps = host.path().join("steps.toml").display().to_string();
    let (ran, found) = doctor(&host, &["--step", &steps]);
    assert_eq!(ran.status, 1);
    for (check, says) in [
        ("gone: program", "not found on PATH"),
        ("astray: program", "make it, or correct \\\"cwd\\\""),
        ("ends: start", "footbridge servers logs ends, and mend its entry"),
        ("ends: start", "whatever is wrong"),
        ("step steps", "not found"),
    ] {
        let one = of(&found, check);
        assert!(one["status"] == "problem" && one["mend"].is_string() && one.to_string().contains(says), "{one}");
    }
    let logs = Running::start(&mut host.footbridge(&["servers", "logs", "ends"].map(OsStr::new))).ends();
    assert!(logs.well().contains("whatever is wrong"), "what it advises is there");
    assert_eq!(of(&found, "gone: start")["status"], "skipped", "one cause is one problem");
    assert_eq!((&of(&found, "demo: start")["status"], &of(&found, "step y")["status"]), (&json!("ok"), &json!("ok")));
    let (_, found) = doctor(&host, &["--no-start", "--step", "none.toml"]);
    let step = of(&found, "step none.toml");
    assert!(step["status"] == "problem" && step["means"].is_string() && step["mend"].is_string(), "{step}");
    fs::write(&steps, "command = \"cat\"\nargz = []\ntimeout = \"soon\"\n").unwrap();
    let (_, found) = doctor(&host, &["--no-start", "--step", &steps]);
    let wrong: Vec<&str> = found
        .iter()
        .filter(|one| one["check"] == format!("step {steps}"))
        .map(|one| one["found"].as_str().unwrap())
        .collect();
    assert!(wrong.len() == 2 && wrong.iter().all(|one| !one.contains('\n')), "each mistake by itself: {found:#?}");
    fs::write(host.servers_file(), "{\"mcpServers\": ").unwrap();
    let (_, found) = doctor(&host, &["--no-start"]);
    assert!(of(&found, "configuration")["found"].as_str().unwrap().contains("servers.json:1:"), "{found:#?}");
}

#[test]
fn a_state_folder_that_takes_no_file_is_found() {
    let host = Host::with(&Servers::demo());
    for folder in [host.state(), host.runtime()] {
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let (ran, found) = doctor(&host, &["--no-start"]);
    assert_eq!((ran.status, &of(&found, "state folder")["status"]), (0, &json!("ok")), "{found:#?}");
    assert_eq!(fs::read_dir(host.state()).unwrap().count(), 0);
    // A limit on files stands for a full disk.
    let file = host.servers_file();
    let words = [OsStr::new("doctor"), OsStr::new("--json"), OsStr::new("--no-start"), OsStr::new("--config")];
    let doctor = host.footbridge(&[&words[..], &[file.as_os_str()]].concat());
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"]);
    limited.arg(doctor.get_program()).args(doctor.get_args()).current_dir(host.work());
    limited.env_clear().envs(doctor.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = Running::start(&mut limited).ends();
    let found = checks(&ran);
    for check in ["state folder", "runtime folder"] {
        let one = of(&found, check);
        assert!(one["status"] == "problem" && one["found"].as_str().unwrap().contains("takes no file"), "{one}");
    }
    assert_eq!((ran.status, fs::read_dir(host.state()).unwrap().count()), (1, 0), "{found:#?}");
}

#[test]
fn folders_that_are_not_there_and_cannot_be_made_are_found() {
    let host = Host::with(&Servers::demo()).env("FOOTBRIDGE_STATE", "/proc/x").env("FOOTBRIDGE_RUNTIME", "/proc/y/z");
    let (ran, found) = doctor(&host, &["--no-start"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    for check in ["state folder", "runtime folder"] {
        let found = of(&found, check);
        assert!(found["found"].as_str().unwrap().contains("cannot be made") && found["mend"].is_string(), "{found}");
    }
}

#[test]
fn without_a_home_folder_that_is_what_is_found() {
    if !nix::unistd::geteuid().is_root() {
        return footbridge_tests::skipped("a user without a home folder", "this is not root");
    }
    let host = Host::with(&Servers::demo()).as_user(NOBODY).env("HOME", "");
    let (ran, found) = doctor(&host.env("XDG_CONFIG_HOME", ""), &[]);
    let folders = of(&found, "folders");
    assert!(ran.status == 1 && folders["status"] == "problem", "{ran:?}");
    assert!(folders["found"].as_str().unwrap().contains("HOME"), "{folders}");
}

#[test]
fn a_session_is_looked_at_from_both_sides() {
    let daemon = Host::with(&Servers::demo()).serves();
    let guest = daemon.opens("one", &[]);
    let (ran, found) = doctor(&daemon.host, &["one", "--no-start"]);
    let socket = daemon.host.own_socket("one");
    let listener = of(&found, &format!("listener unix:{}", socket.display()));
    assert!(listener["found"].as_str().unwrap().contains("HTTP 4"), "{found:#?}");
    assert!(of(&found, "session")["status"] == "ok" && ran.status == 0, "{found:#?}");
    let (_, found) = doctor(&daemon.host, &["none", "--no-start"]);
    assert_eq!(of(&found, "session")["status"], "problem");

    let (_, found) = doctor(&daemon.host, &["one", "--no-start"]);
    assert_eq!(of(&found, "demo of the daemon")["status"], "ok", "{found:#?}");
    // What this user has besides is not what is asked about.
    let home = daemon.host.path().join("home");
    fs::create_dir(&home).unwrap();
    let step = daemon.host.path().join("step.toml");
    fs::write(&step, "command = \"true\"\n").unwrap();
    let beside = |words: &[&str]| {
        let words: Vec<&OsStr> = ["doctor", "--json", "--no-start"].iter().chain(words).map(OsStr::new).collect();
        let mut command = daemon.host.footbridge(&words);
        let ran = Running::start(command.env("HOME", &home)).ends();
        (ran.status, of(&checks(&ran), "configuration")["status"].as_str().unwrap().to_owned())
    };
    let step = ["--step", step.to_str().unwrap()];
    fs::write(home.join(".mcp.json"), "{\"mcpServers\": ").unwrap();
    assert_eq!(beside(&[]), (1, "problem".to_owned()));
    assert_eq!(beside(&["one"]), (0, "note".to_owned()));
    assert_eq!(beside(&step), (0, "note".to_owned()));

    let looks = |guest: &Guest| {
        let ran = guest.runs(&["doctor", "--json"]);
        let found = checks(&ran);
        (ran, found)
    };
    let (ran, found) = looks(&guest);
    assert_eq!(ran.status, 0, "{found:#?}");
    for check in ["environment", "token", "socket", "bridge", "server demo", "request"] {
        assert_eq!(of(&found, check)["status"], "ok", "{found:#?}");
    }
    let (ran, found) = looks(&guest.showing("fbt_0123456789012345678901234567890123456789012"));
    assert!(ran.status == 1 && found.last().unwrap()["found"] == "the bridge refuses it", "{found:#?}");
    let (_, found) = looks(&Guest::at_socket(daemon.host.path(), &guest.token));
    assert!(of(&found, "socket")["found"].as_str().unwrap().ends_with("is a directory"), "{found:#?}");
    assert_eq!(of(&found, "bridge")["status"], "skipped");
    let (_, found) = looks(&Guest::at_port(1, &guest.token));
    assert!(of(&found, "port")["mend"].as_str().unwrap().contains("footbridge-relay --to"), "{found:#?}");
    assert!(!found.iter().any(|one| one.to_string().contains(&guest.token)));
}

#[test]
fn a_daemon_that_cannot_record_is_not_well() {
    let daemon = Host::with(&Servers::demo()).serves();
    let guest = daemon.opens("one", &[]);
    let calls = || guest.calls("demo", "get_weather", json!({"city": "Bern"}));
    assert!(calls()["result"].is_object());
    let file = daemon.host.record_files().remove(0);
    let away = file.with_extension("away");
    fs::rename(&file, &away).unwrap();
    assert!(calls()["error"].is_object());
    let (ran, found) = doctor(&daemon.host, &["--no-start"]);
    let record = of(&found, "record of the daemon");
    assert!(
        ran.status == 1 && record["found"].as_str().unwrap().contains("was removed, replaced or cut"),
        "{found:#?}"
    );
    let listed = daemon.host.session(&["list"]);
    assert!(listed.stderr.contains("warning: calls are refused, since the last record could not"), "{listed:?}");
    fs::rename(&away, &file).unwrap();
    // What could not be written is tried again soon, and first.
    let deadline = Instant::now() + PATIENCE;
    while !calls()["result"].is_object() {
        assert!(Instant::now() < deadline, "it goes on");
        thread::sleep(Duration::from_millis(50));
    }
    let (ran, found) = doctor(&daemon.host, &["--no-start"]);
    assert!(ran.status == 0 && !found.iter().any(|one| one["check"] == "record of the daemon"), "{found:#?}");
}

#[test]
fn a_user_who_may_not_connect_is_told_so_and_nothing_is_said_to_have_happened() {
    if !nix::unistd::geteuid().is_root() {
        let test = "a_user_who_may_not_connect_is_told_so_and_nothing_is_said_to_have_happened";
        return footbridge_tests::skipped(test, "it takes root to be another user");
    }
    let daemon = Host::with(&Servers::demo()).serves();
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let listen = format!("unix:{}", folder.path().join("s.sock").display());
    let guest = daemon.opens("agent-1", &["--listen", &listen, "--socket-mode", "0666", "--allow-uid", "12345"]);
    let program = folder.path().join("tool-cli");
    // By another process: a test that forks at this moment would hold it open for writing here.
    let mut copy = Command::new("install");
    copy.args(["-m", "0755"]).arg(footbridge_tests::programs::tool_cli()).arg(&program);
    assert!(copy.status().unwrap().success());
    let runs = |words: &[&str]| {
        let of_guest = guest.tool_cli(words);
        let mut command = Command::new(&program);
        let vars = of_guest.get_envs().filter_map(|(name, value)| Some((name, value?)));
        std::os::unix::process::CommandExt::uid(command.args(words).env_clear().envs(vars), NOBODY);
        Running::start(&mut command).ends()
    };
    // As large as no buffer on the way: it is not read, and what is answered is not lost for that.
    let file = folder.path().join("large.json");
    fs::write(&file, json!({"text": "x".repeat(900_000)}).to_string()).unwrap();
    for arguments in [r#"{"text":"x"}"#.to_owned(), format!("@{}", file.display())] {
        let ran = runs(&["--exit-codes", "demo", "add_note", &arguments]);
        assert_eq!(ran.status, 5, "{ran:?}");
        assert!(ran.stderr.contains(&format!("User {NOBODY}")) && !ran.stderr.contains("happened"), "{ran:?}");
        assert!(!ran.stderr.contains("agent-1"), "{ran:?}");
    }
    let notes = guest.calls("demo", "list_notes", json!({}));
    assert_eq!(notes["result"]["structuredContent"]["notes"], json!([]), "{notes}");
    let ran = runs(&["--json", "doctor"]);
    let checks = checks(&ran);
    let bridge = checks.iter().find(|check| check["check"] == "bridge").unwrap();
    assert_eq!(bridge["status"], "problem", "{bridge}");
    assert!(bridge["mend"].as_str().unwrap().contains("--allow-uid"), "{bridge}");
}
