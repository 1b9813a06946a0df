//! What an operator finds out about a server that does not start, and where what is logged goes while a command has the
//! terminal.

use std::{ffi::OsStr, fs};

use footbridge_tests::{Host, Person, Ran, Running, Servers};
use serde_json::{Value, json};

/// One that ends with a word on its standard error, one whose program is missing, and one that is well.
fn servers() -> Servers {
    Servers::demo().misbehaving("ends", &["exits-at-start"]).and("gone", json!({"command": "/nowhere/at/all"}))
}

fn footbridge(host: &Host, words: &[&str]) -> Ran {
    let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    Running::start(&mut host.footbridge(&words)).ends()
}

fn logs(host: &Host, words: &[&str]) -> Ran {
    footbridge(host, &[&["servers", "logs"], words].concat())
}

#[test]
fn what_a_server_said_is_there_after_the_run_that_it_did_not_start_in() {
    let host = Host::open_with(&servers());
    logs(&host, &["ends"]).fails(1, &["no harness has started a server"]);
    let ran = host.runs(&["sh", "-c", "tool-cli ends || tool-cli ends || true; tool-cli gone || true; tool-cli demo"]);
    assert!(ran.stdout.contains("get_weather"), "{ran:?}");
    let detail = "it ended while starting (exit status: 3); on its standard error: fatal: ";
    assert!(ran.stderr.contains(detail) && ran.stderr.contains("\"/nowhere/at/all\" cannot be started"), "{ran:?}");
    assert_eq!(ran.stderr.matches(detail).count(), 1, "the same is logged once: {ran:?}");
    assert_eq!(ran.stderr.matches("/nowhere/at/all").count(), 1, "{ran:?}");
    let shown = logs(&host, &["ends"]).well();
    assert!(shown.contains("fatal: \\u{1b}[31mno licence"), "{shown}");
    assert!(shown.contains("footbridge: it ended while starting (exit status: 3)"), "{shown}");
    assert!(logs(&host, &["gone"]).well().contains("footbridge: \"/nowhere/at/all\" cannot be started"));
    let last = logs(&host, &["ends", "-n", "1", "--json"]).well();
    let line: Value = serde_json::from_str(last.trim_end()).unwrap();
    assert_eq!((&line["source"], &line["harness"]), (&json!("harness"), &json!("run")));
    assert!(logs(&host, &["demo"]).well().contains("footbridge: ready"));
    logs(&host, &["../../x"]).fails(1, &["nothing is kept of a server", "demo, ends, gone"]);
}

#[test]
fn the_true_cause_shows_in_the_list_of_servers_and_is_followed() {
    let daemon = Host::with(&servers()).serves();
    let guest = daemon.opens("agent", &[]);
    let _each_was_tried = ["ends", "gone"].map(|server| guest.asks("listTools", json!({"server": server})));
    let list = footbridge(&daemon.host, &["servers", "list"]).well();
    for cause in
        ["exit status: 3", "no licence", "\"/nowhere/at/all\" cannot be started", "footbridge servers logs ends"]
    {
        assert!(list.contains(cause), "{cause}: {list}");
    }
    assert!(!list.contains('\u{1b}'), "{list}");
    let words = ["servers", "logs", "ends", "--follow", "-n", "0"].map(OsStr::new);
    let mut following = Running::start(&mut daemon.host.footbridge(&words));
    let _restarted = footbridge(&daemon.host, &["servers", "restart", "ends"]);
    following.stdout.shows("no licence");
}

#[test]
fn servers_are_started_by_a_check_that_is_asked_to() {
    let host = Host::with(&servers());
    let config = host.servers_file();
    let config = config.to_str().unwrap();
    let plain = footbridge(&host, &["config", "check", "--config", config]);
    assert!(plain.status == 0 && !plain.stdout.contains("no licence"), "{plain:?}");
    let started = footbridge(&host, &["config", "check", "--start", "--config", config]);
    assert_eq!(started.status, 1, "{started:?}");
    assert!(started.stdout.contains("error: server ends does not start: it ended while starting (exit status: 3)"));
    assert!(started.stdout.contains("error: server gone does not start: \"/nowhere/at/all\" cannot be started"));
    assert!(started.stdout.contains("started: demo: ") && !started.stdout.contains("\nok: "), "{started:?}");
    let lacks = host.path().join("lacks.json");
    let mut entries: Value = serde_json::from_str(&fs::read_to_string(config).unwrap()).unwrap();
    let demo = entries["mcpServers"]["demo"].take();
    entries["mcpServers"] = json!({"demo": demo, "lacks": {"command": "true", "env": {"K": "${UNSET}"}}});
    fs::write(&lacks, entries.to_string()).unwrap();
    let lacking = footbridge(&host, &["config", "check", "--start", "--config", lacks.to_str().unwrap()]);
    assert!(lacking.status == 2 && lacking.stdout.contains("started: demo: "), "{lacking:?}");
    assert_eq!(lacking.stdout.matches("UNSET is not set").count(), 1, "{lacking:?}");
    let json = footbridge(&host, &["config", "check", "--start", "--json", "--config", config]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let names: Vec<&Value> = json["started"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["demo", "ends", "gone"]);
    assert_eq!(json["ok"], false, "one of them does not start: {json}");
    assert!(json["started"][0]["tools"].as_u64().unwrap() > 3 && json["started"][1]["error"].is_string(), "{json}");
}

/// A tool that was meant to be disabled can be called.
#[test]
fn a_disabled_tool_that_there_is_none_of_is_told_of() {
    let host = Host::with(&servers());
    let mut entries: Value = serde_json::from_str(&fs::read_to_string(host.servers_file()).unwrap()).unwrap();
    let mut demo = entries["mcpServers"]["demo"].take();
    demo["disabledTools"] = json!(["get_wheather", "count_slowly"]);
    entries["mcpServers"] = json!({"demo": demo});
    let config = host.path().join("misspelt.json");
    fs::write(&config, entries.to_string()).unwrap();
    let config = config.to_str().unwrap();
    let said =
        "\"disabledTools\" names \"get_wheather\" (did you mean \"get_weather\"?), and the server has no such tool";
    let checked = footbridge(&host, &["config", "check", "--start", "--config", config]);
    assert!(checked.status == 0 && checked.stdout.contains(&format!("note: server demo: {said}")), "{checked:?}");
    let json = footbridge(&host, &["config", "check", "--start", "--json", "--config", config]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["started"][0]["note"].as_str().unwrap().starts_with(said), "{json}");
    let looked = footbridge(&host, &["doctor", "--config", config]);
    assert!(looked.stdout.contains(said), "{looked:?}");
}

#[test]
fn warnings_do_not_get_onto_a_terminal_that_the_command_has() {
    let host = Host::open_with(&servers());
    let mut person = Person::new();
    let mut running = person.starts(&host.run_of(&["sh", "-c", "tool-cli ends; echo the command is here; read line"]));
    person.sees("the command is here");
    assert!(!person.saw("trouble with an MCP server"), "{person:?}");
    person.types("\n");
    person.sees("while the command ran, in ");
    person.sees("; the last");
    assert_eq!(running.status().code(), Some(0));
    let said = person.seen_since("while the command ran, in ");
    let path = said.split("; the last").next().unwrap();
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}: {person:?}"));
    assert!(text.contains("trouble with an MCP server") && text.contains("no licence"), "{text}");
    assert!(path.starts_with(host.state().join("logs/runs").to_str().unwrap()), "{path}");
}

#[test]
fn a_log_setting_that_means_nothing_is_a_mistake_and_json_is_json() {
    for (name, value) in [("FOOTBRIDGE_LOG", "wran"), ("FOOTBRIDGE_LOG_FORMAT", "yaml")] {
        Host::open_with(&Servers::demo()).env(name, value).runs(&["true"]).fails(2, &[name, value]);
    }
    let host = Host::open_with(&servers()).env("FOOTBRIDGE_LOG_FORMAT", "json");
    let ran = host.runs(&["sh", "-c", "tool-cli ends || true"]);
    let logged: Vec<Value> = ran.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let trouble = logged.iter().find(|line| line["server"] == "ends").unwrap_or_else(|| panic!("{ran:?}"));
    assert!(trouble["level"] == "WARN" && trouble["detail"].as_str().unwrap().contains("no licence"), "{trouble}");
}
