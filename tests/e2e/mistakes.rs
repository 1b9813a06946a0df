//! Mistakes of whoever calls and of whoever configures: each is named, with what to do next and the right status, and
//! costs nothing but itself.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::Path,
    process::Command,
};

use footbridge_tests::{Host, Running, Servers, Tape, skipped, starting};
use serde_json::json;

#[test]
fn a_caller_s_mistake_is_named_and_has_its_own_status() {
    let bridge = Host::with(&Servers::demo()).opens();
    let rows: [(&[&str], i32, &[&str]); 18] = [
        (&["nope"], 2, &["Server \"nope\" not found. Connected: demo"]),
        (&["DEMO", "now", "{}"], 2, &["Server \"DEMO\" not found. Connected: demo"]),
        (&["demo", "nope"], 2, &["Tool \"nope\" not found on server \"demo\""]),
        (&["demo", "nope", "{}"], 2, &["Tool \"nope\" not found on server \"demo\""]),
        (&["demo", "now", "{nope"], 2, &["invalid JSON arguments: {nope"]),
        (
            &["demo", "now", "{'d': 1}"],
            2,
            &["invalid JSON arguments: line 1, column 2: expected a name in double quotes"],
        ),
        (&["demo", "now", "[]"], 2, &["invalid JSON arguments: an object is needed, in { and }, and this is a list"]),
        (
            &["demo", "get_weather", "{\"town\":\"Bern\"}"],
            2,
            &["Arguments do not match the input schema for \"demo/get_weather\""],
        ),
        (&["demo", "get_weather", "{\"city\":5}"], 2, &["Arguments do not match the input schema"]),
        (&["resource", "read", "demo", "note:///9"], 2, &["Resource \"note:///9\" not found on server \"demo\""]),
        (&["resource", "read", "nope", "note:///9"], 2, &["Server \"nope\" not found"]),
        (&["resource", "list", "nope"], 2, &["Server \"nope\" not found"]),
        (&["resource", "write"], 2, &["unknown resource command \"write\"", "list, templates and read"]),
        (&["demo", "now", "{}", "x"], 2, &["one word too many", "tool-cli --help"]),
        (&["demo", "now", "{}", "--timeout", "soon"], 2, &["\"soon\" is no timeout", "5s"]),
        (&["demo", "now", "{}", "--frob"], 2, &["--frob", "tool-cli demo now --help"]),
        (&["demo", "get_weather", "{\"city\":\"Atlantis\"}"], 1, &["under water", "Try one of"]),
        (&["demo", "add_note", "{\"text\":\"\"}"], 2, &["Arguments do not match"]),
    ];
    for (args, status, says) in rows {
        let with_codes = [args, &["--exit-codes"]].concat();
        bridge.guest.runs(&with_codes).fails(status, says);
        let ran = bridge.guest.runs(args);
        assert_eq!((ran.status, ran.stdout.as_str()), (1, ""), "without --exit-codes every failure is 1: {ran:?}");
    }
}

#[test]
fn a_caller_s_wrong_token_port_or_socket_is_named() {
    let bridge = Host::with(&Servers::demo()).opens();
    let with = |vars: &[(&str, &str)]| {
        let mut command = bridge.guest.tool_cli(&["--exit-codes", "demo"]);
        command.envs(vars.iter().copied());
        footbridge_tests::Running::start(&mut command).ends()
    };
    with(&[("TOOL_CLI_TOKEN", "fbt_wrong")]).fails(4, &["Authentication failed: invalid or missing TOOL_CLI_TOKEN"]);
    with(&[("TOOL_CLI_PORT", "1")]).fails(3, &["tool-cli server not running: 127.0.0.1:1 refused", "TOOL_CLI_PORT"]);
    with(&[("TOOL_CLI_SOCKET", "/no/socket")]).fails(2, &["TOOL_CLI_SOCKET"]);
    let socket = with(&[("TOOL_CLI_HOST", "")]);
    assert!(!socket.stderr.contains(&bridge.guest.token), "no error shows the token: {socket:?}");
    let mut command = bridge.guest.tool_cli(&["--exit-codes", "demo"]);
    command.env_remove("TOOL_CLI_PORT").env("TOOL_CLI_SOCKET", "/no/socket");
    footbridge_tests::Running::start(&mut command).ends().fails(3, &["/no/socket does not exist"]);
}

#[test]
fn a_file_that_cannot_be_written_is_noticed_before_the_call() {
    let mut tape = Tape::new();
    let bridge = Host::with(&Servers::none().recording("ok", &["ok"], &tape)).opens();
    let missing = bridge.host.work().join("no/such/folder/out");
    let ran = bridge.guest.runs(&["ok", "echo", "{}", "--out", missing.to_str().unwrap()]);
    ran.fails(1, &["cannot write", "no/such/folder/out"]);
    let _known = bridge.guest.runs(&["ok"]).well();
    assert_eq!(tape.count("tools/call"), 0);
}

#[test]
fn arguments_beyond_what_a_bridge_takes_are_said_so_by_both_sides() {
    let bridge = Host::with(&Servers::demo()).opens();
    let text = |bytes: usize| format!("{{\"text\":\"{}\"}}", "x".repeat(bytes));
    for (bytes, says) in [
        (1_100_000, "HTTP 413: Request too large. It is beyond this session's limit (edge.body_bytes"),
        (15 << 20, "HTTP 413: Request too large"),
        (17 << 20, "have more than 16777216 bytes, which is more than can be sent"),
    ] {
        let mut running =
            footbridge_tests::Running::start(&mut bridge.guest.tool_cli(&["--exit-codes", "demo", "add_note", "-"]));
        running.hears(&text(bytes));
        running.ends().fails(7, &[says]);
    }
    assert_eq!(bridge.guest.posts(&text(1_100_000)).status, 413);
    assert_eq!(bridge.guest.runs(&["demo", "now", "{}"]).status, 0, "and the next call is made");
}

/// A host with this as its only configuration file, and what a run says of it.
fn config_says(name: &str, text: &str, status: i32, says: &[&str]) {
    let host = Host::with(&Servers::none());
    let file = host.path().join(name);
    fs::write(&file, text).unwrap();
    let host = host.only_configs(&[file]);
    let ran = host.runs_script("echo never");
    ran.fails(status, says);
    assert_eq!(ran.stdout, "", "{ran:?}");
    let begun = ["state.db", "audit"].map(|name| host.state().join(name).exists());
    assert!(!host.runtime().exists() && begun == [false; 2], "nothing was begun");
}

#[test]
fn a_configuration_that_cannot_be_used_is_named_with_file_line_and_remedy() {
    config_says("s.json", "{\"mcpServers\": {\n  \"a\": {,}}}", 2, &["s.json:2:9: it does not parse"]);
    config_says("s.json", "{}", 2, &["s.json:1:1: expected {\"mcpServers\""]);
    config_says("s.json", "", 2, &["s.json: it is empty: expected {\"mcpServers\""]);
    config_says(
        "s.json",
        "{\"mcpServers\": {\n\"a\": {},\n\"b\": {\"url\": \"http://192.0.2.1/\"},\n\"c\": {\"type\": \"pigeon\", \"url\": \"https://192.0.2.1/\"}}}",
        2,
        &["s.json:2:1: server \"a\"", "s.json:3:14: server \"b\"", "use https", "server \"c\""],
    );
    config_says(
        "s.toml",
        "[limits.calls]\nburst = -1\nspeed = 9\n",
        2,
        &["s.toml:2: limits.calls.burst", "s.toml:3: limits.calls.speed"],
    );
    config_says("s.toml", "limits = \n", 2, &["s.toml:1:10: it does not parse: expected a value"]);
    config_says("s.yaml", "servers: []", 2, &["s.yaml", "must end in .json (servers) or .toml (settings)"]);
}

#[test]
fn a_secret_that_is_missing_is_named_and_never_shown() {
    let of =
        |value: serde_json::Value| json!({"mcpServers": {"a": {"command": "x", "env": {"KEY": value}}}}).to_string();
    for (value, says) in [
        (json!("${NO_SUCH_SECRET}"), "\"KEY\": the variable NO_SUCH_SECRET is not set: set it before"),
        (json!({"file": "no-such-file"}), "no-such-file: there is no such file"),
        (json!({"command": ["false"]}), "the secret command false failed"),
        (json!({"command": ["true"]}), "it printed nothing"),
    ] {
        // It is that server's matter alone.
        let host = Host::with(&Servers::demo()).config("s.json", &of(value));
        let ran = host.runs_script("tool-cli; tool-cli a x; tool-cli demo now >/dev/null && echo well");
        assert_eq!(ran.status, 0, "{ran:?}");
        assert!(ran.stdout.contains("  a ") && ran.stdout.ends_with("well\n"), "{ran:?}");
        assert!(ran.stderr.contains("Server \"a\" is not available: a value that its configuration"), "{ran:?}");
        assert!(ran.stderr.contains("s.json:1:") && ran.stderr.contains(says), "{says}: {ran:?}");
        let file = host.path().join("s.json");
        let words = ["config", "check", "--config"].map(std::ffi::OsStr::new);
        let checked = host.footbridge(&[&words[..], &[file.as_os_str()]].concat());
        let checked = footbridge_tests::Running::start(&mut { checked }).ends();
        assert!(checked.status == 2 && checked.stdout.contains(says), "{checked:?}");
    }
    let host = Host::with(&Servers::none());
    fs::write(host.path().join("key"), "s3cret-value").unwrap();
    fs::set_permissions(host.path().join("key"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(host.servers_file(), of(json!({"file": "key"}))).unwrap();
    let ran = host.runs_script("echo never");
    ran.fails(2, &["can be read by others", "chmod go-rwx"]);
    assert!(!ran.stderr.contains("s3cret-value"));
}

#[test]
fn a_configuration_that_others_could_change_is_refused_and_stays_as_it_is() {
    let host = Host::with(&Servers::demo());
    let file = host.servers_file();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    host.runs_script("echo never").fails(2, &["servers.json", "can be written to by others (mode 666)", "chmod go-w"]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o666);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    if !nix::unistd::geteuid().is_root() {
        return skipped("a configuration of another user", "needs root to make one");
    }
    chown(&file, Some(footbridge_tests::NOBODY), None).unwrap();
    host.runs_script("echo never").fails(2, &["servers.json", "belongs to uid 65534"]);
}

#[test]
fn a_missing_configuration_file_is_named() {
    let host = Host::with(&Servers::none());
    let host = host.only_configs(&["/no/such/servers.json".into()]);
    host.runs_script("echo never").fails(2, &["/no/such/servers.json", "No such file"]);
}

#[test]
fn config_check_says_the_same_as_a_run_would() {
    let host = Host::with(&Servers::none());
    fs::write(host.servers_file(), "{\"mcpServers\": {\n\"a\": {}}}").unwrap();
    let file = host.servers_file();
    let check = |more: &[&str]| {
        let words = [&["config", "check", "--config", file.to_str().unwrap()], more].concat();
        let words: Vec<&std::ffi::OsStr> = words.into_iter().map(std::ffi::OsStr::new).collect();
        footbridge_tests::Running::start(&mut host.footbridge(&words)).ends()
    };
    let ran = check(&[]);
    assert_eq!(ran.status, 2, "{ran:?}");
    assert!(ran.stdout.contains("servers.json:2:1: server \"a\": it has neither"), "{ran:?}");
    let json: serde_json::Value = serde_json::from_str(&check(&["--json"]).stdout).unwrap();
    assert_eq!((&json["ok"], &json["mistakes"][0]["line"]), (&json!(false), &json!(2)));
}

#[test]
fn config_check_notes_what_is_not_there_and_names_each_file_and_mistake_once() {
    let host = Host::with(&Servers::none());
    let check = || {
        let words = ["config", "check", "--config", "s.json", "--config", "f.toml"].map(std::ffi::OsStr::new);
        footbridge_tests::Running::start(&mut host.footbridge(&words)).ends()
    };
    let (servers, settings) = (host.work().join("s.json"), host.work().join("f.toml"));
    let entries = "{\"mcpServers\": {\n\"a\": {\"command\": \"no-such-program\"},\n\
                   \"b\": {\"command\": \"sh\", \"cwd\": \"/no/such/folder\"},\n\"c\": {\"command\": \"sh\"}}}";
    fs::write(&servers, entries).unwrap();
    fs::write(&settings, "[approval]\ncommand = [\"/no/such/program\"]\n").unwrap();
    let noted = check().well();
    for says in [
        "s.json:2:1: server \"a\": its command \"no-such-program\" is not found on PATH",
        "s.json:3:1: server \"b\": its folder /no/such/folder is not there",
        "f.toml:2: approval.command: its command /no/such/program is no program",
    ] {
        assert!(noted.contains(says), "{says}: {noted}");
    }
    assert!(!noted.contains("server \"c\""), "{noted}");
    fs::create_dir(host.work().join("below")).unwrap();
    let words = ["config", "check", "--config", "below/../s.json", "--json"].map(std::ffi::OsStr::new);
    let by_dots = footbridge_tests::Running::start(&mut host.footbridge(&words)).ends().well();
    let by_dots: serde_json::Value = serde_json::from_str(&by_dots).unwrap();
    assert_eq!(by_dots["files"], json!([servers.canonicalize().unwrap()]), "a file is listed once");
    assert_eq!(noted.lines().last().unwrap().matches("s.json").count(), 1, "{noted}");
    let rules = "[policies.p]\n[[policies.p.rules]]\ndecision = \"alow\"\n[edge]\nfrob = 1\n";
    fs::write(&settings, rules).unwrap();
    let wrong = check();
    let errors: Vec<&str> = wrong.stdout.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!((wrong.status, errors.len()), (2, 2), "{wrong:?}");
    assert!(errors[0].contains("f.toml:3: ") && errors[0].contains("alow"), "{errors:?}");
    assert!(errors[1].contains("f.toml:5: "), "{errors:?}");
}

#[test]
fn a_check_says_which_command_of_a_secret_it_waits_for_and_counts_services() {
    let slow = "url = \"http://localhost:9\"\nheader = \"x-key\"\n\
                credential = { command = [\"sh\", \"-c\", \"sleep 3; echo a-long-key\"] }\n";
    let host = Host::with(&Servers::none()).settings(&format!("[services.slow]\n{slow}websocket = true\n"));
    let settings = host.path().join("footbridge.toml");
    let runs = |words: &[&str]| {
        let mut words: Vec<&std::ffi::OsStr> = words.iter().map(std::ffi::OsStr::new).collect();
        words.extend([std::ffi::OsStr::new("--config"), settings.as_os_str()]);
        footbridge_tests::Running::start(&mut host.footbridge(&words)).ends()
    };
    let checked = runs(&["config", "check"]);
    assert!(checked.status == 0 && checked.stdout.contains("1 service (slow) from"), "{checked:?}");
    let reached = runs(&["services", "check", "slow"]);
    assert!(reached.stdout.contains("slow (http://localhost:9) cannot be reached"), "{reached:?}");
    for ran in [&checked, &reached] {
        assert!(ran.stderr.contains("waiting for the command of a secret"), "{ran:?}");
    }
    let listed = runs(&["services", "list"]);
    assert!(listed.stdout.contains("  with:        websocket\n") && listed.stderr.is_empty(), "{listed:?}");
}

#[test]
fn config_check_notes_rules_for_tools_that_no_server_has_once_their_names_are_known() {
    let rules = "[policies.p]\n[[policies.p.rules]]\ntool = [\"add_nte\", \"get_*\"]\ndecision = \"deny\"\n\
                 [[policies.p.rules]]\ntool = \"x\"\nserver = \"other\"\ndecision = \"allow\"\n";
    let host = Host::with(&Servers::demo()).config("p.toml", rules);
    let (servers, policy) = (host.servers_file(), host.path().join("p.toml"));
    let check = |more: &[&str]| {
        let words = ["config", "check", "--config", servers.to_str().unwrap(), "--config", policy.to_str().unwrap()];
        let words: Vec<&std::ffi::OsStr> = words.iter().chain(more).map(std::ffi::OsStr::new).collect();
        let mut command = host.footbridge(&words);
        footbridge_tests::Running::start(command.env("XDG_CACHE_HOME", host.cache())).ends().well()
    };
    let note = "p.toml:3: policies.p.rules[1].tool: rule \"1\" of policy \"p\" names the tool \"add_nte\", which no server \
                that it is about has, as each was listed last; did you mean \"add_note\"?";
    let before = check(&[]);
    assert!(!before.contains("add_nte"), "what it offers is not known: {before}");
    assert!(
        before.contains("p.toml:7: policies.p.rules[2].server: rule \"2\" of policy \"p\" is about no server"),
        "{before}"
    );
    let started = check(&["--start"]);
    assert!(started.contains(note) && !started.contains("get_*"), "{started}");
    let _listed = host.one_shot(&["tools"]).well();
    assert!(check(&[]).contains(note), "as it was listed before");
}

#[test]
fn a_wrong_command_line_is_said_with_what_would_be_right() {
    let says = |host: Host, says: &[&str]| {
        let ran = host.runs_script("echo never");
        ran.fails(2, says);
        assert_eq!(ran.stdout, "");
    };
    says(Host::with(&Servers::none()).sandbox("jail"), &["jail", "none", "net"]);
    says(Host::with(&Servers::none()).policy("nope"), &["nope", "open"]);
    says(Host::with(&Servers::none()).option("--frob"), &["--frob"]);
    let told = "[possible values: claude, codex, opencode, copilot]";
    says(Host::with(&Servers::none()).option("--agent").option("cluade"), &[told]);
    says(Host::with(&Servers::none()).option("--agent").option("aider"), &["aider is told by its own file alone"]);
    let twice =
        ["k=1", "k=2"].iter().fold(Host::with(&Servers::none()), |host, label| host.option("--label").option(label));
    says(twice, &["--label k=1 and --label k=2 exclude each other"]);
    let twice = ["calls.burst=5", "calls.burst=6"];
    let twice = twice.iter().fold(Host::with(&Servers::none()), |host, limit| host.option("--limit").option(limit));
    says(twice, &["calls.burst=5 and calls.burst=6 exclude each other"]);
    let host = Host::with(&Servers::none());
    host.runs(&[]).fails(2, &["CMD"]);
}

#[test]
fn a_variable_that_is_not_set_outside_is_named() {
    let host = Host::with(&Servers::none()).env("SET_OUTSIDE", "1");
    let host =
        ["SET_OUTSIDE", "NOT_SET_OUTSIDE", "GIVEN=x"].iter().fold(host, |host, name| host.option("--env").option(name));
    let ran = host.runs_script("echo $SET_OUTSIDE$NOT_SET_OUTSIDE$GIVEN");
    assert_eq!((ran.status, &*ran.stdout), (0, "1x\n"), "{ran:?}");
    let notes: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("--env")).collect();
    assert_eq!(notes, ["--env NOT_SET_OUTSIDE: this variable is not set here, so CMD does not get it"]);
}

#[test]
fn a_variable_with_a_credential_is_not_handed_on_by_its_name() {
    let entry = json!({"command": "true", "env": {"KEY": "${SECRET_OF_SERVER}"}});
    let host = Host::with(&Servers::none().and("a", entry))
        .env("SECRET_OF_SERVER", "s3cret-of-server")
        .option("--env")
        .option("SECRET_OF_SERVER");
    let ran = host.runs_script("echo never");
    ran.fails(2, &["--env SECRET_OF_SERVER", "the configuration refers to", "SECRET_OF_SERVER=VALUE"]);
    assert!(!ran.stderr.contains("s3cret-of-server") && ran.stdout.is_empty(), "{ran:?}");
}

/// What a run says where its runtime folder is as this makes it.
fn runtime_says(make: impl FnOnce(&Path), says: &[&str]) -> Host {
    let host = Host::with(&Servers::demo());
    make(&host.runtime());
    let ran = host.runs_script("echo never");
    ran.fails(125, says);
    assert_eq!(ran.stdout, "", "{ran:?}");
    host
}

#[test]
fn a_runtime_folder_that_is_not_ours_alone_is_refused_and_left_as_it_is() {
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("kept"), "as it was").unwrap();
    let host =
        runtime_says(|path| symlink(other.path(), path).unwrap(), &["rt is a link, and must be a folder itself"]);
    assert!(fs::symlink_metadata(host.runtime()).unwrap().is_symlink());
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1, "nothing was made behind the link");
    runtime_says(
        |path| {
            fs::create_dir(path).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        },
        &["rt must be a folder of this user that nobody else can write to", "fix its owner and mode"],
    );
    let host = Host::with(&Servers::demo());
    fs::write(host.runtime(), "a file").unwrap();
    host.runs_script("echo never").fails(2, &["rt is no folder; move it away, or set FOOTBRIDGE_RUNTIME to another"]);
    if !nix::unistd::geteuid().is_root() {
        return skipped("a runtime folder of another user", "needs root to make one");
    }
    runtime_says(
        |path| {
            fs::create_dir(path).unwrap();
            chown(path, Some(footbridge_tests::NOBODY), None).unwrap();
        },
        &["rt must be a folder of this user"],
    );
}

#[test]
fn a_runtime_folder_too_deep_for_a_socket_is_said_with_a_way_out() {
    let host = Host::with(&Servers::demo());
    let deep = host.path().join("d".repeat(100));
    let host = host.env("FOOTBRIDGE_RUNTIME", &deep);
    host.runs_script("echo never").fails(125, &["at most 107", "FOOTBRIDGE_RUNTIME names another"]);
}

#[test]
fn a_state_folder_that_is_a_link_or_open_to_others_is_refused() {
    let other = tempfile::tempdir().unwrap();
    let host = Host::with(&Servers::demo());
    fs::create_dir(host.state()).unwrap();
    symlink(other.path(), host.state().join("audit")).unwrap();
    host.runs_script("echo never").fails(125, &["audit is a link, and must be a folder itself"]);
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
    fs::remove_file(host.state().join("audit")).unwrap();
    fs::create_dir(host.state().join("audit")).unwrap();
    fs::set_permissions(host.state().join("audit"), fs::Permissions::from_mode(0o770)).unwrap();
    host.runs_script("echo never").fails(125, &["audit must be a folder of this user", "mode"]);
}

#[test]
fn missing_guest_programs_are_named_with_where_they_should_be() {
    let empty = tempfile::tempdir().unwrap();
    let host = Host::with(&Servers::demo()).env("FOOTBRIDGE_GUEST_DIR", empty.path());
    host.runs_script("echo never").fails(125, &["cannot find tool-cli in", "scripts/build", "FOOTBRIDGE_GUEST_DIR"]);
}

#[test]
fn too_few_descriptors_are_said_and_are_no_panic() {
    let host = Host::with(&Servers::none());
    let command = host.run_of(&["true"]);
    for limit in [6, 8, 12] {
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")]);
        Running::start(&mut starting(&command, limited)).ends().fails(125, &["files cannot be opened", "ulimit -n"]);
    }
}

#[test]
fn a_run_without_any_server_says_so_and_works() {
    let host = Host::with(&Servers::none());
    let ran = host.runs_script("tool-cli; tool-cli demo");
    ran.fails(1, &["no MCP server is configured", "--config", "Server \"demo\" not found. Connected: (none)"]);
    assert_eq!(ran.stdout, "No MCP servers connected.\n");
}
