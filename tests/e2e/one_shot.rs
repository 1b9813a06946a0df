//! Calls without a daemon: the server is started, called once and gone; one chain has all of them.

use std::{fs, os::unix::fs::PermissionsExt};

use footbridge_tests::{Host, NOBODY, Person, Ran, Running, Servers, Tape, programs};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const BERN: &str = r#"{"city":"Bern"}"#;

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What `audit verify` says of this host's record.
fn verified(host: &Host) -> Value {
    let mut command = host.footbridge(&["audit", "verify", "--json"].map(AsRef::as_ref));
    json_of(&Running::start(&mut command).ends().well())
}

/// The demo server, which adds a line to a file each time that it is started.
fn counted(folder: &std::path::Path) -> Value {
    let script = format!("echo started >> {}/starts; exec \"$0\" demo-server", folder.display());
    json!({"command": "sh", "args": ["-c", script, programs::footbridge()]})
}

fn starts(folder: &std::path::Path) -> usize {
    fs::read_to_string(folder.join("starts")).unwrap_or_default().lines().count()
}

#[test]
fn a_mistake_in_the_log_s_filter_is_one_of_usage() {
    let host = Host::with(&Servers::demo()).env("FOOTBRIDGE_LOG", "debgu");
    for words in [["tools"].as_slice(), &["call", "demo", "now"]] {
        host.one_shot(words).fails(2, &["FOOTBRIDGE_LOG: \"debgu\" is no level"]);
    }
}

#[test]
fn a_call_prints_what_tool_cli_would_and_leaves_one_chain_and_nothing_else() {
    let host = Host::with(&Servers::demo());
    let weather = json_of(&host.one_shot(&["call", "demo", "get_weather", BERN]).well());
    assert_eq!(weather["city"], "Bern");
    let raw = host.one_shot(&["call", "demo", "get_weather", BERN, "--json"]).well();
    assert_eq!((raw.lines().count(), &json_of(&raw)["structuredContent"]["city"]), (1, &json!("Bern")));
    let mut piped = Running::start(&mut host.one_shot_of(&["call", "demo", "get_weather", "-"]));
    piped.hears(BERN);
    assert_eq!(json_of(&piped.ends().well()), weather);
    let written = host.one_shot(&["call", "demo", "now", "--out", "now.txt"]).well();
    assert_eq!(written, "Written to: now.txt\n");
    assert!(fs::read_to_string(host.work().join("now.txt")).unwrap().contains("UTC"));
    host.leaves_nothing_behind();
    assert_eq!((host.recorded("intent").len(), host.recorded("outcome").len()), (4, 4));
    assert!(host.recorded("intent").iter().all(|line| line["policy"] == "open"), "{:?}", host.recorded("intent"));
    let report = verified(&host);
    assert_eq!((&report["ok"], host.one_shot_chains().len()), (&json!(true), 1), "{report}");
    assert_eq!(report["chains"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["chains"][0]["ended"], true, "{report}");
}

#[test]
fn calls_at_once_share_the_chain_and_none_is_lost() {
    let host = Host::with(&Servers::demo());
    let calls: Vec<Running> =
        (0..5).map(|_| Running::start(&mut host.one_shot_of(&["call", "demo", "get_weather", BERN]))).collect();
    for call in calls {
        assert_eq!(json_of(&call.ends().well())["city"], "Bern");
    }
    let report = verified(&host);
    assert_eq!((&report["ok"], &report["chains"][0]["ended"]), (&json!(true), &json!(true)), "{report}");
    assert_eq!((host.recorded("intent").len(), host.one_shot_chains().len()), (5, 1));
}

#[test]
fn only_the_server_that_is_needed_is_started_and_lists_start_none_twice() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let servers = Servers::none().and("one", counted(folders[0].path())).and("other", counted(folders[1].path()));
    // Whoever never runs keeps nobody from anything: its secret is not even looked for.
    let servers = servers.and("broken", json!({"command": "x", "env": {"KEY": "${SET_NOWHERE}"}}));
    let host = Host::with(&servers);
    let counts = || [starts(folders[0].path()), starts(folders[1].path())];
    assert_eq!(json_of(&host.one_shot(&["call", "one", "get_weather", BERN]).well())["city"], "Bern");
    assert_eq!(counts(), [1, 0]);
    let tools = host.one_shot(&["tools", "one"]).well();
    let with = format!("--config {}", host.servers_file().display());
    let next = format!("footbridge tools {with} <server> <tool>");
    assert!(tools.contains("\n  get_weather ") && tools.contains(&next), "{tools}");
    let full = host.one_shot(&["tools", "one", "get_weather"]).well();
    assert!(
        full.contains(r#""enum":["metric","imperial"],"default":"metric""#)
            && full.ends_with(&format!("Call it: footbridge call {with} one get_weather '{{\"city\":\"text\"}}'\n")),
        "{full}"
    );
    assert_eq!(counts(), [1, 0], "its list is kept");
    let listed = host.one_shot(&["tools", "one", "--refresh", "--json"]).well();
    assert_eq!((json_of(&listed)["server"].as_str(), counts()), (Some("one"), [2, 0]));
    let other = host.mcp_tool(&["other__get_weather", "--help"]).well();
    assert!(other.contains("--city") && counts() == [2, 1], "{other}");
    let list = fs::read_dir(host.cache().join("footbridge/tools")).unwrap().next().unwrap().unwrap();
    assert_eq!(list.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
    // An entry that changed is another server.
    let text =
        fs::read_to_string(host.servers_file()).unwrap().replace("\"other\":{", "\"other\":{\"disabled\":false,");
    fs::write(host.servers_file(), text).unwrap();
    let _listed = host.one_shot(&["tools", "other"]).well();
    assert_eq!(counts(), [2, 2]);
    host.leaves_nothing_behind();
}

#[test]
fn all_servers_are_listed_and_one_that_does_not_start_hides_no_other() {
    let host = Host::with(&Servers::demo().misbehaving("dead", &["exits-at-start"]));
    let ran = host.one_shot(&["tools"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stdout.contains("  demo ") && ran.stdout.contains("[unavailable]"), "{ran:?}");
    assert!(ran.stderr.contains("Server \"dead\" is not available"), "{ran:?}");
    let listed = json_of(&host.one_shot(&["tools", "--json"]).stdout);
    assert_eq!(listed["servers"][0]["status"], "unavailable", "{listed}");
    host.one_shot(&["call", "dead", "echo"]).fails(3, &["Server \"dead\" is not available", "because:", "no licence"]);
    host.leaves_nothing_behind();
}

#[test]
fn all_servers_are_listed_and_one_that_cannot_be_used_hides_no_other() {
    let broken = || {
        Servers::none()
            .and("gh", json!({"command": "x", "env": {"KEY": "${SET_NOWHERE}"}}))
            .and("odd", json!({"command": 5}))
            .and("text", json!("x"))
    };
    let host = Host::with(&broken().and("demo", json!({"command": programs::footbridge(), "args": ["demo-server"]})));
    // The first time none is known; then one is, and the others are asked for alone.
    for _ in 0..2 {
        let ran = host.one_shot(&["tools"]);
        assert!(ran.status == 0 && ran.stdout.contains("  demo "), "{ran:?}");
        for says in
            ["Server \"gh\" cannot be used", "SET_NOWHERE is not set", "\"odd\" cannot be used", "\"command\" is"]
        {
            assert!(ran.stderr.contains(says), "{says}: {ran:?}");
        }
        let help = host.mcp_tool(&["--help"]).well();
        assert!(help.contains("  demo__now ") && help.contains("  gh__... is not available: "), "{help}");
        assert!(help.contains("  text__... is not available: "), "{help}");
    }
    host.one_shot(&["tools", "gh"]).fails(2, &["SET_NOWHERE is not set"]);
    Host::with(&broken()).one_shot(&["tools"]).fails(2, &["SET_NOWHERE is not set", "\"command\" is a number"]);
    host.leaves_nothing_behind();
}

#[test]
fn a_signal_cancels_the_call_and_leaves_nothing_behind() {
    for (signal, status) in [(Signal::SIGHUP, 129), (Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let mut tape = Tape::new();
        let host = Host::with(&Servers::none().recording("x", &["never-answers-call"], &tape));
        let call = Running::start(&mut host.one_shot_of(&["call", "x", "echo"]));
        let id = tape.hears("tools/call");
        call.signal(signal);
        call.ends().fails(status, &[signal.as_str(), "may have had its effect"]);
        assert_eq!(tape.hears("notifications/cancelled"), id);
        host.leaves_nothing_behind();
        assert_eq!(host.recorded("outcome")[0]["outcome"], "unknown");
        let report = verified(&host);
        assert_eq!((&report["ok"], &report["chains"][0]["ended"]), (&json!(true), &json!(true)), "{report}");
    }
}

#[test]
fn one_that_is_killed_takes_its_server_along_and_the_next_goes_on() {
    let mut tape = Tape::new();
    let servers = Servers::demo().recording("x", &["never-answers-call"], &tape);
    let host = Host::with(&servers);
    let mut call = Running::start(&mut host.one_shot_of(&["call", "x", "echo"]));
    let _id = tape.hears("tools/call");
    call.killed();
    host.leaves_nothing_behind();
    assert_eq!(json_of(&host.one_shot(&["call", "demo", "get_weather", BERN]).well())["city"], "Bern");
    let report = verified(&host);
    assert_eq!((&report["ok"], &report["chains"][0]["ended"]), (&json!(true), &json!(false)), "{report}");
    assert_eq!(
        (host.recorded("intent").len(), host.recorded("outcome").len(), host.one_shot_chains().len()),
        (2, 1, 1)
    );
}

#[test]
fn a_time_that_is_given_is_for_the_start_of_the_server_too() {
    let host = Host::with(&Servers::none().and("slow", json!({"command": "sleep", "args": ["600"]})));
    let began = std::time::Instant::now();
    let call = ["call", "slow", "x", "--timeout", "500ms"];
    host.one_shot(&call).fails(8, &["not ready within 500ms", "nothing was sent"]);
    // Its own limit is a minute.
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    host.leaves_nothing_behind();
}

#[test]
fn what_cannot_be_written_is_no_error_of_the_tool() {
    let host = Host::with(&Servers::demo());
    for words in [["tools"].as_slice(), &["call", "demo", "now"], &["--version"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let status = host.one_shot_of(words).stdout(full).status().unwrap();
        assert_eq!(status.code(), Some(125), "{words:?}");
    }
}

#[test]
fn a_result_with_an_image_that_is_none_is_printed_where_it_cannot_be_written() {
    let result = r#"{"content":[{"type":"text","text":"seen"},{"type":"image","data":"!!","mimeType":"image/png"}]}"#;
    // Single braces are places of arguments.
    let word = result.replace('{', "{{").replace('}', "}}");
    let tool = json!({"name": "t", "command": "printf", "args": ["%s", word], "output": "result"});
    let server = json!({"type": "cli", "allowedPrograms": ["printf"], "tools": [tool]});
    let host = Host::with(&Servers::none().and("x", server));
    let file = host.path().join("image.png");
    for out in ["--out", "--out-dir"] {
        let ran = host.one_shot(&["call", "x", "t", out, file.to_str().unwrap()]);
        ran.fails(125, &["not base64", "all of it was printed"]);
        assert!(ran.stdout.contains("seen\n") && !file.exists(), "{ran:?}");
    }
}

#[test]
fn no_answer_in_time_is_said_and_the_call_is_cancelled() {
    let mut tape = Tape::new();
    let host = Host::with(&Servers::none().recording("x", &["never-answers-call"], &tape));
    // On a busy machine that may be too short to send it.
    let sent = ["100ms", "1s", "10s"].into_iter().any(|time| {
        let ran = host.one_shot(&["call", "x", "echo", "{}", "--timeout", time]);
        ran.fails(8, &[&format!("within {time}")]);
        let was_not = ["cancelled before it was sent", "nothing was sent"].iter().any(|said| ran.stderr.contains(said));
        assert!(if was_not { tape.count("tools/call") == 0 } else { ran.stderr.contains("may have had its effect") });
        !was_not
    });
    assert!(sent);
    let _id = tape.hears("notifications/cancelled");
    host.one_shot(&["call", "x", "echo", "{}", "--timeout", "soon"]).fails(2, &["\"soon\" is no timeout"]);
    host.leaves_nothing_behind();
}

#[test]
fn what_is_too_large_and_who_cannot_be_asked_is_said_as_there_is_no_session() {
    let host = Host::with(&Servers::none().misbehaving("x", &["ok"]));
    let host = host.settings("[limits.calls]\nresult_bytes = \"1 KiB\"\n");
    let says = ["is over 1024 bytes", "result_bytes in [limits.calls] of footbridge.toml"];
    let ran = host.one_shot(&["call", "x", "echo", &json!({"text": "x".repeat(2000)}).to_string()]);
    ran.fails(7, &says);
    assert!(!ran.stderr.contains("--limit"), "{ran:?}");
    // A terminal that draws nothing is none to ask on.
    let host = Host::with(&Servers::demo()).env("TERM", "dumb");
    let mut person = Person::new();
    let add = ["call", "demo", "add_note", r#"{"text":"one"}"#, "--policy", "ask"];
    let mut call = person.starts(&host.one_shot_of(&add));
    person.sees("no terminal to ask on");
    assert_eq!(call.status().code(), Some(5));
    assert!(!person.saw("\u{1b}["), "{person:?}");
}

#[test]
fn the_policy_that_is_named_decides() {
    let host = Host::with(&Servers::demo());
    let add = ["call", "demo", "add_note", r#"{"text":"one"}"#];
    let denied = host.one_shot(&[&add[..], &["--policy", "readonly"]].concat());
    denied.fails(5, &["denied"]);
    host.one_shot(&[&add[..], &["--policy", "ask"]].concat()).fails(5, &["no terminal to ask on", "--policy open"]);
    host.one_shot(&[&add[..], &["--policy", "nope"]].concat()).fails(2, &["nope"]);
    let error = host.one_shot(&[&add[..], &["--policy", "readonly", "--json"]].concat());
    let said = json_of(&error.stderr);
    assert_eq!((&said["exitCode"], &said["data"]["reason"]), (&json!(5), &json!("denied_by_policy")), "{said}");
    let refused = host.recorded("refused");
    assert!(refused.len() == 3 && host.recorded("intent").is_empty(), "{refused:?}");
    assert!(host.one_shot(&add).well().contains("note:///"));
}

#[test]
fn a_person_at_the_terminal_is_asked_though_the_result_goes_into_a_pipe() {
    for (word, status) in [("allow", 0), ("deny", 5)] {
        let host = Host::with(&Servers::demo());
        let call = host.one_shot_of(&["call", "demo", "add_note", r#"{"text":"one"}"#, "--policy", "ask"]);
        let words: Vec<String> = std::iter::once(call.get_program())
            .chain(call.get_args())
            .map(|word| format!("'{}'", word.to_str().unwrap()))
            .collect();
        let mut script = std::process::Command::new("sh");
        script
            .args(["-c", &format!("{} > result; echo status $?", words.join(" "))])
            .env_clear()
            .current_dir(host.work());
        script.envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut person = Person::new();
        let mut shell = person.starts(&script);
        person.sees("{\"text\":\"one\"}");
        person.reads();
        // Ctrl-S, which stops a terminal that is not told otherwise.
        person.types("\u{13}\r");
        person.sees("is none of the words");
        person.reads();
        person.types(&format!("{word}\r"));
        person.sees(&format!("status {status}"));
        let _status = shell.status();
        let result = fs::read_to_string(host.work().join("result")).unwrap();
        assert_eq!(result.contains("note:///"), status == 0, "{result}");
        let approval = host.recorded("approval");
        let by = approval[1]["approver"].as_str().unwrap();
        assert!(by.starts_with("terminal of call (uid "), "{approval:?}");
        host.leaves_nothing_behind();
    }
}

#[test]
fn a_session_that_is_open_lends_its_policy_and_its_harness_makes_and_records_the_call() {
    let mut tape = Tape::new();
    let daemon = Host::with(&Servers::demo().recording("x", &["never-answers-call"], &tape)).serves();
    let (_open, _readonly) =
        (daemon.opens("open", &["--policy", "open"]), daemon.opens("reads", &["--policy", "readonly"]));
    let add = ["call", "demo", "add_note", r#"{"text":"one"}"#, "--via"];
    let via = |session: &str| daemon.host.one_shot(&[&add[..], &[session]].concat());
    assert!(via("open").well().contains("note:///1"));
    // The same server as before: it has the first note still.
    assert!(via("open").well().contains("note:///2"));
    via("reads").fails(5, &["denied"]);
    via("nobody").fails(3, &["no harness of this user has an open session \"nobody\"", "session list"]);
    let both = daemon.host.one_shot(&[&add[..], &["open", "--policy", "readonly"]].concat());
    both.fails(2, &["cannot be used with"]);
    let tool = daemon.host.mcp_tool(&["demo__get_weather", "--city", "Bern", "--via", "reads"]).well();
    assert_eq!(json_of(&tool)["city"], "Bern");
    let intents = daemon.host.recorded("intent");
    assert!(intents.iter().all(|line| line["peer"].as_str().unwrap().starts_with("operator:uid=")), "{intents:?}");
    assert_eq!((intents.len(), daemon.host.one_shot_chains().len()), (3, 0), "{intents:?}");
    // Whoever leaves has the call cancelled.
    let mut call = Running::start(&mut daemon.host.one_shot_of(&["call", "x", "echo", "{}", "--via", "open"]));
    let id = tape.hears("tools/call");
    call.killed();
    assert_eq!(tape.hears("notifications/cancelled"), id);
    daemon
        .host
        .one_shot(&["call", "x", "echo", "{}", "--via", "open", "--timeout", "200ms"])
        .fails(8, &["within 200ms"]);
}

#[test]
fn what_a_session_sees_is_listed_by_the_harness_that_has_it_and_the_others_are_named() {
    let gone = json!({"command": "/nonexistent/server"});
    let daemon = Host::with(&Servers::demo().and("gone", gone)).serves();
    let _open = daemon.opens("open", &["--policy", "open"]);
    let elsewhere = Host::with(&Servers::none());
    let tools = |words: &[&str]| {
        let mut command = elsewhere.one_shot_of(&[&["tools", "--via"][..], words].concat());
        command.envs(daemon.host.one_shot_of(&["tools"]).get_envs().filter_map(|(name, value)| Some((name, value?))));
        Running::start(&mut command).ends()
    };
    let all = tools(&["open"]);
    assert!(all.status == 0 && all.stdout.contains("  demo "), "{all:?}");
    assert!(all.stdout.contains("Use: footbridge tools --via open <server>"), "{all:?}");
    assert!(all.stderr.contains("Server \"gone\" is not available"), "{all:?}");
    assert!(all.stderr.contains("(because: ") && all.stderr.contains("/nonexistent/server"), "{all:?}");
    let full = json_of(&tools(&["open", "demo", "get_weather", "--json"]).well());
    assert_eq!(full["inputSchema"]["required"], json!(["city"]), "{full}");
    assert!(tools(&["open", "demo", "--refresh"]).well().contains("add_note"));
    tools(&["open", "gone"]).fails(3, &["Server \"gone\" is not available"]);
    tools(&["open", "dmeo"]).fails(2, &["session \"open\" sees no server \"dmeo\"; did you mean \"demo\"?"]);
    tools(&["none"]).fails(3, &["no harness of this user has an open session \"none\": there are open."]);
    let alone = Host::with(&Servers::demo());
    alone.one_shot(&["tools", "--via", "x"]).fails(3, &["open session \"x\": none that runs here has any."]);
}

#[test]
fn a_call_as_a_session_whose_policy_asks_says_that_it_waits_and_what_became_of_it() {
    let daemon = Host::with(&Servers::demo()).serves();
    let _asks = daemon.opens("asks", &["--policy", "ask"]);
    let add = ["call", "demo", "add_note", r#"{"text":"one"}"#, "--via", "asks"];
    let call = Running::start(&mut daemon.host.one_shot_of(&add));
    let id = daemon.host.pending(1)[0]["id"].as_str().unwrap().to_owned();
    daemon.host.answers(&["allow", &id]);
    let ran = call.ends();
    assert!(ran.stdout.contains("note:///1"), "{ran:?}");
    assert!(ran.stderr.contains(&format!("approval {id}, until 2")), "{ran:?}");
    assert_eq!((ran.stderr.matches("Held:").count(), ran.stderr.contains("is granted")), (1, true), "{ran:?}");
    let late = [&add[..], &["--timeout", "3s"]].concat();
    let ran = daemon.host.one_shot(&late);
    ran.fails(6, &["Held: a person has to allow this call, approval ap-", "within 3s", "nothing was sent"]);
    let json = daemon.host.one_shot(&[&late[..], &["--json"]].concat());
    let lines: Vec<Value> = json.stderr.lines().map(json_of).collect();
    assert_eq!((json.status, &lines[0]["approval"]["state"]), (6, &json!("pending")), "{json:?}");
    assert_eq!(lines[1]["data"]["approvalId"], lines[0]["approval"]["id"], "{json:?}");
    let tool = ["demo__add_note", "--text", "two", "--via", "asks", "--timeout", "3s"];
    daemon.host.mcp_tool(&tool).fails(6, &["Held:", "nothing was sent"]);
    assert_eq!(daemon.host.recorded("intent").len(), 1);
}

#[test]
fn a_call_as_a_session_ends_with_it() {
    let mut tape = Tape::new();
    let daemon = Host::with(&Servers::demo().recording("x", &["never-answers-call"], &tape)).serves();
    let _both = (daemon.opens("open", &["--policy", "open"]), daemon.opens("asks", &["--policy", "ask"]));
    let calls = |server: &str, tool: &str, arguments: &str, session: &str| {
        Running::start(&mut daemon.host.one_shot_of(&["call", server, tool, arguments, "--via", session]))
    };
    let call = calls("x", "echo", "{}", "open");
    let id = tape.hears("tools/call");
    assert_eq!(daemon.host.session(&["revoke", "open"]).status, 0);
    call.ends().fails(9, &["may have"]);
    assert_eq!(tape.hears("notifications/cancelled"), id);
    let call = calls("demo", "add_note", r#"{"text":"one"}"#, "asks");
    let id = daemon.host.pending(1)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(daemon.host.session(&["revoke", "asks"]).status, 0);
    call.ends().fails(3, &["Held:", "cancelled"]);
    assert_ne!(daemon.host.approvals(&["allow", &id]).status, 0);
    assert_eq!(daemon.host.recorded("intent").len(), 1, "that of the other one");
}

#[test]
fn a_call_whose_harness_ends_may_have_had_its_effect_and_keeps_it_from_nothing() {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut tape = Tape::new();
        let mut daemon = Host::with(&Servers::none().recording("x", &["never-answers-call"], &tape)).serves();
        let _open = daemon.opens("open", &["--policy", "open"]);
        let call = Running::start(&mut daemon.host.one_shot_of(&["call", "x", "echo", "{}", "--via", "open"]));
        tape.hears("tools/call");
        daemon.process().signal(signal);
        call.ends().fails(9, &["does not answer", "may have had its effect", "audit tail"]);
        let ended = daemon.ends();
        assert!(!ended.stderr.contains("still being carried out"), "{ended:?}");
    }
}

#[test]
fn a_relative_file_among_the_arguments_is_named_where_the_server_does_not_start() {
    let host = Host::with(&Servers::none().and("a", json!({"command": "sh", "args": ["./server.sh"]})));
    fs::write(host.path().join("server.sh"), "exit 0\n").unwrap();
    let hint = "it starts in an empty folder, in which there is no ./server.sh: write the whole path, or name a folder";
    host.one_shot(&["call", "a", "x"]).fails(3, &["because: it ended while starting", hint]);
    let listed = host.one_shot(&["tools"]);
    assert!(listed.status == 0 && listed.stderr.contains(hint), "{listed:?}");
    let ran = host.runs_script("tool-cli a x");
    assert!(ran.status == 1 && ran.stderr.contains(hint), "{ran:?}");
}

#[test]
fn what_cannot_be_meant_is_named_with_what_can() {
    let host = Host::with(&Servers::demo());
    let fails = |words: &[&str], status: i32, says: &[&str]| host.one_shot(words).fails(status, says);
    fails(&["call", "dmeo", "now"], 2, &["no server \"dmeo\"", "did you mean \"demo\"?"]);
    fails(&["call", "demo", "noow"], 2, &["\"noow\" not found on server \"demo\"; did you mean \"now\"?"]);
    fails(&["call", "demo", "get_weather", "[]"], 2, &["invalid JSON arguments: an object is needed"]);
    fails(&["call", "demo", "get_weather", r#"{"city":1}"#], 2, &["do not match the input schema", "city"]);
    fails(&["call", "demo", "get_weather", r#"{"city":"a","city":"b"}"#], 2, &["twice"]);
    fails(&["tools", "demo", "get_wether"], 2, &["no tool \"get_wether\"", "did you mean \"get_weather\"?"]);
    let failed = host.one_shot(&["call", "demo", "get_weather", r#"{"city":"Atlantis"}"#]);
    assert_eq!((failed.status, failed.stdout.as_str()), (1, ""), "{failed:?}");
    assert!(failed.stderr.contains("Atlantis"), "{failed:?}");
    host.leaves_nothing_behind();
}

#[test]
fn a_broken_or_foreign_file_is_named_and_help_goes_on_without_it() {
    let host = Host::with(&Servers::demo()).config("broken.json", "{\"mcpServers\": {");
    host.one_shot(&["call", "demo", "now"]).fails(2, &["broken.json", "does not parse"]);
    for list in [host.one_shot(&["tools", "--refresh"]), host.one_shot(&["tools", "demo", "--refresh"])] {
        assert!(list.status == 0 && list.stdout.contains("add_note"), "{list:?}");
        assert!(list.stderr.contains("left out: ") && list.stderr.contains("broken.json"), "{list:?}");
    }
    host.one_shot(&["call", "demo", "now"]).fails(2, &["broken.json", "does not parse"]);
    let known = Host::with(&Servers::demo());
    let _listed = known.one_shot(&["tools"]).well();
    let known = known.config("broken.json", "{\"mcpServers\": {");
    // Its files have another order, and the list of the good one is kept.
    for words in [["--help"].as_slice(), &["demo__now", "--help"]] {
        let help = known.mcp_tool(words);
        assert!(help.status == 0 && help.stdout.contains("demo__now"), "{help:?}");
    }
    assert!(known.mcp_tool(&["--help"]).stderr.contains("left out: "));
    fs::set_permissions(known.servers_file(), fs::Permissions::from_mode(0o666)).unwrap();
    known.one_shot(&["call", "demo", "now"]).fails(2, &["servers.json", "chmod go-w"]);
    let none = Host::with(&Servers::none()).only_configs(&[]).env("XDG_CONFIG_HOME", "/nonexistent");
    none.one_shot(&["tools"]).fails(2, &["no servers file was found", "mcpServers"]);
}

#[test]
fn another_user_has_calls_lists_and_a_chain_of_their_own() {
    if !nix::unistd::geteuid().is_root() {
        return footbridge_tests::skipped("another user's one-shot calls", "this is not root");
    }
    let host = Host::with(&Servers::demo()).as_user(NOBODY);
    fs::create_dir(host.cache()).unwrap();
    std::os::unix::fs::chown(host.cache(), Some(NOBODY), Some(NOBODY)).unwrap();
    let ran: Ran = host.one_shot(&["call", "demo", "get_weather", BERN]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let ran = host.mcp_tool(&["demo__get_weather", "--city", "Bern"]);
    assert!(ran.status == 0 && json_of(&ran.stdout)["city"] == "Bern", "{ran:?}");
    assert_eq!((host.one_shot_chains().len(), host.recorded("intent").len()), (1, 2));
    host.leaves_nothing_behind();
}

#[test]
fn a_result_does_not_wait_for_where_heads_go_and_all_of_them_get_there() {
    let place = tempfile::tempdir().unwrap();
    let (kept, go) = (place.path().join("kept"), place.path().join("go"));
    let script = format!("until [ -e {} ]; do sleep 0.05; done; cat >> {}", go.display(), kept.display());
    let settings = format!("[audit]\nhead_command = [\"sh\", \"-c\", \"{script}\"]\nhead_command_time = \"60s\"\n");
    let host = Host::with(&Servers::demo()).settings(&settings);
    let mut call = Running::start(&mut host.one_shot_of(&["call", "demo", "get_weather", BERN]));
    call.stdout.shows("Bern");
    assert!(!kept.exists(), "it came before");
    fs::write(&go, "").unwrap();
    assert_eq!(call.ends().status, 0);
    let heads = fs::read_to_string(&kept).unwrap();
    let last = host.recorded("head").pop().unwrap();
    assert!(heads.contains(last["head"]["hash"].as_str().unwrap()), "{heads}");
}

#[test]
fn a_file_with_no_server_is_named_with_what_to_do() {
    let host = Host::with(&Servers::none());
    let says = ["no server is configured (looked at ", "servers.json", "docs/configuration.md"];
    host.one_shot(&["tools"]).fails(2, &says);
}

#[test]
fn what_is_waited_for_is_on_a_line_of_the_terminal_and_gone_behind_it() {
    let slow = &["slow-with-progress", "60"];
    let servers = Servers::none().misbehaving("slow", slow).misbehaving("mute", &["never-initializes"]);
    let host = Host::with(&servers).settings("[limits.servers]\nstart_time = \"3s\"\n").env("TERM", "xterm");
    let gone = "\r\u{1b}[K";
    let (mut person, call) = (Person::new(), host.one_shot_of(&["call", "slow", "echo"]));
    let called = person.starts(&call);
    person.sees("Calling echo of slow: ");
    person.sees("done at last");
    assert!(person.seen_since(" s)\u{1b}[K\u{1b}[?7h").contains(&format!("{gone}done at last")), "the line is gone");
    assert_eq!(called.ends().status, 0);
    let (mut person, list) = (Person::new(), host.one_shot_of(&["tools"]));
    let listed = person.starts(&list);
    person.sees("Starting and listing mute");
    person.sees("(because: ");
    assert!(person.seen_since(" s)\u{1b}[K\u{1b}[?7h").starts_with(gone), "the line is gone");
    assert_eq!(listed.ends().status, 0);
    let piped = host.one_shot(&["tools", "--refresh"]);
    assert!(!piped.stderr.contains("Starting and listing"), "{piped:?}");
}
