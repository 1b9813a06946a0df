//! What is left after a run for whoever wants to know what was done: the record.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt};

use footbridge_tests::{Host, Servers};
use serde_json::{Value, json};

#[test]
fn every_call_is_recorded_with_its_outcome_and_every_refused_one_too() {
    let servers = Servers::demo().misbehaving("ok", &["ok"]).misbehaving("dies", &["exits-mid-call"]);
    let host = Host::with(&servers);
    let script = "tool-cli; tool-cli demo; tool-cli demo get_weather; tool-cli demo get_weather '{\"city\":\"Bern\"}'
        tool-cli demo get_weather '{\"city\":\"Atlantis\"}'; tool-cli demo get_weather '{\"town\":\"Bern\"}'
        tool-cli demo nope '{}'; tool-cli nope nope '{}'; tool-cli ok fail '{}'; tool-cli dies echo '{}'
        tool-cli resource read demo note:///9; tool-cli resource read ok test:one
        tool-cli resource read nope x:y; tool-cli demo get_weather '{broken'; true";
    let ran = host.runs_script(script);
    assert_eq!(ran.status, 0, "{ran:?}");
    let record = host.record();
    let outcomes: BTreeMap<&str, &Value> = record
        .iter()
        .filter(|line| line["type"] == "outcome")
        .map(|line| (line["id"].as_str().unwrap(), line))
        .collect();
    let calls: Vec<(String, String)> = record
        .iter()
        .filter(|line| line["type"] == "intent" || line["type"] == "refused")
        .map(|line| {
            let what = format!(
                "{} {} {}",
                line["kind"].as_str().unwrap(),
                line["server"].as_str().unwrap(),
                line["name"].as_str().unwrap()
            );
            let became = match outcomes.get(line["id"].as_str().unwrap()) {
                Some(outcome) => outcome["outcome"].as_str().unwrap(),
                None => line["reason"].as_str().unwrap(),
            };
            (what, became.to_owned())
        })
        .collect();
    let expected = [
        ("tool demo get_weather", "ok"),
        ("tool demo get_weather", "tool_error"),
        ("tool demo get_weather", "invalid_arguments"),
        ("tool demo nope", "unknown_tool"),
        ("tool nope nope", "unknown_server"),
        ("tool ok fail", "server_error"),
        ("tool dies echo", "unknown"),
        ("resource demo note:///9", "unknown_resource"),
        ("resource ok test:one", "ok"),
        ("resource nope x:y", "unknown_server"),
    ];
    let mut calls: Vec<(&str, &str)> = calls.iter().map(|(what, became)| (what.as_str(), became.as_str())).collect();
    // The demo server has no notes yet, so whether it is asked for one is the harness's to choose.
    if let Some(read) = calls.iter_mut().find(|(what, _)| *what == "resource demo note:///9") {
        assert!(["unknown_resource", "server_error"].contains(&read.1), "{read:?}");
        read.1 = "unknown_resource";
    }
    assert_eq!(calls, expected);
}

#[test]
fn lines_are_numbered_whole_and_for_the_owner_alone() {
    let host = Host::with(&Servers::demo());
    assert_eq!(host.runs_script("for n in 1 2 3; do tool-cli demo now '{}'; done >/dev/null").status, 0);
    let files = host.record_files();
    assert_eq!(files.len(), 1);
    assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o7777, 0o600);
    for folder in files[0].ancestors().skip(1).take(3) {
        assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o7777, 0o700, "{}", folder.display());
    }
    assert!(fs::read_to_string(&files[0]).unwrap().ends_with("}\n"));
    let record = host.record();
    let numbers: Vec<u64> = record.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=10).collect::<Vec<u64>>());
    assert!(record.iter().all(|line| line["time"].as_str().unwrap().ends_with('Z')));
    assert_eq!((&record[0]["type"], &record[1]["type"]), (&json!("started"), &json!("session")));
    let intent = &record[2];
    assert_eq!((&intent["decision"], &intent["policy"]), (&json!("allow"), &json!("open")));
    assert!(intent["definition"].as_str().unwrap().starts_with("sha256:"));
    assert!(intent["peer"].as_str().unwrap().starts_with("unix:uid="), "{intent}");
}

#[test]
fn the_same_arguments_have_the_same_digest_however_they_are_written() {
    let host = Host::with(&Servers::none().misbehaving("ok", &["ok"]));
    let script = r#"tool-cli ok echo '{"b":[1,2],"a":"\u00e9"}'; tool-cli ok echo '{ "a" : "é", "b" : [ 1, 2 ] }'; tool-cli ok echo '{"a":"e"}'"#;
    let printed = host.runs_script(script).stdout;
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[..2], ["{\"a\":\"é\",\"b\":[1,2]}"; 2], "what is recorded is what is sent");
    let digests: Vec<Value> =
        host.record().iter().filter(|line| line["type"] == "intent").map(|line| line["arguments"].clone()).collect();
    assert_eq!(digests[0], digests[1]);
    assert_ne!(digests[0], digests[2]);
    // Of `{"a":"é","b":[1,2]}`.
    assert_eq!(digests[0]["bytes"], 20);
}

#[test]
fn names_from_inside_cannot_steer_the_terminal_of_whoever_reads_the_record() {
    let host = Host::with(&Servers::demo());
    let ran =
        host.runs_script("tool-cli $'de\\e[2Jmo' $'x\\u202ey\\u009b' '{}'; tool-cli demo $'now\\n{\"seq\":99}' '{}'");
    assert_eq!(ran.status, 1);
    let text = fs::read_to_string(&host.record_files()[0]).unwrap();
    assert_eq!(text.lines().count(), 6, "{text}");
    assert!(!text.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{202e}')), "{text:?}");
    let refused = &host.record()[2];
    assert_eq!(
        (refused["server"].as_str(), refused["name"].as_str()),
        (Some("de\u{1b}[2Jmo"), Some("x\u{202e}y\u{9b}"))
    );
}

#[test]
fn a_run_whose_record_cannot_be_written_does_not_start() {
    let host = Host::with(&Servers::demo());
    fs::create_dir(host.state()).unwrap();
    fs::write(host.state().join("audit"), "in the way").unwrap();
    let ran = host.runs_script("echo never");
    ran.fails(125, &["audit", host.state().to_str().unwrap()]);
    assert_eq!(ran.stdout, "");
}

#[test]
fn a_call_that_cannot_be_recorded_is_not_made() {
    if !nix::unistd::geteuid().is_root() {
        return footbridge_tests::skipped(
            "a_call_that_cannot_be_recorded_is_not_made",
            "needs root to mount a small file system",
        );
    }
    let mut tape = footbridge_tests::Tape::new();
    let servers = Servers::none().recording("ok", &["ok"], &tape);
    let host = Host::with(&servers);
    fs::create_dir(host.state()).unwrap();
    // A file system of its own for the record, in a mount namespace of its own, that fills up meanwhile.
    let inner = host.run_of(&[
        "bash",
        "-c",
        "tool-cli ok >/dev/null; echo ready; for n in 1 2 3 4 5; do read full; tool-cli --json ok add '{\"a\":1,\"b\":1}'; echo \"called $n: $?\"; done; \
        read room; tool-cli ok add '{\"a\":1,\"b\":2}'",
    ]);
    let mut command = std::process::Command::new("unshare");
    let state = host.state();
    let script = format!(
        "mount -t tmpfs -o size=512k,mode=700 tmpfs {0} && (while read -r line; do case $line in full) cat /dev/zero >{0}/fill 2>/dev/null; \
         echo filled >&2;; room) rm {0}/fill; echo roomy >&2;; esac; echo $line; done | \"$@\")",
        state.display()
    );
    command.args(["--mount", "sh", "-c", &script, "sh"]);
    let mut running = footbridge_tests::Running::start(&mut footbridge_tests::starting(&inner, command));
    running.stdout.shows("ready\n");
    for call in 1..=5 {
        running.hears("full\n");
        running.stdout.shows(&format!("called {call}: "));
    }
    running.stderr.shows("audit_unavailable");
    assert_eq!(tape.count("tools/call"), 0, "nothing was sent");
    running.hears("room\n");
    running.stdout.shows("\n3\n");
    let ran = running.ends();
    assert_eq!(ran.stderr.matches("calls are refused").count(), 1, "one line, not one a call: {ran:?}");
    assert_eq!(tape.count("tools/call"), 1);
}

#[test]
fn a_run_is_found_by_its_labels() {
    let host = Host::with(&Servers::demo());
    let host = host.option("--label").option("team=search").option("--label").option("ticket=7");
    let ran = host.runs(&["true"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let session = &host.record()[1];
    assert_eq!(session["labels"], json!({"team": "search", "ticket": "7"}));
    assert!(session["listeners"][0].as_str().unwrap().starts_with("unix:/"), "{session}");
}
