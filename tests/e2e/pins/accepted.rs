//! What an operator sees of a change, and what becomes of it once it is accepted.

use std::{
    ffi::OsStr,
    fs, thread,
    time::{Duration, Instant},
};

use footbridge_tests::{Guest, Host, PATIENCE, Person, Ran, Running, Servers};
use serde_json::{Value, json};

use super::{Listing, calls, plain, refuses, shows, tool, with};

/// What a server writes to hide what it says from whoever looks at it.
const EVIL: &str =
    "fine\u{202e}daer tsrif\u{1b}[2J\u{1b}]0;title\u{7}\r\n  description:\n+nothing\u{200b} changed\u{9b}1A";

/// `footbridge servers` with these words, to its end.
fn servers(host: &Host, words: &[&str]) -> Ran {
    let words: Vec<&OsStr> = std::iter::once("servers").chain(words.iter().copied()).map(OsStr::new).collect();
    Running::start(&mut host.footbridge(&words)).ends()
}

/// The lines that a command prints as JSON.
fn lines(ran: Ran) -> Vec<Value> {
    ran.well().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs a script, with tool-cli's status as its own.
fn calls_in_a_run(host: &Host) -> Ran {
    host.runs_script("tool-cli --exit-codes x t '{}'")
}

#[test]
fn an_accepted_change_holds_at_once_without_a_restart_and_is_recorded() {
    let listing = Listing::of(&plain());
    let mut daemon = Host::with(&listing.server()).serves();
    let guest = daemon.opens("one", &[]);
    calls(&guest);
    listing.becomes(&with("something else"));
    assert!(guest.calls("x", "nudge", json!({}))["result"].is_object());
    daemon.process().stderr.shows("are not what they were");
    refuses(&guest);
    let diff = servers(&daemon.host, &["pins", "diff", "x", "t"]);
    assert!(diff.stdout.contains("  description:\n    -what it was\n    +something else\n"), "{diff:?}");
    let digest = lines(servers(&daemon.host, &["pins", "diff", "--json"]))[0]["changed"]["digest"].clone();
    let digest = digest.as_str().unwrap();
    assert!(diff.stdout.contains(digest) && diff.stderr.contains("to accept:"), "{diff:?}");
    let accepted = servers(&daemon.host, &["pins", "accept", "x", "t", "--digest", digest]);
    assert_eq!((accepted.status, accepted.stderr.as_str()), (0, "accepted: x/t\n"), "{accepted:?}");
    assert_eq!(accepted.stdout, diff.stdout, "it shows what it accepts");
    calls(&guest);
    assert_eq!(super::described(&guest), "something else");
    let record = daemon.host.record();
    let line = record.iter().find(|line| line["type"] == "pin_accepted").unwrap();
    let called = record.iter().rfind(|line| line["type"] == "intent").unwrap();
    assert_eq!((&line["server"], &line["name"], &line["definition"]), (&json!("x"), &json!("t"), &json!(digest)));
    assert!(line["approver"].as_str().unwrap().starts_with("servers pins accept (uid "), "{line}");
    assert_eq!(called["definition"], json!(digest), "calls name the definition that was accepted");
    let again = servers(&daemon.host, &["pins", "accept", "x", "t"]);
    again.fails(1, &["did not change, or was accepted already"]);
    let nothing = servers(&daemon.host, &["pins", "diff"]);
    assert_eq!((nothing.status, nothing.stdout.as_str(), nothing.stderr.as_str()), (0, "", "nothing changed\n"));
}

#[test]
fn no_harness_has_to_run_to_look_and_to_accept() {
    let listing = Listing::of(&plain());
    let host = Host::with(&listing.server());
    assert_eq!(servers(&host, &["pins"]).well(), "nothing is pinned\n");
    assert!(!host.state().exists(), "looking makes nothing");
    assert_eq!(calls_in_a_run(&host).status, 0);
    listing.becomes(&with("something else"));
    assert_eq!(calls_in_a_run(&host).status, 5);
    let table = servers(&host, &["pins", "x"]).well();
    let states: Vec<&str> = table.lines().map(|line| line.split_whitespace().nth(2).unwrap()).collect();
    assert_eq!(states, ["STATE", "pinned", "changed"], "{table}");
    let accepted = servers(&host, &["pins", "accept", "x", "--all"]);
    assert_eq!(accepted.status, 0, "{accepted:?}");
    assert!(accepted.stderr.contains("accepted: x/t\n") && accepted.stderr.contains("in no record"), "{accepted:?}");
    assert_eq!(calls_in_a_run(&host).well(), "called\n");
    // And what was pinned before is a change now.
    listing.becomes(&plain());
    assert_eq!(calls_in_a_run(&host).status, 5);
}

#[test]
fn doctor_says_whose_changed_tools_are_a_problem_of_this_configuration() {
    let listing = Listing::of(&plain());
    let host = Host::with(&listing.server());
    assert_eq!(calls_in_a_run(&host).status, 0);
    listing.becomes(&with("something else"));
    assert_eq!(calls_in_a_run(&host).status, 5);
    let other = host.path().join("other.json");
    std::fs::write(&other, r#"{"mcpServers": {}}"#).unwrap();
    for (file, status, says) in [
        (host.servers_file(), "problem", "footbridge servers pins diff x"),
        (other, "note", "this configuration has no such server"),
    ] {
        let words = [OsStr::new("doctor"), OsStr::new("--json"), OsStr::new("--config"), file.as_os_str()];
        let ran = Running::start(&mut host.footbridge(&words)).ends();
        let found: Value = serde_json::from_str(&ran.stdout).unwrap();
        let pins = found["checks"].as_array().unwrap().iter().find(|one| one["check"] == "pins").unwrap();
        assert!(pins["status"] == status && pins.to_string().contains(says), "{}: {pins}", file.display());
        assert!(pins.to_string().contains("1 tool of x changed since pinned"), "{pins}");
    }
}

#[test]
fn a_definition_that_changed_again_is_not_accepted() {
    let listing = Listing::of(&plain());
    let host = Host::with(&listing.server());
    assert_eq!(calls_in_a_run(&host).status, 0);
    listing.becomes(&with("second"));
    assert_eq!(calls_in_a_run(&host).status, 5);
    let seen = lines(servers(&host, &["pins", "diff", "--json"])).remove(0);
    assert_eq!(seen["changed"]["definition"]["tool"]["description"], "second");
    let digest = seen["changed"]["digest"].as_str().unwrap();
    listing.becomes(&with("third"));
    assert_eq!(calls_in_a_run(&host).status, 5);
    for which in [&["t"][..], &["--all"]] {
        let words = [&["pins", "accept", "x"], which, &["--digest", digest]].concat();
        servers(&host, &words)
            .fails(1, &["\"t\" of server \"x\" changed to another definition", "nothing was accepted"]);
    }
    assert_eq!(calls_in_a_run(&host).status, 5);
    let told = lines(servers_without_a_harness(&host, &["pins", "accept", "x", "t", "--json"]));
    assert_eq!((&told[0]["server"], &told[0]["tool"]), (&json!("x"), &json!("t")));
    assert_eq!(calls_in_a_run(&host).well(), "called\n");
}

/// The same, without the note that nothing is recorded.
fn servers_without_a_harness(host: &Host, words: &[&str]) -> Ran {
    let ran = servers(host, words);
    assert_eq!(ran.stderr, "no footbridge is running: this is in no record\n");
    Ran { stderr: String::new(), ..ran }
}

#[test]
fn another_command_is_another_server_of_the_same_name() {
    let listing = Listing::of(&plain());
    let host = Host::with(&listing.server());
    assert_eq!(calls_in_a_run(&host).status, 0);
    let text = fs::read_to_string(host.servers_file()).unwrap();
    let mut other: Value = serde_json::from_str(&text).unwrap();
    other["mcpServers"]["x"]["args"].as_array_mut().unwrap().push("--v\u{1b}[2J".into());
    fs::write(host.servers_file(), other.to_string()).unwrap();
    // Another server of the same name, pinned at first sight, and the log says how it is reached.
    let ran = calls_in_a_run(&host);
    assert!(ran.status == 0 && ran.stdout == "called\n", "{ran:?}");
    assert!(ran.stderr.contains("is another one, by how it is reached") && ran.stderr.contains("--v"), "{ran:?}");
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
    listing.becomes(&with("other"));
    assert_eq!(calls_in_a_run(&host).status, 5);
    fs::write(host.servers_file(), &text).unwrap();
    assert_eq!(calls_in_a_run(&host).status, 5);
    let diff = servers(&host, &["pins", "diff"]);
    assert_eq!(diff.stdout.matches("x/t\n  server   ").count(), 2, "{diff:?}");
    assert!(diff.stdout.contains(" --v\\u{1b}[2J\n"), "{diff:?}");
    for command in ["accept", "forget"] {
        servers(&host, &["pins", command, "x", "--all"])
            .fails(1, &["several servers \"x\"", "--origin", "--v\\u{1b}[2J"]);
    }
    servers(&host, &["pins", "accept", "x", "--all", "--origin", "nothing"]).fails(1, &["contain \"nothing\""]);
    assert_eq!(servers(&host, &["pins", "accept", "x", "--all", "--origin", "--v"]).status, 0);
    assert_eq!(calls_in_a_run(&host).status, 5, "that one was not accepted");
    let json = lines(servers(&host, &["pins", "--json"]));
    let of_t = json.iter().filter(|pin| pin["tool"] == "t");
    let has: Vec<_> =
        of_t.map(|pin| (pin["origin"]["args"].as_array().unwrap().len(), pin["changed"].is_object())).collect();
    assert!(has.len() == 2 && has.iter().any(|(_, changed)| *changed) && has[0].0 != has[1].0, "{has:?}");
    fs::write(host.servers_file(), other.to_string()).unwrap();
    assert_eq!(calls_in_a_run(&host).well(), "called\n");
    assert_eq!(servers(&host, &["pins", "forget", "x", "--all", "--origin", "--v"]).status, 0);
    assert!(lines(servers(&host, &["pins", "--json"])).iter().all(|pin| !pin["origin"].to_string().contains("--v")));
}

#[test]
fn what_a_server_writes_is_shown_and_does_nothing() {
    let listing = Listing::of(&plain());
    let host = Host::with(&listing.server());
    assert_eq!(calls_in_a_run(&host).status, 0);
    listing.becomes(&[tool("nudge", "stays"), tool("t", EVIL), tool("\u{1b}[31mred\u{202e}", EVIL)]);
    let ran = calls_in_a_run(&host);
    ran.fails(5, &["has tools that it did not have before", "\\u{1b}[31mred\\u{202e}"]);
    let is_plain = |text: &str| text.chars().all(|c| c == '\n' || (!c.is_control() && !"\u{202e}\u{200b}".contains(c)));
    assert!(is_plain(&ran.stderr), "{ran:?}");
    for words in [&["pins", "diff"][..], &["pins"], &["pins", "diff", "--json"], &["pins", "--json"]] {
        let ran = servers(&host, words);
        assert!(ran.status == 0 && is_plain(&ran.stdout) && is_plain(&ran.stderr), "{ran:?}");
    }
    let diff = servers(&host, &["pins", "diff"]).stdout;
    let expected = "\n  description:\n    -what it was\n    +fine\\u{202e}daer tsrif\\u{1b}[2J\\u{1b}]0;title\\u{7}\\r\n\
                    \u{20}   +  description:\n    ++nothing\\u{200b} changed\\u{9b}1A\n";
    assert!(diff.ends_with(expected), "{diff}");
    let json = lines(servers(&host, &["pins", "diff", "--json"]));
    assert_eq!(json[0]["changed"]["definition"]["tool"]["description"], EVIL, "programs get it as it is");
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let listing = Listing::of(&plain());
    let host = Host::with(&listing.server());
    assert_eq!(calls_in_a_run(&host).status, 0);
    listing.becomes(&with(EVIL));
    assert_eq!(calls_in_a_run(&host).status, 5);
    let diff = || host.footbridge(&["servers", "pins", "diff"].map(OsStr::new));
    let mut person = Person::new();
    let mut running = person.starts(&diff());
    person.sees("\u{1b}[31m    -what it was\u{1b}[0m");
    person.sees("\u{1b}[32m    +fine\\u{202e}daer");
    person.sees("to accept:");
    assert!(running.status().success());
    let mut person = Person::new();
    let mut without = diff();
    without.env("NO_COLOR", "1");
    let mut running = person.starts(&without);
    person.sees("    -what it was\r\n    +fine");
    assert!(running.status().success());
}

#[test]
fn what_is_asked_for_and_not_there_is_named() {
    let listing = Listing::of(&plain());
    let host = Host::with(&listing.server());
    assert_eq!(calls_in_a_run(&host).status, 0);
    let rows: [(&[&str], i32, &str); 11] = [
        (&["pins", "y"], 1, "server \"y\" has no pins"),
        (&["pins", "diff", "y"], 1, "server \"y\" has no pins"),
        (&["pins", "diff", "x", "u"], 1, "tool \"u\" of server \"x\" has no pin"),
        (&["pins", "accept", "x", "u"], 1, "tool \"u\" of server \"x\" has no pin"),
        (&["pins", "accept", "x", "t"], 1, "tool \"t\" of server \"x\" did not change"),
        (&["pins", "accept", "x", "--all"], 1, "no tool of server \"x\" changed"),
        (&["pins", "accept", "x"], 2, "required"),
        (&["pins", "accept", "x", "t", "--all"], 2, "cannot be used with"),
        (&["pins", "accept", "x", "t", "--digest", "abc"], 2, "64 hexadecimal digits"),
        (&["list"], 1, "no footbridge is running that has servers"),
        (&["restart", "x"], 1, "no footbridge is running"),
    ];
    for (words, status, says) in rows {
        servers(&host, words).fails(status, &[says]);
    }
    servers(&host, &["pins", "forget", "y", "--all"]).fails(1, &["server \"y\" has no pins"]);
    servers(&host, &["pins", "forget", "x", "t", "u"]).fails(1, &["tool \"u\" of server \"x\" has no pin"]);
    listing.becomes(&with("something else"));
    let forgotten = servers(&host, &["pins", "forget", "x", "t"]);
    assert_eq!((forgotten.status, forgotten.stderr.as_str()), (0, "1 pin of x forgotten\n"));
    let again = servers(&host, &["pins", "forget", "x", "--all", "--json"]).well();
    assert_eq!(again, "{\"server\":\"x\",\"forgotten\":1}\n");
    assert_eq!(calls_in_a_run(&host).status, 0, "it is pinned anew");
}

/// What the list says of a server, for programs.
fn listed(host: &Host, name: &str) -> Value {
    let all = lines(servers(host, &["list", "--json"]));
    all.iter().find(|server| server["name"] == name).cloned().unwrap_or_else(|| panic!("{all:#?}"))
}

#[test]
fn servers_of_the_daemon_are_listed_and_restarted() {
    let listing = Listing::of(&plain());
    let programs = json!({"type": "cli", "allowedPrograms": ["cat"], "tools": [{"name": "cat", "command": "cat"}]});
    let more = listing.server().misbehaving("dead", &["exits-at-start"]).and("programs", programs);
    let mut daemon = Host::with(&more).serves();
    let guest: Guest = daemon.opens("one", &[]);
    calls(&guest);
    daemon.process().stderr.shows("trouble with an MCP server");
    let before = listed(&daemon.host, "x");
    assert_eq!((&before["kind"], &before["status"], &before["tools"]), (&json!("stdio"), &json!("ready"), &json!(2)));
    assert_eq!(before["changed"], json!([]));
    listing.becomes(&with("something else"));
    let restarted = servers(&daemon.host, &["restart", "x"]);
    assert!(restarted.status == 0 && restarted.stderr.starts_with("x is started afresh by serve "), "{restarted:?}");
    daemon.process().stderr.shows("are not what they were");
    shows(&guest, "unavailable");
    let after = listed(&daemon.host, "x");
    assert!(before["pid"].is_u64() && after["pid"] != before["pid"], "{before} {after}");
    assert_eq!((&after["tools"], &after["changed"]), (&json!(2), &json!(["t"])));
    let table = servers(&daemon.host, &["list"]).well();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "KIND", "STATUS", "TOOLS", "CHANGED", "HARNESS"]);
    assert_eq!(rows[1][..5], ["dead", "stdio", "unavailable", "0", "0"]);
    assert_eq!(rows[2][..5], ["programs", "cli", "ready", "1", "0"]);
    assert_eq!(rows[3][..6], ["x", "stdio", "ready", "2", "1", "serve"]);
    assert!(table.contains("Server \"dead\" is not available") && !table.contains('\u{1b}'), "{table}");
    servers(&daemon.host, &["restart", "y"]).fails(1, &["no server \"y\"", "servers list"]);
    servers(&daemon.host, &["restart", "programs"]).fails(1, &["serve ", "each of its calls starts a program"]);
    let told: Value = serde_json::from_str(&servers(&daemon.host, &["restart", "x", "--json"]).well()).unwrap();
    assert!(told["name"] == "x" && told["harness"].as_str().unwrap().starts_with("serve "), "{told}");
}

#[test]
fn a_start_that_hangs_is_cut_short_by_a_restart() {
    let daemon = Host::with(&Servers::none().misbehaving("x", &["never-initializes"])).serves();
    let starting = |not: &Value| {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let x = listed(&daemon.host, "x");
            if x["pid"].is_u64() && x["pid"] != *not {
                assert_eq!(x["status"], "starting");
                return x["pid"].clone();
            }
            assert!(Instant::now() < deadline, "{x}");
            thread::sleep(Duration::from_millis(20));
        }
    };
    let before = starting(&Value::Null);
    assert_eq!(servers(&daemon.host, &["restart", "x"]).status, 0);
    starting(&before);
}

#[test]
fn a_run_is_asked_too_also_where_its_people_are_not() {
    let listing = Listing::of(&plain());
    let mut bridge = Host::with(&listing.server()).settings("[approval]\nwatch = false\n").opens();
    calls(&bridge.guest);
    let info = listed(&bridge.host, "x");
    assert!(info["harness"].as_str().unwrap().starts_with("run "), "{info}");
    listing.becomes(&with("something else"));
    assert_eq!(servers(&bridge.host, &["restart", "x"]).status, 0);
    bridge.harness().stderr.shows("are not what they were");
    refuses(&bridge.guest);
    assert_eq!(servers(&bridge.host, &["pins", "accept", "x", "--all"]).stderr, "accepted: x/t\n");
    calls(&bridge.guest);
    assert_eq!(bridge.host.record().iter().filter(|line| line["type"] == "pin_accepted").count(), 1);
    assert_eq!(bridge.ends().status, 0);
}
